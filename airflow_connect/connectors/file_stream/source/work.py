"""What the tasks of one run read: files up to their current size, in order, balanced by size."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from airflow_connect.connectors.file_stream.source.config import FileSourceConfig
from airflow_connect.connectors.file_stream.source.discover.rotation import by_age, earlier_names, family_of
from airflow_connect.connectors.file_stream.source.file_offsets import FileRange, FileState
from airflow_connect.connectors.file_stream.source.offsets.reconciliation import ReconciledOffsets
from airflow_connect.connectors.file_stream.source.read.content import NONE, codec_of, read_range
from airflow_connect.connectors.file_stream.source.read.lines import LineFormat, find_line_ends
from airflow_connect.stores.file_system import FoundFile
from airflow_connect.stores.file_systems import FileSystems

ASSIGNMENT = "file.source.assignment"
"""Key of a task's configuration that holds its items; set by the connector, not by users."""
_PROBE_BYTES = 1 << 16


class Item(NamedTuple):
    """A file, or a range of one, that a task reads from `start` to `end`.

    Attributes:
        file_range: the source partition.
        file: its state when the run was planned.
        codec: how it is compressed.
        start: byte of the content where a line begins.
        end: byte at which the run stops reading; None: the end of a compressed stream.
        fingerprint: of the beginning of the content; "" if the task must compute it.
        is_complete: the file was rotated and nothing can follow, so its last line is one without a terminator too.
    """

    file_range: FileRange
    file: FoundFile
    codec: str
    start: int
    end: int | None
    fingerprint: str = ""
    is_complete: bool = False

    @property
    def cost(self) -> int:
        """Bytes of the file to read."""
        return self.file.size if self.end is None else self.end - self.start

    def to_json(self) -> list[Any]:
        """For the task's configuration."""
        return [*self.file_range, *_fields(self.file), *self[2:]]

    @classmethod
    def from_json(cls, value: Sequence[Any]) -> Item:
        """The opposite of `to_json`."""
        return cls(FileRange(*value[:3]), FoundFile(*value[3:8]), *value[8:])


def _fields(file: FoundFile) -> tuple[Any, ...]:
    return file.name, file.size, file.modified_ms, file.identity, file.nanoseconds


def assignment(items: Iterable[Item]) -> str:
    """Items as text for a configuration."""
    return json.dumps([item.to_json() for item in items], ensure_ascii=False, separators=(",", ":"))


def assigned(text: str) -> list[Item]:
    """The opposite of `assignment`."""
    return [Item.from_json(value) for value in json.loads(text)]


def plan_work(
    config: FileSourceConfig,
    file_systems: FileSystems,
    files: Mapping[str, FoundFile],
    reconciled: ReconciledOffsets,
    max_tasks: int,
) -> list[list[Item]]:
    """Items of each task; no task is empty, so there may be fewer than `max_tasks`."""
    groups: dict[str, list[Item]] = {}
    held_together = _families_in_progress(files.values(), config, reconciled)
    successors = _Successors(files, file_systems)

    def age(file: FoundFile) -> tuple[bool, int, int, str]:
        # The file that is still being written comes last, whatever the timestamps are.
        is_written = file.name == config.file or (family_of(file.name) == file.name and config.file is None)
        return is_written and file.name in held_together, *by_age(file)

    for file in sorted((file for file in files.values() if file.name not in reconciled.copies), key=age):
        items = _items(config, file_systems, file, reconciled.states.get(file.name, FileState()))
        if items and items[-1].end == file.size and successors.has(file):
            items[-1] = items[-1]._replace(is_complete=True)
        family = config.file or family_of(file.name)
        if config.split_bytes and len(items) > 1:
            for item in items:
                groups[f"{file.name}\n{item.start}"] = [item]
        elif items:
            groups.setdefault(family if family in held_together else file.name, []).extend(items)
    return _packed(list(groups.values()), max_tasks)


