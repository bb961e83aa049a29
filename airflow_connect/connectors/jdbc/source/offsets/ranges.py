"""Ranges of a table that is being loaded by many tasks, as offsets keep them.

Each range has a source partition of its own beside that of the table: the table's, with `by` (mode and columns that
divide the table) and `after` (the position after which the range begins, "" for the beginning of the table). Its offset
has the position of the last row, as Confluent writes it, and at the end of the range also `until`, the position up to
which all rows were sent: the table's end is "end".

While a load is unfinished, the table itself has no offset. So Confluent's connector, and releases of this one that do
not know ranges, read such a table from its beginning: they repeat rows and miss none. When no gap is left
between the ranges, the driver replaces them by one offset of the table, in one transaction: the offset that one task
would have written. If the table has an offset of its own while ranges exist, another run has copied it, or an operator
has set the offset: then the ranges are deleted. In mode bulk the offset of the table says nothing about rows, so ranges
count for a day instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_connect.api.source import OffsetChanges, SourceOffset, SourcePartition
from airflow_connect.connectors.jdbc.source.offsets.positions import (
    BULK_DONE,
    BULK_RUN,
    PROTOCOL,
    TABLE,
    Position,
    partition_of,
)
from airflow_connect.errors import OffsetError

BY, AFTER, UNTIL, BEGAN = "by", "after", "until", "began_ms"
END = "end"
_BEFORE_SKIPPED = -(1 << 63)
BULK_PREFIX = "bulk:"
BULK_LASTS_MS = 86_400_000
"""How long the next runs continue an interrupted load in mode bulk; later its complete ranges are out of date."""


def position_text(position: Position | None) -> str:
    """A position in a source partition, or in `until`: JSON of its time and its number; "" for None.

    After them come `local_us` and `before_us`, if clocks skip the time.
    """
    if position is None:
        return ""
    skipped = [] if position.local_us is None else [position.local_us, position.before_us]
    return json.dumps([position.timestamp_us, position.incrementing, *skipped])


def position_from(text: Any, where: str) -> Position | None:
    """Inverse of `position_text`.

    Raises:
        OffsetError: it is damaged.
    """
    if text == "":
        return None
    try:
        time, number, *skipped = json.loads(text)
    except (TypeError, ValueError):
        time, number, skipped = "", "", []
    is_whole = all(
        part is None or (isinstance(part, int) and not isinstance(part, bool)) for part in (time, number, *skipped)
    )
    if not is_whole or len(skipped) not in (0, 2):
        raise OffsetError(
            f"An offset of {where} names a range of rows by {text!r}, which is not a position.",
            code="offset.refused",
            suggestion="Delete the offsets of the table's ranges: the next run loads the table again.",
        )
    local_us, before_us = skipped or (None, None)
    return Position(number, time, local_us=local_us, before_us=before_us)


@dataclass(frozen=True, slots=True)
class TableRange:
    """The rows of a table after one position, up to another.

    Attributes:
        table: the name under which the table's offsets are written.
        by: mode and columns that divide the table.
        after: exclusive; None: from the beginning of the table.
        upto: inclusive; None: to the end of the run.
        began_ms: when the load began, milliseconds since the epoch; 0 except in mode bulk.
    """

    table: str
    by: str
    after: Position | None
    upto: Position | None
    began_ms: int = 0

    @property
    def partition(self) -> SourcePartition:
        """Its source partition."""
        return {**partition_of(self.table), BY: self.by, AFTER: position_text(self.after)}

    def divided(self, cuts: Sequence[Position]) -> list[TableRange]:
        """Its parts, cut at positions in it, in ascending order."""
        bounds = [self.after, *cuts, self.upto]
        return [replace(self, after=bounds[n], upto=bounds[n + 1]) for n in range(len(bounds) - 1)]

    def is_done(self, offset: SourceOffset | None) -> bool:
        """Whether an offset says that all rows of the range were sent."""
        return (offset or {}).get(UNTIL) == self._until

    def done(self, offset: SourceOffset) -> SourceOffset:
        """The offset after the last row, whose own offset is given ({}: there was no row)."""
        return {**offset, UNTIL: self._until}

    @property
    def _until(self) -> str:
        return END if self.upto is None else position_text(self.upto)

    def to_json(self) -> list[Any]:
        """Plain JSON form."""
        return [self.table, self.by, position_text(self.after), position_text(self.upto), self.began_ms]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> TableRange:
        """Inverse of `to_json`."""
        table, by, after, upto, began_ms = data
        return cls(table, by, position_from(after, table), position_from(upto, table), began_ms)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A range with an offset.

    Attributes:
        after: where it begins.
        last: the position of the last row that was sent, or None.
        covered: all rows after `after` up to here were sent.
        has_ended: `covered` is the end of the table.
        began_ms: as in `TableRange`.
        run_id: in mode bulk the run that sent it.
    """

    after: Position | None
    last: Position | None
    covered: Position | None
    has_ended: bool
    began_ms: int
    run_id: str


