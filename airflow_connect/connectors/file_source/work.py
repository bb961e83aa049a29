"""What the tasks of one run read: files up to the size that they have now, in order, shared by size."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from airflow_connect.connectors.file_source.config import FileSourceConfig
from airflow_connect.connectors.file_source.content import NONE, codec_of, read_range
from airflow_connect.connectors.file_source.lines import LineFormat, find_line_ends
from airflow_connect.connectors.file_source.listing import family_of, is_rotated
from airflow_connect.connectors.file_source.offsets import FileState, Part
from airflow_connect.connectors.file_source.places.opening import Places
from airflow_connect.connectors.file_source.places.place import FoundFile
from airflow_connect.connectors.file_source.settling import Settled

ASSIGNMENT = "file.source.assignment"
"""Key of a task's configuration that holds its items; made by the connector, not for people."""
_PROBE_BYTES = 1 << 16


class Item(NamedTuple):
    """A file, or a range of one, that a task reads from `start` to `end`.

    Attributes:
        part: the source partition.
        file: as it was when the run was planned.
        codec: how it is compressed.
        start: byte of the content where a line begins.
        end: byte that the run does not go beyond; None: the end of a compressed stream.
        fingerprint: of the content's beginning, "" if the task has to find out.
    """

    part: Part
    file: FoundFile
    codec: str
    start: int
    end: int | None
    fingerprint: str = ""

    @property
    def cost(self) -> int:
        """Bytes of the file that have to be read."""
        return self.file.size if self.end is None else self.end - self.start

    def to_json(self) -> list[Any]:
        """For the task's configuration."""
        return [*self.part, *_fields(self.file), self.codec, self.start, self.end, self.fingerprint]

    @classmethod
    def from_json(cls, value: Sequence[Any]) -> Item:
        """The opposite of `to_json`."""
        return cls(Part(*value[:3]), FoundFile(*value[3:7]), *value[7:])


def _fields(file: FoundFile) -> tuple[Any, ...]:
    return file.name, file.size, file.modified_ms, file.identity


def assignment(items: Iterable[Item]) -> str:
    """Items as text of a configuration."""
    return json.dumps([item.to_json() for item in items], ensure_ascii=False, separators=(",", ":"))


def assigned(text: str) -> list[Item]:
    """The opposite of `assignment`."""
    return [Item.from_json(value) for value in json.loads(text)]


def plan_work(
    config: FileSourceConfig, places: Places, files: Mapping[str, FoundFile], settled: Settled, max_tasks: int
) -> list[list[Item]]:
    """Items of each task, none of which is empty; fewer tasks than `max_tasks` when there is less to do."""
    groups: dict[str, list[Item]] = {}
    selected = _selected(config, files, settled.states)
    held_together = _families_in_progress(selected, config, settled)

    def age(file: FoundFile) -> tuple[bool, int, str]:
        # The file that is being written comes last, whatever clocks say.
        return family_of(file.name) == file.name and file.name in held_together, file.modified_ms, file.name

    in_order = sorted(selected, key=age)
    for file in in_order:
        items = _items(config, places, file, settled.states.get(file.name, FileState()))
        family = family_of(file.name)
        if config.split_bytes and len(items) > 1:
            for item in items:
                groups[f"{file.name}\n{item.start}"] = [item]
        elif items:
            groups.setdefault(family if family in held_together else file.name, []).extend(items)
    return _packed(list(groups.values()), max_tasks)


def _selected(
    config: FileSourceConfig, files: Mapping[str, FoundFile], states: Mapping[str, FileState]
) -> list[FoundFile]:
    """What is read of what was found: of the files beside the one that is configured, those behind what was read."""
    if config.file is None:
        return list(files.values())
    rotated = [file for name, file in files.items() if is_rotated(name, config.file)]
    known = [file.modified_ms for file in rotated if file.name in states]
    later = [f for f in rotated if known and (f.name in states or f.modified_ms > min(known))]
    return later + ([files[config.file]] if config.file in files else [])


def _families_in_progress(files: Sequence[FoundFile], config: FileSourceConfig, settled: Settled) -> set[str]:
    """Files of which one was begun are read one after the other, with those that rotations made of it."""
    if config.file is not None:
        return {family_of(file.name) for file in files} | {config.file}
    found = set()
    for file in files:
        state = settled.states.get(file.name)
        if file.name in settled.moved.values() or (state is not None and _is_begun(state, file, config)):
            found.add(family_of(file.name))
    return found


def _is_begun(state: FileState, file: FoundFile, config: FileSourceConfig) -> bool:
    if codec_of(file.name, config.compression) != NONE:
        return state.position > 0 and (state.offset is None or state.offset.whole != file.size)
    return 0 < state.position < file.size


def _items(config: FileSourceConfig, places: Places, file: FoundFile, state: FileState) -> list[Item]:
    known = state.known
    fingerprint = known.fingerprint if known else ""
    codec = codec_of(file.name, config.compression)
    if codec != NONE:
        is_through = state.offset is not None and state.offset.whole == file.size
        return (
            []
            if is_through or not file.size
            else [Item(Part(file.name), file, codec, state.position, None, fingerprint)]
        )
    gaps = state.gaps(file.size)
    if not config.split_bytes or config.form.unit > 1 or sum(end - start for start, end in gaps) <= config.split_bytes:
        if not state.ranges:
            return [Item(Part(file.name), file, codec, start, end, fingerprint) for start, end in gaps]
        parts = gaps
    else:
        parts = [part for gap in gaps for part in _split(gap, config, places, file)]
    return [Item(Part(file.name, start, end), file, codec, start, end, fingerprint) for start, end in parts]


def _split(gap: tuple[int, int], config: FileSourceConfig, places: Places, file: FoundFile) -> list[tuple[int, int]]:
    """Ranges of at least `split.bytes` that begin where lines begin."""
    found, start, end = [], *gap
    while end - start > config.split_bytes:
        cut = _next_line(start + config.split_bytes, end, config.form, places, file)
        if cut >= end:
            break
        found.append((start, cut))
        start = cut
    return [*found, (start, end)]


def _next_line(position: int, end: int, form: LineFormat, places: Places, file: FoundFile) -> int:
    """Where the first line begins at or behind `position`; `end` when none does."""
    place = places.of(file.name)
    # A line that begins right at the position is known by the terminator before it.
    start = position - 1
    while start < end:
        data = read_range(place, file, NONE, start, min(_PROBE_BYTES, end - start))
        found = find_line_ends(data, form, is_last=False)
        if len(found):
            return start + int(found.nexts[0])
        if len(data) < 2:
            return end
        # The last byte may be a carriage return that waits for what follows.
        start += len(data) - 1
    return end


def _packed(groups: Sequence[list[Item]], max_tasks: int) -> list[list[Item]]:
    """Longest first into the task with the least (Graham 1969); a task reads older files first."""
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
