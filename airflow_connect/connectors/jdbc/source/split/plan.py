"""Decides which tables are divided among tasks, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_connect.connectors.jdbc.source.offsets.ranges import BULK_PREFIX, Load, TableRange
from airflow_connect.connectors.jdbc.source.offsets.start import start_position
from airflow_connect.connectors.jdbc.source.read.criteria import Tracked
from airflow_connect.connectors.jdbc.source.read.tracked_columns import tracked_columns
from airflow_connect.connectors.jdbc.source.settings import names
from airflow_connect.connectors.jdbc.source.settings.config import JdbcSourceConfig
from airflow_connect.connectors.jdbc.source.split.cuts import Cuts, dividing_key
from airflow_connect.connectors.jdbc.source.split.sizes import estimated_rows
from airflow_connect.connectors.jdbc.source.work import Item, is_of_a_table
from airflow_connect.errors import ConnectError

if TYPE_CHECKING:
    from airflow_connect.connectors.jdbc.source.offsets.positions import Position
    from airflow_connect.connectors.jdbc.source.read.reading import Reading
    from airflow_connect.databases.identifiers import TableId

_BULK_RANGES = 4
"""Ranges per task in mode bulk, where an interrupted range is sent again from its beginning."""
_SHOWN = 5


def division_of(config: JdbcSourceConfig, table: str) -> str:
    """How the configuration divides a table, for `by` of its ranges: mode and columns; in mode bulk without the key."""
    if config.mode == names.BULK:
        return BULK_PREFIX
    stamps = ",".join(config.timestamp_columns(table)) if config.uses_timestamps else ""
    number = config.incrementing_column(table) if config.uses_incrementing else ""
    return f"{config.mode}:{','.join(part for part in (stamps, number) if part)}"


def is_current(config: JdbcSourceConfig, table: str, by: str) -> bool:
    """Whether the configuration still divides a table as `by` says; in mode bulk, whether it still does so at all."""
    found = division_of(config, table)
    if config.mode != names.BULK:
        return by == found
    return by.startswith(found) and not _reason_of(config)


class Division:
    """The work of one run.

    Attributes:
        items: what tasks read.
        divided: tables that are read in ranges.
        bad: tables that could not be divided, with the reason; only if there are others.
    """

    def __init__(self, reading: Reading, loads: Mapping[str, Load], max_tasks: int, now_ms: int) -> None:
        """Nothing is divided yet.

        Args:
            reading: connected.
            loads: unfinished loads, which are continued.
            max_tasks: largest number of tasks.
            now_ms: milliseconds since the epoch.
        """
        self._reading, self._config = reading, reading.config
        self._loads, self._max_tasks, self._now_ms = loads, max_tasks, now_ms
        self.items: list[Item] = []
        self.divided: list[TableId] = []
        self.bad: list[tuple[Item, ConnectError]] = []
        self._weights: list[int] = []

    def load_of(self, item: Item) -> Load | None:
        """The unfinished load of a table."""
        return None if item.table is None else self._loads.get(str(item.partition["table"]))

    def add(self, waiting: Sequence[Item], new: Sequence[Item], *, several: bool = False) -> None:
        """Take the tables that have rows.

        Args:
            waiting: all of them.
            new: those of them that are read from their beginning, or whose load is continued.
            several: whether there are other tables: then one that cannot be divided is left out.
        """
        sizes = self._sizes(new)
        total = sum(sizes.values())
        for item in waiting:
            load, table = self.load_of(item), item.table
            rows = sizes.get(table, 0) if table is not None else 0
            try:
                with self._reading.database.failures(f"divide {item.name}"):
                    ranges = self._parts(item, load, rows, total)
            except ConnectError as error:
                if not several or not is_of_a_table(error):
                    raise
                self._reading.connection.rollback()
                self.bad.append((item, error))
                continue
            if table is not None and ranges:
                self.divided.append(table)
                self.items += [Item(table, part.partition, part) for part in ranges]
                self._weights += [max(1, rows // len(ranges))] * len(ranges)
            else:
                self.items.append(item)
                self._weights.append(max(1, rows))

    def _parts(self, item: Item, load: Load | None, rows: int, total: int) -> list[TableRange]:
        """The ranges in which a table is read; [] if it is read as a whole."""
        if load is not None and self._continues(load, item):
            return self._rest(load, item, rows)
        if item.table is not None and rows >= self._config.split_rows:
            return self._ranges(item, item.table, rows, total)
        return []

    def groups(self) -> list[list[Item]]:
        """The items, divided among tasks so that each has about the same number of rows, each group in order."""
        count = min(self._max_tasks, len(self.items))
        groups: list[list[int]] = [[] for _ in range(count)]
        loads = [0] * count
        for place in sorted(range(len(self.items)), key=lambda n: -self._weights[n]):
            least = loads.index(min(loads))
            groups[least].append(place)
            loads[least] += self._weights[place]
        return [[self.items[place] for place in sorted(group)] for group in groups]

    def _sizes(self, new: Sequence[Item]) -> dict[TableId, int]:
        tables = [item.table for item in new if item.table is not None]
        if self._max_tasks < 2:
            return {}
        return estimated_rows(self._reading, tables, self._config.split_rows)

    def _continues(self, load: Load, item: Item) -> bool:
        """Whether the ranges of an interrupted load are still those of the table: in mode bulk its key divides it."""
        if item.table is None or not load.is_bulk:
            return True
        if division_now(self._reading, item.table) == load.by:
            return True
        note_key_changed(self._reading.note, item.name)
        return False

    def _rest(self, load: Load, item: Item, rows: int) -> list[TableRange]:
        """What is left of an interrupted load; if that is fewer ranges than tasks, they are divided again."""
        gaps = load.gaps()
        pieces = self._max_tasks // len(gaps)
        if pieces > 1 and item.table is not None:
            cuts, by, _ = self._dividing(item.table)
            if cuts is not None and by == load.by:
                begin = self._begin(item)
                gaps = [part for gap in gaps for part in gap.divided(
                    cuts.find(gap.after or begin, gap.upto, pieces, rows))]  # fmt: skip
        parts = "1 range is" if len(gaps) == 1 else f"{len(gaps)} ranges are"
        without = " query.suffix has no effect on it." if self._config.query_suffix else ""
        self._reading.note(f"The interrupted load of {item.name} is continued: {parts} left.{without}")
        return gaps

    def _ranges(self, item: Item, table: TableId, rows: int, total: int) -> list[TableRange]:
        """The ranges of a large table; [] if it is read as a whole."""
        config = self._config
        reason = _reason_of(config)
        cuts, by = None, ""
        if not reason:
            cuts, by, reason = self._dividing(table)
        if cuts is None:
            self._reading.note(
                f"{_capital(item.name)} has about {rows} rows and is read by one task, because {reason}."
            )
            return []
        if config.uses_timestamps and config.initial_ms == -1:
            return []  # it begins at the run's end, where there are no rows
        found = cuts.find(self._begin(item), None, self._pieces(rows, total), rows)
        began_ms = self._now_ms if config.mode == names.BULK else 0
        whole = TableRange(str(item.partition["table"]), by, None, None, began_ms)
        return self._told(item, rows, cuts.columns, whole.divided(found))

    def _begin(self, item: Item) -> Position | None:
        return None if self._config.mode == names.BULK else start_position(self._config, None, item.name)

    def _dividing(self, table: TableId) -> tuple[Cuts | None, str, str]:
        """What divides a table, with the name of the division, or None and why it cannot be divided."""
        reading, config = self._reading, self._config
        source = reading.source(table)
        columns = reading.described(source)
        by = division_of(config, table.full_name)
        if config.mode == names.BULK:
            key = dividing_key(columns)
            if key is None:
                return None, "", "its primary key does not begin with a column of whole numbers"
            tracked, by = Tracked(key, ()), by + key.name
        else:
            tracked = tracked_columns(config, columns, source.name)
        cuts = Cuts(reading, source, tracked)
        reason = cuts.reason_against()
        return (None, "", reason) if reason else (cuts, by, "")

    def _pieces(self, rows: int, total: int) -> int:
        share = -(-rows * self._max_tasks // total)
        return min(share, self._max_tasks) * (_BULK_RANGES if self._config.mode == names.BULK else 1)

    def _told(self, item: Item, rows: int, columns: str, ranges: list[TableRange]) -> list[TableRange]:
        """The ranges of a table, which the report names; [] if there is only one."""
        if len(ranges) < 2:
            self._reading.note(
                f"{_capital(item.name)} has about {rows} rows and is read by one task, because {columns} has too few"
                " different values."
            )
            return []
        ends = [self._shown(part.upto) for part in ranges[:_SHOWN] if part.upto is not None]
        more = ", ..." if len(ranges) > _SHOWN else ", to the end"
        self._reading.note(
            f"{_capital(item.name)} has about {rows} rows and is read in {len(ranges)} ranges of {columns}: up to"
            f" {', '.join(ends)}{more}."
        )
        return ranges

    def _shown(self, position: Position) -> str:
        time, number = position.timestamp_us, position.incrementing
        parts = [] if time is None else [self._reading.times.aware(time).isoformat()]
        return " / ".join([*parts, *([] if number is None else [str(number)])])


def _reason_of(config: JdbcSourceConfig) -> str:
    """Why no table is divided; "": the configuration does not say so."""
    if config.query_suffix:
        return "query.suffix applies to whole tables"
    if config.lookback_ms:
        return "timestamp.lookback.ms compares rows in order"
    return "bulk.changed.only compares rows in order" if config.changed_only else ""


def division_now(reading: Reading, table: TableId) -> str:
    """What divides a table in mode bulk, for `by` of its ranges; "" if nothing does."""
    key = dividing_key(reading.described(reading.source(table)))
    return "" if key is None else BULK_PREFIX + key.name


def note_key_changed(note: Callable[[str], None], name: str) -> None:
    """Say why an interrupted load begins again."""
    note(f"The interrupted load of {name} begins again, because the primary key of the table was changed.")


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