class Load:
    """The ranges of one table that were loaded, at least in part.

    Attributes:
        table: the name under which the table's offsets are written.
        by: mode and columns that divide the table.
        partitions: the source partitions of its ranges.
    """

    def __init__(
        self, table: str, by: str, offsets: Sequence[tuple[SourcePartition, SourceOffset]], now_ms: int
    ) -> None:
        """From the offsets of the table's ranges.

        Raises:
            OffsetError: one is damaged.
        """
        self.table, self.by = table, by
        self.partitions = [partition for partition, _ in offsets]
        self._now_ms = now_ms
        self._kept = sorted((_kept(table, by, *pair) for pair in offsets), key=lambda kept: _order(kept.after))

    @property
    def is_bulk(self) -> bool:
        """Whether it is one of mode bulk."""
        return self.by.startswith(BULK_PREFIX)

    @property
    def is_old(self) -> bool:
        """Whether complete ranges of mode bulk are out of date."""
        return self.is_bulk and self._now_ms - self._began_ms > BULK_LASTS_MS

    @property
    def _began_ms(self) -> int:
        return max(kept.began_ms for kept in self._kept)

    def gaps(self) -> list[TableRange]:
        """What is left to load, in order."""
        gaps: list[TableRange] = []
        began_ms = self._began_ms if self.is_bulk else 0
        cursor: Position | None = None
        for kept in self._kept:
            if _order(kept.after) > _order(cursor):
                gaps.append(TableRange(self.table, self.by, cursor, kept.after, began_ms))
            if kept.has_ended:
                return gaps
            cursor = max(cursor, kept.after, kept.covered, key=_order)
        return [*gaps, TableRange(self.table, self.by, cursor, None, began_ms)]

    @property
    def largest(self) -> int | None:
        """The largest number of a row that its offsets have, sent or not; None: they have none."""
        return max((p.incrementing for p in self.positions if p.incrementing is not None), default=None)

    @property
    def latest_us(self) -> int | None:
        """The latest timestamp of a row that its offsets have, microseconds since the epoch; None: they have none."""
        return max((p.reached_us for p in self.positions if p.reached_us is not None), default=None)

    @property
    def positions(self) -> list[Position]:
        """Where its ranges begin and end, and where they have come to."""
        return [p for kept in self._kept for p in (kept.after, kept.last, kept.covered) if p is not None]

    def offset(self) -> SourceOffset | None:
        """The offset of the table after a complete load; None if it has no rows."""
        if self.is_bulk:
            return {BULK_RUN: max(kept.run_id for kept in self._kept), BULK_DONE: True}
        last = max((kept.last for kept in self._kept), key=_order)
        return None if last is None else last.offset()


