"""Mode incrementing: numbers that no row had when larger ones were copied, and rows that have them later.

A transaction that is committed late has lower numbers than rows that were copied, and so has a session, or a program,
that takes numbers in blocks. No database tells of all of these beforehand, but afterwards a row is there whose number
was a gap. So a task keeps the latest gaps of a table in an offset of a source partition beside that of the table, and
the next runs look whether they have rows. A row that was copied and deleted leaves no gap: its number was seen.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.api.source import SourceOffset, SourcePartition
from airflow_connect.connectors.jdbc.source.offsets.positions import NO_ID
from airflow_connect.counting import agreeing, plural
from airflow_connect.counting import names as list_of
from airflow_connect.errors import OffsetError

if TYPE_CHECKING:
    from airflow_connect.connectors.jdbc.source.read.criteria import Source
    from airflow_connect.connectors.jdbc.source.read.reading import Reading

GAPS, NUMBERS = "gaps", "numbers"
_UPTO, _COLUMN = "upto", "column"
MOST_GAPS = 500
"""Of a table, the latest. Each is a condition of a statement."""
MOST_FOUND = 1_000
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Gaps:
    """What is known of the numbers of a table.

    Attributes:
        column: that has them.
        upto: the offset of the table when they were kept.
        ranges: first and last number of each gap, ascending.
    """

    column: str
    upto: int
    ranges: Sequence[tuple[int, int]]


def gaps_partition(partition: SourcePartition) -> SourcePartition:
    """The source partition with the gaps of the table whose partition this is."""
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
        if not isinstance(column, str) or not all(type(n) is int for n in (upto, *sum(ranges, ()))):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise OffsetError(
            f"The offset of {where} that has the gaps between its numbers is damaged.",
            code="offset.refused",
            suggestion='Delete it: the source partition with "gaps". Nothing is copied again.',
        ) from None
    return Gaps(column, upto, ranges)


class GapFinder:
    """Sees the numbers of the rows that a task reads, in ascending order."""

    def __init__(self, begin: int | None) -> None:
        """`begin`: the number after which it reads; None: from the first one, which databases give the number 1."""
        self._begin = NO_ID if begin is None else begin
        self._last = 0 if self._begin == NO_ID else self._begin
        self._found: deque[tuple[int, int]] = deque(maxlen=MOST_GAPS)

    def add(self, numbers: Iterable[int | None]) -> None:
        """The numbers of the next rows."""
        last = self._last
        for number in numbers:
            if number is not None and number > last:
                if number > last + 1:
                    self._found.append((last + 1, number - 1))
                last = number
        self._last = last

    def add_array(self, numbers: Any) -> None:
        """The same from an array of Arrow."""
        import numpy as np
        import pyarrow as pa

        if not len(numbers) or not pa.types.is_integer(numbers.type):
            self.add(map(int, numbers.to_pylist()))
            return
        array = np.concatenate([[self._last], np.asarray(numbers).astype(np.int64)])
        places = np.flatnonzero(np.diff(array) > 1)[-MOST_GAPS:]
        self._found.extend((int(array[n]) + 1, int(array[n + 1]) - 1) for n in places)
        self._last = max(self._last, int(array[-1]))

    def offset(self, column: str, before: Gaps | None) -> SourceOffset | None:
        """What is kept after a table was read; None: nothing is new.

        Args:
            column: that has the numbers.
            before: what was kept before this run. Not used if the offset was set back since: rows are copied again.
        """
        is_older = before is not None and before.column == column and before.upto <= self._begin
        ranges = [*(before.ranges if before is not None and is_older else ()), *self._found][-MOST_GAPS:]
        if (not ranges and before is None) or self._last == self._begin:
            return None
        return {_COLUMN: column, _UPTO: self._last, GAPS: json.dumps(ranges, separators=(",", ":"))}


def note_late(reading: Reading, source: Source, gaps: Gaps, told: Collection[int] | None) -> list[int]:
    """Name the rows whose numbers were gaps; returns these numbers.

    Args:
        reading: connected; gets the note.
        source: the table.
        gaps: of it.
        told: numbers that an earlier report has named; None: this one names all rows up to the offset.
    """
    found = [int(row[0]) for row in reading.execute(source.numbers_in(gaps.column, gaps.ranges, MOST_FOUND))]
    late = [] if told is None else [number for number in found if number not in told]
    if late:
        count = f"{'At least ' if len(found) == MOST_FOUND else ''}{plural(len(late), 'row')}"
        reading.note(
            f"{count} of {source.name} {agreeing(len(late), 'have')} a number in {gaps.column} at or below the offset"
            f" that no row had when larger ones were copied ({list_of(late, _SHOWN)}):"
            f" {agreeing(len(late), 'are')} NOT copied. They were committed late, or numbers are taken in blocks. To"
            f' copy them, set the offset to {{"incrementing": {late[0] - 1}}}: rows after it are copied again. Use a'
            " mode with a timestamp, and timestamp.lookback.ms."
        )
    return found
