"""The offsets table: what was written, per connector, topic and partition, in the same database as the rows.

One row for each topic-partition, and one for the connector, which counts the epochs of its runs; for a while also one
for each table that was missing and that a run has created. `place` is a hash of
what a row is about, so that no collation or length limit of a database can confuse two names.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.jdbc.sink.keys import JdbcSinkKeys as Keys
from airflow_connect.connectors.jdbc.sink.looking import check_offsets_table
from airflow_connect.connectors.jdbc.sink.sessions import Marks, limited_waiting
from airflow_connect.databases.failures import Failure, kind_of
from airflow_connect.errors import AccessError, DatabaseError, FencedError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.databases.connecting import Database

_TRIES = 5
_CREATED = -2
"""In place of a partition: the row is about a table that a run has created."""


@dataclass(frozen=True, slots=True)
class Position:
    """A row of the table.

    Attributes:
        next_offset: everything before it is in the database, or was reported as errant.
        epoch: of the run that wrote last, or that took over.
        errant: offsets before `next_offset` of records that could not be written.
    """

    next_offset: int
    epoch: int
    errant: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Move:
    """What a transaction does to a topic-partition.

    Attributes:
        before: where the task has left the offset.
        after: the offset after the records of the transaction; not less than `before`.
    """

    before: int
    after: int


class OffsetsTable:
    """Reads and moves offsets. A caller begins and ends the transactions."""

    def __init__(self, database: Database, name: str, connector: str) -> None:
        """`name`: of the table, as in the configuration; `connector`: name of the connector."""
        self._database = database
        self._name = name
        self._connector = connector
        self._marks = Marks(connector, name)
        self.new: set[TopicPartition] = set()
        """Partitions that had no offset before."""
        self.seen: dict[TopicPartition, int] = {}
        """The offsets that `set_back` has found."""
        self.missing: set[TopicPartition] = set()
        """Partitions of which `set_back` has found none, although runs have left one."""

    @cached_property
    def _table(self) -> Table:
        from sqlalchemy import BigInteger, Column, Integer, MetaData, String, Table, Text
        from sqlalchemy.dialects.mysql import MEDIUMTEXT

        quoting = self._database.quoting
        where = quoting.parse(self._name)
        schema = where.schema or where.catalog
        return Table(
            quoting.element(where.table),
            MetaData(),
            Column("place", String(64), primary_key=True),
            Column("connector", String(255), nullable=False),
            Column("topic", String(255)),
            Column("kafka_partition", Integer),
            Column("topic_id", String(64)),
            Column("next_offset", BigInteger, nullable=False),
            Column("epoch", BigInteger, nullable=False),
            Column("errant", Text().with_variant(MEDIUMTEXT(), "mysql", "mariadb")),
            Column("run_id", String(64)),
            Column("updated_at_ms", BigInteger),
            schema=quoting.element(schema) if schema else None,
            mysql_charset="utf8mb4",
            mysql_engine="InnoDB",
        )

    # --- the driver -----------------------------------------------------------------------------------------------

    def ensure(self, connection: Connection) -> None:
        """Create the table if it is missing. `connection`: in `single_statements`.

        Raises:
            DatabaseError: it is there, and has no transactions, or is emptied after a crash.
            AccessError: the user may not; the suggestion has the statement for who may.
        """
        from sqlalchemy import inspect, select, text
        from sqlalchemy.schema import CreateTable

        with self._database.failures(f"look up the table {self._name}"):
            there = inspect(connection).has_table(self._table.name, schema=self._table.schema)
            if there:
                where = self._database.quoting.parse(self._name)
                # Not by the inspector, which does not read what MySQL says in ANSI_QUOTES.
                nothing = select(text("*")).select_from(self._table).where(text("1 = 0"))
                found = list(connection.execute(nothing).keys())
                columns = [column.name for column in self._table.columns]
                check_offsets_table(connection, where, self._database.quoting.table(where), columns, found)
            connection.rollback()
        if there:
            return
        statement = CreateTable(self._table)
        try:
            connection.execute(statement)
            connection.commit()
        except Exception as error:
            connection.rollback()
            if inspect(connection).has_table(self._table.name, schema=self._table.schema):
                connection.rollback()
                return  # Another connector has created it meanwhile.
            if kind_of(error) not in (Failure.PERMISSION, Failure.OTHER):
                with self._database.failures(f"create the table {self._name}"):
                    raise
            words = " ".join(str(statement.compile(dialect=connection.dialect)).split())
            raise AccessError(
                f"The offsets table {self._name} is missing in {self._database.settings.address.display}, and the user"
                " may not create it.",
                code="jdbc.offsets_table",
                suggestion=f"Ask an administrator of the database to execute: {words}; and to grant SELECT, INSERT,"
                f" UPDATE and DELETE. Or set {Keys.offsets_table}= (empty), and insert.mode=upsert so that no row is"
                " written twice.",
                config_path=Keys.offsets_table.name,
            ) from None

    def set_back(
        self,
        connection: Connection,
        topic_ids: Mapping[TopicPartition, str],
        last_run_id: str,
        left: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, int]:
        """The offsets of partitions that are before those that runs have left.

        A partition that no run has left an offset of, because they were of an earlier release: its offset, unless the
        last run is the one that has claimed the connector.

        Errant records before the offset are tried again: if their run died before its commit, a later one may have
        written them, into what is lost.

        Args:
            connection: in `single_statements`.
            topic_ids: the partitions, with the id of each topic.
            last_run_id: of the last run that has begun to copy.
            left: the offsets that runs had left in the table when they ended.
        """
        from sqlalchemy import inspect, select

        if not inspect(connection).has_table(self._table.name, schema=self._table.schema):
            self.missing = topic_ids.keys() & left.keys()
            return {}
        columns = self._table.c
        claimed = select(columns.run_id).where(columns.place == self._place("", -1, ""))
        is_as_claimed = connection.execute(claimed).scalar_one_or_none() == last_run_id
        found: dict[TopicPartition, int] = {}
        for partition, topic_id in topic_ids.items():
            if partition not in left and is_as_claimed:
                continue
            position = self.read(connection, partition, topic_id)
            if position is not None:
                self.seen[partition] = position.next_offset
            elif partition in left:
                self.missing.add(partition)
            if position is not None and (partition not in left or position.next_offset < left[partition]):
                found[partition] = min([position.next_offset, *position.errant])
        return found

    def claim(self, connection: Connection, run_id: str) -> int:
        """The next epoch of the connector, for a new run: earlier runs can no longer write where it has begun.

        It is also after the epochs of all its partitions, which are later if the database went back while a run wrote.

        Args:
            connection: in `single_statements`.
            run_id: of the run.
        """
        from sqlalchemy import func, select, update

        place, columns = self._place("", -1, ""), self._table.c
        latest = select(func.max(columns.epoch)).where(columns.connector == self._connector)
        for _ in range(_TRIES):
            with connection.begin():
                seen = connection.execute(select(columns.epoch).where(columns.place == place)).scalar_one_or_none()
            if seen is None:
                self._insert(connection, place, next_offset=0, epoch=0, run_id=run_id)
                continue
            with connection.begin():
                epoch = 1 + max(int(seen), int(connection.execute(latest).scalar_one_or_none() or 0))
            claiming = update(self._table).where((columns.place == place) & (columns.epoch == seen))
            values = {"epoch": epoch, "run_id": run_id, "updated_at_ms": _now_ms()}
            with connection.begin():
                if connection.execute(claiming.values(**values)).rowcount == 1:
                    return epoch
        raise self._busy()

    def alter(
        self,
        connection: Connection,
        offsets: Mapping[TopicPartition, int | None],
        topic_ids: Mapping[str, str],
    ) -> None:
        """Set offsets as an operator wants them; None forgets a partition.

        Only those of these topics: a connector of the same name on another Kafka cluster may share the table.

        It begins an epoch, as a run does: one that has planned with the old offsets can no longer write.
        """
        from sqlalchemy import delete, select, update

        columns = self._table.c
        claim = columns.place == self._place("", -1, "")
        with writing(connection):
            connection.execute(update(self._table).where(claim).values(epoch=columns.epoch + 1))
            epoch = connection.execute(select(columns.epoch).where(claim)).scalar_one_or_none() or 0
            for partition, offset in sorted(offsets.items()):
                # By the primary key: a search that changes rows would lock those of all connectors in MySQL.
                where = columns.place == self._place(*partition, topic_ids.get(partition.topic, ""))
                if offset is None:
                    connection.execute(delete(self._table).where(where))
                else:
                    moved = {"next_offset": offset, "errant": None, "epoch": epoch, "updated_at_ms": _now_ms()}
                    connection.execute(update(self._table).where(where).values(**moved))

    def untold(self, connection: Connection, run_id: str, told_by: str) -> list[str]:
        """Sentences about tables that earlier runs have created, and of which no report says so.

        They are those of this run from now on: if it does not commit either, the next one tells them.

        Args:
            connection: in `single_statements`.
            run_id: of the run that tells them.
            told_by: of the last run that has committed; its own are told, and dropped.
        """
        from sqlalchemy import delete, select, update

        columns = self._table.c
        created = (columns.connector == self._connector) & (columns.kafka_partition == _CREATED)
        found: list[str] = []
        chosen = select(columns.place, columns.errant, columns.run_id, columns.connector)
        for place, sentence, by, connector in connection.execute(chosen.where(created)).all():
            if connector != self._connector:
                continue  # A collation may take the names of two connectors for equal.
            if by == told_by:
                connection.execute(delete(self._table).where(columns.place == place))
            elif by != run_id:
                connection.execute(update(self._table).where(columns.place == place).values(run_id=run_id))
                found.append(str(sentence))
        return found

    # --- tasks ----------------------------------------------------------------------------------------------------

    def take_over(
        self, connection: Connection, partition: TopicPartition, topic_id: str, start: int, run: tuple[str, int]
    ) -> Position:
        """Where to resume a partition, which from now on only this run may write, or a later one.

        Args:
            connection: of the task, in `single_statements`.
            partition: topic and partition.
            topic_id: of the topic, or "": a topic that was created again begins at 0.
            start: where the run begins if nothing is known.
            run: id and epoch of the run.

        Raises:
            FencedError: a later run has taken over.
        """
        from sqlalchemy import update

        run_id, epoch = run
        place = self._place(*partition, topic_id)
        taking = update(self._table).where((self._table.c.place == place) & (self._table.c.epoch <= epoch))
        waits_briefly = True
        for _ in range(_TRIES):
            try:
                with limited_waiting(connection) if waits_briefly else nullcontext(), connection.begin():
                    connection.execute(taking.values(epoch=epoch, run_id=run_id))
            except Exception as error:
                if not waits_briefly or kind_of(error) is not Failure.CONFLICT:
                    raise
                # A transaction of an earlier run is over now. One of another attempt of this task is waited for.
                waits_briefly = self._marks.end_earlier(connection, epoch, place) > 0
                continue
            with connection.begin():
                found = self.read(connection, partition, topic_id)
            if found is not None and found.epoch == epoch:
                return found
            if found is not None and found.epoch > epoch:
                raise self.fenced(partition, found)
            identity = {"topic": partition.topic, "kafka_partition": partition.partition, "topic_id": topic_id}
            if not self._insert_of(connection, run, place, next_offset=start, **identity):
                raise self.fenced(partition, None)
            self.new.add(partition)
        raise self._busy()

    def created(self, connection: Connection, table: str, sentence: str, run: tuple[str, int]) -> None:
        """Keep the sentence about a table that was created, in case the run ends before its report.

        Args:
            connection: outside a transaction.
            table: that was created.
            sentence: see `untold`.
            run: id and epoch of the run.
        """
        from sqlalchemy import delete

        place = self._place(table, _CREATED, "")
        values = {"kafka_partition": _CREATED, "next_offset": 0, "errant": sentence, "run_id": run[0], "epoch": run[1]}
        with writing(connection):
            connection.execute(delete(self._table).where(self._table.c.place == place))
            connection.execute(self._new(place, values))

    def read(self, connection: Connection, partition: TopicPartition, topic_id: str) -> Position | None:
        """The row of a partition, or None."""
        from sqlalchemy import select

        columns = self._table.c
        chosen = select(columns.next_offset, columns.epoch, columns.errant)
        row = connection.execute(chosen.where(columns.place == self._place(*partition, topic_id))).one_or_none()
        if row is None:
            return None
        return Position(int(row[0]), int(row[1]), frozenset(json.loads(row[2] or "[]")))

    def mark(
        self, connection: Connection, partitions: Iterable[TopicPartition], topic_ids: Mapping[str, str], epoch: int
    ) -> None:
        """Mark the transaction that will move the offsets of partitions; see `Marks`."""
        self._marks.mark(connection, epoch, [self._place(*each, topic_ids.get(each.topic, "")) for each in partitions])

    def move(
        self, connection: Connection, partition: TopicPartition, topic_id: str, move: Move, run: tuple[str, int]
    ) -> bool:
        """Move an offset inside the transaction of its rows; False if it is not where this task has left it."""
        from sqlalchemy import update

        columns = self._table.c
        place = self._place(*partition, topic_id)
        where = (columns.place == place) & (columns.next_offset == move.before) & (columns.epoch == run[1])
        values = {"next_offset": move.after, "run_id": run[0], "updated_at_ms": _now_ms()}
        return bool(connection.execute(update(self._table).where(where).values(**values)).rowcount == 1)

    def store_errant(
        self, connection: Connection, partition: TopicPartition, topic_id: str, errant: Iterable[int]
    ) -> None:
        """Keep which records could not be written, inside the transaction that moves the offset past them."""
        from sqlalchemy import update

        text = json.dumps(sorted(errant), separators=(",", ":"))
        where = self._table.c.place == self._place(*partition, topic_id)
        connection.execute(update(self._table).where(where).values(errant=None if text == "[]" else text))

    def fenced(self, partition: TopicPartition, found: Position | None) -> FencedError:
        """The error of a task whose run was overtaken."""
        epoch = "gone" if found is None else f"in epoch {found.epoch}"
        return FencedError(
            f"A later run of {self._connector} writes {partition}, or its offsets were changed: its row in {self._name}"
            f" is {epoch}.",
            suggestion="Nothing of this transaction was written. The later run, or the next one, continues.",
        )

    # --- parts ----------------------------------------------------------------------------------------------------

    def _place(self, topic: str, partition: int, topic_id: str) -> str:
        parts = json.dumps([self._connector, topic, partition, topic_id])
        return hashlib.sha256(parts.encode()).hexdigest()

    def _insert(self, connection: Connection, place: str, **values: Any) -> None:
        try:
            with connection.begin():
                connection.execute(self._new(place, values))
        except Exception as error:
            if kind_of(error) is not Failure.CONSTRAINT:
                raise
            # Another task or run has inserted it: the caller looks again.

    def _insert_of(self, connection: Connection, run: tuple[str, int], place: str, **values: Any) -> bool:
        """Insert a row for a run, as `_insert`; False if the run's epoch is over.

        The connector's row is locked until then: whoever changes offsets waits, and takes the new row into account.
        """
        from sqlalchemy import select, update

        columns = self._table.c
        claim = columns.place == self._place("", -1, "")
        try:
            with writing(connection):
                connection.execute(update(self._table).where(claim).values(updated_at_ms=_now_ms()))
                epoch = connection.execute(select(columns.epoch).where(claim)).scalar_one_or_none()
                if epoch is not None and epoch != run[1]:  # None: no run has claimed it, so no run has planned.
                    return False
                connection.execute(self._new(place, {"epoch": run[1], "run_id": run[0], **values}))
        except Exception as error:
            if kind_of(error) is not Failure.CONSTRAINT:
                raise
        return True

    def _new(self, place: str, values: Mapping[str, Any]) -> Any:
        from sqlalchemy import insert

        return insert(self._table).values(place=place, connector=self._connector, updated_at_ms=_now_ms(), **values)

    def _busy(self) -> DatabaseError:
        return DatabaseError(
            f"A row of {self._name} appears and disappears all the time.",
            code="jdbc.offsets_table",
            suggestion="Another program deletes rows of this table; only this package may.",
            config_path=Keys.offsets_table.name,
        )


def writing(connection: Connection) -> Any:
    """A transaction that will write; ended by the `with` block."""
    transaction = connection.begin()
    if connection.dialect.name == "sqlite":
        # Python's sqlite3 begins a transaction late, and one that has read cannot always write.
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    return transaction


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
