"""Reads one table, or one query: a stream of batches, each with the position after it.

Rows with the same timestamp, or the same number, or both are one group. A position can only lie between two groups, so
a batch never ends inside one: a run that is killed continues before or after a group, never in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.jdbc.source.offsets.lookback import SentRows
from airflow_connect.connectors.jdbc.source.offsets.positions import Position
from airflow_connect.connectors.jdbc.source.offsets.ranges import BULK_PREFIX, TableRange
from airflow_connect.connectors.jdbc.source.read.criteria import (
    Criteria,
    Source,
    Statement,
    last_group,
    number_column,
)  # fmt: skip
from airflow_connect.connectors.jdbc.source.read.hidden import count_repeated, note_columns, note_hidden, note_invisible
from airflow_connect.connectors.jdbc.source.read.loaders import load_leniently
from airflow_connect.connectors.jdbc.source.read.moves import Moves, Row
from airflow_connect.connectors.jdbc.source.read.snapshot import Snapshot, enter
from airflow_connect.connectors.jdbc.source.read.tracked_columns import named_columns, tracked_columns
from airflow_connect.connectors.jdbc.source.read.warned import note_warnings
from airflow_connect.connectors.jdbc.source.read.zones import compare_tracked
from airflow_connect.connectors.jdbc.source.settings import names
from airflow_connect.connectors.jdbc.source.settings.config import JdbcSourceConfig
from airflow_connect.connectors.jdbc.source.settings.keys import JdbcSourceKeys
from airflow_connect.connectors.jdbc.source.values.columns import Column, Kind, by_values, columns_of
from airflow_connect.connectors.jdbc.source.values.local_times import LocalTimes
from airflow_connect.connectors.jdbc.source.values.mapping import Choices, TableMapping, table_mapping
from airflow_connect.connectors.jdbc.source.values.out_of_range import Fitting
from airflow_connect.connectors.jdbc.source.values.sqlite_values import are_utc
from airflow_connect.databases.connecting import Database
from airflow_connect.databases.identifiers import TableId
from airflow_connect.errors import ConfigError, DataError, RetriableError

if TYPE_CHECKING:
    from sqlalchemy import Connection, CursorResult


_EXACT_FORM = {"mysql": "({} * 1e0)", "postgresql": "CAST({} AS numeric)"}
_INEXACT: Mapping[str, Callable[[Column], bool]] = {
    "mysql": lambda column: column.kind is Kind.FLOAT32,
    "postgresql": lambda column: column.type_name == "money",
}
"""Columns whose values the text protocol changes, and the expressions that keep them."""


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Consecutive rows.

    Attributes:
        rows: as the driver returned them.
        mapping: of their columns.
        before, after: positions before the first and after the last row.
        positions: the position after each row; () if only the last row moves it.
    """

    rows: Sequence[Row]
    mapping: TableMapping
    before: Position
    after: Position
    positions: Sequence[Position] = field(default=(), repr=False)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def offsets(self) -> list[Mapping[str, Any]]:
        """The offset of each row."""
        if self.positions:
            return [position.offset() for position in self.positions]
        before = self.before.offset()
        return [before] * (len(self.rows) - 1) + [self.after.offset()]


