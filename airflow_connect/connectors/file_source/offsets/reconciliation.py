"""Reconciles committed offsets with the files that exist, while no task runs.

Ranges are merged into the offset of their file. A position of a Kafka Connect worker is converted to bytes. An offset
follows its file to the name that rotation gave it. A file that was truncated or replaced is read from its beginning.
The result is written in one transaction before tasks read, so a run that dies leaves nothing half done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.connectors.file_source.config import FileSourceConfig
from airflow_connect.connectors.file_source.discover.listing import directory_of
from airflow_connect.connectors.file_source.file_offsets import (
    FINGERPRINT_BYTES,
    FileOffset,
    FileRange,
    FileState,
    content_hash,
    hashed_bytes,
    merge_ranges,
)
from airflow_connect.connectors.file_source.offsets.takeover import take_over
from airflow_connect.connectors.file_source.read.content import NONE, codec_of, read_range
from airflow_connect.errors import OffsetError
from airflow_connect.stores.file_system import FoundFile, GoneError
from airflow_connect.stores.file_systems import FileSystems

Offsets = Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]
Changes = list[tuple[dict[str, Any], dict[str, Any] | None]]


@dataclass(slots=True)
class ReconciledOffsets:
    """The committed state of each file after reconciliation.

    Attributes:
        states: by name of the file.
        changes: the offsets to write.
        notes: complete sentences for the run's report.
        moved: current names of files, by their names at the last run.
    """

    states: dict[str, FileState]
    changes: Changes = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)


class OffsetReconciler:
    """Reconciles offsets with files; used once."""

    def __init__(self, config: FileSourceConfig, file_systems: FileSystems, files: Mapping[str, FoundFile]) -> None:
        """`files`: as `list_files` found them."""
        self._config, self._file_systems, self._files = config, file_systems, files
        self._notes: list[str] = []
        self._moved: dict[str, str] = {}
        self._heads: dict[str, bytes] = {}
        self._head_hashes: dict[tuple[str, int], str] = {}
        self._directories: dict[str, list[FoundFile]] = {}
        for file in files.values():
            self._directories.setdefault(directory_of(file.name), []).append(file)

    def reconcile(self, committed: Offsets) -> ReconciledOffsets:
        """See the module.

        Raises:
            OffsetError: an offset cannot be used, or a file has changed and `file.changed` is `fail`.
        """
        before, foreign = _read(committed)
        states = {name: merge_ranges(state) for name, state in before.items()}
        for name, position in foreign.items():
            self._take_over(name, position, states)
        self._follow_files(states)
        changes = _changes(before, foreign, states)
        return ReconciledOffsets(states, changes, self._notes, self._moved)

    def _take_over(self, name: str, position: int, states: dict[str, FileState]) -> None:
        file = self._files.get(name)
        if file is None:
            return  # the file may come back; the position stays as it is
        taken = take_over(position, self._file_systems.of(name), file, as_bytes=self._config.takes_over_bytes)
        states[name] = merge_ranges(FileState(taken.offset, states.get(name, FileState()).ranges))
        if taken.note:
            self._notes.append(taken.note)

    def _follow_files(self, states: dict[str, FileState]) -> None:
        """Find the file that each offset belongs to."""
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
                continue  # a rotation replaced it with the next file and deleted it
            if name in self._files:
                self._begin_anew(name, states)
            elif name in self._moved or self._config.forgets_missing:
                del states[name]
        states.update(moved)

    def _fits(self, name: str, state: FileState) -> bool:
        """Whether the file with this name is still the one that its offset describes."""
        file, known = self._files.get(name), state.known
        if file is None:
            return False
        if known is None or not known.position:
            return True
        if not self._holds(file, known):
            return False
        if not file.identity or file.identity == known.identity or self._file_systems.of(name).identity_is_content:
            return True
        # Same beginning but another inode: a copy of the file, or a new file that begins like the old one. If the old
        # file is found, it has the offset.
        return not any(
            other.identity == known.identity and self._holds(other, known)
            for other in self._siblings(name)
            if other.name != name
        )

    def _siblings(self, name: str) -> list[FoundFile]:
        return self._directories.get(directory_of(name), [])

    def _holds(self, file: FoundFile, known: FileOffset) -> bool:
        """Whether the content of a file matches an offset, as far as the offset describes it."""
        file_system, codec = self._file_systems.of(file.name), codec_of(file.name, self._config.compression)
        if file_system.identity_is_content and file.identity and file.identity == known.identity:
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
        file_system = self._file_systems.of(file.name)
        try:
            return read_range(file_system, file, codec_of(file.name, self._config.compression), start, size)
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
        """The new name of a file that was renamed, or ""."""
        known = state.known
        if known is None or not known.position or self._file_systems.of(name).identity_is_content:
            return ""

        def is_free(file: FoundFile) -> bool:
            return file.name != name and file.name not in taken and not (file.name in states and fits[file.name])

        beside = [file for file in self._siblings(name) if is_free(file)]
        # Look for the same inode first: a copy of the file would match as well.
        beside.sort(key=lambda file: (file.identity != known.identity, -file.modified_ms, file.name))
        return next((file.name for file in beside if self._holds(file, known)), "")

    def _begin_anew(self, name: str, states: dict[str, FileState]) -> None:
        """Read a file from its beginning: another file has its name now, or it was truncated."""
        state, file = states[name], self._files[name]
        known = state.known
        states[name] = FileState(FileOffset(0, identity=file.identity), {})
        if name in self._moved or known is None:
            return
        what = (
            f"{name} has {file.size} bytes, but {known.position} bytes of it were read: it was truncated or replaced"
            if file.size < known.position
            else f"{name} no longer contains what was read from it: it was replaced, or truncated and written again"
        )
        if self._config.fails_on_change:
            raise OffsetError(
                f"{what}.",
                code="file.changed",
                suggestion="Set file.changed=read, or delete its offset, to read it from its beginning.",
            )
        self._notes.append(f"{what}. It is read from its beginning; the rest of the old file, after byte"
            f" {known.position}, was not found under another name.")  # fmt: skip


def _read(committed: Offsets) -> tuple[dict[str, FileState], dict[str, int]]:
    """Offsets by file: ours, and positions of a Kafka Connect worker."""
    states: dict[str, FileState] = {}
    foreign: dict[str, int] = {}
    for partition, value in committed:
        file_range = FileRange.of(partition)
        if file_range is None or file_range.name is None:
            continue
        offset = FileOffset.of(value)
        if file_range.start is not None and file_range.end is not None:
            if isinstance(offset, FileOffset):
                state = states.setdefault(file_range.name, FileState())
                state.ranges = {**(state.ranges or {}), (file_range.start, file_range.end): offset}
        elif isinstance(offset, int):
            foreign[file_range.name] = offset
        else:
            states.setdefault(file_range.name, FileState()).offset = offset
    return states, foreign


def _changes(before: Mapping[str, FileState], foreign: Mapping[str, int], after: Mapping[str, FileState]) -> Changes:
    old, new = _flat(before), _flat(after)
    changed: Changes = [
        (file_range.partition, value) for file_range, value in new.items() if old.get(file_range) != value
    ]
    # Delete partitions that no longer exist; positions of a worker are only replaced.
    return changed + [
        (file_range.partition, None) for file_range in old if file_range not in new and file_range.name not in foreign
    ]


def _flat(states: Mapping[str, FileState]) -> dict[FileRange, dict[str, Any]]:
    found: dict[FileRange, dict[str, Any]] = {}
    for name, state in states.items():
        if state.offset is not None:
            found[FileRange(name)] = state.offset.value
        for (start, end), offset in (state.ranges or {}).items():
            found[FileRange(name, start, end)] = offset.value
    return found
