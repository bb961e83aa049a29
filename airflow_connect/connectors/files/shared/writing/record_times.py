"""What a task records about the times of its records. The driver uses it to detect complete directories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_connect.connectors.files.shared.publishing.time_progress import PartitionTimes

if TYPE_CHECKING:
    from airflow_connect.layout.late_records import LateRecords
    from airflow_connect.layout.rotation_batches import PlacedColumns


@dataclass(slots=True)
class _Seen:
    highest_ms: int | None = None
    lowest_ms: int | None = None
    late: int = 0
    directories: dict[str, int] = field(default_factory=dict)

    def add(self, highest_ms: int | None, lowest_ms: int | None, late: int, directories: Mapping[str, int]) -> None:
        if highest_ms is not None and (self.highest_ms is None or highest_ms > self.highest_ms):
            self.highest_ms = highest_ms
        if lowest_ms is not None and (self.lowest_ms is None or lowest_ms < self.lowest_ms):
            self.lowest_ms = lowest_ms
        self.late += late
        for directory, time_ms in directories.items():
            self.directories.setdefault(directory, time_ms)


class RecordTimes:
    """Times of the written records of one topic-partition: provisional until the next rotation, then final."""

    def __init__(self, topic: str, now_ms: int, late: LateRecords) -> None:
        """For a partition of the consumed topic `topic`, in a run with the clock `now_ms`."""
        self._topic = topic
        self._now_ms = now_ms
        self._late = late
        self._pending, self._settled = _Seen(), _Seen()

    def note(self, directory: str, time_ms: int | None) -> None:
        """A record was written to `directory`."""
        if time_ms is None:  # A null value has no time, and files of null values are not in time directories.
            return
        seen = self._pending
        if time_ms <= self._now_ms and (seen.highest_ms is None or time_ms > seen.highest_ms):
            seen.highest_ms = time_ms
        if seen.lowest_ms is None or time_ms < seen.lowest_ms:
            seen.lowest_ms = time_ms
        if directory not in seen.directories:
            seen.directories[directory] = time_ms
        if self._late.is_late(self._topic, time_ms):
            seen.late += 1

    def note_columns(self, placed: PlacedColumns, start: int, stop: int) -> None:
        """Records `[start, stop)` of a batch were written; equivalent to `note` for each."""
        if placed.timestamps_ms is None or stop <= start:
            return
        import numpy as np

        times = placed.timestamps_ms[start:stop]
        past = times if int(np.max(times)) <= self._now_ms else times[times <= self._now_ms]
        codes, firsts = np.unique(placed.codes[start:stop], return_index=True)
        by_place = sorted(zip(firsts.tolist(), codes.tolist(), strict=True))
        late = self._late.are_late(self._topic, times)
        self._pending.add(
            int(np.max(past)) if len(past) else None,
            int(np.min(times)),
            0 if late is None else int(late.sum()),
            {placed.names[code]: int(times[first]) for first, code in by_place},
        )

    def refused(self) -> None:
        """A late record goes to the dead letter queue instead of a file."""
        self._pending.late += 1

    def settle(self) -> None:
        """All noted records are in files that have ended."""
        seen, self._pending = self._pending, _Seen()
        self._settled.add(seen.highest_ms, seen.lowest_ms, seen.late, seen.directories)

    def report(self) -> PartitionTimes:
        """The final part. The rest is left for the next run."""
        done = self._settled
        return PartitionTimes(done.highest_ms, self._pending.lowest_ms, done.late, dict(done.directories))
