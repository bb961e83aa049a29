"""The statements that read a table: all rows, or those after a position.

Source: io.confluent.connect.jdbc.source.TimestampIncrementingCriteria for the conditions.

Statements are texts with quoted names, for SQLAlchemy's `text`; values are always parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from airflow_connect.connectors.jdbc.source.offsets.positions import NO_ID, Position
from airflow_connect.connectors.jdbc.source.offsets.start import closed_before
from airflow_connect.connectors.jdbc.source.settings import names as keys
from airflow_connect.connectors.jdbc.source.settings.config import JdbcSourceConfig
from airflow_connect.connectors.jdbc.source.values.columns import Column, Kind
from airflow_connect.connectors.jdbc.source.values.local_times import SECOND_US, LocalTimes
from airflow_connect.databases.identifiers import Quoting, TableId

_BEGIN, _END, _ID = "connect_begin", "connect_end", "connect_id"
_LAST, _LAST_ID = "connect_last", "connect_last_id"
_LISTED = 4
"""Ranges of fewer numbers than this are written as a list of them."""
_SQLITE_FORM = "%Y-%m-%d %H:%M:%f"
_SQLITE_PRESENT = "'now', 'subsec', 'subsecond'"
"""Texts that SQLite takes for the time of the statement: a row with one would be after the upper bound of every run."""
_YEARS, _YEAR_S = 10, 31_557_600
"""Numbers that are a time so many years before or after now in seconds are days of January 1970 in milliseconds."""
_FIRST = {"postgresql": "> '-infinity'", "mysql": ">= '0001-01-01'", "sqlite": "IS NOT NULL"}
_NO_TIME = {"postgresql": "IN ('infinity', '-infinity')", "mysql": "< '0001-01-01'", "sqlite": "IS NULL"}
"""Which timestamps rows have that no position finds: infinite ones, MySQL's zero date, and what SQLite cannot read."""
_LARGEST_REAL = 10**308
_BEYOND_BIGINT: Mapping[str, Callable[[int], Any]] = {
    "postgresql": Decimal,
    "sqlite": lambda number: float(max(-_LARGEST_REAL, min(number, _LARGEST_REAL))),
}


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement and its parameters."""

    sql: str
    parameters: Mapping[str, Any]

    def bound(self, database: str) -> dict[str, Any]:
        """The parameters as they are bound: SQLAlchemy casts any whole number of PostgreSQL to BIGINT.

        SQLite has no larger ones either; it compares a REAL with all that it has.
        """
        form = _BEYOND_BIGINT.get(database)
        if form is None:
            return dict(self.parameters)
        return {name: form(value) if _is_beyond_bigint(value) else value for name, value in self.parameters.items()}


def _is_beyond_bigint(value: Any) -> bool:
    return isinstance(value, int) and not -(1 << 63) <= value < 1 << 63


@dataclass(frozen=True, slots=True)
class Tracked:
    """The columns by which new rows are found.

    Attributes:
        incrementing: or None.
        timestamps: in the order of COALESCE; () if there are none.
    """

    incrementing: Column | None
    timestamps: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """All of them."""
        return self.timestamps if self.incrementing is None else (*self.timestamps, self.incrementing)

    @property
    def nullable(self) -> str:
        """The columns in which a null hides a row from every run, or ""."""
        names = [self.incrementing.name] if self.incrementing is not None and self.incrementing.optional else []
        if self.timestamps and all(column.optional for column in self.timestamps):
            names += [column.name for column in self.timestamps]
        return ", ".join(names)


class Source:
    """What is read: a table, or a query.

    Attributes:
        table: None for a query.
        name: for messages: the table's full name, or `query`.
    """

    def __init__(self, config: JdbcSourceConfig, quoting: Quoting, table: TableId | None) -> None:
        """`table`: None for the query of the configuration."""
        self.table = table
        self.name = "query" if table is None else table.full_name
        self._quoting = quoting
        # A line break ends a comment that the suffix, or the query, may end with.
        self._suffix = f" {escaped(config.query_suffix)}\n" if config.query_suffix else ""
        query = escaped(config.query.strip().rstrip(";"))
        self._from = f"({query}\n) AS connect_rows" if table is None else quoting.table_text(table)
        is_plain = table is None and config.mode == keys.BULK
        # A condition after a query would belong to the last SELECT of a UNION, or to a comment.
        self._base = f"{query}\n" if is_plain else f"SELECT * FROM {self._from}"

    def selecting(self, columns: str, sample: str = "") -> Source:
        """The same with other columns than all, or a sample of a table's rows: texts for SQLAlchemy's `text`.

        A query becomes a subquery, so it must not have two columns with the same name.
        """
        chosen = copy(self)
        chosen._base = f"SELECT {columns} FROM {self._from}{sample}"
        return chosen

    @property
    def quoted(self) -> str:
        """A table's name as it is written in a statement of the driver."""
        assert self.table is not None
        return self._quoting.table(self.table)

    @property
    def has_suffix(self) -> bool:
        """Whether statements end with `query.suffix`, which may limit the number of rows."""
        return bool(self._suffix)

    def without_suffix(self) -> Source:
        """The same without `query.suffix`."""
        chosen = copy(self)
        chosen._suffix = ""
        return chosen

    def everything(self, order: str = "") -> Statement:
        """All rows, in the order of an expression if one is given."""
        return Statement(self._base + (f" ORDER BY {order}" if order else "") + self._suffix, {})

    def between(self, column: str, after: int | None, upto: int | None) -> Statement:
        """The rows with a number after one, up to another, in no order; None: no limit."""
        name = self._quoting.text(column)
        parts = [f"{name} > :{_ID}"] if after is not None else []
        parts += [f"{name} <= :{_LAST_ID}"] if upto is not None else []
        if not parts:
            return self.everything()
        numbers = {key: value for key, value in ((_ID, after), (_LAST_ID, upto)) if value is not None}
        return Statement(f"{self._base} WHERE {' AND '.join(parts)}{self._suffix}", numbers)

    def nothing(self) -> Statement:
        """No rows: only the columns."""
        base = self._base if self.table is not None else f"SELECT * FROM {self._from}"
        return Statement(f"{base} WHERE 1 = 0{self._suffix}", {})

    def where(self, condition: str, order: str, parameters: Mapping[str, Any]) -> Statement:
        """Some rows in an order."""
        return Statement(f"{self._base} WHERE {condition} ORDER BY {order}{self._suffix}", parameters)

    def largest(self, column: str) -> Statement:
        """The largest value of a table's column."""
        return Statement(f"SELECT MAX({self._quoting.text(column)}) FROM {self._from}", {})

    def bounds(self, column: str, database: str) -> Statement:
        """The largest and the smallest value of a table's column."""
        name = self._quoting.text(column)
        if database == "sqlite":  # which finds both in an index only if they are asked for one by one
            largest, smallest = (f"(SELECT {extreme}({name}) FROM {self._from})" for extreme in ("MAX", "MIN"))
            return Statement(f"SELECT {largest} AS largest, {smallest} AS smallest", {})
        return Statement(f"SELECT MAX({name}) AS largest, MIN({name}) AS smallest FROM {self._from}", {})

    def numbers_in(self, column: str, ranges: Sequence[tuple[int, int]], most: int) -> Statement:
        """The numbers of a table's column in some ranges, ascending; no more than `most`."""
        name = self._quoting.text(column)
        # Servers plan a list of numbers in a quarter of the time that as many ranges need.
        few = [pair for pair in ranges if pair[1] - pair[0] < _LISTED]
        listed = [str(number) for first, last in few for number in range(first, last + 1)]
        parts = [f"{name} IN ({', '.join(listed)})"] if listed else []
        parts += [f"{name} BETWEEN {first} AND {last}" for first, last in ranges if last - first >= _LISTED]
        # By an expression: the order of the column itself has planners read all of its index, with a filter.
        order = f"ORDER BY {name} + 0 LIMIT {most}"
        return Statement(f"SELECT {name} FROM {self._from} WHERE {' OR '.join(parts)} {order}", {})

    def values_of(self, column: str) -> Statement:
        """One value of a column that is not null."""
        name = self._quoting.text(column)
        return Statement(f"SELECT {name} FROM {self._from} WHERE {name} IS NOT NULL LIMIT 1", {})

    def count(self, condition: str) -> Statement:
        """The number of rows that meet a condition."""
        return Statement(f"SELECT COUNT(*) FROM {self._from} WHERE {condition}", {})

    def count_some(self, condition: str, parameters: Mapping[str, Any], most: int) -> Statement:
        """The number of rows of a table or query that meet a condition; no more than `most` are counted."""
        rows = f"SELECT 1 FROM {self._from} WHERE {condition} LIMIT {most}"
        return Statement(f"SELECT COUNT(*) FROM ({rows}) AS connect_counted", parameters)

    def any(self, condition: str, parameters: Mapping[str, Any]) -> Statement:
        """One row, of a table or query, if any meets a condition."""
        return Statement(f"SELECT 1 FROM {self._from} WHERE {condition} LIMIT 1", parameters)


