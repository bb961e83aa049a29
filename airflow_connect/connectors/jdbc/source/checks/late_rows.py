"""Mode incrementing: names the rows that are at or below the offset of a table and were not copied.

They were committed late, so that their number was a gap (`gaps.py`), or have a number at or below 0, where a first run
does not begin. Each is named by one report: what a run has named is kept for the next one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.jdbc.source.offsets.positions import NO_ID, TABLE
from airflow_connect.connectors.jdbc.source.read.gaps import Gaps, Ranges, ranges_with, up_to, without
from airflow_connect.counting import agreeing, format_count, plural
from airflow_connect.counting import names as list_of

if TYPE_CHECKING:
    from airflow_connect.connectors.jdbc.source.checks.set_back import Look
    from airflow_connect.connectors.jdbc.source.read.reading import Reading
    from airflow_connect.connectors.jdbc.source.work import Item

NAMED, LOW, FORGOTTEN = "late_rows", "low_rows", "forgotten_gaps"
"""Members of what is kept from run to run, each by the name of a table in source partitions: numbers of late rows that
the last report has named; numbers at or below 0 that are known; how many gaps that were dropped reports have named."""
MOST_FOUND = 1_000
"""Of a table in one run. The next run names others."""
MOST_KEPT = 20_000
"""Ranges of numbers of all tables in each member."""
_SHOWN = 10


def named_before(kept: Mapping[str, Any]) -> Mapping[str, Ranges]:
    """By the name of a table, the numbers of late rows that the last report has named."""
    return _ranges_by_table(kept, NAMED)


class LateRows:
    """Looks at the tables of a plan.

    Attributes:
        has_named: whether a note names rows, or gaps: then it must be in a report before what is kept says so.
    """

    def __init__(self, kept: Mapping[str, Any]) -> None:
        """`kept`: the document of the last run."""
        self._named_before, self._known_low = named_before(kept), _ranges_by_table(kept, LOW)
        self._looked_at: Collection[str] = kept.get("tables", {}) if LOW in kept else ()
        self._named: dict[str, Ranges] = {}
        self.has_named = False
        self._low: dict[str, Ranges] = dict(self._known_low)
        self._forgotten: dict[str, int] = dict(kept.get(FORGOTTEN, {}))

    def look(
        self, reading: Reading, item: Item, offset: int | None, found: Look, gaps: Gaps | None, *, told: bool
    ) -> None:
        """Name the late rows of a table.

        Args:
            reading: connected; gets the notes.
            item: the table.
            offset: its number; None: it has none, and a task names the rows below 0.
            found: what the plan has seen of it.
            gaps: of it.
            told: whether another note has the number of all rows up to the offset.
        """
        table, name = item.table, str(item.partition[TABLE])
        if table is None or found.column is None:
            return
        if gaps is not None and gaps.column != found.column.name:  # It was renamed, or is another one.
            gaps = None
        if gaps is not None and offset is not None and not told:
            self._name_forgotten(reading, table.full_name, name, gaps)
        if found.smallest is None:
            self._low.pop(name, None)
            return
        asked = self._asked(name, offset, found.smallest, gaps)
        lowest = _low_end(offset, gaps)
        if not asked:
            return
        source = reading.source(table)
        rows = [int(row[0]) for row in reading.execute(source.numbers_in(found.column.name, asked, MOST_FOUND))]
        low, late = [n for n in rows if n <= lowest], [n for n in rows if n > lowest]
        column, is_all = f"{source.name} {{}} a number in {found.column.name}", len(rows) < MOST_FOUND
        is_new = offset is not None and table.full_name in self._looked_at
        if low and offset is not None and not told:
            self.has_named = True
            _note_low(reading, column, low, is_all=is_all, is_new=is_new)
        if late and not told:
            self.has_named = True
            _note_late(reading, column, late, is_all=is_all)
        if late:
            self._named[name] = ranges_with(late)
        if low and not is_new and len(low) == MOST_FOUND:
            # They are counted by the task that reads the table first; the next runs must not take others for new ones.
            self._low[name] = [(found.smallest, lowest)]
            _note_many(reading, column, found.smallest, lowest)
        elif low:
            self._low[name] = _union(self._low.get(name, ()), low)

    def document(self, tables: Collection[str]) -> Mapping[str, Any]:
        """What is kept for the next run; `tables`: the names of all that have an offset."""
        low = {name: ranges for name, ranges in self._low.items() if name in tables}
        forgotten = {name: number for name, number in self._forgotten.items() if name in tables}
        members = {NAMED: _limited(self._named), FORGOTTEN: forgotten}
        return {LOW: _limited(low), **{key: value for key, value in members.items() if value}}

    @staticmethod
    def without_own(kept: Mapping[str, Any]) -> Mapping[str, Any]:
        """A document without the members of this class."""
        return {key: value for key, value in kept.items() if key not in (NAMED, LOW, FORGOTTEN)}

    def _asked(self, name: str, offset: int | None, smallest: int, gaps: Gaps | None) -> Ranges:
        """The ranges of numbers that might have rows which no report has named."""
        end = _low_end(offset, gaps)
        low = without([(smallest, end)], self._known_low.get(name, ())) if smallest <= end else []
        if gaps is None or offset is None:
            return low
        late = without(up_to(gaps.ranges, offset), self._named_before.get(name, ()))
        return [*low, *((max(first, end + 1), last) for first, last in late if last >= max(smallest, end + 1))]

    def _name_forgotten(self, reading: Reading, table: str, name: str, gaps: Gaps) -> None:
        named = self._forgotten.get(name, 0)
        new = gaps.forgotten - (named if named <= gaps.forgotten else 0)
        if new:
            self.has_named = True
            kept = f" Those before the number {gaps.ranges[0][0]} are forgotten." if gaps.ranges else ""
            reading.note(
                f"The rows of {table} have more gaps between their numbers in {gaps.column} than the"
                f" latest ones that are kept: {plural(new, 'gap')} {agreeing(new, 'were')} forgotten by earlier"
                f" runs.{kept} A row that is committed late with such a number is neither copied nor named. Use a mode"
                " with a timestamp, and timestamp.lookback.ms."
            )
        self._forgotten[name] = gaps.forgotten


def _low_end(offset: int | None, gaps: Gaps | None) -> int:
    """The number up to which gaps are not kept, because no run has begun before it."""
    if offset is None:
        return NO_ID
    first = 0 if gaps is None or gaps.first is None else gaps.first
    return min(offset, first)


def _note_late(reading: Reading, column: str, late: Sequence[int], *, is_all: bool) -> None:
    reading.note(
        f"{_count(late, is_all)} of {column.format(agreeing(len(late), 'have'))} at or below the offset"
        f" that no row had when larger ones were copied ({list_of(late, _SHOWN)}):"
        f" {agreeing(len(late), 'are')} NOT copied. They were committed late, or numbers are taken in blocks. To"
        f' copy them, set the offset to {{"incrementing": {late[0] - 1}}}: rows after it are copied again. Use a'
        f" mode with a timestamp, and timestamp.lookback.ms.{_more(is_all)}"
    )


def _note_low(reading: Reading, column: str, low: Sequence[int], *, is_all: bool, is_new: bool) -> None:
    begin = f"{_count(low, is_all)} of {column.format(agreeing(len(low), 'have'))} at or below 0"
    they, them = ("it is", "it") if len(low) == 1 else ("they are", "them")
    if is_new:
        what = f"{begin} that {agreeing(len(low), 'were')} not there at the last run ({list_of(low, _SHOWN)}):"
        what += f" {they} NOT copied, because {they} below the offset."
    else:
        what = f"{begin} ({list_of(low, _SHOWN)}), which {agreeing(len(low), 'are')} NOT copied now. Whether earlier"
        what += f" runs have copied {them} is not known: a first run in mode incrementing begins at 0."
    reading.note(
        f'{what} To copy them, set the offset to {{"incrementing": {low[0] - 1}}}: rows after it are copied'
        f" again.{_more(is_all)}"
    )


def _note_many(reading: Reading, column: str, smallest: int, lowest: int) -> None:
    reading.note(
        f"At least {format_count(MOST_FOUND)} rows of {column.format('have')} at or below {lowest}, and are NOT copied:"
        f" too many to know each. A row that comes among them later, with a number from {smallest} to {lowest}, is"
        " neither copied nor named."
    )


def _count(numbers: Sequence[int], is_all: bool) -> str:
    return plural(len(numbers), "row") if is_all else f"At least {plural(len(numbers), 'row')}"


def _more(is_all: bool) -> str:
    return (
        "" if is_all else f" A run names up to {format_count(MOST_FOUND)} rows of a table; the next one names others."
    )


def _union(ranges: Ranges, numbers: Sequence[int]) -> Ranges:
    """The numbers of both as ranges; ranges that touch are one."""
    found: list[tuple[int, int]] = []
    for first, last in sorted([*ranges, *((n, n) for n in numbers)]):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


def _limited(by_table: Mapping[str, Ranges]) -> Mapping[str, Sequence[Sequence[int]]]:
    """As much as one document may have: what is left out is named again."""
    left, kept = MOST_KEPT, {}
    for name, ranges in by_table.items():
        kept[name] = [list(pair) for pair in ranges[:left]]
        left -= len(kept[name])
    return kept


def _ranges_by_table(kept: Mapping[str, Any], member: str) -> dict[str, Ranges]:
    return {name: [(first, last) for first, last in ranges] for name, ranges in kept.get(member, {}).items()}
