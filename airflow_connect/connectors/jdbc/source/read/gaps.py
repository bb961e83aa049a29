"""Mode incrementing: numbers that no row had when larger ones were copied.

A transaction that is committed late has lower numbers than rows that were copied, and so has a session, or a program,
that takes numbers in blocks. No database tells of all of these beforehand, but afterwards a row is there whose number
was a gap. So a task keeps the latest gaps of a table in an offset of a source partition beside that of the table, in
the transaction that has the rows, and the next runs look whether they have rows (`late_rows.py`). A row that was copied
and deleted leaves no gap: its number was seen. Each range of a first load has gaps of its own until the load is
complete.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any

from airflow_connect.api.source import OffsetChanges, SourceOffset, SourcePartition
from airflow_connect.connectors.jdbc.source.offsets.positions import NO_ID, PROTOCOL, TABLE, partition_of
from airflow_connect.connectors.jdbc.source.offsets.ranges import AFTER, BY
from airflow_connect.errors import OffsetError

if TYPE_CHECKING:
    from airflow_connect.connectors.jdbc.source.offsets.ranges import Reconciled

GAPS, NUMBERS = "gaps", "numbers"
_UPTO, _COLUMN, _FIRST, _FORGOTTEN = "upto", "column", "first", "forgotten"
MOST_GAPS = 500
"""Of a table, the latest: their numbers are in a statement of each run, and in an offset."""
Ranges = Sequence[tuple[int, int]]
"""First and last number of each, ascending, without common numbers."""
_OF_A_TABLE, _OF_A_RANGE = {PROTOCOL, TABLE, GAPS}, {PROTOCOL, TABLE, BY, AFTER, GAPS}
GAP_PARTITIONS = (_OF_A_TABLE, _OF_A_RANGE)


@dataclass(frozen=True, slots=True)
class Gaps:
    """What is known of the numbers of a table.

    Attributes:
        column: that has them.
        upto: the last number when they were kept.
        ranges: the gaps.
        first: every number after it, up to the offset, is in `ranges` or was that of a row; None: of the numbers at or
            below 0, no row was copied.
        forgotten: how many gaps were dropped since the table is read, because there were more than `MOST_GAPS`.
    """

    column: str
    upto: int
    ranges: Ranges
    first: int | None = None
    forgotten: int = 0

    def offset(self) -> SourceOffset:
        """As it is committed."""
        more = {_FIRST: self.first} if self.first is not None else {}
        dropped = {_FORGOTTEN: self.forgotten} if self.forgotten else {}
        ranges = json.dumps(self.ranges, separators=(",", ":"))
        return {_COLUMN: self.column, _UPTO: self.upto, GAPS: ranges, **more, **dropped}

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to keep."""
        return not self.ranges and self.first is None and not self.forgotten


def gaps_partition(partition: SourcePartition) -> SourcePartition:
    """The source partition with the gaps of the table, or range, whose partition this is."""
    return {**partition, GAPS: NUMBERS}


def gaps_of(offset: SourceOffset | None, where: str) -> Gaps | None:
    """The gaps in a committed offset; None: there is none.

    Raises:
        OffsetError: it is damaged.
    """
    if offset is None:
        return None
    try:
        column, upto = offset[_COLUMN], offset[_UPTO]
        ranges = [(first, last) for first, last in json.loads(offset[GAPS])]
        first, forgotten = offset.get(_FIRST), offset.get(_FORGOTTEN, 0)
        numbers = (upto, forgotten, NO_ID if first is None else first, *chain.from_iterable(ranges))
        if not isinstance(column, str) or not all(type(n) is int for n in numbers):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise OffsetError(
            f"The offset of {where} that has the gaps between its numbers is damaged.",
            code="offset.refused",
            suggestion='Delete it: the source partition with "gaps". Nothing is copied again.',
        ) from None
    return Gaps(column, upto, ranges, first, forgotten)


def up_to(ranges: Ranges, number: int) -> list[tuple[int, int]]:
    """The part of ranges at or below a number."""
    return [(first, min(last, number)) for first, last in ranges if first <= number]


def without(ranges: Ranges, taken: Ranges) -> list[tuple[int, int]]:
    """The numbers in `ranges` that are not in `taken`."""
    return list(_without(ranges, taken))


def _without(ranges: Ranges, taken: Ranges) -> Iterator[tuple[int, int]]:
    place = 0
    for first, last in ranges:
        while place < len(taken) and taken[place][1] < first:
            place += 1
        at = place
        while at < len(taken) and taken[at][0] <= last:
            if first < taken[at][0]:
                yield first, taken[at][0] - 1
            first = taken[at][1] + 1
            at += 1
        if first <= last:
            yield first, last


