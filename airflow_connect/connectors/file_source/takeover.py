"""Offsets of the real FileStreamSourceTask, translated to bytes.

It counts UTF-16 units, terminators included, of text that it decodes as UTF-8 with U+FFFD for what is not valid; when
it starts it skips that number of *bytes*. With a start at byte s, position p means the line t >= p for which the units
of the bytes from s to t are p - s. Nobody knows s. Bytes are never fewer than units, so t lies between the byte p
(s = t: all is ASCII, or the worker has just started) and the line that the units from the beginning of the file give
(s = 0: it has read the file in one go). The first line at or behind byte p therefore loses nothing, whatever s was; it
is the very line where text before it is ASCII. Source: org.apache.kafka.connect.file.FileStreamSourceTask (Kafka 4.3).
"""

from __future__ import annotations

from typing import NamedTuple

from airflow_connect.api.errors import OffsetError
from airflow_connect.connectors.file_source.content import NONE, Content, open_content, read_range
from airflow_connect.connectors.file_source.lines import LineFormat, find_line_ends
from airflow_connect.connectors.file_source.offsets import FINGERPRINT_BYTES, TAIL_BYTES, FileOffset, content_hash
from airflow_connect.connectors.file_source.places.place import FoundFile, Place

_BLOCK_BYTES = 1 << 20


class TakenOver(NamedTuple):
    """An offset of ours, and what people should know about it, or ""."""

    offset: FileOffset
    note: str = ""


def take_over(position: int, place: Place, file: FoundFile, *, as_bytes: bool) -> TakenOver:
    """The offset that a worker's `position` means.

    Args:
        position: as the worker has committed it.
        place: where the file is.
        file: as it is now; a compressed file is bytes like any other for the worker.
        as_bytes: `offset.takeover=bytes`: the earliest line that it can mean, so that none is lost. Else the line that
            it means if the worker has read the file in one go; where there is none, as with `as_bytes`.

    Raises:
        OffsetError: no line of the file begins where it could be.
    """
    if position == 0:
        return TakenOver(FileOffset(0, "", identity=file.identity))
    with open_content(place, file, NONE) as content:
        counted = _byte_of_units(content, position)
    earliest = _line_behind(position, place, file) if position <= file.size else None
    # Text that is ASCII is counted in one way only: then the line has to be there.
    if earliest is None or (counted is None and earliest != position and _is_ascii(position, place, file)):
        raise _no_line(position, file)
    if counted == earliest:
        return TakenOver(_offset_at(earliest, place, file), _translated(position, earliest, file))
    left = f"The position {position} of {file.name}, left by a Kafka Connect worker,"
    if counted is not None and not as_bytes:
        return TakenOver(_offset_at(counted, place, file), _translated(position, counted, file))
    repeated = f"up to byte {counted}" if counted is not None else "of the worker's last run"
    note = (
        f"{left} can mean several lines: it is taken as byte {earliest}, so that none is lost, and lines {repeated} may"
        " come twice. If the worker has read the file without a restart, offset.takeover=characters is exact."
    )
    return TakenOver(_offset_at(earliest, place, file), note)


def _translated(position: int, byte: int, file: FoundFile) -> str:
    if byte == position:
        return ""
    left = f"The position {position} of {file.name}, left by a Kafka Connect worker,"
    return f"{left} counts characters: it is taken as byte {byte}."


def _no_line(position: int, file: FoundFile) -> OffsetError:
    return OffsetError(
        f"A Kafka Connect worker left position {position} for {file.name}, but no line begins there, neither counted in"
        f" characters nor in bytes (the file has {file.size} bytes).",
        code="file.position",
        suggestion="Was the file truncated or replaced? Delete its offset to read it from the beginning, or alter it.",
    )


def _offset_at(byte: int, place: Place, file: FoundFile) -> FileOffset:
    head = read_range(place, file, NONE, 0, min(FINGERPRINT_BYTES, file.size))
    start = max(0, byte - TAIL_BYTES)
    tail = read_range(place, file, NONE, start, byte - start)
    return FileOffset(byte, content_hash(head), content_hash(tail), file.identity)


def _line_behind(byte: int, place: Place, file: FoundFile) -> int | None:
    """Where the first line begins at or behind a byte; None when none does."""
    # A line that begins right there is known by the terminator before it.
    start, buffer, form = byte - 1, b"", LineFormat()
    while True:
        more = read_range(place, file, NONE, start + len(buffer), _BLOCK_BYTES)
        buffer += more
        found = find_line_ends(buffer, form, is_last=not more)
        if len(found):
            return start + int(found.nexts[0])
        if not more:
            return None
        # The last byte may be a carriage return that waits for what follows.
        start, buffer = start + len(buffer) - 1, buffer[-1:]


def _is_ascii(end: int, place: Place, file: FoundFile) -> bool:
    """Whether everything before a byte is."""
    blocks = range(0, end, _BLOCK_BYTES)
    return all(read_range(place, file, NONE, at, min(_BLOCK_BYTES, end - at)).isascii() for at in blocks)


def _byte_of_units(content: Content, position: int) -> int | None:
    """The byte at which the line behind `position` units begins, None when no line ends there."""
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