class Reading:
    """What the readers of a task have in common.

    Attributes:
        config: of the source.
        database: with `connection`, open.
        end_us: upper bound of the run, by the database's clock, exclusive.
        clock_us: that clock; only the driver of a run reads it.
        note: adds a sentence to the report.
        snapshot: in which ranges of tables are read, or None.
        progressed: called whenever the database has answered.
        count: adds to the number in a note of the report.
        zones_compared: whether the zone of the database's clock was compared with `db.timezone`.
    """

    def __init__(
        self, config: JdbcSourceConfig, database: Database, connection: Connection, end_us: int,
        note: Callable[[str], None],
    ) -> None:  # fmt: skip
        """Prepare the connection for reading."""
        self.config, self.database, self.connection = config, database, connection
        self.end_us, self.note = end_us, note
        self.clock_us = end_us + config.delay_ms * 1000
        self.snapshot: Snapshot | None = None
        self.progressed: Callable[[], None] = _nothing
        self.count: Callable[[str, int], None] = _nothing
        self.zones_compared = False
        self.times = LocalTimes(config.connection.zone)
        self.name = config.connection.address.database
        if self.name == "postgresql":
            load_leniently(connection)

    def behind(self, name: str) -> str:
        """The name of a table behind the query, for messages: it is a part of `query.masked`."""
        return "a table of query.masked" if self.config.connection.address.hides_statements else name

    def enter_snapshot(self, enter: Callable[[Snapshot], str]) -> None:
        """Begin to read a range; `enter` returns why that is not possible in the snapshot, or ""."""
        reason = enter(self.snapshot) if self.snapshot is not None else ""
        if reason:
            self.note(f"Ranges of tables are read as they are now, not in the snapshot of the run: {reason}.")

    def source(self, table: TableId | None, part: TableRange | None = None) -> Source:
        """A table, or the query. A range ends with its last row: a LIMIT in `query.suffix` would leave out others."""
        found = Source(self.config, self.database.quoting, table)
        return found if part is None else found.without_suffix()

    def execute(self, statement: Statement) -> CursorResult[Any]:
        """Execute a statement with a small result."""
        from sqlalchemy import text

        result = self.connection.execute(text(statement.sql), statement.bound(self.name))
        self.progressed()
        return result

    def stream(self, statement: Statement) -> Any:
        """Execute a statement whose result stays on the server; returns the driver's cursor.

        SQLAlchemy would make an object of every row; the driver's tuples are what is needed.
        """
        from sqlalchemy import text

        compiled = text(statement.sql).bindparams(**statement.bound(self.name)).compile(self.connection.engine)
        values = compiled.params
        parameters: Any = (
            [values[name] for name in compiled.positiontup] if compiled.positiontup is not None else values
        )
        cursor = self.database.dialect.streaming_cursor(self.connection)
        try:
            cursor.execute(str(compiled), parameters)
        except BaseException:
            cursor.close()
            raise
        self.progressed()
        return cursor

    def literal(self, statement: Statement) -> str:
        """A statement of PostgreSQL with its values in it, quoted by psycopg, for COPY, which has no parameters."""
        import psycopg
        from sqlalchemy import text

        compiled = text(statement.sql).bindparams(**statement.bound(self.name)).compile(self.connection.engine)
        connection: Any = self.connection.connection.driver_connection
        with psycopg.ClientCursor(connection) as cursor:
            return cursor.mogrify(str(compiled).encode(), compiled.params)

    def exact(self, source: Source, columns: Sequence[Column]) -> Source | None:
        """A source whose result has values that the driver would lose otherwise; None: there are none.

        MySQL writes FLOAT with six digits unless it is part of an expression, and PostgreSQL writes money as the
        server's locale wants it.
        """
        inexact = _INEXACT.get(self.name)
        if inexact is None or not any(inexact(column) for column in columns):
            return None
        parts = []
        for column in columns:
            name = self.database.quoting.text(column.name)
            parts.append(f"{_EXACT_FORM[self.name].format(name)} AS {name}" if inexact(column) else name)
        return source.selecting(", ".join(parts))

    def described(self, source: Source) -> list[Column]:
        """The columns of a table or query."""
        result = self.execute(source.nothing())
        try:
            return self.columns(result.cursor, source)
        finally:
            result.close()

    def columns(self, cursor: Any, source: Source) -> list[Column]:
        """The columns of an executed statement."""
        table = source.table
        place = None if table is None else (table.schema or table.catalog, table.table)
        return columns_of(self.name, self.connection, cursor, place)

    def mapping(self, columns: Sequence[Column], source: Source) -> TableMapping:
        """How rows of a source become values; the report names columns that are left out.

        Raises:
            ConfigError: see `table_mapping`.
        """
        config, table = self.config, source.table
        name = "" if table is None else table.table
        fitting = Fitting(config.out_of_range, config.connection.address.zero_dates, self.count)
        choices = Choices(config.numeric_mapping, config.granularity, self.times, fitting)
        mapping = table_mapping(columns, self.name, name, choices)
        note_columns(self, mapping, source)
        return mapping

    def criteria(self, source: Source, columns: Sequence[Column] | None = None) -> Criteria:
        """The conditions for new rows of a table or query.

        Args:
            source: the table or query.
            columns: its columns, if they are known.

        Raises:
            ConfigError: its columns do not fit the mode.
        """
        if columns is None:
            columns = self.described(source)
        if self.name == "sqlite" and source.table is None:
            tracked = named_columns(self.config, columns)
        else:
            tracked = tracked_columns(self.config, columns, source.name)
        for column in tracked.columns:
            self.database.quoting.check_is_found("column", column.name, (column.name,))
        compare_tracked(self, tracked, source.table)
        criteria = Criteria(source, tracked, self.name, self.database.quoting, self.times)
        if self.name == "sqlite" and tracked.timestamps and not are_utc(self.times):
            self._refuse_instants(criteria, source)
        return criteria

    def _refuse_instants(self, criteria: Criteria, source: Source) -> None:
        """SQLite compares an instant as a time of UTC, other texts as they are: rows would be missed or repeated."""
        if self.execute(criteria.instants()).fetchone() is None:
            return
        where = ", ".join(column.name for column in criteria.tracked.timestamps)
        raise DataError(
            f"A tracked timestamp in {where} of {source.name} is a number, or a text with a zone such as"
            " 2026-01-31T13:00:00Z. SQLite compares it as a time of UTC, but db.timezone is another zone: rows would be"
            " missed or repeated.",
            code="database.value",
            suggestion="Set db.timezone=UTC if the column has only such values, or write all of them in one form.",
            config_path="db.timezone",
        )


