"""Committed offsets and the files that are there, brought together while no task runs.

Ranges become part of their file's offset; a position of a Kafka Connect worker becomes bytes; an offset follows its
file to the name that a rotation has given it; a file that was truncated or replaced begins anew. What comes out is
written in one transaction before tasks read, so that a run that dies anywhere leaves nothing half done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.api.errors import OffsetError
from airflow_connect.connectors.file_source.config import FileSourceConfig
from airflow_connect.connectors.file_source.content import NONE, codec_of, read_range
from airflow_connect.connectors.file_source.listing import directory_of
from airflow_connect.connectors.file_source.offsets import (
    FINGERPRINT_BYTES,
    FileOffset,
    FileState,
    Part,
    content_hash,
    hashed_bytes,
    merge_parts,
)
from airflow_connect.connectors.file_source.places.opening import Places
from airflow_connect.connectors.file_source.places.place import FoundFile, GoneError
from airflow_connect.connectors.file_source.takeover import take_over

Offsets = Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]
Changes = list[tuple[dict[str, Any], dict[str, Any] | None]]


@dataclass(slots=True)
class Settled:
    """What is committed of each file, as it should be.

    Attributes:
        states: by name of the file.
        changes: what has to be written for that.
        notes: complete sentences about what was found.
        moved: names that files have now, by the names that they had at the last run.
    """

    states: dict[str, FileState]
    changes: Changes = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)


class Settling:
    """Brings offsets and files together; used once."""

    def __init__(self, config: FileSourceConfig, places: Places, files: Mapping[str, FoundFile]) -> None:
        """`files`: as `list_files` found them."""
        self._config, self._places, self._files = config, places, files
        self._notes: list[str] = []
        self._moved: dict[str, str] = {}
        self._heads: dict[str, bytes] = {}
        self._head_hashes: dict[tuple[str, int], str] = {}
        self._directories: dict[str, list[FoundFile]] = {}
        for file in files.values():
            self._directories.setdefault(directory_of(file.name), []).append(file)

    def settle(self, committed: Offsets) -> Settled:
        """See the module.

        Raises:
            OffsetError: an offset cannot be used, or a file has changed and `file.changed` is `fail`.
        """
        before, foreign = _read(committed)
        states = {name: merge_parts(state) for name, state in before.items()}
        for name, position in foreign.items():
            self._take_over(name, position, states)
        self._follow_files(states)
        changes = _changes(before, foreign, states)
        return Settled(states, changes, self._notes, self._moved)

    def _take_over(self, name: str, position: int, states: dict[str, FileState]) -> None:
        file = self._files.get(name)
        if file is None:
            return  # it may come back; the position stays as it is
        taken = take_over(position, self._places.of(name), file, as_bytes=self._config.takes_over_bytes)
        states[name] = merge_parts(FileState(taken.offset, states.get(name, FileState()).ranges))
        if taken.note:
            self._notes.append(taken.note)

    def _follow_files(self, states: dict[str, FileState]) -> None:
        """Find for each offset the file that it is about."""
        fits = {name: self._fits(name, state) for name, state in states.items()}
        lost = [name for name in states if not fits[name]]
        if not lost:
            return
        moved: dict[str, FileState] = {}
        for name in sorted(lost):
            now = self._renamed_to(name, states[name], states, fits, moved)
            if now:
                moved[now], self._moved[name] = states[name], now
        for name in lost:
            if name in moved:
                continue  # a rotation has put the next file in its place, and dropped it
            if name in self._files:
                self._begin_anew(name, states)
            elif name in self._moved or self._config.forgets_missing:
                del states[name]
        states.update(moved)

    def _fits(self, name: str, state: FileState) -> bool:
        """Whether the file under this name is still the one of its offset."""
        file, known = self._files.get(name), state.known
        if file is None:
            return False
        if known is None or not known.position:
            return True
        if not self._holds(file, known):
            return False
        if not file.identity or file.identity == known.identity or self._places.of(name).identity_is_content:
            return True
        # Same beginning, another inode: a copy in its place, or a new file that begins as the old one did. The old
        # one decides, where it is found.
        return not any(
            other.identity == known.identity and self._holds(other, known)
            for other in self._beside(name)
            if other.name != name
        )

    def _beside(self, name: str) -> list[FoundFile]:
        return self._directories.get(directory_of(name), [])

    def _holds(self, file: FoundFile, known: FileOffset) -> bool:
        """Whether the content of a file is that of an offset, as far as was looked at."""
        place, codec = self._places.of(file.name), codec_of(file.name, self._config.compression)
        if place.identity_is_content and file.identity and file.identity == known.identity:
            return True
        if codec == NONE and file.size < known.position:
            return False
        count = hashed_bytes(known.fingerprint)
        if count and self._head_hash(file, count) != known.fingerprint:
            return False
        size = hashed_bytes(known.tail)
        return content_hash(self._bytes(file, known.position - size, size)) == known.tail

    def _head_hash(self, file: FoundFile, count: int) -> str:
        key = file.name, count
        if key not in self._head_hashes:
            if file.name not in self._heads:
                self._heads[file.name] = self._bytes(file, 0, FINGERPRINT_BYTES)
            self._head_hashes[key] = content_hash(self._heads[file.name][:count])
        return self._head_hashes[key]

    def _bytes(self, file: FoundFile, start: int, size: int) -> bytes:
        if not size:
            return b""
        place = self._places.of(file.name)
        try:
            return read_range(place, file, codec_of(file.name, self._config.compression), start, size)
        except GoneError:
            return b""

    def _renamed_to(
        self,
        name: str,
        state: FileState,
        states: Mapping[str, FileState],
        fits: Mapping[str, bool],
        taken: Mapping[str, FileState],
    ) -> str:
        """The name under which a file is found again, or ""."""
        known = state.known
        if known is None or not known.position or self._places.of(name).identity_is_content:
            return ""

        def is_free(file: FoundFile) -> bool:
            return file.name != name and file.name not in taken and not (file.name in states and fits[file.name])

        beside = [file for file in self._beside(name) if is_free(file)]
        # The same inode first: a copy of the file would fit as well.
        beside.sort(key=lambda file: (file.identity != known.identity, -file.modified_ms, file.name))
        return next((file.name for file in beside if self._holds(file, known)), "")

    def _begin_anew(self, name: str, states: dict[str, FileState]) -> None:
        """Another file has the name now, or less is in it."""
        state, file = states[name], self._files[name]
        known = state.known
        states[name] = FileState(FileOffset(0, identity=file.identity), {})
        if name in self._moved or known is None:
            return
        what = (
            f"{name} has {file.size} bytes, but {known.position} were read of it: it was truncated or replaced"
            if file.size < known.position
            else f"{name} does not hold any more what was read of it: it was replaced, or truncated and written again"
        )
        if self._config.fails_on_change:
            raise OffsetError(
                f"{what}.",
                code="file.changed",
                suggestion="Set file.changed=read, or delete its offset, to read it from its beginning.",
            )
        self._notes.append(f"{what}. It is read from its beginning; what the old one held behind byte"
                           f" {known.position} is not found under another name.")  # fmt: skip


def _read(committed: Offsets) -> tuple[dict[str, FileState], dict[str, int]]:
    """Offsets by file: ours, and positions of a worker."""
    states: dict[str, FileState] = {}
    foreign: dict[str, int] = {}
    for partition, value in committed:
        part = Part.of(partition)
        if part is None or part.name is None:
            continue
        offset = FileOffset.of(value)
        if part.start is not None and part.end is not None:
            if isinstance(offset, FileOffset):
                state = states.setdefault(part.name, FileState())
                state.ranges = {**(state.ranges or {}), (part.start, part.end): offset}
        elif isinstance(offset, int):
            foreign[part.name] = offset
        else:
            states.setdefault(part.name, FileState()).offset = offset
    return states, foreign


def _changes(before: Mapping[str, FileState], foreign: Mapping[str, int], after: Mapping[str, FileState]) -> Changes:
    old, new = _flat(before), _flat(after)
    changed: Changes = [(part.partition, value) for part, value in new.items() if old.get(part) != value]
    # A partition that is not there any more; positions of a worker are only ever replaced.
    return changed + [(part.partition, None) for part in old if part not in new and part.name not in foreign]


def _flat(states: Mapping[str, FileState]) -> dict[Part, dict[str, Any]]:
    found: dict[Part, dict[str, Any]] = {}
    for name, state in states.items():
        if state.offset is not None:
            found[Part(name)] = state.offset.value
        for (start, end), offset in (state.ranges or {}).items():
            found[Part(name, start, end)] = offset.value
    return found