class _Successors:
    """Whether nothing can be added to a file: it was rotated, and a line was written to its successor later.

    A program may write to a rotated file until it opens the next one; until then the rotated file is the newer one, or
    the next one is empty, because only the rotation has created it.
    """

    def __init__(self, files: Mapping[str, FoundFile], file_systems: FileSystems) -> None:
        self._files, self._file_systems = files, file_systems
        self._last_rotated: dict[str, tuple[int, int, str]] = {}
        for file in files.values():
            for name in earlier_names(file.name) if file.size else ():
                self._last_rotated[name] = max(by_age(file), self._last_rotated.get(name, by_age(file)))

    def has(self, file: FoundFile) -> bool:
        file_system = self._file_systems.of(file.name)
        for name in earlier_names(file.name):
            # The successor need not be a file that is read. A request for each object of a bucket would take too long.
            is_bucket = file_system.identity_is_content
            successor = self._files.get(name) or (None if is_bucket else file_system.find(name))
            if successor is None or (file.identity and successor.identity == file.identity):
                continue
            is_written = successor.size > 0 or self._last_rotated.get(name, by_age(file)) > by_age(file)
            if is_written and successor.modified_ms >= file.modified_ms:
                return True
        return False


def _families_in_progress(
    files: Iterable[FoundFile], config: FileSourceConfig, reconciled: ReconciledOffsets
) -> set[str]:
    """Families (a file and its rotated predecessors) of which one file was partly read: they are read in order."""
    if config.file is not None:
        return {config.file}
    found = set()
    for file in files:
        state = reconciled.states.get(file.name)
        if file.name in reconciled.moved.values() or (state is not None and _is_begun(state, file, config)):
            found.add(family_of(file.name))
    return found


def _is_begun(state: FileState, file: FoundFile, config: FileSourceConfig) -> bool:
    if codec_of(file.name, config.compression) != NONE:
        return state.position > 0 and (state.offset is None or state.offset.whole != file.size)
    return 0 < state.position < file.size


def _items(config: FileSourceConfig, file_systems: FileSystems, file: FoundFile, state: FileState) -> list[Item]:
    known = state.known
    fingerprint = known.fingerprint if known else ""
    codec = codec_of(file.name, config.compression)
    if codec != NONE:
        is_through = state.offset is not None and state.offset.whole == file.size
        return (
            []
            if is_through or not file.size
            else [Item(FileRange(file.name), file, codec, state.position, None, fingerprint)]
        )
    gaps = state.gaps(file.size)
    if not config.split_bytes or config.form.unit > 1 or sum(end - start for start, end in gaps) <= config.split_bytes:
        if not state.ranges:
            return [Item(FileRange(file.name), file, codec, start, end, fingerprint) for start, end in gaps]
        ranges = gaps
    else:
        ranges = [piece for gap in gaps for piece in _split(gap, config, file_systems, file)]
    return [Item(FileRange(file.name, start, end), file, codec, start, end, fingerprint) for start, end in ranges]


def _split(
    gap: tuple[int, int], config: FileSourceConfig, file_systems: FileSystems, file: FoundFile
) -> list[tuple[int, int]]:
    """Ranges of at least `split.bytes` that begin where lines begin."""
    found, start, end = [], *gap
    while end - start > config.split_bytes:
        cut = _next_line(start + config.split_bytes, end, config.form, file_systems, file)
        if cut >= end:
            break
        found.append((start, cut))
        start = cut
    return [*found, (start, end)]


def _next_line(position: int, end: int, form: LineFormat, file_systems: FileSystems, file: FoundFile) -> int:
    """Where the first line at or after `position` begins; `end` if there is none."""
    file_system = file_systems.of(file.name)
    # If a line begins exactly at the position, the byte before it is a terminator.
    start = position - 1
    while start < end:
        data = read_range(file_system, file, NONE, start, min(_PROBE_BYTES, end - start))
        found = find_line_ends(data, form, is_last=False)
        if len(found):
            return start + int(found.nexts[0])
        if len(data) < 2:
            return end
        # The last byte may be a carriage return that is followed by a line feed.
        start += len(data) - 1
    return end


def _packed(groups: Sequence[list[Item]], max_tasks: int) -> list[list[Item]]:
    """Largest group first, into the task with the least work (Graham 1969); each task reads older files first."""
    if not groups:
        return []
    bins = [(0, number) for number in range(min(max_tasks, len(groups)))]
    contents: list[list[int]] = [[] for _ in bins]
    costs = [sum(item.cost for item in group) for group in groups]
    for index in sorted(range(len(groups)), key=lambda index: (-costs[index], index)):
        load, number = heapq.heappop(bins)
        contents[number].append(index)
        heapq.heappush(bins, (load + costs[index], number))
    return [[item for index in sorted(held) for item in groups[index]] for held in contents]