class Criteria:
    """Conditions for the rows after a position."""

    def __init__(self, source: Source, tracked: Tracked, database: str, quoting: Quoting, times: LocalTimes) -> None:
        """`tracked` has at least one column."""
        self._source = source
        self.tracked = tracked
        self._database = database
        self._times = times
        self._quoting = quoting
        self._id = quoting.text(tracked.incrementing.name) if tracked.incrementing is not None else ""
        stamps = [quoting.text(column.name) for column in tracked.timestamps]
        self._stored_time = _first_of(stamps)
        self._time = _first_of([self._comparable(name) for name in stamps])

    def of(self, source: Source) -> Criteria:
        """The same conditions for another form of the source."""
        chosen = copy(self)
        chosen._source = source
        return chosen

    def select(self, position: Position, end_us: int, upto: Position | None = None) -> Statement:
        """The rows after `position` and before `end_us`, in the order in which positions move.

        Args:
            position: exclusive.
            end_us: upper bound of the run.
            upto: the last position, inclusive; None: there is no other limit.
        """
        condition, parameters = self._condition(position, end_us)
        if upto is not None:
            last, more = self._up_to(position, upto)
            condition, parameters = f"({condition}) AND {last}", {**parameters, **more}
        order = ", ".join(f"{part} ASC" for part in (self._time, self._id) if part)
        return self._source.where(condition, order, parameters)

    def group(self, position: Position) -> Statement:
        """The rows with the timestamp and the number of a position."""
        values: dict[str, Any] = {}
        if self._time:
            values[_BEGIN] = self._parameter(position)
        if self._id:
            values[_ID] = position.incrementing
        parts = {_BEGIN: self._time, _ID: self._id}
        condition = " AND ".join(f"{parts[key]} = :{key}" for key in values)
        return self._source.where(condition, ", ".join(parts[key] for key in values), values)

    def exists(self, position: Position, end_us: int) -> Statement:
        """Whether there are such rows."""
        return self._source.any(*self._condition(position, end_us))

    def copied(self, position: Position, most: int) -> Statement | None:
        """The number of rows at or before a position, up to `most`; None: the position is before every row."""
        if not self._time:
            if position.incrementing is None:
                return None
            return self._source.count_some(f"{self._id} <= :{_ID}", {_ID: position.incrementing}, most)
        values: dict[str, Any] = {_BEGIN: self._begin(position)}
        if values[_BEGIN] is None:
            return None
        if not self._id:
            return self._source.count_some(f"{self._time} <= :{_BEGIN}", values, most)
        values[_ID] = NO_ID if position.incrementing is None else position.incrementing
        same = f"{self._time} = :{_BEGIN} AND {self._id} <= :{_ID}"
        return self._source.count_some(f"{self._time} < :{_BEGIN} OR ({same})", values, most)

    def nulls(self) -> Statement:
        """The number of rows that have a null where positions are compared."""
        return self._source.count(" OR ".join(f"{part} IS NULL" for part in (self._stored_time, self._id) if part))

    def negative(self, position: Position) -> Statement | None:
        """The number of rows before the first number that a run without an offset copies; None: there are none."""
        if self._time or position.incrementing is not None:
            return None
        return self._source.count(f"{self._id} <= {NO_ID}")

    def timeless(self) -> Statement | None:
        """The number of rows whose timestamp is not a point in time; None: the database has no such values."""
        condition = _NO_TIME.get(self._database)
        if not self._time or condition is None:
            return None
        is_stored = "" if self._stored_time == self._time else f"{self._stored_time} IS NOT NULL AND "
        return self._source.count(f"{is_stored}{self._time} {condition}")

    def ahead(self, clock_us: int, by_us: int) -> Statement | None:
        """The number of rows with a timestamp after a clock by more than a time; None: there are no times.

        Infinite ones are left out. Columns without a zone are compared with what the clock shows, not with an instant:
        when clocks are set back, rows of the last hour have times that come again.
        """
        if not self._time:
            return None
        finite = f" AND {self._time} < 'infinity'" if self._database == "postgresql" else ""
        local = self._times.local(clock_us) + timedelta(microseconds=by_us)
        if any(column.kind is Kind.DATE for column in self.tracked.timestamps):
            local = local.replace(hour=0, minute=0, second=0, microsecond=0)
        counting = self._source.count(f"{self._time} > :{_END}{finite}")
        return Statement(counting.sql, {_END: self._bound(lambda: local, clock_us + by_us)})

    def in_seconds(self, clock_us: int) -> Statement | None:
        """The number of rows of SQLite whose number would be a time of these years in seconds; None: there are none."""
        if self._database != "sqlite" or not self._time:
            return None
        around = [clock_us // SECOND_US + years * _YEAR_S for years in (-_YEARS, _YEARS)]
        names = [self._quoting.text(column.name) for column in self.tracked.timestamps]
        is_number = [f"(typeof({name}) = 'integer' AND {name} BETWEEN {around[0]} AND {around[1]})" for name in names]
        return self._source.count(" OR ".join(is_number))

    def instants(self) -> Statement:
        """One row of SQLite with a timestamp that is an instant: a number, or a text with a zone."""
        zoned = (
            f"typeof({{0}}) = 'integer' OR {{0}} GLOB '*[Zz]' OR {{0}} GLOB '*[+-][0-9][0-9]{escaped(':')}[0-9][0-9]'"
        )
        names = [self._quoting.text(column.name) for column in self.tracked.timestamps]
        return self._source.any(" OR ".join(f"({zoned.format(name)})" for name in names), {})

    def _condition(self, position: Position, end_us: int) -> tuple[str, dict[str, Any]]:
        number = NO_ID if position.incrementing is None else position.incrementing
        if not self._time:
            return f"{self._id} > :{_ID}", {_ID: number}
        end = self._end(end_us)
        may_be_null = self.tracked.incrementing is not None and self.tracked.incrementing.optional
        has_id = f" AND {self._id} IS NOT NULL" if may_be_null else ""
        begin = self._begin(position)
        if begin is None:  # from the first row, which may be older than 1970
            return f"{self._time} {_FIRST[self._database]} AND {self._time} < :{_END}{has_id}", {_END: end}
        if not self._id:
            return f"{self._time} > :{_BEGIN} AND {self._time} < :{_END}", {_BEGIN: begin, _END: end}
        after = f"({self._time} = :{_BEGIN} AND {self._id} > :{_ID}) OR {self._time} > :{_BEGIN}"
        return f"{self._time} < :{_END} AND ({after}){has_id}", {_BEGIN: begin, _END: end, _ID: number}

    def _up_to(self, position: Position, upto: Position) -> tuple[str, dict[str, Any]]:
        """The condition for rows up to a position, in a form that lets an index find them."""
        if not self._time:
            return f"{self._id} <= :{_LAST_ID}", {_LAST_ID: upto.incrementing}
        last = {_LAST: self._parameter(upto)}
        if not self._id:
            return f"{self._time} <= :{_LAST}", last
        bounds = f"{self._time} <= :{_LAST}"
        if position.timestamp_us is not None:
            bounds = f"{self._time} >= :{_BEGIN} AND {bounds}"
        inside = f"({self._time} < :{_LAST} OR {self._id} <= :{_LAST_ID})"
        return f"{bounds} AND {inside}", {**last, _LAST_ID: upto.incrementing}

    def _comparable(self, name: str) -> str:
        """SQLite stores times as texts of several forms, or numbers; they are compared in one form."""
        if self._database != "sqlite":
            return name
        form = escaped(_SQLITE_FORM)
        return (
            f"(CASE WHEN typeof({name}) = 'integer' THEN strftime('{form}', {name} / 1000.0, 'unixepoch')"
            f" WHEN lower({name}) IN ({_SQLITE_PRESENT}) THEN NULL ELSE strftime('{form}', {name}) END)"
        )

    def _begin(self, position: Position) -> Any:
        """The time after which rows are read; None: before the year 1, where no position is."""
        try:
            return None if position.timestamp_us is None else self._parameter(position)
        except OverflowError:
            return None

    def _parameter(self, position: Position) -> Any:
        instant_us = position.timestamp_us or 0
        return self._bound(lambda: self._times.own_time(instant_us, position.local_us), instant_us)

    def _end(self, end_us: int) -> Any:
        """The upper bound, exclusive: no row with a smaller time comes any more."""
        local = closed_before(self._times, self.tracked.timestamps, end_us)
        return self._bound(lambda: local, end_us // SECOND_US * SECOND_US)

    def _bound(self, local_of: Callable[[], datetime], instant_us: int) -> Any:
        """`local_of`: only asked where it counts, because an instant of the year 1 may be of the year 0 there."""
        if self._database != "sqlite" and self.tracked.timestamps[0].kind is Kind.INSTANT:
            aware = self._times.aware(instant_us)
            return aware.replace(tzinfo=None) if self._database == "mysql" else aware
        local = local_of()
        if self._database == "sqlite":
            return local.strftime("%Y-%m-%d %H:%M:%S.").rjust(20, "0") + f"{local.microsecond // 1000:03d}"
        return local


def last_group(criteria: Criteria, source: Source, position: Position) -> Statement:
    """All rows with the timestamp of a position, whatever `query.suffix` is."""
    return criteria.of(source.without_suffix()).group(position)


def number_column(criteria: Criteria | None) -> str:
    """Name of the incrementing column; "": there is none."""
    found = None if criteria is None else criteria.tracked.incrementing
    return "" if found is None else found.name


def _first_of(names: Sequence[str]) -> str:
    """The first one that is not null, or ""."""
    return names[0] if len(names) == 1 else f"COALESCE({','.join(names)})" if names else ""


def escaped(sql: str) -> str:
    """A text for SQLAlchemy's `text`: colons do not begin parameters."""
    return sql.replace(":", "\\:")
