"""Writes batches: rows and offsets in one transaction, repeated after errors that may pass."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from airflow_connect.connectors.jdbc.sink.columns.chunk import ColumnChunk, RowsNeededError
from airflow_connect.connectors.jdbc.sink.identity import dropped_meanwhile, made_again
from airflow_connect.connectors.jdbc.sink.offsets import Move, OffsetsTable, Position, writing
from airflow_connect.connectors.jdbc.sink.outcome import Outcome, RowRefusedError
from airflow_connect.connectors.jdbc.sink.resumed import superseded
from airflow_connect.connectors.jdbc.sink.sessions import prepare, single_statements
from airflow_connect.databases.connecting import close_quietly, is_of_a_driver
from airflow_connect.databases.failures import Failure, kind_of, refers_to_none, typed
from airflow_connect.databases.reasons import reason_of
from airflow_connect.errors import ConnectError, DatabaseError, DataError, RetriableError, SchemaError
from airflow_connect.retrying import REAL_TIME, Backoff, Retry, Timing

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.connectors.jdbc.sink.batches import Batch, Chunk
    from airflow_connect.connectors.jdbc.sink.chunk_work import Failed
    from airflow_connect.connectors.jdbc.sink.config import JdbcSinkConfig
    from airflow_connect.connectors.jdbc.sink.executing import ChunkExecutor
    from airflow_connect.connectors.jdbc.sink.pieces import Columned, Refused
    from airflow_connect.connectors.jdbc.sink.tables import FieldColumns, Tables
    from airflow_connect.databases.connecting import Database
    from airflow_connect.databases.identifiers import TableId

log = logging.getLogger(__name__)
_Result = TypeVar("_Result")
Report = Callable[["SinkRecord", Exception], None]
_Work = tuple["Chunk | ColumnChunk", "FieldColumns"]
_INCORRECT = "Correct the record, the table, or the types of its columns."
_NO_PARENT = (
    "If another task writes the other row, run again: a task goes on when another one fails. If it comes later in this"
    " task, the next run may fail here, too: copy its topic first, with a connector of its own, or drop the foreign"
    " key."
)
_MOST_ROUNDS = 20
"""Of rows that are tried again. More are only needed if rows refer to others in a chain without any order."""
_MAY_PASS = frozenset(
    {
        Failure.CONFLICT,
        Failure.CONNECTION_LOST,
        Failure.UNREACHABLE,
        Failure.UNKNOWN_HOST,
        Failure.TOO_MANY_CONNECTIONS,
        Failure.DISK_FULL,
        Failure.STATEMENT_TIMEOUT,
        Failure.OUT_OF_RESOURCES,
        Failure.READ_ONLY,
        Failure.OTHER,
    }
)


class _MovedError(Exception):
    """The offset of a partition is not where this task has left it."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__()
        self.partition = partition


@dataclass(frozen=True, slots=True)
class RunOfTask:
    """What the writer must know about its run.

    Attributes:
        run_id, epoch: of the run.
        topic_ids: id of each topic.
        report: reports a record that cannot be written.
        leave_out: counts a record that was not written without an error.
    """

    run_id: str
    epoch: int
    topic_ids: Mapping[str, str]
    report: Report
    leave_out: Callable[[SinkRecord], None]


