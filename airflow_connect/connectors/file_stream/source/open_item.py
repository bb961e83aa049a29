"""One file while a task reads it."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_connect.connectors.file_stream.source.config import COLUMN_LINES, PATTERN_LINES, FileSourceConfig
from airflow_connect.connectors.file_stream.source.file_offsets import (
    FINGERPRINT_BYTES,
    FileOffset,
    content_hash,
    hashed_bytes,
)
from airflow_connect.connectors.file_stream.source.read.content import (
    AUTO,
    NONE,
    REMOTE_BLOCK_BYTES,
    Content,
    open_content,
    read_range,
)
from airflow_connect.connectors.file_stream.source.read.events import EventReader
from airflow_connect.connectors.file_stream.source.read.line_reader import Block, LineReader
from airflow_connect.connectors.file_stream.source.read.lines import LineFormat
from airflow_connect.connectors.file_stream.source.work import Item
from airflow_connect.errors import DataError
from airflow_connect.stores.file_system import FileSystem, GoneError, changed_meanwhile
from airflow_connect.stores.file_systems import FileSystems, root_of

_LOCAL_BLOCK_BYTES = 2 << 20
_COLUMN_BLOCK_BYTES = 16 << 20
"""Bytes of a columnar block. Each block is a transaction, and ending one takes about 20 ms: 16 MiB take ten times
that."""
_PATTERN_BLOCK_BYTES = 8 << 20
"""The same where lines become records with fields."""


_SIGNATURES = {
    b"\x1f\x8b\x08": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh91AY&SY": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x04\x22\x4d\x18": "lz4",
    b"PK\x03\x04": "zip",
}


@dataclass(slots=True)
class OpenItem:
    """An item that is being read.

    Attributes:
        item: the file or range.
        fingerprint: see `FileOffset`.
    """

    item: Item
    fingerprint: str
    _content: Content
    _reader: LineReader | EventReader
    _takes_last: bool
    _is_local: bool

    @classmethod
    def of(
        cls,
        item: Item,
        offset: FileOffset | None,
        config: FileSourceConfig,
        file_systems: FileSystems,
        *,
        block_bytes: int = 0,
    ) -> OpenItem:
        """Open an item at its committed offset, or at the planned start if that is higher.

        `block_bytes`: read at once; 0: as much as suits the configuration and the file system.

        Raises:
            GoneError: the file no longer exists, another file has its name, or it was truncated since the plan.
            DataError: it is compressed, and damaged before that position, or in a way that is not supported.
        """
        file_system = file_systems.of(item.file.name)
        start = max(item.start, offset.position if offset else 0)
        if item.codec == NONE and start and not file_system.identity_is_content:
            _check_unchanged(file_system, item, offset)
        content = open_content(file_system, item.file, item.codec, start, item.end)
        try:
            head = content.peek(FINGERPRINT_BYTES) if start == 0 else b""
            fingerprint = item.fingerprint or (offset.fingerprint if offset else "")
            if start and (not fingerprint or _needs_head(config.form)):
                head = read_range(file_system, item.file, item.codec, 0, FINGERPRINT_BYTES)
            form, mark = config.form.at_start(head)
            if start == 0 and mark:
                start = len(content.read(mark))
            elif form.any_terminator and start:
                start += _rest_of_terminator(file_system, item, start, content, form)
            if start == 0 and item.codec == NONE and config.compression == AUTO:
                _check_plain(item.file.name, head)
            fingerprint = fingerprint or content_hash(head[:FINGERPRINT_BYTES])
            rules = config.rules._replace(block_bytes=block_bytes or _block_bytes(item, config))
            reader = LineReader(content, item.file_range.name or "The standard input", start, form, rules)
            events = EventReader(reader, config.multiline) if config.multiline else reader
        except BaseException:
            content.close()
            raise
        # A range that ends before the end of the file was cut at the beginning of a line; in the other cases nothing
        # can follow.
        is_whole = item.end is None or item.end < item.file.size or item.file_range.name is None or item.is_complete
        is_local = not root_of(item.file.name) and item.file_range.name is not None
        return cls(item, fingerprint, content, events, config.takes_last or is_whole, is_local)

    def next_block(self) -> Block | None:
        """The next lines or events; None at the end.

        Raises:
            UnavailableError: the file was truncated, also if it has grown again since: the block may mix two contents.
        """
        block = self._reader.next_block(takes_last=self._takes_last)
        if self._is_local and self.item.codec == NONE:
            size = hashed_bytes(self.fingerprint)
            if content_hash(self._content.raw(size)) != self.fingerprint:
                raise changed_meanwhile(f"{self.item.file.name} no longer begins with the same {size} bytes")
        return block

    def offset(self, block: Block, index: int) -> dict[str, object]:
        """The source offset after a line of a block."""
        is_end = self.item.codec != NONE and block.is_last and index == len(block.texts) - 1
        return FileOffset(
            int(block.nexts[index]),
            self.fingerprint,
            block.tail(index),
            self.item.file.identity,
            self.item.file.size if is_end else None,
            self.item.file.modified_ms,
            nanoseconds=self.item.file.nanoseconds,
        ).value

    def close(self) -> None:
        """Release the file."""
        self._content.close()


def _needs_head(form: LineFormat) -> bool:
    """Whether the byte order mark determines how every part of the file is read."""
    return form.encoding in ("utf-16", "utf-32")


def _rest_of_terminator(file_system: FileSystem, item: Item, start: int, content: Content, form: LineFormat) -> int:
    """Bytes of a line feed that is skipped: its line was read when the carriage return was the end of the file."""
    feed, carriage_return = (sign.encode(form.encoding) for sign in "\n\r")
    size = form.unit
    if (
        content.peek(size) != feed
        or read_range(file_system, item.file, item.codec, start - size, size) != carriage_return
    ):
        return 0
    return len(content.read(size))


def _check_unchanged(file_system: FileSystem, item: Item, offset: FileOffset | None) -> None:
    """Raise GoneError if a file no longer contains what was read from it: it was truncated since the plan."""
    expected = [(0, item.fingerprint or (offset.fingerprint if offset else ""))]
    if offset is not None and offset.position >= item.start:
        expected.append((offset.position - hashed_bytes(offset.tail), offset.tail))
    for at, known in expected:
        size = hashed_bytes(known)
        if size and content_hash(read_range(file_system, item.file, NONE, at, size)) != known:
            raise GoneError(f"{item.file.name} was truncated or written again since this run was planned")


def _check_plain(name: str, head: bytes) -> None:
    """Refuse compressed bytes that would be taken for text."""
    found = next((form for start, form in _SIGNATURES.items() if head.startswith(start)), "")
    if found:
        raise DataError(
            f"{name} is compressed ({found}), but would be read as text.",
            code="file.compressed",
            suggestion="Leave it out with files.exclude. Files of gzip and zstd are read if their names end with .gz or"
            " .zst, or if compression names the format; compression=none reads the bytes as text.",
        )


def _block_bytes(item: Item, config: FileSourceConfig) -> int:
    if root_of(item.file.name):
        return REMOTE_BLOCK_BYTES
    columnar = {COLUMN_LINES: _COLUMN_BLOCK_BYTES, PATTERN_LINES: _PATTERN_BLOCK_BYTES}
    return _LOCAL_BLOCK_BYTES if config.multiline else columnar.get(config.column_lines, _LOCAL_BLOCK_BYTES)
