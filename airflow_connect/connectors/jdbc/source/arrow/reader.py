"""Streams one table or query of PostgreSQL in Arrow batches, each with the position after it.

Positions move as in `reading.TableReader`: a batch never ends inside a group of equal timestamps or numbers. Rows of
the look-back's window that were sent before are dropped as there, by the same hashes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_connect.connectors.jdbc.source.arrow.fields import ArrowField, ChangedError, arrow_field, column_us
from airflow_connect.connectors.jdbc.source.arrow.texts import RowTexts, TextMaker
from airflow_connect.connectors.jdbc.source.offsets.lookback import SentRows
from airflow_connect.connectors.jdbc.source.offsets.positions import Position
from airflow_connect.connectors.jdbc.source.read.criteria import Criteria, last_group, number_column
from airflow_connect.connectors.jdbc.source.read.hidden import count_repeated, note_hidden
from airflow_connect.connectors.jdbc.source.read.moves import Moves, no_moment
from airflow_connect.connectors.jdbc.source.read.reading import Reading, bulk_statement, check_key
from airflow_connect.connectors.jdbc.source.read.snapshot import enter_stream, quoted_name
from airflow_connect.connectors.jdbc.source.settings import names
from airflow_connect.connectors.jdbc.source.values.columns import Column, Kind
from airflow_connect.connectors.jdbc.source.values.mapping import TableMapping
from airflow_connect.databases.arrow_stream import ArrowStream
from airflow_connect.databases.identifiers import TableId
from airflow_connect.errors import RetriableError

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema
    from airflow_connect.connectors.jdbc.source.offsets.ranges import TableRange

BATCH_BYTES = 4 << 20
"""Size at which a batch ends; its messages take a few times as much."""
_PG_COLUMNS = """
SELECT attname, CASE WHEN attname = ANY(%(left_out)s::text[]) THEN (
    WITH RECURSIVE base (oid) AS (SELECT a.atttypid UNION SELECT t.typbasetype FROM base
      JOIN pg_catalog.pg_type t ON t.oid = base.oid WHERE t.typtype = 'd')
    SELECT t.oid FROM base JOIN pg_catalog.pg_type t ON t.oid = base.oid WHERE t.typtype <> 'd') END
