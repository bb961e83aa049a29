"""Converts offsets of the real FileStreamSourceTask to bytes.

That task counts UTF-16 units, line terminators included, of text that it decodes as UTF-8, with U+FFFD for invalid
bytes. When it starts, it skips that number of *bytes*. If it started at byte s, position p means the line t >= p for
which the bytes from s to t decode to p - s units. s is not known. There are never fewer bytes than units, so t lies
between byte p (s = t: everything is ASCII, or the worker has just started) and the line found by counting units from
the beginning of the file (s = 0: the worker read the file without a restart). Resuming at the first line at or after
byte p therefore loses nothing, whatever s was. It is exact if the text before it is ASCII. Source:
org.apache.kafka.connect.file.FileStreamSourceTask (Kafka 4.3).
"""

from __future__ import annotations

from typing import NamedTuple

from airflow_connect.connectors.file_stream.source.file_offsets import (
    FINGERPRINT_BYTES,
    TAIL_BYTES,
    FileOffset,
    content_hash,
)
from airflow_connect.connectors.file_stream.source.read.content import NONE, Content, open_content, read_range
from airflow_connect.connectors.file_stream.source.read.lines import LineFormat, find_line_ends
from airflow_connect.errors import OffsetError
from airflow_connect.stores.file_system import FileSystem, FoundFile

_BLOCK_BYTES = 1 << 20


class TakenOver(NamedTuple):
    """Our offset, and a note for the run's report, or ""."""

    offset: FileOffset
    note: str = ""


def take_over(position: int, file_system: FileSystem, file: FoundFile, *, as_bytes: bool) -> TakenOver:
    """The offset for a worker's `position`.

    Args:
        position: as committed by the worker.
        file_system: where the file is.
        file: its current state; the worker reads the raw bytes of a compressed file like any other.
        as_bytes: `offset.takeover=bytes`: the earliest line that the position can mean, so that none is lost. Otherwise
            the line that it means if the worker read the file without a restart; if no such line exists, as with
            `as_bytes`.

    Raises:
        OffsetError: no line of the file begins at a possible position.
    """
    if position == 0:
        return TakenOver(FileOffset(0, identity=file.identity).at_time_of(file))
    with open_content(file_system, file, NONE) as content:
        counted = _byte_of_units(content, position)
    earliest = _following_line(position, file_system, file) if position <= file.size else None
    # In ASCII text bytes and units are equal, so a line must begin exactly there.
    if earliest is None or (counted is None and earliest != position and _is_ascii(position, file_system, file)):
        raise _no_line(position, file)
    if counted == earliest:
        return TakenOver(_offset_at(earliest, file_system, file), _translated(position, earliest, file))
    left = f"The position {position} of {file.name}, left by a Kafka Connect worker,"
    if counted is not None and not as_bytes:
        return TakenOver(_offset_at(counted, file_system, file), _translated(position, counted, file))
    repeated = f"up to byte {counted}" if counted is not None else "of the worker's last run"
    note = (
        f"{left} is ambiguous. It is read as byte {earliest}, so no line is lost, but lines {repeated} may"
        " be"
        " repeated. If the worker read the file without a restart, offset.takeover=characters is exact."
    )
    return TakenOver(_offset_at(earliest, file_system, file), note)


def _translated(position: int, byte: int, file: FoundFile) -> str:
    if byte == position:
        return ""
    left = f"The position {position} of {file.name}, left by a Kafka Connect worker,"
    return f"{left} counts characters: it is byte {byte}."


def _no_line(position: int, file: FoundFile) -> OffsetError:
    return OffsetError(
        f"A Kafka Connect worker left position {position} for {file.name}, but no line begins there, counted"
        f" in"
        f" characters or in bytes (the file has {file.size} bytes).",
        code="file.position",
        suggestion="The file may have been truncated or replaced. Delete its offset to read it from the beginning, or"
        " alter it.",
    )


def _offset_at(byte: int, file_system: FileSystem, file: FoundFile) -> FileOffset:
    head = read_range(file_system, file, NONE, 0, min(FINGERPRINT_BYTES, file.size))
    start = max(0, byte - TAIL_BYTES)
    tail = read_range(file_system, file, NONE, start, byte - start)
    return FileOffset(byte, content_hash(head), content_hash(tail), file.identity).at_time_of(file)


def _following_line(byte: int, file_system: FileSystem, file: FoundFile) -> int | None:
    """Where the first line at or after a byte begins; None if there is none."""
    # If a line begins exactly there, the byte before it is a terminator.
    start, buffer, form = byte - 1, b"", LineFormat()
    while True:
        more = read_range(file_system, file, NONE, start + len(buffer), _BLOCK_BYTES)
        buffer += more
        found = find_line_ends(buffer, form, is_last=not more)
        if len(found):
            return start + int(found.nexts[0])
        if not more:
            return None
        # The last byte may be a carriage return that is followed by a line feed.
        start, buffer = start + len(buffer) - 1, buffer[-1:]


def _is_ascii(end: int, file_system: FileSystem, file: FoundFile) -> bool:
    """Whether everything before a byte is."""
    blocks = range(0, end, _BLOCK_BYTES)
    return all(read_range(file_system, file, NONE, at, min(_BLOCK_BYTES, end - at)).isascii() for at in blocks)


def _byte_of_units(content: Content, position: int) -> int | None:
    """The byte at which the line after `position` units begins; None if no line ends there."""
    form = LineFormat()
    buffer, units, byte = b"", 0, 0
    while True:
        more = content.read(_BLOCK_BYTES)
        buffer += more
        found = find_line_ends(buffer, form, is_last=not more)
        lines = buffer[: found.consumed]
        size = _utf16_units(lines)
        if units + size >= position:
            return _inside(lines, found.nexts.tolist(), position - units, byte)
        if not more:
            return None
        units, byte, buffer = units + size, byte + len(lines), buffer[len(lines) :]


def _inside(lines: bytes, nexts: list[int], units: int, byte: int) -> int | None:
    if lines.isascii():
        return byte + units if units in nexts else None
    start, passed = 0, 0
    for following in nexts:
        passed += _utf16_units(lines[start:following])
        if passed >= units:
            return byte + following if passed == units else None
        start = following
    return None


def _utf16_units(data: bytes) -> int:
    return len(data) if data.isascii() else len(data.decode("utf-8", "replace").encode("utf-16-le")) // 2
