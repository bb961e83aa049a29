"""Rotation of many records at once: the columnar form of `Rotation.before_write` and `written`.

It works on the same `Rotation`, so a task may process one batch in columns and the next one record by record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from airflow_connect.layout.rotation import Reason, Rotation

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema

# Most cuts are near or do not exist: check a few records first, then more and more.
_FIRST_WINDOW, _GROWTH = 1024, 4
_INT64_MAX = (1 << 63) - 1


@dataclass(frozen=True)
class PlacedColumns:
    """The data that rotation needs of consecutive records, all of which are written.

    Attributes:
        codes: int32[n], index into `names`.
        names: directories, distinct.
        timestamps_ms: int64[n], or None if the partitioner is not time-based.
        value_schema: schema of all values.
    """

    codes: NDArray[np.int32]
    names: list[str]
    timestamps_ms: NDArray[np.int64] | None = None
    value_schema: Schema | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """All files are closed before record `index`; `index == n` is the end of the batch."""

    index: int
    reason: Reason


def next_cut(rotation: Rotation, columns: PlacedColumns, start: int, now_ms: int) -> Cut | None:
    """Count the records from `start` on as written, up to the first rotation.

    Args:
        rotation: the state; changed. After a cut: close the files of `[start, cut.index)` and of earlier
        batches, call
            `rotation.rotated()`, and continue at `cut.index`.
        columns: the records. With `schema.compatibility` they must not need projection to a schema of
            `rotation.schemas` other than their own; with `keeps_schema` they must have a schema if those have one.
        start: index of the first record to count, `0 <= start < n`.
        now_ms: wall clock, for the schedule.

    Returns:
        The cut, or None when all records up to the end of the batch belong to the open files.

    Raises:
        SchemaError: the schema has no version although `schema.compatibility` needs one.
    """
    schema = columns.value_schema
    rotation.settings.schema_compatibility.should_change_file(schema, schema)
    if rotation.settings.keeps_schema and rotation.record_count == 0:
        rotation.take_schema(schema)
    room = max(1, rotation.settings.flush_size - rotation.record_count)
    end = min(len(columns.codes), start + room)
    cut = _Search(rotation, columns, start, now_ms).first_cut(end)
    if cut is None and end == start + room:
        cut = Cut(end, Reason.SIZE)
    stop = end if cut is None else cut.index
    _count(rotation, columns, start, stop)
    if cut is not None and cut.reason in (Reason.INTERVAL, Reason.DIRECTORY_CHANGE, Reason.SCHEDULE):
        rotation.restart_schedule(now_ms)
    if cut is not None and cut.reason is not Reason.SIZE and columns.timestamps_ms is not None:
        rotation.observe(int(columns.timestamps_ms[stop]))
    return cut


class _Search:
    """Finds the first record before which the files are closed."""

    def __init__(self, rotation: Rotation, columns: PlacedColumns, start: int, now_ms: int) -> None:
        self.rotation = rotation
        self.columns = columns
        self.start = start
        # Rules that need open files begin with the second record when nothing is open yet.
        self.first_open = start if rotation.record_count else start + 1
        self.is_scheduled = rotation.is_scheduled(now_ms)
        self.threshold_ms = self._threshold_ms()
        self.null_switches, self.schema_changes = self._conflicts()
        self.is_open: NDArray[np.bool_] | None = None
        self.open_files = len(rotation.open_directories)
        if rotation.settings.max_open_files > 0:
            self.is_open = np.array([name in rotation.open_directories for name in columns.names], dtype=bool)

    def first_cut(self, end: int) -> Cut | None:
        """The first cut before a record of `[start, end)`."""
        low, width = self.start, _FIRST_WINDOW
        while low < end:
            high = min(end, low + width)
            # min() keeps the first of equals: the order is the order of the rules.
            found = min(self._candidates(low, high), key=lambda cut: cut.index, default=None)
            if found is not None:
                return found
            low, width = high, width * _GROWTH
        return None

    def _candidates(self, low: int, high: int) -> list[Cut]:
        first = max(low, self.first_open)
        found = [
            (self._coded(low, high, self.null_switches), Reason.NULL_SCHEMA),
            (self._late(first, high), Reason.INTERVAL),
            (self._other_directory(first, high), Reason.DIRECTORY_CHANGE),
            (first if self.is_scheduled and first < high else None, Reason.SCHEDULE),
            (self._coded(first, high, self.schema_changes), Reason.SCHEMA),
            (self._one_file_too_many(low, high), Reason.OPEN_FILES),
        ]
        return [Cut(index, reason) for index, reason in found if index is not None]

    def _threshold_ms(self) -> int | None:
        """Timestamp from which a record is too late for the open files, or None."""
        timestamps, base = self.columns.timestamps_ms, self.rotation.base_timestamp_ms
        if not self.rotation.settings.follows_record_time or timestamps is None:
            return None
        threshold = (int(timestamps[self.start]) if base is None else base) + self.rotation.settings.rotate_interval_ms
        return threshold if threshold <= _INT64_MAX else None

    def _conflicts(self) -> tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None]:
        """By code: whether these records are incompatible with the schema of the directory's file."""
        schema, nulls, changes = self.columns.value_schema, set(), set()
        for directory, current in self.rotation.schemas.items():
            if (current is None) != (schema is None) and not self.rotation.settings.keeps_schema:
                nulls.add(directory)
            elif self.rotation.settings.schema_compatibility.should_change_file(schema, current):
                changes.add(directory)
        return self._flags(nulls), self._flags(changes)

    def _flags(self, directories: set[str]) -> NDArray[np.bool_] | None:
        if self.rotation.settings.keeps_schema:
            return np.ones(len(self.columns.names), dtype=bool) if directories else None
        return np.array([name in directories for name in self.columns.names], dtype=bool) if directories else None

    def _coded(self, low: int, high: int, flags: NDArray[np.bool_] | None) -> int | None:
        return None if flags is None else _first_true(flags[self.columns.codes[low:high]], low)

    def _late(self, low: int, high: int) -> int | None:
        timestamps = self.columns.timestamps_ms
        if self.threshold_ms is None or timestamps is None:
            return None
        return _first_true(timestamps[low:high] >= self.threshold_ms, low)

    def _other_directory(self, low: int, high: int) -> int | None:
        settings, codes, names = self.rotation.settings, self.columns.codes, self.columns.names
        if not (settings.follows_record_time and settings.rotate_on_directory_change) or low >= high:
            return None
        if low == self.start:  # its predecessor belongs to an earlier batch or file
            if self.rotation.is_other_directory(names[codes[low]]):
                return low
            low += 1
        here, before = codes[low:high], codes[low - 1 : high - 1]
        changed = here != before
        if settings.tombstone_directory in names:
            tombstone = names.index(settings.tombstone_directory)
            changed &= (here != tombstone) & (before != tombstone)
        return _first_true(changed, low)

    def _one_file_too_many(self, low: int, high: int) -> int | None:
        if self.is_open is None:
            return None
        fresh = np.flatnonzero(~self.is_open[self.columns.codes[low:high]]) + low
        opened, positions = np.unique(self.columns.codes[fresh], return_index=True)
        room = self.rotation.settings.max_open_files - self.open_files
        if len(opened) > room:
            return int(np.sort(fresh[positions])[room])
        self.is_open[opened] = True
        self.open_files += len(opened)
        return None


