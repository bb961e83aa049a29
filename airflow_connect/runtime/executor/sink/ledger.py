"""Accounts for every record of a partition: read, written, filtered, sent to the dead letter queue, left.

The loop of the task keeps it, for every sink. A sink only returns the offset up to which its output may be committed
(`SinkTask.pre_commit`); everything after that offset is left for the next run.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airflow_connect.documents.run import PartitionReport

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from airflow_connect.api.offsets import OffsetRange
    from airflow_connect.api.record import SinkRecord


@dataclass(slots=True)
class Tally:
    """Numbers of records by outcome. `read` is their sum."""

    written: int = 0
    filtered: int = 0
    dead_lettered: int = 0

    @property
    def read(self) -> int:
        """The sum."""
        return self.written + self.filtered + self.dead_lettered


class Unsettled:
    """Offsets of records that the sink may still leave for the next run, by outcome."""

    __slots__ = ("dead_lettered", "filtered", "written")

    def __init__(self) -> None:
        """Starts without offsets."""
        self.written, self.filtered, self.dead_lettered = array("q"), array("q"), array("q")

    def settle(self, before: int, settled: Tally) -> None:
        """Move records below the offset `before` to `settled`."""
        settled.written += _cut(self.written, before)
        settled.filtered += _cut(self.filtered, before)
        settled.dead_lettered += _cut(self.dead_lettered, before)

    def move(self, offset: int, to: array[int]) -> bool:
        """Count a record that counted as written elsewhere; returns False if it is settled."""
        at = bisect_left(self.written, offset)
        if at == len(self.written) or self.written[at] != offset:
            return False
        del self.written[at]
        insort(to, offset)
        return True

    def __len__(self) -> int:
        """Number of records."""
        return len(self.written) + len(self.filtered) + len(self.dead_lettered)


@dataclass(slots=True)
class PartitionLedger:
    """The ledger of one planned range.

    While the task has paused the partition, its records wait in `held`, and records that are dropped otherwise are
    `pending`: whether this run or the next one accounts for them depends on whether the task resumes.

    Attributes:
        planned: the range.
        next_offset: records before it were delivered, or skipped because the sink has them.
        unsettled: used if the sink may leave records that it was given; None: everything put is settled immediately.
        left_from: everything from this offset on is left for the next run; None: nothing.
    """

    planned: OffsetRange
    next_offset: int
    unsettled: Unsettled | None = None
    is_paused: bool = False
    left_from: int | None = None
    left: int = 0
    held: list[SinkRecord] = field(default_factory=list)
    settled: Tally = field(default_factory=Tally)
    pending: list[tuple[int, bool]] = field(default_factory=list)
    reported: set[int] = field(default_factory=set)

    @property
    def is_open(self) -> bool:
        """Whether a record that arrives now goes to the task immediately."""
        return not self.is_paused and not self.held and self.left_from is None

    def is_skipped(self, record: SinkRecord) -> bool:
        """Whether the sink has reported that it has the record; if so, the record is counted."""
        if record.offset >= self.next_offset:
            return False
        self.count_left_out(record.offset, is_dead_letter=False)
        return True

    def is_left(self) -> bool:
        """Whether records that arrive now are left for the next run; if so, one is counted."""
        if self.left_from is None:
            return False
        self.left += 1
        return True

    def count_left_out(self, offset: int, *, is_dead_letter: bool) -> None:
        """Account for a record that was dropped before it reached the task."""
        if self.is_left():
            return
        if self.held:
            self.pending.append((offset, is_dead_letter))
        elif self.unsettled is not None:
            (self.unsettled.dead_lettered if is_dead_letter else self.unsettled.filtered).append(offset)
        elif is_dead_letter:
            self.settled.dead_lettered += 1
        else:
            self.settled.filtered += 1

    def delivered(self, offset: int) -> None:
        """The task has received the record at `offset`."""
        if self.unsettled is None:
            self.settled.written += 1
        else:
            self.unsettled.written.append(offset)
        self.next_offset = offset + 1

    def delivered_columns(self, read: NDArray[np.int64], delivered: NDArray[np.int64]) -> None:
        """The task has received a part of a batch; the rest was filtered.

        Args:
            read: int64[n], offsets of the batch.
            delivered: int64[m], those that the task has received.
        """
        if self.unsettled is None:
            self.settled.written += len(delivered)
            self.settled.filtered += len(read) - len(delivered)
        else:
            self.unsettled.written.frombytes(delivered.tobytes())
            if len(delivered) < len(read):
                from numpy import setdiff1d

                self.unsettled.filtered.frombytes(setdiff1d(read, delivered, assume_unique=True).tobytes())
        if len(read):
            self.next_offset = max(self.next_offset, int(read[-1]) + 1)

    def take_back(self, record: SinkRecord, *, is_dead_letter: bool) -> None:
        """A delivered record is not written."""
        self.reported.add(record.offset)
        if self.unsettled is not None:
            to = self.unsettled.dead_lettered if is_dead_letter else self.unsettled.filtered
            if self.unsettled.move(record.offset, to):
                return
        self.settled.written -= 1
        if is_dead_letter:
            self.settled.dead_lettered += 1
        else:
            self.settled.filtered += 1

    def settle(self, before: int) -> None:
        """The sink may commit everything below the offset `before`."""
        if self.unsettled is not None:
            self.unsettled.settle(before, self.settled)

    def take_held(self) -> list[SinkRecord]:
        """The records held back, to be delivered now."""
        taken, self.held = self.held, []
        pending, self.pending = self.pending, []
        for offset, is_dead_letter in pending:
            self.count_left_out(offset, is_dead_letter=is_dead_letter)
        return taken

    def leave_held(self) -> None:
        """Leave the records held back, and everything after them, for the next run."""
        if not self.held:
            return
        self.left_from = self.held[0].offset
        self.left = len(self.held) + len(self.pending)
        self.held, self.pending = [], []

    def end_of(self, end: int | None) -> int:
        """The offset up to which the task was given everything, if reading ended at `end`; None: as planned."""
        if self.left_from is not None:
            return self.left_from
        return self.planned.end if end is None else end

    def report(
        self, position: int, end: int | None, reason: str, commit_offset: int, details: Mapping[str, Any]
    ) -> PartitionReport:
        """The report of the range.

        Args:
            position: the consumer's position.
            end: where reading stopped if a limit shortened the range, else None.
            reason: the limit.
            commit_offset: the offset that may be committed.
            details: additions of the sink.
        """
        self.settle(commit_offset)
        left = self.left + (0 if self.unsettled is None else len(self.unsettled))
        done = self.settled
        return PartitionReport(
            range=self.planned if end is None else replace(self.planned, end=end),
            position=position,
            commit_offset=commit_offset,
            read=done.read + left,
            written=done.written,
            filtered=done.filtered,
            dead_lettered=done.dead_lettered,
            left=left,
            stopped_early=reason,
            details=details,
        )


def _cut(offsets: array[int], before: int) -> int:
    """Remove the offsets below `before`; returns how many there were."""
    count = bisect_left(offsets, before)
    del offsets[:count]
    return count