class Writer:
    """The one connection of a task, and what it writes."""

    def __init__(
        self,
        config: JdbcSinkConfig,
        database: Database,
        tables: Tables,
        executor: ChunkExecutor,
        run: RunOfTask,
        timing: Timing = REAL_TIME,
    ) -> None:
        """Does not connect yet."""
        self._config = config
        self._database = database
        self._tables = tables
        self._executor = executor
        self._run = run
        self._timing = timing
        self._offsets = OffsetsTable(database, config.offsets_table, config.name) if config.offsets_table else None
        self._positions: dict[TopicPartition, Position] = {}
        self._connection: Connection | None = None
        self._finds_rows = config.finds_rows_by_key
        self._overtaken: set[TopicPartition] = set()  # by another attempt of the task
        self._checks_at_once = False
        self._left_out = Outcome()
        self._absent = Outcome()
        self._created: list[str] = []
        self._starts: dict[TopicPartition, int] = {}
        self._filled: set[TableId] = set()  # by a transaction of this task
        self._told: dict[str, list[str]] = {}
        self._identities: dict[str, str] = {}

    def take_notes(self) -> Iterator[str]:
        """Sentences about what was not written, or not as it is, without an error; since the last call."""
        yield from self._tables.take_notes()
        altered, self._tables.altered = self._tables.altered, []
        yield from altered
        created, self._created = self._created, []
        yield from created
        found, self._left_out = self._left_out, Outcome()
        yield from found.sentences()

    def take_columns(self) -> dict[str, list[str]]:
        """The columns of each table that was written, since the last call; {} without `auto.evolve`."""
        found = {table: names for table, names in self._tables.columns().items() if self._told.get(table) != names}
        self._told |= found
        return found

    def take_identities(self) -> dict[str, str]:
        """The identity of each table that was written, since the last call."""
        found = {name: one for name, one in self._tables.identities().items() if self._identities.get(name) != one}
        self._identities |= found
        return found

    def take_over(self, starts: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, Position]:
        """Where to resume each partition; see `OffsetsTable.take_over`. Without an offsets table: at its start."""
        self._starts |= starts
        if self._offsets is None:
            return {partition: Position(start, 0) for partition, start in starts.items()}
        taken: dict[TopicPartition, Position] = {}
        self._repeated(lambda: self._take_over(starts, taken))
        self._positions |= taken
        return taken

    def _take_over(self, starts: Mapping[TopicPartition, int], taken: dict[TopicPartition, Position]) -> None:
        """Take over those that are not in `taken`, and add them."""
        connection = self._connected()
        with single_statements(connection):
            for partition, start in starts.items():
                if partition not in taken:
                    taken[partition] = self._taken(connection, partition, start)

    def _taken(self, connection: Connection, partition: TopicPartition, start: int) -> Position:
        assert self._offsets is not None
        run = (self._run.run_id, self._run.epoch)
        if not self._run.epoch:  # Started without a driver, such as by a test of the task alone.
            self._offsets.ensure(connection)
        found = self._offsets.take_over(connection, partition, self._topic_id(partition), start, run)
        errant = frozenset(n for n in found.errant if n >= start)  # The others are committed to Kafka.
        if errant != found.errant:
            with connection.begin():
                self._offsets.store_errant(connection, partition, self._topic_id(partition), errant)
        return Position(found.next_offset, found.epoch, errant)

    def write(self, batch: Batch) -> None:
        """Write a batch and move its offsets.

        Raises:
            DataError: a record cannot be written, and errors are not tolerated; nothing of the batch is written.
            FencedError: a later run has taken over; nothing of the batch is written.
            ConnectError: the database refused or did not answer; the offsets table tells what was written.
        """
        if batch.ends:
            self._repeated(lambda: self._attempt(batch))

    def write_columns(self, batch: Batch) -> bool:
        """Write a batch in columns and move its offsets.

        Returns:
            False if its records must be written as rows: none of them was written, except those before `position`.

        Raises:
            FencedError, ConnectError: as `write`.
        """
        try:
            self.write(batch)
        except RowsNeededError as error:
            # Not its text: a driver repeats the values of rows.
            log.debug("Records are written as rows, because of %s.", type(error.__cause__ or error).__name__)
            return False
        return True

    def position(self, partition: TopicPartition) -> Position | None:
        """What is written of a partition; None without an offsets table."""
        return self._positions.get(partition)

    def is_new(self, partition: TopicPartition) -> bool:
        """Whether the offsets table had nothing of a partition before this task."""
        return self._offsets is not None and partition in self._offsets.new

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            close_quietly(connection)

    # --- tries ----------------------------------------------------------------------------------------------------

    def _repeated(self, attempt: Callable[[], _Result]) -> _Result:
        """Repeat what failed for a reason that may pass."""
        pause_s = self._config.backoff_ms / 1000
        tries = Retry(Backoff(pause_s, pause_s), retries=self._config.retries, timing=self._timing)
        looked_again = False
        while True:
            try:
                return attempt()
            except RetriableError:  # The connection could not be opened.
                self.close()
                if not tries.pause():
                    raise
            except RowsNeededError:
                raise  # The connection is fine.
            except ConnectError:
                self.close()
                raise
            except Exception as error:
                self.close()
                if not is_of_a_driver(error):
                    raise
                kind = kind_of(error)
                if kind is Failure.MISSING_OBJECT and not looked_again:
                    looked_again = True  # A table was changed since this task has looked at it.
                    self._tables.forget()
                elif kind is Failure.CONSTRAINT and not self._checks_at_once:
                    self._checks_at_once = True  # A deferred constraint failed in COMMIT; now it names its row.
                elif kind not in _MAY_PASS or not tries.pause():
                    raise typed(error, "write rows", self._database.settings.address) from None

    def _attempt(self, batch: Batch) -> None:
        for partition in self._overtaken.intersection(batch.ends):
            self._drop_written(batch, partition)
        while True:
            batch.without_errant()
            connection = self._connected()
            work = self._work(connection, batch)
            try:
                self._transaction(connection, batch, work)
            except _MovedError as moved:
                self._look_at(connection, batch, moved.partition)
                continue
            return

    def _work(self, connection: Connection, batch: Batch) -> list[_Work]:
        """What to write, with the columns of each field."""
        work: list[_Work] = []
        self._absent = Outcome()
        for rows in batch.chunks():
            if rows.deletes and self._tables.may_be_created(connection, rows.plan.table):
                # A table of the key alone could not take the columns of later records that require a value.
                self._absent.without_table[str(rows.plan.table)] += len(rows.records)
            elif (found := self._columns(connection, batch, rows)) is not None:
                work.append((rows, found))
        try:
            work += [
                (chunk, self._tables.columns_for(connection, chunk.plan.table, chunk.plan.fields))
                for chunk in batch.column_chunks()
            ]
        except SchemaError as error:
            raise RowsNeededError from error
        self._name_created(connection, batch)
        return work

    def _name_created(self, connection: Connection, batch: Batch) -> None:
        """Say that a table was created, or is another one, although earlier runs have written: it was dropped."""
        created, self._tables.created = self._tables.created, []
        replaced, self._tables.replaced = self._tables.replaced, {}
        if self._offsets is None or not (created or replaced):
            return
        known = {p: self._positions[p].next_offset for p in batch.ends if p not in self._offsets.new}
        first = next((f"{partition} from offset {offset}" for partition, offset in sorted(known.items()) if offset), "")
        lost = self._filled.intersection((*created, *replaced))  # By then; what was written is not in the new one.
        for table in sorted(lost, key=str):
            self._created.append(dropped_meanwhile(table, self._starts))
            self._offsets.created(connection, str(table), self._created[-1], (self._run.run_id, self._run.epoch))
        self._filled -= lost
        for table in created if first else ():
            if table in lost:
                continue
            sentence = (
                f"The table {table} was missing and was created. This run writes {first} on, because earlier runs have"
                " written the records before. If the table was dropped, they are not in it: set the offsets of the"
                " connector back, to write them again."
            )
            self._created.append(sentence)
            self._offsets.created(connection, str(table), sentence, (self._run.run_id, self._run.epoch))
        if first:
            self._created += [made_again(table, found, first) for table, found in replaced.items() if table not in lost]

    def _transaction(self, connection: Connection, batch: Batch, work: Sequence[_Work]) -> None:
        # Step 1. Invariant 2: move the offsets first. This also takes the lock that other attempts wait for.
        with writing(connection):
            self._move_offsets(connection, batch)
            if self._checks_at_once and self._database.dialect.name == "postgresql":
                connection.exec_driver_sql("SET CONSTRAINTS ALL IMMEDIATE")
            # Step 2. Rows; those that the database refuses are reported before anything is final.
            self._executor.outcome = Outcome()
            self._executor.outcome.add(self._absent)
            rows: list[Columned] = []
            for chunk, columns in work:
                if isinstance(chunk, ColumnChunk):
                    self._executor.apply_columns(connection, chunk, columns)
                else:
                    rows.append((chunk, columns))
            refused = self._executor.apply(connection, rows)
            if refused and (self._checks_at_once or len({chunk.plan.table for chunk, _ in work}) > 1):
                refused = self._tried_again(connection, batch, refused)
            for _, _, failed in refused:
                self._refused(batch, failed)
            # Step 3. Which records are not in the database although the offset is after them.
            errant = self._store_errant(connection, batch)
        # Step 4. The COMMIT took effect. If it fails instead, the next attempt finds out in step 1 what became of it.
        self._count_left_out()
        self._filled.update(chunk.plan.table for chunk, _ in work)
        for partition, end in batch.ends.items():
            if partition in self._positions:
                next_offset = max(self._positions[partition].next_offset, end)
                self._positions[partition] = Position(next_offset, self._run.epoch, errant[partition])

    def _count_left_out(self) -> None:
        """Count what a transaction has not written, once it is final."""
        found, self._executor.outcome = self._executor.outcome, Outcome()
        for _, record in found.unmatched:
            self._run.leave_out(record)
        self._left_out.add(found)

    # --- parts ----------------------------------------------------------------------------------------------------

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = self._database.connect()
            prepare(self._connection)
        return self._connection

    def _columns(self, connection: Connection, batch: Batch, chunk: Chunk) -> FieldColumns | None:
        """The columns of a chunk; None if its records cannot be written and were reported."""
        try:
            return self._tables.columns_for(connection, chunk.plan.table, chunk.plan.fields)
        except SchemaError as error:
            for record in chunk.records:
                self._run.report(record, error)
                batch.add_errant(record)
            return None

    def _move_offsets(self, connection: Connection, batch: Batch) -> None:
        if self._offsets is None:
            return
        self._offsets.mark(connection, batch.ends, self._run.topic_ids, self._run.epoch)
        for partition, end in sorted(batch.ends.items()):
            before = self._positions[partition].next_offset
            # Not back: errant records before it may be tried again.
            move = Move(before, max(before, end))
            run = (self._run.run_id, self._run.epoch)
            if not self._offsets.move(connection, partition, self._topic_id(partition), move, run):
                raise _MovedError(partition)

    def _look_at(self, connection: Connection, batch: Batch, partition: TopicPartition) -> None:
        """Find out why an offset has moved: a COMMIT of this task that seemed to fail, or another attempt of the task.

        Raises:
            FencedError: a later run.
        """
        assert self._offsets is not None
        found = self._offsets.read(connection, partition, self._topic_id(partition))
        connection.rollback()
        if found is None or found.epoch != self._run.epoch:
            raise self._offsets.fenced(partition, found)
        if found.next_offset <= self._positions[partition].next_offset:
            raise DatabaseError(
                f"The offset of {partition} in {self._config.offsets_table} went back while a run was writing.",
                code="jdbc.offsets_table",
                suggestion="Do not change offsets during a run. The next run continues from the new offset.",
            )
        self._count_left_out()  # The last try took effect, or another attempt has found the same.
        self._positions[partition] = found
        self._overtaken.add(partition)
        self._drop_written(batch, partition)

    def _drop_written(self, batch: Batch, partition: TopicPartition) -> None:
        """Leave out what another attempt has written: it may be ahead by more than one batch of this one."""
        found = self._positions[partition]
        for record in batch.superseded(partition, found.next_offset, found.errant) if self._finds_rows else ():
            self._run.report(record, superseded(record))
            batch.add_errant(record)
        batch.without_written(partition, found.next_offset, found.errant)

    def _tried_again(self, connection: Connection, batch: Batch, refused: list[Refused]) -> list[Refused]:
        """Rows that are still refused after all others.

        Rows are written table by table, and constraints may be checked at once that are deferred otherwise: a row may
        refer to one that comes later in the transaction.
        """
        last = batch.last_of_keys()
        for _ in range(_MOST_ROUNDS):
            refused = refused[::-1]  # Then a row that refers to the next one is written after it.
            left: list[Refused] = []
            for chunk, columns, failed in refused:
                # Not if a later record is about the same row: it must not be undone.
                is_last = last.get(chunk.key(failed.record), failed.record) is failed.record
                if not is_last or not is_of_a_driver(failed.error) or kind_of(failed.error) is not Failure.CONSTRAINT:
                    left.append((chunk, columns, failed))
                    continue
                again = self._executor.apply(connection, [(chunk.only(failed.record), columns)])
                left += [(chunk, columns, one) for _, _, one in again]
            is_final = not left or len(left) == len(refused)
            refused = left
            if is_final:
                break
        return sorted(refused, key=lambda one: one[2].record.offset)

    def _refused(self, batch: Batch, failed: Failed) -> None:
        self._run.report(failed.record, self._error_of(failed))
        batch.add_errant(failed.record)

    def _error_of(self, failed: Failed) -> Exception:
        if isinstance(failed.error, ConnectError):
            return failed.error
        if is_of_a_driver(failed.error):
            kind, reason = kind_of(failed.error), reason_of(failed.error)
        elif isinstance(failed.error, RowRefusedError):
            kind, reason = failed.error.kind, str(failed.error)
        else:
            kind, reason = Failure.VALUE, reason_of(failed.error)
        reason = self._database.settings.address.scrub(reason).removesuffix(".")
        code = {Failure.CONSTRAINT: "database.constraint", Failure.VALUE: "database.value"}.get(kind, "database.failed")
        return DataError(
            f"The database refused {failed.record.where}: {reason}.",
            code=code,
            suggestion=_NO_PARENT if refers_to_none(failed.error) else _INCORRECT,
        )

    def _store_errant(self, connection: Connection, batch: Batch) -> dict[TopicPartition, frozenset[int]]:
        """Keep errant offsets; returns them by partition."""
        found: dict[TopicPartition, frozenset[int]] = {}
        for partition in batch.ends:
            known = self._positions[partition].errant if partition in self._positions else frozenset()
            written = batch.offsets_of(partition) if known else set()
            found[partition] = (known - written) | batch.errant.get(partition, set())
            if self._offsets is not None and (known or found[partition]):
                self._offsets.store_errant(connection, partition, self._topic_id(partition), found[partition])
        return found

    def _topic_id(self, partition: TopicPartition) -> str:
        return self._run.topic_ids.get(partition.topic, "")