def ranges_with(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """The ranges that have just these numbers; `numbers`: in any order."""
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


class GapFinder:
    """Sees the numbers of the rows that a task reads, in ascending order."""

    def __init__(self, begin: int | None, column: str, before: Gaps | None) -> None:
        """Starts with the gaps that are known.

        Args:
            begin: the number after which the task reads; None: from the first one, which databases give the number 1.
            column: that has the numbers.
            before: what was kept; gaps after `begin` are dropped, because their rows are copied now.
        """
        self._begin = NO_ID if begin is None else begin
        self._column = column
        if before is not None and before.column != column:
            before = None
        self._found: deque[tuple[int, int]] = deque(maxlen=MOST_GAPS)
        self._forgotten, self._first = 0, self._begin if self._begin < NO_ID else None
        self._changed = self._first is not None
        if before is not None:
            known = up_to(before.ranges, self._begin)
            self._found.extend(known)
            self._forgotten = before.forgotten + len(known) - len(self._found)
            if before.first is not None and before.first < self._begin:
                self._first = before.first
            self._changed = (list(self._found), self._first) != (list(before.ranges), before.first)
        self._last = self._begin if self._begin != NO_ID or self._first is not None else 0

    def add(self, numbers: Iterable[int | None]) -> None:
        """The numbers of the next rows."""
        last = self._last
        for number in numbers:
            if number is not None and number > last:
                if number > last + 1:
                    self._keep((last + 1, number - 1))
                last = number
            elif number == 0:
                self._see_zero()
        self._last = last

    def add_array(self, numbers: Any) -> None:
        """The same from an array of Arrow."""
        import numpy as np
        import pyarrow as pa

        if not len(numbers) or not pa.types.is_integer(numbers.type):
            # A numeric column comes as texts, and a whole number may have a point: 1.0
            self.add(int(Decimal(number)) for number in numbers.to_pylist())
            return
        own = np.asarray(numbers).astype(np.int64)
        if own[0] == 0:
            self._see_zero()
        array = np.concatenate([[self._last], own])
        places = np.flatnonzero(np.diff(array) > 1)
        latest = places[-MOST_GAPS:]
        self._forgotten += len(places) - len(latest)
        for n in latest:
            self._keep((int(array[n]) + 1, int(array[n + 1]) - 1))
        self._last = max(self._last, int(array[-1]))

    def end(self, upto: int) -> None:
        """A range that ends at a number was read: no row has had the numbers after its last one."""
        if upto > self._last:
            self._keep((self._last + 1, upto))
            self._last = upto

    def offset(self) -> SourceOffset | None:
        """What is kept with the rows that were seen; None: it is what was kept before."""
        if not self._changed:
            return None
        self._changed = False
        return Gaps(self._column, self._last, list(self._found), self._first, self._forgotten).offset()

    def _keep(self, gap: tuple[int, int]) -> None:
        self._forgotten += len(self._found) == MOST_GAPS
        self._found.append(gap)
        self._changed = True

    def _see_zero(self) -> None:
        """A row with the number 0 was copied, which others do not have: the number is no gap."""
        if self._first is None and self._begin == NO_ID:
            self._first, self._changed = NO_ID, True


def reconciled_gaps(
    committed: Iterable[tuple[SourcePartition, SourceOffset]], found: Reconciled, named: Mapping[str, Ranges]
) -> OffsetChanges:
    """What becomes of gaps between runs.

    Those of the ranges of a complete load become those of its table. Numbers whose rows a report has named are gaps no
    more.

    Args:
        committed: every offset of the connector.
        found: what becomes of ranges.
        named: by the name of the table in a source partition, the numbers of rows that the last run has named.

    Raises:
        OffsetError: an offset is damaged.
    """
    changes: list[tuple[SourcePartition, SourceOffset | None]] = []
    parts: dict[str, list[tuple[SourcePartition, Gaps]]] = {}
    for partition, offset in committed:
        table, members = str(partition.get(TABLE)), set(partition)
        if members == _OF_A_RANGE or (members == _OF_A_TABLE and named.get(table)):
            gaps = gaps_of(offset, f"the table {table}")
            assert gaps is not None
            if members == _OF_A_RANGE:
                parts.setdefault(table, []).append((partition, gaps))
            else:
                changes.append((partition, replace(gaps, ranges=without(gaps.ranges, named[table])).offset()))
    for table, of_ranges in parts.items():
        if table in found.loads:
            continue
        changes += [(partition, None) for partition, _ in of_ranges]
        if table in found.offsets:
            whole = _merged([gaps for _, gaps in of_ranges])
            changes += [] if whole.is_empty else [(gaps_partition(partition_of(table)), whole.offset())]
    return changes


def _merged(parts: Sequence[Gaps]) -> Gaps:
    ranges = sorted(gap for part in parts for gap in part.ranges)
    first = min((part.first for part in parts if part.first is not None), default=None)
    dropped = max(0, len(ranges) - MOST_GAPS)
    forgotten = sum(part.forgotten for part in parts) + dropped
    return Gaps(parts[0].column, max(part.upto for part in parts), ranges[dropped:], first, forgotten)