def _nothing(*_: Any) -> None:
    """Nobody wants to know."""


def bulk_statement(source: Source, part: TableRange | None, order: str = "") -> Statement:
    """The rows of a table in mode bulk, or of one range of its key."""
    if part is None:
        return source.everything(order)
    after, upto = (None if p is None else p.incrementing for p in (part.after, part.upto))
    return source.between(part.by.removeprefix(BULK_PREFIX), after, upto)


def check_key(columns: Sequence[Column], source: Source) -> None:
    """Refuse a table without a primary key, whose rows the look-back cannot tell apart.

    Raises:
        ConfigError: it has none.
    """
    if any(column.key_position for column in columns):
        return
    raise ConfigError(
        f"timestamp.lookback.ms needs a primary key, which {source.name} does not have.",
        code="database.column",
        suggestion="Add a primary key, or remove timestamp.lookback.ms.",
        config_path=JdbcSourceKeys.lookback_ms.name,
    )


class TableReader:
    """Streams the rows of one table, or of the query, after a position."""

    def __init__(
        self, reading: Reading, table: TableId | None, position: Position, *, order: str = "",
        part: TableRange | None = None,
    ) -> None:  # fmt: skip
        """Does not read yet.

        Args:
            reading: connected.
            table: None for the query.
            position: after which rows are read.
            order: an expression, for mode bulk.
            part: the range that is read; None: the whole table.
        """
        self._order, self._part = order, part
        self._reading = reading
        self._config = reading.config
        self._source = reading.source(table, part)
        self.position = position
        self._cursor: Any = None
        self._mapping: TableMapping | None = None
        self._held: list[Row] = []
        self._ended = False
        self._criteria: Criteria | None = None
        self._described: list[Column] | None = None
        self._may_be_cut = False
        self._sent: SentRows | None = None

    def close(self) -> None:
        """End the statement."""
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None

    @property
    def forgotten(self) -> int:
        """Rows of the look-back window that were forgotten because of its limit."""
        return self._sent.forgotten if self._sent is not None else 0

    @property
    def number_column(self) -> str:
        """Name of the incrementing column; "": there is none."""
        return number_column(self._criteria)

    def next(self, count: int) -> RowBatch | None:
        """The next rows, some `count` of them; None at the end.

        Raises:
            ConfigError: the table does not fit the configuration.
            Exception: of the driver.
        """
        if self._cursor is None and not self._ended:
            self._open()
        while not self._ended or self._held:
            rows = self._fetched(count)
            batch = self._batch(rows)
            if batch is not None:
                return batch
        return None

    def _open(self) -> None:
        reading, config = self._reading, self._config
        table, part = self._source.table, self._part
        if part is not None and table is not None:
            reading.enter_snapshot(lambda snapshot: enter(reading.connection, snapshot, table))
        note_invisible(reading, self._source)
        chosen = self._chosen()
        if config.mode == names.BULK:
            statement = bulk_statement(chosen, self._part, self._order)
        else:
            self._criteria = reading.criteria(self._source, self._described)
            begin = self.position
            if part is None or part.after is None:
                note_hidden(reading, self._criteria, self._source, begin)
            if config.lookback_ms:
                self._sent = SentRows(begin, config.lookback_ms * 1000, config.lookback_rows)
                begin = self._sent.begin(begin)
            upto = None if part is None else part.upto
            statement = self._criteria.of(chosen).select(begin, reading.end_us, upto)
            self._may_be_cut = chosen.has_suffix
        self._cursor = reading.stream(statement)

    def _chosen(self) -> Source:
        """What is selected: all columns, where there are inexact ones by expressions."""
        reading = self._reading
        if reading.name not in _INEXACT:
            return self._source
        described = reading.described(self._source)
        chosen = reading.exact(self._source, described)
        if chosen is None:
            return self._source
        self._described = described
        return chosen

    def _columns(self) -> Sequence[Column]:
        """The columns of the result.

        Raises:
            RetriableError: the table was changed since they were described.
        """
        if self._described is None:
            return self._reading.columns(self._cursor, self._source)
        if [column.name for column in self._described] != [item[0] for item in self._cursor.description]:
            raise RetriableError(
                f"The columns of {self._source.name} were changed at the moment at which it was read.",
                code="database.conflict",
                suggestion="Nothing is lost; the table is read again with its new columns.",
            )
        return self._described

    def _fetched(self, count: int) -> list[Row]:
        """The next rows of the statement; fewer than `count` at its end."""
        if self._ended:
            return []
        is_untyped = self._reading.name == "sqlite" and self._source.table is None
        columns: Sequence[Column] = ()
        if self._mapping is None:
            columns = self._columns()
            if not is_untyped:
                self._map(columns)  # before the rows: a table without columns has none that could be fetched
        rows: list[Row] = list(self._cursor.fetchmany(count))
        if not rows and self._held and self._may_be_cut:
            self._read_last_group_again()
            rows = list(self._cursor.fetchmany(count))
        if len(rows) < count:
            note_warnings(self._reading, self._source, self._cursor)
        self._reading.progressed()
        if self._mapping is None:
            self._map(by_values(columns, rows, self._any_value))
        # Fewer rows than were asked for are the last ones.
        self._ended = not rows or (len(rows) < count and not self._may_be_cut)
        return rows

    def _any_value(self, column: Column) -> Any:
        """A value, not null, of a column of a query; None: there is none."""
        found = self._reading.execute(self._source.values_of(column.name)).fetchone()
        return None if found is None else found[0]

    def _read_last_group_again(self) -> None:
        """Read the last group without `query.suffix`, whose LIMIT may have cut it: the offset comes after all of it."""
        assert self._criteria is not None
        self._may_be_cut = False
        statement = last_group(self._criteria, self._chosen(), self._moves.positions(self._held[-1:])[0])
        self._held = []
        self._cursor.close()
        self._cursor = self._reading.stream(statement)

    def _map(self, columns: Sequence[Column]) -> None:
        reading = self._reading
        self._mapping = reading.mapping(columns, self._source)
        if self._criteria is not None:
            self._moves = Moves(columns, self._criteria.tracked, reading.name, reading.times)
            if self._sent is not None:
                check_key(columns, self._source)

    def _batch(self, rows: list[Row]) -> RowBatch | None:
        """The batch of fetched rows, with those that were held back before; None if all must be held back."""
        assert self._mapping is not None
        if self._criteria is None:
            return RowBatch(rows, self._mapping, self.position, self.position) if rows else None
        return self._groups(rows)

    def _groups(self, rows: list[Row]) -> RowBatch | None:
        """Complete groups; the last one is complete at the end only, or when a later one has begun."""
        all_rows = self._held + rows
        if not all_rows:
            return None
        (last,) = self._moves.positions(all_rows[-1:])
        complete = len(all_rows)
        if not self._ended:
            while complete and self._moves.positions(all_rows[complete - 1 : complete]) == [last]:
                complete -= 1
        self._held = all_rows[complete:]
        taken = all_rows[:complete]
        return self._after_groups(taken) if taken else None

    def _after_groups(self, rows: list[Row]) -> RowBatch:
        assert self._mapping is not None and self._criteria is not None
        before = self.position
        if self._sent is not None:
            moment, is_new = self._moves.moment, self._sent.is_new
            reached = moment(rows[-1])
            rows = [row for row in rows if is_new(row, moment(row).in_order_us)]
            self.position = self._sent.position(reached.instant_us if reached.before_us is None else reached.before_us)
            return RowBatch(rows, self._mapping, before, self.position)
        positions = self._moves.group_positions(rows, before)
        count_repeated(self._reading, self._criteria, self._source, self._moves.repeated)
        self.position = positions[-1]
        return RowBatch(rows, self._mapping, before, self.position, positions)
