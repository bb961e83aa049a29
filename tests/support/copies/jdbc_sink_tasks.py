"""Tasks of the JDBC sink without Kafka: records in, rows and reports out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.record import KafkaRecord, SinkRecord
from airflow_connect.api.schema import Schema
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.connectors.jdbc.sink.connector import JdbcSinkConnector
from airflow_connect.connectors.jdbc.sink.task import JdbcSinkTask
from airflow_connect.documents.run import PartitionReport
from airflow_connect.errors import ConnectError
from airflow_connect.runtime.executor.sink.task_runner import SinkTaskRunner
from tests.support.servers.databases import Database

TOPIC = "orders"
LAST = 1_000_000


class Errors:
    """`errors.tolerance`: keeps what is reported, or refuses it."""

    def __init__(self, *, tolerates: bool) -> None:
        self.tolerates = tolerates
        self.letters: list[tuple[int, str]] = []

    def report_errant(self, record: SinkRecord, error: BaseException) -> bool:
        if not self.tolerates:
            assert isinstance(error, ConnectError)
            raise error
        self.letters.append((record.offset, str(error)))
        return True

    def leave_out(self, record: SinkRecord, reason: Exception) -> bool:
        return False

    def raise_pending_error(self) -> None:
        """Nothing is swallowed."""

    def repeat_put(self, put: Callable[[], None]) -> None:
        put()


def written(database: Database) -> list[int]:
    """Column `n` of the table `orders`."""
    return [n for (n,) in database.rows("SELECT n FROM orders ORDER BY n")]


def stored(database: Database) -> tuple[Any, ...]:
    """The one row of the offsets table: next offset, and offsets of errant records."""
    (row,) = database.rows("SELECT next_offset, errant FROM airflow_connect_offsets WHERE topic IS NOT NULL")
    return tuple(row)


def losing_commit(database: Database, lost: list[str], *, takes_effect: bool) -> Callable[[Any], None]:
    """A listener for SQLAlchemy's event `commit`: the first one that has written rows loses its connection.

    Args:
        lost: gets an entry when that happens.
        takes_effect: whether the transaction is committed nevertheless.
    """
    identify = {"postgresql": "SELECT pg_backend_pid()", "mysql": "SELECT CONNECTION_ID()"}[database.dialect]

    def before_commit(connection: Any) -> None:
        cursor = connection.connection.driver_connection.cursor()
        cursor.execute("SELECT COUNT(*) FROM orders")
        if lost or cursor.fetchone()[0] == 0:
            return
        lost.append("yes")
        cursor.execute(identify)
        number = cursor.fetchone()[0]
        if takes_effect:
            connection.connection.driver_connection.commit()
            cursor.execute("SELECT 1")  # the driver then has a transaction to commit
        database.end_session(number)

    return before_commit


def records(*values: Any, first: int = 0, keys: Sequence[Any] | None = None, **more: Any) -> list[SinkRecord]:
    """Records of partition 0 with consecutive offsets."""
    return [record(first + n, value, key=None if keys is None else keys[n], **more) for n, value in enumerate(values)]


def record(
    offset: int,
    value: Any,
    *,
    key: Any = None,
    schema: Schema | None = None,
    key_schema: Schema | None = None,
    topic: str = TOPIC,
    partition: int = 0,
) -> SinkRecord:
    """One record."""
    return SinkRecord(
        topic=topic, partition=partition, offset=offset, key=key, key_schema=key_schema, value=value,
        value_schema=schema, consumed=KafkaRecord(topic, partition, offset, None, b"{}"),
    )  # fmt: skip


class SinkRun:
    """A run of the sink over partition 0 of a topic: the driver's part, and tasks."""

    def __init__(self, database: Database, name: str = "sink", *, start: int = 0, **config: str) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self.config: dict[str, str] = {
            "name": name,
            "connector.class": "JdbcSink",
            "topics": TOPIC,
            "connection.url": database.jdbc_url,
            "retry.backoff.ms": "50",
            "connection.backoff.ms": "50",
            "max.retries": "3",
            **settings,
        }
        self.start = start
        self.errors = Errors(tolerates=self.config.get("errors.tolerance") == "all")
        self._configs: Sequence[Mapping[str, str]] | None = None

    def claim(self) -> SinkRun:
        """What the driver does before tasks start."""
        connector = JdbcSinkConnector()
        connector.initialize(_Driver())
        connector.start(self.config)
        self._configs = connector.task_configs(1)
        return self

    def open(
        self,
        topic_id: str = "",
        partitions: Sequence[int] = (0,),
        *,
        end: int = LAST,
        kind: type[SinkTaskRunner] = SinkTaskRunner,
    ) -> SinkTaskRunner:
        """A task, open for its partitions."""
        if self._configs is None:
            self.claim()
        assert self._configs is not None
        context = RoleContext(
            self.config, run_id="run", errors=self.errors, topic_ids={TOPIC: topic_id}, task_config=self._configs[0]
        )
        runner = kind(JdbcSinkTask(), context, [OffsetRange(TOPIC, number, self.start, end) for number in partitions])
        try:
            runner.open()
        except BaseException:
            runner.abort()
            raise
        return runner

    def write(self, rows: Sequence[SinkRecord], topic_id: str = "") -> PartitionReport:
        """Write records by a task of their own; those before its resume offset are not even given to it."""
        runner = self.open(topic_id)
        try:
            return give(runner, rows)
        finally:
            runner.abort()


def give(runner: SinkTaskRunner, rows: Sequence[SinkRecord]) -> PartitionReport:
    """Put records into an open task, and end it."""
    put(runner, rows)
    report = runner.report(TopicPartition(TOPIC, 0), LAST, end=None, reason="")
    runner.close()
    return report


def put(runner: SinkTaskRunner, rows: Sequence[SinkRecord]) -> None:
    """Put records into an open task, as a reader that skips what the task has skipped."""
    starts = {r.topic_partition: r.start for r in runner.read_ranges()}
    for row in rows:
        if row.offset >= starts[TopicPartition(row.original_topic, row.original_partition)]:
            runner.put(row)


class _Driver:
    run_id = "run"
