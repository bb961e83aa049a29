"""Reads write-ahead logs of Confluent's HDFS sink: which temporary files it was about to rename, and to what.

A log is `WAL`, the version byte 0, a marker of 16 bytes, then entries. An entry is two big-endian int32 (the length of
key and value together, and that of the key), then the key and the value. Each is a text preceded by its length in
bytes, as Hadoop's `Text.writeString` writes it. The int32 -1 and the marker may precede an entry. Keys are temporary
files and values are final names. `BEGIN` and `END` enclose a block, which counts only if it is complete. Source:
io.confluent.connect.hdfs.wal.{WALFile, WALEntry, FSWAL}; org.apache.hadoop.io.WritableUtils for lengths.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

_MAGIC = b"WAL"
_MARK_BYTES = 16
_HEADER_BYTES = len(_MAGIC) + 1 + _MARK_BYTES
_ESCAPE = -1
_BEGIN, _END = "BEGIN", "END"


class Move(NamedTuple):
    """A temporary file and its final name; both are URLs, or paths."""

    temporary: str
    final: str


@dataclass(frozen=True, slots=True)
class WalContent:
    """The contents of a log.

    Attributes:
        blocks: the complete ones, oldest first, without empty ones.
        unfinished: moves without an `END` after them: the connector stopped before it began to rename.
        is_whole: whether the log was read to its end.
    """

    blocks: tuple[tuple[Move, ...], ...]
    unfinished: tuple[Move, ...]
    is_whole: bool


class _CorruptError(Exception):
    """The following bytes are not an entry."""


def read_wal(data: bytes) -> WalContent:
    """Read a log; everything after damaged bytes is ignored, as in Confluent's sink. Never raises."""
    blocks: list[tuple[Move, ...]] = []
    open_block: list[Move] | None = None
    unfinished: list[Move] = []
    is_whole = True
    try:
        for key, value in _entries(data):
            if key == _BEGIN:
                unfinished += open_block or ()
                open_block = []
            elif key == _END:
                if open_block:
                    blocks.append(tuple(open_block))
                open_block = None
            elif open_block is not None:
                open_block.append(Move(key, value))
    except _CorruptError:
        is_whole = False
    return WalContent(tuple(blocks), (*unfinished, *(open_block or ())), is_whole)


def _entries(data: bytes) -> Iterator[tuple[str, str]]:
    if not data:
        return
    if len(data) < _HEADER_BYTES or data[:3] != _MAGIC or data[3] != 0:
        raise _CorruptError
    mark, at = data[4:_HEADER_BYTES], _HEADER_BYTES
    while at < len(data):
        length, at = _int32(data, at)
        if length == _ESCAPE:
            if data[at : at + _MARK_BYTES] != mark:
                raise _CorruptError
            at += _MARK_BYTES
            if at == len(data):
                return
            length, at = _int32(data, at)
        key_length, at = _int32(data, at)
        if not 0 <= key_length <= length or at + length > len(data):
            raise _CorruptError
        yield _text(data[at : at + key_length]), _text(data[at + key_length : at + length])
        at += length


def _int32(data: bytes, at: int) -> tuple[int, int]:
    if at + 4 > len(data):
        raise _CorruptError
    return struct.unpack_from(">i", data, at)[0], at + 4


def _text(data: bytes) -> str:
    """The text that `data` consists of."""
    if not data:
        raise _CorruptError
    first = struct.unpack_from(">b", data)[0]
    # Small lengths are one byte; -113 to -120 mean that 1 to 8 bytes of a larger length follow.
    width = 0 if first >= -112 else -112 - first
    if width > 8 or len(data) < 1 + width:
        raise _CorruptError
    length = first if width == 0 else int.from_bytes(data[1 : 1 + width], "big")
    text = data[1 + width :]
    if length != len(text):
        raise _CorruptError
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise _CorruptError from None
