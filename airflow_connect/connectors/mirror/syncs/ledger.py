"""What a task has copied: ranges of the source cluster that are consecutive in the target cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_RANGES = 2_000
"""Ranges of a partition that are kept; if there are more, every second one of the older half is dropped."""


class CopiedRange(NamedTuple):
    """Records with consecutive offsets on both sides: `upstream + n` was copied to `downstream + n`, `n < length`."""

    upstream: int
    downstream: int
    length: int


class _Written(NamedTuple):
    """A range of one transaction; its place is known relative to the end of the log before the run.

    Attributes:
        records, transactions: how many of the run are before it in the target's partition.
    """

    upstream: int
    length: int
    records: int
    transactions: int


@dataclass(slots=True)
class PartitionLedger:
    """What was copied of one partition.

    Attributes:
        records, transactions: totals of what was committed.
    """

    records: int = 0
    transactions: int = 0
    _open: list[tuple[int, int]] = field(default_factory=list)
    _written: list[_Written] = field(default_factory=list)

    def returned(self, offsets: NDArray[np.int64]) -> None:
        """Records that were returned by the task, in ascending order; they are not committed yet."""
        for upstream, count in _consecutive(offsets):
            if self._open and sum(self._open[-1]) == upstream:
                self._open[-1] = (self._open[-1][0], self._open[-1][1] + count)
            else:
                self._open.append((upstream, count))

    def committed(self) -> None:
        """Everything returned so far is in the target cluster, since the last call in one transaction."""
        if not self._open:
            return
        for upstream, count in self._open:
            self._written.append(_Written(upstream, count, self.records, self.transactions))
            self.records += count
        self.transactions += 1
        self._open.clear()
        if len(self._written) > MOST_RANGES:
            half = MOST_RANGES // 2
            self._written[:half] = self._written[:half:2]

    def ranges(self, start: int, end: int, *, has_markers: bool) -> list[CopiedRange] | None:
        """Where the records are in the target, if its partition grew from `start` to `end` by them alone.

        Args:
            start, end: ends of the partition's log before and after the run.
            has_markers: whether each transaction ends with a marker, which has an offset too. It must be known: as
                many records as transactions may have come from elsewhere, or may be missing.

        Returns:
            None: the partition grew by something else, or by less.
        """
        per_transaction = 1 if has_markers else 0
        if end - start != self.records + per_transaction * self.transactions:
            return None
        return [
            CopiedRange(one.upstream, start + one.records + per_transaction * one.transactions, one.length)
            for one in self._written
        ]

    @property
    def first(self) -> int:
        """The first offset that was copied; valid if there are `records`."""
        return self._written[0].upstream


def syncs_of(copied: Sequence[CopiedRange], distance: int) -> list[CopiedRange]:
    """The ranges, cut where a MirrorMaker 2 that takes over needs an offset sync.

    It keeps 64 syncs for each partition, exponentially spaced from the last record (OffsetSyncStore). So there is one
    for the last record, and others 1, 2, 4, ... times `distance` records before it.
    """
    apart = _distances(max(1, distance))
    wanted, behind = next(apart), 0
    found: list[CopiedRange] = []
    for one in reversed(copied):
        end = one.length
        while wanted <= behind + one.length:
            cut = behind + one.length - wanted
            found.append(CopiedRange(one.upstream + cut, one.downstream + cut, end - cut))
            end, wanted = cut, next(apart)
        if end:
            found.append(one._replace(length=end))
        behind += one.length
    return found[::-1]


def _distances(step: int) -> Iterator[int]:
    """How many records from the end a sync is: 1, then steps that double."""
    yield 1
    while True:
        yield 1 + step
        step *= 2


def _consecutive(offsets: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """First offset and length of each part of `offsets` without a gap."""
    import numpy as np

    if not len(offsets):
        return
    if int(offsets[-1]) - int(offsets[0]) + 1 == len(offsets):
        yield int(offsets[0]), len(offsets)
        return
    starts = np.flatnonzero(np.diff(offsets, prepend=offsets[0] - 2) != 1)
    lengths = np.diff(starts, append=len(offsets))
    yield from zip(offsets[starts].tolist(), lengths.tolist(), strict=True)
