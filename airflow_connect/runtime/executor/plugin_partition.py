"""The book-keeping of one partition for a sink task of somebody else: what was delivered, left out, held back, left."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from airflow_connect.api.run import PartitionReport

if TYPE_CHECKING:
    from airflow_connect.api.offsets import OffsetRange
    from airflow_connect.api.record import SinkRecord


@dataclass(slots=True)
class Counts:
    """Records of a partition by what became of them. `read` is their sum."""

    written: int = 0
    filtered: int = 0
    dead_lettered: int = 0

    @property
    def read(self) -> int:
        """All of them."""
        return self.written + self.filtered + self.dead_lettered


@dataclass(slots=True)
class PluginPartition:
    """One planned range.

    While the task has paused the partition its records wait in `held`, and what else happens to its records is
    `pending`: whether this run accounts for it or the next one depends on whether the task resumes.

    Attributes:
        planned: the range.
        next_offset: records before it were delivered, or skipped because the sink has them.
        left_from: from here on everything is left for the next run; None: nothing.
    """

    planned: OffsetRange
    next_offset: int
    is_paused: bool = False
    left_from: int | None = None
    left: int = 0
    held: list[SinkRecord] = field(default_factory=list)
    settled: Counts = field(default_factory=Counts)
    pending: Counts = field(default_factory=Counts)
    reported: set[int] = field(default_factory=set)

    @property
    def counts(self) -> Counts:
        """Where a record that comes now is counted."""
        return self.pending if self.held else self.settled

    @property
    def is_open(self) -> bool:
        """Whether a record that comes now goes to the task at once."""
        return not self.is_paused and not self.held and self.left_from is None

    def is_skipped(self, record: SinkRecord) -> bool:
        """Whether the sink has said that it has the record; counts it then."""
        if record.offset >= self.next_offset:
            return False
        self.counts.filtered += 1
        return True

    def is_left(self) -> bool:
        """Whether records that come now are left for the next run; counts one then."""
        if self.left_from is None:
            return False
        self.left += 1
        return True

    def count_left_out(self, *, is_dead_letter: bool) -> None:
        """Account for a record that was left out before it came to the task."""
        if self.is_left():
            return
        if is_dead_letter:
            self.counts.dead_lettered += 1
        else:
            self.counts.filtered += 1

    def delivered(self, offset: int, records: int = 1) -> None:
        """The task has `records` more, the last of them at `offset`."""
        self.settled.written += records
        self.next_offset = offset + 1

    def reported_errant(self, record: SinkRecord, *, is_dead_letter: bool) -> None:
        """A record that was delivered is not written after all."""
        self.reported.add(record.offset)
        self.settled.written -= 1
        if is_dead_letter:
            self.settled.dead_lettered += 1
        else:
            self.settled.filtered += 1

    def take_held(self) -> list[SinkRecord]:
        """The records held back, to be delivered now."""
        taken, self.held = self.held, []
        self.settled.filtered += self.pending.filtered
        self.settled.dead_lettered += self.pending.dead_lettered
        self.pending = Counts()
        return taken

    def leave_held(self) -> None:
        """Leave what is held back, and everything after it, for the next run."""
        if not self.held:
            return
        self.left_from = self.held[0].offset
        self.left = len(self.held) + self.pending.read
        self.held, self.pending = [], Counts()

    def report(self, position: int, end: int | None, reason: str) -> PartitionReport:
        """What became of the range; see `SinkWriter.finish`."""
        copied = self.planned if end is None else replace(self.planned, end=end)
        done = self.settled
        return PartitionReport(
            range=copied,
            position=position,
            commit_offset=copied.end if self.left_from is None else self.left_from,
            read=done.read + self.left,
            written=done.written,
            filtered=done.filtered,
            dead_lettered=done.dead_lettered,
            left=self.left,
            stopped_early=reason,
        )