def _kept(table: str, by: str, partition: SourcePartition, offset: SourceOffset) -> _Kept:
    after, until = position_from(partition.get(AFTER), table), offset.get(UNTIL)
    last: Position | None = Position.of(offset, f"the table {table}")
    if last == Position():
        last = None
    began_ms = offset.get(BEGAN, 0)
    is_bulk = by.startswith(BULK_PREFIX)
    if until is not None and until != END:
        covered = position_from(until, table)
    else:
        # In mode bulk rows have no order: a range is sent as a whole.
        covered = after if is_bulk or last is None else last
    run_id = str(offset.get(BULK_RUN, ""))
    return _Kept(after, last, covered, until == END, began_ms if isinstance(began_ms, int) else 0, run_id)


def _order(position: Position | None) -> tuple[int, ...]:
    if position is None:
        return (0,)
    if position.local_us is not None:  # after all rows before the change of clocks, before all after it
        return (1, position.before_us or 0, position.local_us, position.incrementing or 0)
    return (1, position.timestamp_us or 0, _BEFORE_SKIPPED, position.incrementing or 0)


def loads_of(committed: Iterable[tuple[SourcePartition, SourceOffset]], now_ms: int) -> dict[str, list[Load]]:
    """The unfinished loads by table. A table has more than one if its mode or its key was changed meanwhile.

    Raises:
        OffsetError: an offset is damaged.
    """
    found: dict[tuple[str, str], list[tuple[SourcePartition, SourceOffset]]] = {}
    for partition, offset in committed:
        if _is_range(partition):
            found.setdefault((str(partition[TABLE]), str(partition[BY])), []).append((partition, offset))
    loads: dict[str, list[Load]] = {}
    for (table, by), offsets in found.items():
        loads.setdefault(table, []).append(Load(table, by, offsets, now_ms))
    return loads


def _is_range(partition: SourcePartition) -> bool:
    return set(partition) == {PROTOCOL, TABLE, BY, AFTER}


class Reconciled:
    """What becomes of ranges between runs.

    Attributes:
        loads: unfinished ones that the next run continues, by the table's name.
        changes: offsets to write and to delete.
        offsets: the new offsets of tables.
        restarted: tables whose load begins again.
    """

    def __init__(
        self,
        committed: Iterable[tuple[SourcePartition, SourceOffset]],
        is_usable: Callable[[str, str], bool],
        now_ms: int,
    ) -> None:
        """Decide.

        Args:
            committed: every offset of the connector.
            is_usable: whether the configuration still divides a table, given its name, in this way (`by`).
            now_ms: milliseconds since the epoch.

        Raises:
            OffsetError: an offset is damaged.
        """
        pairs = list(committed)
        own = {str(p[TABLE]): offset for p, offset in pairs if set(p) == {PROTOCOL, TABLE}}
        self.loads: dict[str, Load] = {}
        self.restarted: list[str] = []
        self.offsets: dict[str, SourceOffset] = {}
        gone: set[str] = set()
        for table, loads in loads_of(pairs, now_ms).items():
            usable = [load for load in loads if is_usable(table, load.by) and not load.is_old]
            if len(loads) > 1 or not usable:
                self.restarted += [table] if table not in own else []
                gone.add(table)
            elif table in own and not usable[0].is_bulk:
                gone.add(table)
            elif usable[0].gaps():
                self.loads[table] = usable[0]
            else:
                gone.add(table)
                offset = usable[0].offset()
                if offset is not None:
                    self.offsets[table] = offset
        written = [(partition_of(table), offset) for table, offset in self.offsets.items()]
        deleted = [(p, None) for p, _ in pairs if _is_range(p) and str(p[TABLE]) in gone]
        self.changes: OffsetChanges = [*written, *deleted]


def check_range_offset(partition: Mapping[str, Any], offset: Mapping[str, Any]) -> None:
    """Check an offset that somebody sets.

    Raises:
        OffsetError: it is damaged.
    """
    _kept(str(partition[TABLE]), str(partition[BY]), partition, offset)
