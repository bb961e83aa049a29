"""The task of the JDBC source: its tables, one after the other."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_connect.api.record import SourceRecord
from airflow_connect.api.source import SourceColumns, SourceOffset, SourceTask
from airflow_connect.connectors.jdbc.source.checks.look import position_at_bound
from airflow_connect.connectors.jdbc.source.discovery import all_tables
from airflow_connect.connectors.jdbc.source.offsets.positions import BULK_DONE, BULK_RUN, Position, committed_position
from airflow_connect.connectors.jdbc.source.offsets.ranges import BEGAN
from airflow_connect.connectors.jdbc.source.offsets.start import start_position
from airflow_connect.connectors.jdbc.source.read.bounds import bound_of_task, check_part, has_state, of_same_server
from airflow_connect.connectors.jdbc.source.read.changed import (
    ChangedReader,
    ranges_offset,
    ranges_partition,
)
from airflow_connect.connectors.jdbc.source.read.form import Form
from airflow_connect.connectors.jdbc.source.read.gaps import GapFinder, gaps_of, gaps_partition
from airflow_connect.connectors.jdbc.source.read.reading import Reading, RowBatch, TableReader
from airflow_connect.connectors.jdbc.source.read.restarts import MOST_RESTARTS, Restarts
from airflow_connect.connectors.jdbc.source.read.sent_ranges import sent_offset, sent_partition
from airflow_connect.connectors.jdbc.source.read.snapshot import Snapshot
from airflow_connect.connectors.jdbc.source.read.time_limit import time_limit
from airflow_connect.connectors.jdbc.source.read.zones import name_filled
from airflow_connect.connectors.jdbc.source.readers import changed_rows_of, new_rows_of
from airflow_connect.connectors.jdbc.source.settings import names
from airflow_connect.connectors.jdbc.source.settings.config import JdbcSourceConfig
from airflow_connect.connectors.jdbc.source.settings.keys import JdbcSourceKeys
from airflow_connect.connectors.jdbc.source.work import END, SEVERAL, SNAPSHOT, STATE, Item, is_of_a_table, items_of
from airflow_connect.databases.arrow_stream import ArrowStream, arrow_stream, why_no_stream
from airflow_connect.databases.connecting import Database, is_of_a_driver
from airflow_connect.databases.failures import Failure, kind_of
from airflow_connect.databases.read_timeout import ReadTimeout, socket_of
from airflow_connect.databases.reasons import reason_of
from airflow_connect.errors import ConnectError, DatabaseError, DataError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from airflow_connect.connectors.jdbc.source.arrow.reader import ArrowReader, ColumnBatch

log = logging.getLogger(__name__)
_BATCH_BYTES = 4 << 20
"""Size of a batch of columns, in Arrow; the driver's rows take ten times as much while they are converted."""
_LEAST_ROWS, _MOST_ROWS = 100, 20_000
_ANY_NUMBER = 1 << 62
"""Batches of ADBC end at a number of bytes."""


class _LeftOut:
    """Instead of a batch: the table cannot be read, and is left out."""


