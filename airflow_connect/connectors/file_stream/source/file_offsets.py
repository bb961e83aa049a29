"""Source partitions and offsets of files: Connect's `position`, and the data that identifies the file.

`{"filename": f}` is the whole file. `{"filename": f, "start": a, "end": b}` is a range of it, used while several tasks
read one file; `merge_ranges` merges ranges into one offset again. Positions are bytes of the content: of the
decompressed stream if the file is compressed. The real FileStreamSourceTask skips `position` bytes when it starts, so
it resumes after our last line, whatever the text is. From there it counts UTF-16 units (see `offsets/takeover`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from airflow_connect.errors import OffsetError
from airflow_connect.stores.file_system import FoundFile

FILENAME, START, END = "filename", "start", "end"
POSITION, FINGERPRINT, TAIL, IDENTITY, WHOLE = "position", "fingerprint", "tail", "identity", "whole"
MODIFIED, NANOSECONDS, MISSING = "modified", "nanoseconds", "missing"
FINGERPRINT_BYTES = 1024
"""Number of bytes at the beginning of the content that identify a file."""
TAIL_BYTES = 128
"""Number of bytes before the position that show whether the file was truncated and has grown again."""


class FileRange(NamedTuple):
    """A source partition: a file, or the range [start, end) of its content."""

    name: str | None
    start: int | None = None
    end: int | None = None

    @classmethod
    def of(cls, partition: Mapping[str, Any]) -> FileRange | None:
        """The file or range of a source partition; None if the partition does not belong to this connector."""
        if FILENAME not in partition:
            return None
        start, end = partition.get(START), partition.get(END)
        if (start is None) != (end is None):
            return None
        return cls(partition[FILENAME], start, end)

    @property
    def partition(self) -> dict[str, Any]:
        """The source partition as stored in the offsets topic."""
        if self.start is None:
            return {FILENAME: self.name}
        return {FILENAME: self.name, START: self.start, END: self.end}


@dataclass(frozen=True, slots=True)
class FileOffset:
    """Where reading resumes, and what the content before that looks like.

    Attributes:
        position: bytes of the content.
        fingerprint: `n:hash` of its first n bytes; "" if unknown.
        tail: `n:hash` of the n bytes before `position`; "" at the beginning.
        identity: of the file (see `FoundFile`).
        whole: size in bytes of the compressed file whose content was read to its end; None otherwise.
        modified_ms: when the file had last been modified as it was read; None in offsets of earlier versions.
        missing_ms: when a run first missed the file; None if the last run found it.
        nanoseconds: of that time, after its milliseconds; None: none, or not kept by an earlier version.
    """

    position: int
    fingerprint: str = ""
    tail: str = ""
    identity: str = ""
    whole: int | None = None
    modified_ms: int | None = None
    missing_ms: int | None = None
    nanoseconds: int | None = None

    @classmethod
    def of(cls, offset: Mapping[str, Any]) -> FileOffset | int:
        """An offset as it was committed; a bare number if the real connector, or a person, wrote it.

        Raises:
            OffsetError: `position` is missing or invalid.
        """
        position = offset.get(POSITION)
        if not isinstance(position, int) or isinstance(position, bool) or position < 0:
            raise OffsetError(
                f"A committed offset of the file source is {dict(offset)!r}, but {POSITION} must be a number of 0 or"
                " more.",
                code="offset.unreadable",
                suggestion="Alter or delete the offset of that file.",
            )
        if FINGERPRINT not in offset:
            return position
        return cls(
            position,
            str(offset[FINGERPRINT]),
            str(offset.get(TAIL, "")),
            str(offset.get(IDENTITY, "")),
            offset.get(WHOLE),
            offset.get(MODIFIED),
            offset.get(MISSING),
            offset.get(NANOSECONDS),
        )

    @property
    def value(self) -> dict[str, Any]:
        """The offset as stored in the offsets topic, with the `position` that the real connector reads first."""
        found: dict[str, Any] = {POSITION: self.position, FINGERPRINT: self.fingerprint}
        if self.tail:
            found[TAIL] = self.tail
        if self.identity:
            found[IDENTITY] = self.identity
        optional = (
            (WHOLE, self.whole),
            (MODIFIED, self.modified_ms),
            (NANOSECONDS, self.nanoseconds or None),
            (MISSING, self.missing_ms),
        )
        return found | {name: number for name, number in optional if number is not None}

    @property
    def describes_content(self) -> bool:
        """Whether it says what the file contains."""
        return bool(self.position or self.fingerprint)

    def is_unmodified(self, file: FoundFile) -> bool:
        """Whether a file has the modification time of the one that was read: renaming and `cp -p` keep it."""
        if self.modified_ms != file.modified_ms or not self.nanoseconds:
            return self.modified_ms == file.modified_ms
        # Some programs that copy files keep microseconds or milliseconds only.
        return file.nanoseconds in (self.nanoseconds, self.nanoseconds // 1000 * 1000, 0)

    def at_time_of(self, file: FoundFile) -> FileOffset:
        """The same, with the modification time of a file."""
        return replace(self, modified_ms=file.modified_ms, nanoseconds=file.nanoseconds)


def content_hash(data: bytes | memoryview) -> str:
    """`n:hash` of some bytes; "" if there are none."""
    return f"{len(data)}:{hashlib.blake2b(data, digest_size=8).hexdigest()}" if data else ""


def hashed_bytes(text: str) -> int:
    """The n of `n:hash`; 0 for ""."""
    head = text.partition(":")[0]
    return int(head) if head.isdigit() else 0


@dataclass(slots=True)
class FileState:
    """What is committed about one file.

    Attributes:
        offset: everything before it is committed; None if nothing is.
        ranges: committed offsets of ranges after it, by (start, end).
    """

    offset: FileOffset | None = None
    ranges: dict[tuple[int, int], FileOffset] | None = None

    @property
    def position(self) -> int:
        """Everything before it is committed."""
        return self.offset.position if self.offset else 0

    @property
    def known(self) -> FileOffset | None:
        """The offset that describes most of the file: the one with the highest position."""
        found = [*([self.offset] if self.offset else []), *(self.ranges or {}).values()]
        return max(found, key=lambda offset: offset.position, default=None)

    def described_by(self, file: FoundFile) -> FileState:
        """The same positions, of this file: its name, inode or time may be new."""

        def of(offset: FileOffset) -> FileOffset:
            return replace(offset, identity=file.identity, missing_ms=None).at_time_of(file)

        ranges = {key: of(offset) for key, offset in (self.ranges or {}).items()}
        return FileState(of(self.offset) if self.offset else None, ranges)

    def missed(self, now_ms: int) -> FileState:
        """The same, of a file that is missing since now."""
        ranges = {key: replace(offset, missing_ms=now_ms) for key, offset in (self.ranges or {}).items()}
        return FileState(replace(self.offset, missing_ms=now_ms) if self.offset else None, ranges)

    def gaps(self, size: int) -> list[tuple[int, int]]:
        """The ranges of the first `size` bytes that are not committed, in order."""
        found, position = [], self.position
        for (start, _), offset in sorted((self.ranges or {}).items()):
            if start > position:
                found.append((position, min(start, size)))
            position = max(position, offset.position)
        found.append((position, size))
        return [(start, end) for start, end in found if start < end]


def merge_ranges(state: FileState) -> FileState:
    """The same, with ranges that directly follow the offset merged into it. Idempotent."""
    offset, ranges = state.offset, dict(state.ranges or {})
    while True:
        position = offset.position if offset else 0
        following = [key for key in ranges if key[0] <= position]
        if not following:
            return FileState(offset, ranges)
        for key in following:
            file_range = ranges.pop(key)
            if file_range.position > position:
                offset, position = replace(file_range), file_range.position