def _count(rotation: Rotation, columns: PlacedColumns, start: int, stop: int) -> None:
    """Update the state as `before_write` and `written` of the records `[start, stop)` would have done."""
    if stop == start:
        return
    if columns.timestamps_ms is not None:
        rotation.observe(int(columns.timestamps_ms[start]))
        rotation.observe(int(columns.timestamps_ms[stop - 1]))
    for code in _in_order_of_appearance(columns.codes[start:stop], len(columns.names)):
        rotation.open_directories[columns.names[code]] = None
        rotation.note_schema(columns.names[code], columns.value_schema)
    rotation.record_count += stop - start
    rotation.last_directory = columns.names[columns.codes[stop - 1]]


def _in_order_of_appearance(codes: NDArray[np.int32], count: int) -> list[int]:
    if len(codes) < max(256, count // 8):
        return list(dict.fromkeys(codes.tolist()))
    first = np.full(count, -1, dtype=np.int64)
    first[codes[::-1]] = np.arange(
        len(codes) - 1, -1, -1
    )  # for equal codes the last assignment remains, which is the first record
    seen = np.flatnonzero(first >= 0)
    return [int(code) for code in seen[np.argsort(first[seen])]]


def _first_true(flags: NDArray[np.bool_], low: int) -> int | None:
    """Index of the first true flag, counted from `low`."""
    if not len(flags):
        return None
    at = int(np.argmax(flags))
    return low + at if flags[at] else None