FROM pg_catalog.pg_attribute a
WHERE attrelid = to_regclass(%(table)s) AND attnum > 0 AND NOT attisdropped
"""
"""Names of columns, and of those that are left out the types below their domains, as a result has them."""


@dataclass(frozen=True, slots=True)
class ColumnBatch:
    """Consecutive rows.

    Attributes:
        values: struct array of `schema`, in the representation of airflow_connect.api.columns.
        schema: of the values.
        after: the position after the last row.
        numbers: in mode incrementing those of the rows, as an array of Arrow; otherwise None.
    """

    values: Any
    schema: Schema
    after: Position
    numbers: Any = None

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.values)


class ArrowReader:
    """Streams the rows of one table, or of the query, after a position."""

    def __init__(
        self, reading: Reading, table: TableId | None, position: Position, stream: ArrowStream,
        part: TableRange | None = None, order: str = "",
    ) -> None:  # fmt: skip
        """Does not read yet.

        Args:
            reading: describes the table on a connection of psycopg, which holds no lock while `stream` reads.
            table: what is read; None: the query, as a subquery.
            position: after which rows are new.
            stream: connected to the same database.
            part: the range that is read; None: the whole table.
            order: an expression, for rows of mode bulk that are compared, with `next_rows` and `texts`.
        """
        self._part, self._order = part, order
        self._has_texts = bool(order or reading.config.lookback_ms)
        self._maker: TextMaker | None = None
        self._sent: SentRows | None = None
        self._reading, self._stream = reading, stream
        self._source = reading.source(table, part)
        self.position = position
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._left: pa.RecordBatch | None = None
        self._held: list[pa.RecordBatch] = []
        self._held_us = 0
        self._held_at = position
        self._at_end = self._has_compared = False
        self._criteria: Criteria | None = None

    def close(self) -> None:
        """Nothing: the connection is closed by its owner if the result was not read to its end."""

    @property
    def number_column(self) -> str:
        """Name of the incrementing column; "": there is none."""
        return number_column(self._criteria)

    @property
    def forgotten(self) -> int:
        """Rows of the look-back window that were forgotten because of its limit."""
        return self._sent.forgotten if self._sent is not None else 0

    @property
    def mapping(self) -> TableMapping:
        """How rows become values; after the first of them."""
        return self._mapping

    def next(self, count: int) -> ColumnBatch | None:
        """The next rows, at most some `count` of them; None at the end.

        Raises:
            ConfigError: the table does not fit the configuration.
            DataError: a value does not fit its field.
            RetriableError: the table was changed at this moment.
            Exception: of the driver.
        """
        if self._batches is None:
            self._open()
        while (piece := self._piece(count)) is not None:
            batch = self._taken(piece)
            if batch is not None:
                return batch
        if self._held:
            if self._chosen.has_suffix:
                self._read_last_group_again()
            held, self._held = self._held, []
            # They may have got other timestamps, or be gone, since they were read.
            return self._converted(held, self._held_after()) if held else None
        return None

    def next_rows(self, count: int) -> pa.RecordBatch | None:
        """The next rows of mode bulk as they have arrived, at most some `count`; None at the end.

        Raises:
            Exception: see `next`.
        """
        if self._batches is None:
            self._open()
        piece = self._piece(count)
        if piece is not None:
            self._check_types(piece)
        return piece

    def texts(self, rows: pa.RecordBatch) -> RowTexts:
        """The texts of rows of `next_rows`, if the reader has an order."""
        assert self._maker is not None
        return self._maker.texts(rows)

    def driver_values(self, rows: pa.RecordBatch, name: str) -> list[Any]:
        """A column of rows of `next_rows`, as the values of psycopg."""
        place = next(n for n, field in enumerate(self._fields) if field.field.column.name == name)
        return self._fields[place].driver_values(rows.column(place))

    def batch_of(self, rows: pa.RecordBatch) -> ColumnBatch:
        """Rows of `next_rows` as what is sent.

        Raises:
            DataError: a value does not fit its field.
        """
        return self._converted([rows], self.position)

    def _open(self) -> None:
        reading, source = self._reading, self._source
        columns = reading.described(source if source.table is not None else source.selecting("*"))
        self._mapping: TableMapping = reading.mapping(columns, source)
        if reading.config.mode != names.BULK:
            self._criteria = reading.criteria(source, columns)
            if self._part is None or self._part.after is None:
                note_hidden(reading, self._criteria, source, self.position)
            self._moves = Moves(columns, self._criteria.tracked, reading.name, reading.times)
        self._columns = columns
        granularity = reading.config.granularity
        self._fields = [arrow_field(field, granularity, reading.times) for field in self._mapping.fields]
        if self._has_texts:
            fields = [field.field.column for field in self._fields]
            self._maker = TextMaker(columns, fields, reading.connection)
        extra = [] if self._maker is None else self._maker.extra
        chosen = self._chosen = source.selecting(_select_list(self._fields, columns, extra, reading))
        if self._criteria is None:
            statement = bulk_statement(chosen, self._part, self._order)
        else:
            upto = None if self._part is None else self._part.upto
            statement = self._criteria.of(chosen).select(self._begin(), reading.end_us, upto)
        sql = reading.literal(statement)
        # Otherwise a waiting ALTER TABLE would be between this connection's lock and that of the other one: a deadlock
        # that the server cannot see.
        reading.connection.rollback()
        stream, table = self._stream, source.table
        if self._part is not None and table is not None:
            reading.enter_snapshot(lambda snapshot: enter_stream(stream, snapshot, table))
        self._batches = stream.batches(sql, BATCH_BYTES)

    def _begin(self) -> Position:
        """After which rows are read: before the position if there is a look-back."""
        config = self._reading.config
        if not config.lookback_ms:
            return self.position
        check_key(self._columns, self._source)
        self._sent = SentRows(self.position, config.lookback_ms * 1000, config.lookback_rows)
        return self._sent.begin(self.position)

    def _read_last_group_again(self) -> None:
        """As `TableReader` does, because `query.suffix` may have cut the last group."""
        assert self._criteria is not None
        statement = last_group(self._criteria, self._chosen, self._held_after())
        sql = self._reading.literal(statement)
        self._reading.connection.rollback()
        self._held = list(self._stream.batches(sql, BATCH_BYTES))

    def _piece(self, count: int) -> pa.RecordBatch | None:
        """The next rows of the result, at most `count`."""
        assert self._batches is not None
        if self._left is None:
            self._left = next(self._batches, None)
            self._reading.progressed()
            self._check_columns()
        left = self._left
        if left is None or left.num_rows <= count:
            self._left = None
            if left is not None and left.nbytes < BATCH_BYTES // 2:  # probably the last one
                self._left = next(self._batches, None)
                self._at_end = self._left is None
            return left
        self._left = left.slice(count)
        return left.slice(0, count)

    def _taken(self, piece: pa.RecordBatch) -> ColumnBatch | None:
        """A batch of rows; None if all of them must be held back."""
        if self._criteria is None:
            return self._converted([piece], self.position)
        holds = not self._at_end or self._chosen.has_suffix
        if self._criteria.tracked.incrementing is None:
            return self._groups(piece, holds=holds)
        if self._moves.has_fractions:
            place = self._place(self._criteria.tracked.incrementing)
            self._moves.check_whole(self._fields[place].driver_values(piece.column(place)))
        if self._criteria.tracked.timestamps:
            self._moments(piece)  # only checked: each row could be the last one of a batch
        return self._numbers(piece, holds=holds)

    def _numbers(self, piece: pa.RecordBatch, *, holds: bool) -> ColumnBatch | None:
        """`_groups` for rows with a number: usually each is a group."""
        count = piece.num_rows
        last = self._position_of(piece, count - 1)
        if not holds:
            before, self._held = self._held, []
            return self._converted([*before, piece], last)
        complete = count - 1
        while complete and self._position_of(piece, complete - 1) == last:
            complete -= 1
        before, before_at = self._held, self._held_at
        self._held_at = last
        if complete:
            self._held = [piece.slice(complete)]
            return self._converted([*before, piece.slice(0, complete)], self._position_of(piece, complete - 1))
        if not before or before_at == last:
            self._held = [*before, piece]
            return None
        self._held = [piece]
        return self._converted(before, before_at)

    def _held_after(self) -> Position:
        """The position after the group that is held back."""
        assert self._criteria is not None
        return self._reached(self._held_us) if self._criteria.tracked.incrementing is None else self._held_at

    def _groups(self, piece: pa.RecordBatch, *, holds: bool) -> ColumnBatch | None:
        """The groups that are complete; the last group is held back until a later one begins.

        `holds`: whether a later row may follow.
        """
        moments = self._moments(piece)
        last = int(moments[-1])
        if not holds:
            before, self._held = self._held, []
            return self._converted([*before, piece], self._reached(last))
        others = np.flatnonzero(moments != last)
        if not len(others):
            before, before_us = self._held, self._held_us
            self._held_us = last
            if not before or before_us == last:
                self._held = [*before, piece]
                return None
            self._held = [piece]
            return self._converted(before, self._reached(before_us))
        complete = int(others[-1]) + 1
        taken = [*self._held, piece.slice(0, complete)]
        self._held, self._held_us = [piece.slice(complete)], last
        return self._converted(taken, self._reached(int(moments[complete - 1])))

    def _reached(self, moment: int) -> Position:
        """The position after a group of rows; `moment`: of `_moments`."""
        assert self._criteria is not None
        times = self._reading.times
        if self._criteria.tracked.timestamps[0].kind is Kind.INSTANT:
            return Position(timestamp_us=moment)
        own = times.from_clock(moment)
        local_us = times.skipped_us(own)
        before_us = None if local_us is None else times.before_skipped_us(local_us)
        return Position(timestamp_us=times.instant_us(own), local_us=local_us, before_us=before_us)

    def _moments(self, piece: pa.RecordBatch) -> Any:
        """The timestamps that count, as their column has them, int64[n].

        Microseconds since the epoch, or since 1970-01-01T00:00 on the local clock: two times that clocks skip and show
        may have one instant, but are two groups.
        """
        assert self._criteria is not None
        stamps = self._criteria.tracked.timestamps
        arrays: list[Any] = [piece.column(self._place(column)) for column in stamps]
        self._check_types(piece)
        try:
            return column_us(pc.coalesce(*arrays), stamps[0].kind)
        except ValueError:
            raise no_moment() from None

    def _position_of(self, piece: pa.RecordBatch, number: int) -> Position:
        """The position of a row."""
        assert self._criteria is not None
        self._check_types(piece)
        tracked = self._criteria.tracked
        row: list[Any] = [None] * len(self._columns)
        for column in (*tracked.timestamps, tracked.incrementing):
            if column is not None:
                place = self._place(column)
                field = self._fields[place]
                row[field.field.index] = field.driver_values(piece.column(place).slice(number, 1))[0]
        return self._moves.positions([row])[0]

    def _place(self, column: Column) -> int:
        """Where a column is in a batch."""
        return next(n for n, field in enumerate(self._fields) if field.field.column is column)

    def _converted(self, pieces: Sequence[pa.RecordBatch], after: Position) -> ColumnBatch:
        self._check_types(pieces[0])
        rows = pieces[0] if len(pieces) == 1 else pa.concat_batches(list(pieces))  # type: ignore[attr-defined]
        if self._sent is not None:
            rows, after = self._not_sent(self._sent, rows, after)
        arrays = [field.values(self._mapping, rows.column(n)) for n, field in enumerate(self._fields)]
        numbers = None
        if self._criteria is not None and not self._criteria.tracked.timestamps:
            assert self._criteria.tracked.incrementing is not None
            numbers = rows.column(self._place(self._criteria.tracked.incrementing))
            repeated = pc.equal(numbers.slice(1), numbers.slice(0, len(numbers) - 1)).true_count
            count_repeated(self._reading, self._criteria, self._source, repeated)
        self.position = after
        return ColumnBatch(self._mapping.struct(arrays), self._mapping.schema, after, numbers)

    def _not_sent(self, sent: SentRows, rows: pa.RecordBatch, after: Position) -> tuple[pa.RecordBatch, Position]:
        """Those rows that were not sent before, and the position after all of them, with the rows that are known."""
        assert self._criteria is not None and self._maker is not None and after.reached_us is not None
        maker = self._maker
        is_local = self._criteria.tracked.timestamps[0].kind is not Kind.INSTANT
        moments = self._moments(rows)
        at_us = self._reading.times.in_order_us(moments) if is_local else moments
        may_repeat = np.zeros(len(at_us), bool)
        if not (np.diff(moments) > 0).all():
            # Tables that inherit may have rows with the same primary key, and all other values.
            keys = [rows.column(n) for n, f in enumerate(self._fields) if f.field.column.key_position]
            may_repeat = with_repeated_key(keys, len(at_us))
        is_new = sent.new_rows(at_us, after.reached_us, may_repeat, lambda places: maker.digests(rows, places))
        if not is_new.all():
            rows = rows.filter(pa.array(is_new))
        return rows, sent.position(after.reached_us)

    def _check_columns(self) -> None:
        """Make sure once that no column was added since the table was described: a transaction may have filled it.

        Nor may one that is left out have got another type, which the result does not show. The statement that has begun
        holds a lock, so nothing can be changed now. Asking the catalog takes none.

        Raises:
            RetriableError: there is another column.
        """
        if self._has_compared or self._source.table is None:
            return
        self._has_compared = True
        connection = self._reading.connection
        left_out = {column.name: column.oid for column in self._mapping.left_out}
        asked = {"table": quoted_name(self._source.table), "left_out": list(left_out)}
        found: dict[str, int | None] = dict(connection.exec_driver_sql(_PG_COLUMNS, asked).tuples().all())
        connection.rollback()
        for name, oid in left_out.items():
            if found.get(name, oid) != oid:
                raise self._retyped(name)
        if set(found) - {column.name for column in self._columns}:
            raise RetriableError(
                f"A column was added to {self._source.name} at the moment at which it was read.",
                code="database.conflict",
                suggestion="Nothing is lost; the table is read again with its new columns.",
            )

    def _check_types(self, piece: pa.RecordBatch) -> None:
        try:
            # What `TextMaker` selects after them are texts, whatever the type of their column.
            for field, kind in zip(self._fields, piece.schema.types, strict=self._maker is None):
                field.check_type(kind)
        except ChangedError as changed:
            raise self._retyped(str(changed)) from None

    def _retyped(self, column: str) -> RetriableError:
        return RetriableError(
            f"The type of the column {column} of the table {self._source.name} was changed at the moment at which"
            " the table was read.",
            code="database.conflict",
            suggestion="Nothing is lost; the table is read again with its new columns.",
        )


def with_repeated_key(keys: Sequence[Any], count: int) -> Any:
    """Which of `count` rows have a key, of columns of Arrow, that another row has, too: bool[n]."""
    codes = np.zeros(count, np.int64)
    for key in keys:
        encoded = key.dictionary_encode()
        own = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy().astype(np.int64)
        _, codes = np.unique(codes * (len(encoded.dictionary) + 1) + own, return_inverse=True)
    counts = np.bincount(codes)
    return (counts > 1)[codes]


def _select_list(
    fields: Sequence[ArrowField], columns: Sequence[Column], extra: Sequence[tuple[Column, str]], reading: Reading
) -> str:
    """The expressions of a SELECT. No column has the name of a result, because ORDER BY would mean the result."""
    prefix = "connect_"
    while any(column.name.startswith(prefix) for column in columns):
        prefix += "_"
    parts = []
    for number, field in enumerate(fields):
        name = reading.database.quoting.text(field.field.column.name)
        parts.append(f"{field.expression(name)} AS {prefix}{number}")
    for number, (column, expression) in enumerate(extra, len(fields)):
        parts.append(f"{expression.format(reading.database.quoting.text(column.name))} AS {prefix}{number}")
    return ", ".join(parts)