class JdbcSourceTask(SourceTask):
    """Reads its tables up to the upper bound that the driver has taken from the database's clock."""

    _connection: Connection | None = None
    _database: Database | None = None
    _stream: ArrowStream | None = None

    def start(self, config: Mapping[str, str]) -> None:
        """Take the tables; connects at the first poll."""
        self._config = JdbcSourceConfig.from_config(config)
        zero_dates = self._config.connection.address.zero_dates
        self._form = Form.of(config, zero_dates, self.context.worker_converters)
        self._end_us = self._bound_us = int(config[END])
        self._snapshot = Snapshot.from_json(config.get(SNAPSHOT, ""))
        self._waiting = deque(items_of(config))
        self._database = Database(self._config.connection)
        self._timeout = ReadTimeout(self._config.read_timeout_ms / 1000)
        self._reader: TableReader | ArrowReader | ChangedReader | None = None
        self._in_columns = self._has_no_stream = False
        self._position: Position | None = None
        self._gaps: GapFinder | None = None
        self._gaps_begin: int | None = None
        self._pending: RowBatch | None = None
        self._state, self._has_state = config.get(STATE, ""), True
        self._skips = config.get(SEVERAL) == "true"
        self._failures = 0
        self._reads_to_end = True
        self._restarts = Restarts()
        self._column_rows = names.DEFAULT_BATCH_ROWS

    def poll(self) -> Sequence[SourceRecord] | None:
        """The next rows of the current table as records."""
        # Where columns are asked for, only rows that have no columnar form come one by one.
        batch = self._pending if self._in_columns else self._next(self._config.batch_rows)
        self._pending = None
        if not isinstance(batch, RowBatch):
            return None
        item, schema = self._waiting[0], batch.mapping.schema
        try:
            values = batch.mapping.values(batch.rows)
        except DataError as error:
            # No row of the batch was returned, so the committed offset is before it.
            if not self._leaves_out(item, error):
                raise
            self._disconnect()
            self._next_table()
            return None
        offsets = [self._bulk_offset()] * len(batch.rows) if self._is_bulk else batch.offsets()
        self._keep_gaps(item)
        return [
            SourceRecord(
                topic=self._topic(item),
                value_schema=schema,
                value=value,
                source_partition=item.partition,
                source_offset=offset,
            )
            for value, offset in zip(values, offsets, strict=True)
        ]

    def poll_columns(self) -> SourceColumns | None:
        """The next rows of the current table in columns; None: `poll` returns them one by one."""
        self._in_columns = True
        batch = self._next(self._config.batch_rows)
        if batch is None:
            return None
        if isinstance(batch, RowBatch):
            schema = batch.mapping.schema
            try:
                values = batch.mapping.arrow(batch.rows)
            except DataError:
                self._pending = batch
                return None
            fitting = len(batch) * _BATCH_BYTES // max(1, values.nbytes)
            self._column_rows = max(_LEAST_ROWS, min(fitting, 4 * self._column_rows, _MOST_ROWS))
        else:
            values, schema = batch.values, batch.schema
        item = self._waiting[0]
        self._keep_gaps(item)
        return SourceColumns(
            topic=self._topic(item),
            source_partition=item.partition,
            source_offset=self._bulk_offset() if self._is_bulk else batch.after.offset(),
            key_schema=None,
            keys=None,
            value_schema=schema,
            values=values,
        )

    def has_ended(self) -> bool:
        """Whether all tables were read."""
        return not self._waiting and self._pending is None

    def stop(self) -> None:
        """Close the connection."""
        self._disconnect()
        if self._database is not None:
            self._timeout.close()
            self._database.close()

    @property
    def _is_bulk(self) -> bool:
        return self._config.mode == names.BULK

    def _topic(self, item: Item) -> str:
        return self._config.prefix + (item.table.table if item.table is not None else "")

    def _bulk_offset(self, *, done: bool = False) -> SourceOffset:
        """Which run has copied the table: another attempt of its task skips tables that are complete."""
        part = self._waiting[0].part if self._waiting else None
        if part is not None:
            return {BULK_RUN: self.context.run_id, BEGAN: part.began_ms}
        return {BULK_RUN: self.context.run_id, BULK_DONE: done}

    def _leaves_out(self, item: Item, error: ConnectError) -> bool:
        """Whether the rest of a table is left out; its offset stays before what was not returned."""
        if not self._skips or not is_of_a_table(error):
            return False
        self.context.leave_out(item.name, error)
        return True

    def _next_table(self) -> None:
        self._reader = self._position = self._gaps = None
        self._failures = 0
        self._restarts = Restarts()
        self._waiting.popleft()

    def _next(self, count: int) -> RowBatch | ColumnBatch | None:
        """The next batch with rows of any table; None if all have ended, or for a moment."""
        while self._waiting:
            item = self._waiting[0]
            batch = self._read(item, count)
            if isinstance(batch, _LeftOut):
                self._next_table()
            elif batch is None:
                self._finish(item)
            elif len(batch):
                return batch
            else:
                # Not followed by rows in the same poll: their offset, which is later, would be replaced by this one.
                self._skip(item, batch)
                return None
        return None

    def _skip(self, item: Item, batch: RowBatch | ColumnBatch) -> None:
        """Set the offset after a batch without rows, or keep which ranges are sent next."""
        if isinstance(self._reader, ChangedReader):
            self.context.skip_to(sent_partition(item.partition), sent_offset(self._reader.sent.marks))
            self._reader.sent.is_changed = False
        else:
            self.context.skip_to(item.partition, batch.after.offset())

    def _read(self, item: Item, count: int) -> RowBatch | ColumnBatch | _LeftOut | None:
        """The next batch of a table; None at its end.

        Raises:
            RetriableError: the database failed for a temporary reason; the next call continues.
        """
        assert self._database is not None
        try:
            what = f"read {item.name}"
            address = self._config.connection.address
            with time_limit(self._timeout, address, what), self._database.failures(what):
                try:
                    if self._reader is None and not self._open(item):
                        return None
                    assert self._reader is not None
                    batch = self._reader.next(self._rows_at_once(count))
                except Exception as error:
                    if not self._has_vanished(item, error):
                        raise
                    self.context.note(f"{item.name[0].upper()}{item.name[1:]} does not exist any more and is skipped.")
                    self._reader = None  # Nothing of it was read: a range of it is not complete.
                    return None
        except ConnectError as error:
            self._disconnect()
            counted = self._counted(item, error)
            if self._leaves_out(item, counted):
                return _LeftOut()
            raise counted from error.__cause__
        self._failures = 0
        if batch is not None:
            self._position = batch.after
            self._restarts.read(len(batch))
            self._see_numbers(item, batch)
        return batch

    def _has_vanished(self, item: Item, error: Exception) -> bool:
        """Whether a table that could not be opened does not exist any more."""
        table, connection = item.table, self._connection
        if table is None or connection is None or self._position is not None:
            return False
        if kind_of(error) is not Failure.MISSING_OBJECT:
            return False
        connection.rollback()
        connection.connection.rollback()  # SQLAlchemy does not know of the transaction that reads in a snapshot
        # Otherwise it is a view of a table that is gone, for example.
        return table not in all_tables(self._config.connection.address.database, connection, self._config)

    def _open(self, item: Item) -> bool:
        """Begin a table, or continue it after a failure; False if there is nothing to read."""
        position = self._position
        if position is None:
            offset = self._committed(item)
            if self._is_complete(item, offset):
                return False
            position = self._start_position(item, offset)
            self._gaps_begin = None if position is None else position.incrementing
        assert self._database is not None
        if self._connection is None:
            self._connection = self._database.connect()
            self._database.dialect.prepare_reading(self._connection)
            self._timeout.add(socket_of(self._connection.connection.driver_connection))
            self._bound_us = bound_of_task(
                self._config, self._database, self._connection, self._end_us, self.context.note
            )
            self._has_state = has_state(self._config, self._database, self._connection, self._state, self.context.note)
            self._timeout.progressed()
        reading = Reading(self._config, self._database, self._connection, self._bound_us, self.context.note)
        reading.snapshot = self._snapshot
        reading.progressed = self._timeout.progressed
        reading.count = self.context.count
        self._reads_to_end = check_part(item, reading, self._end_us, has_state=self._has_state)
        if position is None:
            self.context.skip_to(item.partition, position_at_bound(reading, item.table).offset())
            return False
        name_filled(reading, item.table)
        stream = self._opened_stream()
        if self._config.changed_only and item.table is not None:
            self._reader = changed_rows_of(reading, item, item.table, stream, self.context, self._form)
        else:
            self._reader = new_rows_of(reading, item, position, stream)
        return True

    def _start_position(self, item: Item, offset: SourceOffset | None) -> Position | None:
        """Where to begin; None: at the run's upper bound."""
        if item.part is None or item.part.after is None:
            return start_position(self._config, offset, item.name)
        own = Position.of(offset, item.name)
        return item.part.after if own == Position() else own

    def _opened_stream(self) -> ArrowStream | None:
        """The connection that reads in Arrow batches; None if rows must be read one by one."""
        config = self._config
        if not self._in_columns or self._has_no_stream:
            return None
        if self._stream is None and config.connection.address.database == "postgresql":
            assert self._connection is not None
            try:
                stream = arrow_stream(self._connection, config.connection.isolation)
                self._stream = of_same_server(self._connection, stream, self.context.note)
                self._timeout.add(self._stream.sockets if self._stream is not None else set())
                missing = why_no_stream(self._connection) if self._stream is None else ""
                if missing:
                    self.context.note(f"Rows are read one by one, which is slower, because {missing}.")
            except Exception as error:
                if not is_of_a_driver(error):
                    raise
                reason = config.connection.address.scrub(reason_of(error)).rstrip(".")
                self.context.note(
                    f"Rows are read one by one, which is slower, because ADBC could not connect: {reason}."
                )
        self._has_no_stream = self._stream is None
        return self._stream

    def _rows_at_once(self, count: int) -> int:
        """How many rows to read, unless `batch.max.rows` is set."""
        if not self._in_columns or count != names.DEFAULT_BATCH_ROWS:
            return count
        reader = self._reader
        by_row = isinstance(reader, TableReader) or (isinstance(reader, ChangedReader) and not reader.in_columns)
        return self._column_rows if by_row else _ANY_NUMBER

    def _committed(self, item: Item) -> SourceOffset | None:
        reader = self.context.offset_reader
        if item.table is None or item.part is not None:
            return reader.offset(item.partition)
        return committed_position(item.table, reader)[1]

    def _is_complete(self, item: Item, offset: SourceOffset | None) -> bool:
        """Whether an earlier attempt of this task has copied all of a table, or of its range."""
        if item.part is not None:
            return item.part.is_done(offset)
        return self._is_bulk and offset == self._bulk_offset(done=True)

    def _finish(self, item: Item) -> None:
        """Go on to the next table."""
        self._end_gaps(item)
        if self._reader is not None:
            if isinstance(self._reader, ChangedReader):
                self._reader.note_results()
                self.context.skip_to(ranges_partition(item.partition), ranges_offset(self._reader.ranges, self._form))
                if self._reader.sent.marks:
                    self.context.skip_to(sent_partition(item.partition), sent_offset([]))
            if item.part is not None and self._reads_to_end:
                self.context.skip_to(item.partition, item.part.done(self._last_offset(item)))
            elif item.part is not None:
                self.context.note(
                    f"A range of {item.name} is not complete, because it ends after the upper bound of this run. The"
                    " next one continues it. So it is after timestamp.delay.interval.ms was raised, or on a replica"
                    " that is behind."
                )
            elif self._is_bulk:
                self.context.skip_to(item.partition, self._bulk_offset(done=True))
            if self._reader.forgotten:
                self.context.note(
                    f"timestamp.lookback.max.rows is too small for {item.name}: {self._reader.forgotten} rows of"
                    " the window were forgotten, and rows that are committed as late as those may be missed."
                )
        self._end_transaction()
        self._next_table()

    def _gap_finder(self, item: Item) -> GapFinder | None:
        """What sees the numbers of a table's rows, in mode incrementing; None: they are of no interest."""
        reader = self._reader
        if self._config.mode != names.INCREMENTING or item.table is None or reader is None:
            return None
        if self._gaps is None and not isinstance(reader, ChangedReader) and reader.number_column:
            before = gaps_of(self.context.offset_reader.offset(gaps_partition(item.partition)), item.name)
            self._gaps = GapFinder(self._gaps_begin, reader.number_column, before)
        return self._gaps

    def _see_numbers(self, item: Item, batch: RowBatch | ColumnBatch) -> None:
        finder = self._gap_finder(item)
        if finder is None:
            return
        if isinstance(batch, RowBatch):
            finder.add(position.incrementing for position in batch.positions)
        elif batch.numbers is not None:
            finder.add_array(batch.numbers)

    def _keep_gaps(self, item: Item) -> None:
        """Keep which numbers no row has had, in the transaction of the rows: the next runs look for late ones."""
        offset = None if self._gaps is None else self._gaps.offset()
        if offset is not None:
            self.context.skip_to(gaps_partition(item.partition), offset)

    def _end_gaps(self, item: Item) -> None:
        """At the end of a range, which may be after its last row."""
        finder = self._gap_finder(item)
        if finder is not None and item.part is not None and item.part.upto is not None:
            finder.end(item.part.upto.incrementing or 0)
            self._keep_gaps(item)

    def _last_offset(self, item: Item) -> SourceOffset:
        """The offset of the last row of a range; {} if it has none."""
        if self._is_bulk:
            return self._bulk_offset()
        if self._position is not None:
            return self._position.offset()
        return Position.of(self._committed(item), item.name).offset()

    def _end_transaction(self) -> None:
        """End the transaction, so that the next table has a snapshot of its own.

        All rows of the table have arrived: if the connection is lost now, the next table gets another one.
        """
        try:
            with self._timeout.watching():
                if self._reader is not None:
                    self._reader.close()
                if self._stream is not None and not self._stream.is_reusable:
                    self._close_stream()
                elif self._stream is not None:
                    self._stream.end_transaction()
                if self._connection is not None:
                    self._connection.rollback()
                    self._connection.connection.rollback()
        except Exception as error:
            if not is_of_a_driver(error):
                raise
            log.debug("The connection was lost after the last row of a table: %s", type(error).__name__)
            self._disconnect()

    def _counted(self, item: Item, error: ConnectError) -> ConnectError:
        """The error of a failed read: not a temporary one if it was repeated often enough."""
        self._failures += 1
        if self._is_bulk and error.retriable:
            again = self._restarts.failed()
            if self._restarts.useless >= MOST_RESTARTS:
                return DatabaseError(
                    f"{item.name[0].upper()}{item.name[1:]} was read from its beginning several times, because mode"
                    f" bulk has no offset to continue from, and never came further than before. The last time:"
                    f" {error.message}",
                    code="database.retries",
                    suggestion="Look why the database ends the connection (statement_timeout of PostgreSQL,"
                    " max_statement_time of MariaDB, a proxy). Or divide the table (tasks.max, table.split.min.rows),"
                    " or use another mode.",
                )
            if again:
                self.context.count(
                    f"Rows of {item.name} that are sent again, because the connection was lost and mode bulk begins a"
                    " table again:",
                    again,
                )
        if not error.retriable or not 0 <= self._config.retries < self._failures:
            return error
        return DatabaseError(
            f"A statement failed {self._failures} times, which is more than query.retry.attempts allows. The last time:"
            f" {error.message}",
            code="database.retries",
            suggestion="Nothing is lost. Run again when the database is available.",
            config_path=JdbcSourceKeys.retries.name,
        )

    def _disconnect(self) -> None:
        """Drop the connection without waiting for it; the next read opens another one."""
        reader, self._reader = self._reader, None
        connection, self._connection = self._connection, None
        self._timeout.forget()
        self._close_stream()
        if connection is None:
            return
        if reader is not None:
            try:
                reader.close()
            except Exception as error:
                if not is_of_a_driver(error):
                    raise
                log.debug("A cursor of a broken connection was not closed: %s", type(error).__name__)
        connection.invalidate()
        connection.close()

    def _close_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is None:
            return
        try:
            stream.close(cancels=not self._timeout.expired)
        except Exception as error:
            if not is_of_a_driver(error):
                raise
            log.debug("A broken connection of ADBC was not closed: %s", type(error).__name__)
