"""Reconciles committed offsets with the files that exist, while no task runs.

Ranges are merged into the offset of their file. A position of a Kafka Connect worker is converted to bytes. An offset
follows its file to the name that rotation gave it. A file that was truncated or replaced is read from its beginning.
The result is written in one transaction before tasks read, so a run that dies leaves nothing half done.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_connect.connectors.file_stream.source.config import FileSourceConfig
from airflow_connect.connectors.file_stream.source.discover.listing import Listing
from airflow_connect.connectors.file_stream.source.discover.rotation import counted, earlier_names
from airflow_connect.connectors.file_stream.source.file_offsets import (
    FINGERPRINT_BYTES,
    FileOffset,
    FileRange,
    FileState,
    merge_ranges,
)
from airflow_connect.connectors.file_stream.source.offsets.earlier_files import EarlierFiles
from airflow_connect.connectors.file_stream.source.offsets.known_content import KnownContent
from airflow_connect.connectors.file_stream.source.offsets.notes import ReconciliationNotes, replaced_file
from airflow_connect.connectors.file_stream.source.offsets.packed_copies import packed_copies
from airflow_connect.connectors.file_stream.source.offsets.renames import Nearness, Renames
from airflow_connect.connectors.file_stream.source.offsets.takeover import take_over
from airflow_connect.connectors.file_stream.source.offsets.unproven import UnprovenFiles
from airflow_connect.errors import OffsetError
from airflow_connect.stores.file_system import FoundFile
from airflow_connect.stores.file_systems import FileSystems

Offsets = Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]
Changes = list[tuple[dict[str, Any], dict[str, Any] | None]]
_DAY_MS = 24 * 3600 * 1000


@dataclass(slots=True)
class ReconciledOffsets:
    """The committed state of each file after reconciliation.

    Attributes:
        states: by name of the file.
        changes: the offsets to write.
        notes: complete sentences for the run's report.
        moved: current names of files, by their names at the last run.
        copies: files that are not read because all of them is read from another one.
        proven: files that turned out to be rotated ones of `file`: to be read too.
    """

    states: dict[str, FileState]
    changes: Changes = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    copies: frozenset[str] = frozenset()
    proven: Mapping[str, FoundFile] = field(default_factory=dict)


class OffsetReconciler:
    """Reconciles offsets with files; used once."""

    def __init__(self, config: FileSourceConfig, file_systems: FileSystems, listing: Listing, now_ms: int) -> None:
        """`listing`: as `list_files` found it; `now_ms`: milliseconds since the epoch."""
        self._config, self._file_systems, self._now_ms = config, file_systems, now_ms
        self._listing, self._missing_directories = listing, listing.missing_directories
        self._files = {**listing.files, **listing.beside}
        self._content = KnownContent(config, file_systems)
        self._notes = ReconciliationNotes(config)
        self._moved: dict[str, str] = {}
        self._alike: set[str] = set()
        self._told: set[str] = set()
        self._back: dict[str, int] = {}

    def reconcile(self, committed: Offsets) -> ReconciledOffsets:
        """See the module.

        Raises:
            OffsetError: an offset cannot be used, or a file has changed and the configuration makes that an error.
        """
        before, foreign = committed_states(committed)
        states = {name: merge_ranges(state) for name, state in before.items()}
        for name, position in foreign.items():
            self._take_over(name, position, states)
        self._unproven = UnprovenFiles(self._config.file or "", self._listing, before, self._content)
        self._follow_files(states)
        earlier = EarlierFiles(self._config, self._content, self._listing.files)
        self._notes.earlier(earlier.leave_out(states, before, foreign, self._moved))
        copies = earlier.copies(states, self._notes)
        self._notes.copies(copies)
        later = self._unproven.later(states, before)
        proven = {name: file for name, file in self._listing.beside.items() if name in states}
        proven |= {file.name: file for file in later}
        packed = packed_copies({**self._listing.files, **proven}, states, self._content, self._file_systems)
        later = [file for file in later if file.name not in packed]
        self._notes.later(self._config.file or "", [file.name for file in later if file.size])
        for file in later:
            # It is to be read, also if this run is killed, and the next one finds no proof.
            states[file.name] = FileState(FileOffset(0, identity=file.identity).at_time_of(file), {})
        self._notes.packed_copies(packed)
        changes = _changes(before, foreign, states)
        left_out = frozenset([*copies, *packed])
        return ReconciledOffsets(states, changes, self._notes.sentences(), self._moved, left_out, proven)

    def _take_over(self, name: str, position: int, states: dict[str, FileState]) -> None:
        file = self._files.get(name)
        if file is None:
            return  # the file may come back; the position stays as it is
        taken = take_over(position, self._file_systems.of(name), file, as_bytes=self._config.takes_over_bytes)
        states[name] = merge_ranges(FileState(taken.offset, states.get(name, FileState()).ranges))
        if taken.note:
            self._notes.add(taken.note)

    def _follow_files(self, states: dict[str, FileState]) -> None:
        """Find the file that each offset belongs to."""
        self._follow_not_begun(states)
        renames = Renames(self._files, states, self._content)
        lost = [name for name in list(states) if not self._fits(name, states, renames)]
        doubtful = {*self._modified(states), *self._back}.difference(lost)
        taken = set(states).difference(lost, doubtful, self._unread(states))
        moved = self._find_moved(lost, doubtful, states, taken, renames)
        for name in lost:
            if name in moved:
                continue  # a rotation replaced it with the next file and deleted it
            if name in self._alike and name not in self._moved:
                self._replace(name, states)
            elif name in self._files:
                self._begin_anew(name, states)
            elif name in self._moved:
                del states[name]
            else:
                self._miss(name, states)
        for name in sorted(self._back.keys() - moved.keys()):
            self._notes.back(name, self._back[name])
        states.update(moved)
        self._notes.moved(self._moved)

    def _follow_not_begun(self, states: dict[str, FileState]) -> None:
        """`file` of which nothing was read yet: its inode is all that is known of it."""
        name = self._config.file or ""
        known, file = states.get(name, FileState()).known, self._files.get(name)
        if known is None or (file is not None and file.identity == known.identity):
            if known and file and known.position < FINGERPRINT_BYTES and not known.is_unmodified(file):
                # The inode may have been used again for a file that begins alike.
                self._unproven.check_gone(name, known)
            return
        if known.describes_content:
            return
        rotated = self._unproven.not_begun(known)
        if rotated is not None:
            states[rotated.name] = FileState(known.at_time_of(rotated), {})
            self._notes.moved_unread(name, rotated.name)
        if file is None:
            return
        if rotated is None:
            self._unproven.check_gone(name, known)
        states[name] = states[name].described_by(file)

    def _find_moved(
        self,
        lost: Iterable[str],
        doubtful: Set[str],
        states: Mapping[str, FileState],
        taken: Container[str],
        renames: Renames,
    ) -> dict[str, FileState]:
        """The states of renamed files by their new names, which must not be `taken`.

        A `doubtful` file keeps its state, unless more of it is known as the content of a file that is `lost`.
        """
        moved: dict[str, FileState] = {}
        kept: set[str] = set()
        # A file with the inode and the time of a known one is that file. Then the longest content, because a file that
        # begins like many must not be taken by another one: the inode of a file that was deleted, or compressed, may
        # have been used again. Of equally long ones, the inode, then the time, which compression may keep, then a name
        # to which only .gz was added.
        steps = sorted(
            (nearness is not Nearness.UNMODIFIED, -states[name].position, nearness, name)
            for name in (*lost, *doubtful)
            for nearness in Nearness
        )
        for _, _, nearness, name in steps:
            known = states[name].known
            if name in self._moved or name in kept or known is None or not known.describes_content:
                continue
            if self._file_systems.of(name).identity_is_content:
                continue
            if name in doubtful and name not in moved:
                kept |= {name} if nearness is not Nearness.UNMODIFIED else set()
                continue
            possible = {file.name: file for file in renames.candidates(name, known)}
            possible |= {file.name: file for file in self._unproven.candidates(name, known)}
            free = [f for f in possible.values() if f.name not in moved and f.name not in taken and f.name not in kept]
            likely = [file for file in free if renames.nearness(name, known, file) <= nearness]
            now = next((file for file in likely if self._is_renamed(name, known, file, renames)), None)
            if now is not None:
                moved[now.name], self._moved[name] = self._moved_state(states[name], now), now.name
                if not self._is_certain(name, known, now):
                    self._notes.alike(name, now.name, known.position or now.size)
            elif nearness is Nearness.ANY_NAME and name not in self._alike:
                told = [file.name for file in free if not self._unproven.is_unknown(file)]
                self._notes.doubtful(name, known.position, told)
        return moved

    def _is_renamed(self, name: str, known: FileOffset, file: FoundFile, renames: Renames) -> bool:
        is_renamed = renames.is_renamed(name, known, file)
        return self._unproven.is_proven(name, known, file, is_renamed=is_renamed)

    def _is_certain(self, name: str, known: FileOffset, now: FoundFile) -> bool:
        """Whether more than a short content says that a file is the known one."""
        if known.position >= FINGERPRINT_BYTES or known.is_unmodified(now):
            return True
        # The inode may have been used again, above all if nothing was written, but the time is another one.
        has_inode = bool(now.identity) and now.identity == known.identity and self._content.may_be_same(name, now)
        return has_inode and not self._content.ends_at(now, known.position)

    def _modified(self, states: Mapping[str, FileState]) -> Iterable[str]:
        """Rotated files that were modified since they were read: another file may have got name and inode since."""
        for name, state in states.items():
            known, file = state.known, self._files.get(name)
            if known and file and known.describes_content and not known.is_unmodified(file) and earlier_names(name):
                yield name

    def _unread(self, states: Mapping[str, FileState]) -> Iterable[str]:
        """Names at which another file was to be read from its beginning: a known one may have got there since."""
        for name, state in states.items():
            known, file = state.known, self._files.get(name)
            if known is None or file is None or known.describes_content:
                continue
            if known.identity != file.identity or not known.is_unmodified(file):
                yield name

    def _fits(self, name: str, states: dict[str, FileState], renames: Renames) -> bool:
        """Whether the file with this name is still the one that its offset describes."""
        file, known = self._files.get(name), states[name].known
        if file is None:
            return False
        if known is None or not known.describes_content:
            return True
        if not self._content.holds(file, known):
            return False
        if known.missing_ms is not None:
            if self._is_number_again(file, known):
                return False
            self._back[name] = known.position
        elif not file.identity or file.identity == known.identity or self._file_systems.of(name).identity_is_content:
            return not self._is_rewritten(file, known) or self._goes_on(file)
        elif not known.position or renames.with_inode(name, known) is not None:
            # It is a new file that begins like the old one, which has the offset.
            return False
        elif not known.is_unmodified(file):
            self._alike.add(name)
            return False
        elif renames.is_another(name, file):
            return False  # a known file was renamed to this name; their times are equal by chance
        elif not self._content.ends_at(file, known.position):
            self._notes.same_time(name, known.position)
        states[name] = states[name].described_by(file)
        return True

    def _is_number_again(self, file: FoundFile, known: FileOffset) -> bool:
        """Whether a short file with the number of a missing one is rather the next that rotation gave this number."""
        is_other = bool(file.identity) and file.identity != known.identity and not known.is_unmodified(file)
        if not is_other or known.position >= FINGERPRINT_BYTES or counted(file.name) is None:
            return False
        self._notes.number_again(file.name, known.position)
        self._told.add(file.name)
        return True

    def _goes_on(self, file: FoundFile) -> bool:
        """Whether a file with the same content, but another time, keeps its offset."""
        self._notes.rewritten(file.name)
        if self._config.replaced == "read":
            self._told.add(file.name)
        return self._config.replaced != "read"

    def _is_rewritten(self, file: FoundFile, known: FileOffset) -> bool:
        """Whether a file that was read to its end has the same content, but was modified since."""
        if not file.identity or known.modified_ms is None or known.is_unmodified(file):
            return False
        return file.size == (known.whole if self._content.is_packed(file) else known.position)

    def _moved_state(self, state: FileState, file: FoundFile) -> FileState:
        moved = state.described_by(file)
        if moved.ranges and self._content.is_packed(file):
            again = sum(max(0, offset.position - start) for (start, _), offset in moved.ranges.items())
            self._notes.add(
                f"{file.name} was compressed before all ranges of it (split.bytes) were read. It is read on from byte"
                f" {moved.position}, so {again} bytes that were read after that are copied twice."
            )
        if moved.offset and self._content.is_packed(file) and self._content.ends_at(file, moved.offset.position):
            # Nothing follows what was read before it was compressed.
            moved.offset = replace(moved.offset, whole=file.size)
        return moved

    def _miss(self, name: str, states: dict[str, FileState]) -> None:
        """Keep or delete the offset of a file that does not exist."""
        known = states[name].known
        if known is None or name.startswith(self._missing_directories):
            return  # a file system that is not mounted says nothing about its files
        since = known.missing_ms
        if self._config.forgets_missing:
            self._notes.forgotten(name, days=0)
        elif since is None:
            states[name] = states[name].missed(self._now_ms)
            return
        elif not self._config.missing_days or self._now_ms - since < self._config.missing_days * _DAY_MS:
            return
        else:
            self._notes.forgotten(name, days=self._config.missing_days)
        del states[name]

    def _replace(self, name: str, states: dict[str, FileState]) -> None:
        """Read on, or from the beginning, in another file that begins like the known one, which is nowhere else."""
        file, known = self._files[name], states[name].known
        self._unproven.check_gone(name, known or FileOffset(0))
        if known is None or self._config.replaced == "fail":
            raise replaced_file(file, known or FileOffset(0))
        self._notes.replaced(name, known.position)
        if self._config.replaced == "read":
            self._told.add(name)
            self._begin_anew(name, states)
        else:
            states[name] = states[name].described_by(file)

    def _begin_anew(self, name: str, states: dict[str, FileState]) -> None:
        """Read a file from its beginning: another file has its name now, or it was truncated."""
        state, file = states[name], self._files[name]
        known = state.known
        states[name] = FileState(FileOffset(0, identity=file.identity).at_time_of(file), {})
        if name in self._moved or name in self._told or known is None:
            return
        self._unproven.check_gone(name, known)
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
        self._notes.add(f"{what}. It is read from its beginning; the rest of the old file, after byte"
            f" {known.position}, was not found under another name.")  # fmt: skip


def committed_states(committed: Offsets) -> tuple[dict[str, FileState], dict[str, int]]:
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
