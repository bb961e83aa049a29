"""The contract of a source: a `SourceConnector` and a `SourceTask`.

Source: org.apache.kafka.connect.source.{SourceConnector,SourceTask,SourceTaskContext,TransactionContext},
org.apache.kafka.connect.storage.OffsetStorageReader (KIP-26, KIP-618, KIP-875).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from airflow_connect.api.connector import Connector, ConnectorContext, Task

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.api.own_chain import RecordFailedError
    from airflow_connect.api.record import SourceRecord
    from airflow_connect.api.schema import Schema
    from airflow_connect.errors import ConnectError

SourcePartition = Mapping[str, Any]
"""Where records come from: `{"filename": "/var/log/syslog"}`. Flat; JSON's types."""

SourceOffset = Mapping[str, Any]
"""A position in a source partition: `{"position": 30}`. Flat; JSON's types."""

NO_OFFSET: SourceOffset = MappingProxyType({})
"""Of a record after which no offset moves: the offsets follow with `SourceTaskContext.skip_to`."""

OffsetChanges = Iterable[tuple[SourcePartition, SourceOffset | None]]
"""New offsets of source partitions, None to delete one."""


class ExactlyOnceSupport(Enum):
    """Whether a source supports exactly-once with a given configuration."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"


class RecordMetadata(NamedTuple):
    """Where a record was written."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None


class OffsetReader(Protocol):
    """Reads the offsets that earlier runs have committed."""

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """The committed offset of a source partition; None if there is none."""

    def offsets(self, partitions: Iterable[SourcePartition]) -> list[SourceOffset | None]:
        """The committed offsets, in the order of `partitions`."""

    def committed(self) -> Iterable[tuple[SourcePartition, SourceOffset]]:
        """Every source partition of this connector with an offset (an addition to Connect's own reader)."""


class TransactionContext(Protocol):
    """Lets a task decide where transactions end (`transaction.boundary=connector`, KIP-618)."""

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """End the transaction after the batch that `poll` returns next, or after `record` of it."""

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """Discard the transaction's records, those of the next batch, or up to `record` of it, included.

        Their offsets count as committed, as in Kafka Connect: they are not read again.
        """


class SourceConnectorContext(ConnectorContext, Protocol):
    """The run's services for a source connector."""

    @property
    def offset_reader(self) -> OffsetReader:
        """Committed offsets."""

    @property
    def aws(self) -> Mapping[str, str]:
        """Credentials of an Airflow `aws` connection, or {}; the configuration takes precedence over them."""

    @property
    def only_plans(self) -> bool:
        """Whether no task will run after `task_configs`: only a plan is shown, so no input may be consumed."""

    @property
    def tasks_ended(self) -> bool:
        """Whether `reconcile_offsets` is called because the tasks of a run have ended: nothing is planned after it."""

    @property
    def limits_reached(self) -> Collection[str]:
        """Keys of the limits (`run.max.records` and others) that have ended tasks of the run; empty before that."""

    @property
    def cluster_id(self) -> str:
        """Kafka's id of the cluster that records go to."""

    @property
    def admin_settings(self) -> Mapping[str, Any]:
        """Settings of an admin client of that cluster, which may hold secrets."""

    @property
    def kept(self) -> Mapping[str, Any]:
        """The document that the connector gave to `keep` in the last run that ended; {} if there is none."""

    def keep(self, document: Mapping[str, Any], *, at_once: bool = False) -> None:
        """Keep a document for the next run. Called in `task_configs`.

        Args:
            document: in JSON's types, with a version of its own.
            at_once: it takes effect before tasks run, even if the run dies. Otherwise it does when the run ends, so
                that a failed run keeps the earlier one: what a note of its report says is then said again.
        """

    def expect_parts(self, number: int, what: str) -> None:
        """Tell pages what the tasks have to copy, of which these tell how much is done. Called in `task_configs`.

        Args:
            number: how many parts.
            what: the words after it: `files of 2 partitions`.
        """

    def note(self, sentence: str) -> None:
        """Add a complete sentence to the run's report; the first ones are kept, without duplicates."""

    def leave_out(self, part: str, error: ConnectError) -> None:
        """No task reads a part of the source because of an error; the run copies the others, then fails.

        Args:
            part: within a sentence: `the table shop.public.orders`.
            error: the reason. Errors that a retry could resolve must not be passed here.
        """


class SourceTaskContext(Protocol):
    """The run's services for a source task."""

    @property
    def config(self) -> Mapping[str, str]:
        """The configuration that was passed to `start`."""

    @property
    def run_id(self) -> str:
        """Identifier of the run."""

    @property
    def clock_ms(self) -> int:
        """The run's frozen clock, milliseconds since the epoch; a task's upper bound in time."""

    @property
    def offset_reader(self) -> OffsetReader:
        """Committed offsets, including those of an earlier attempt of this task."""

    @property
    def transaction(self) -> TransactionContext | None:
        """Transaction boundaries; None unless `transaction.boundary=connector`."""

    @property
    def aws(self) -> Mapping[str, str]:
        """Credentials of an Airflow `aws` connection, or {}; the configuration takes precedence over them."""

    @property
    def uses_transactions(self) -> bool:
        """Whether records are written in transactions: each ends with a marker, which takes an offset of the topic."""

    @property
    def reader_settings(self) -> Mapping[str, Any]:
        """Settings of a client (librdkafka) that reads the topics that records go to."""

    @property
    def worker_converters(self) -> Mapping[str, str]:
        """Converters of keys and values that the worker sets, because the connector sets none, with their settings.

        Keys are those of a configuration, such as `value.converter.schemas.enable`. Values may be secrets.
        """

    @property
    def records_left(self) -> int | None:
        """Records until `run.max.records` ends this task; None: no limit.

        Extra records are copied too: batches are not cut.
        """

    def note(self, sentence: str) -> None:
        """Add a complete sentence to the run's report; the first ones are kept, without duplicates."""

    def parts_done(self, number: int) -> None:
        """Tell pages how many parts this task has copied so far; see `SourceConnectorContext.expect_parts`."""

    def count_dropped(self, number: int) -> None:
        """Count records that transformations of the task itself have dropped (`Connector.runs_chain`)."""

    def report_failed(self, record: SourceRecord, error: RecordFailedError) -> None:
        """Apply `errors.*` to a record that failed in a stage of the task itself, when its method returns.

        Args:
            record: names the place: topic, source partition and source offset.
            error: why.
        """

    def count(self, sentence: str, number: int) -> None:
        """Add to the number of a note in the run's report.

        Args:
            sentence: it ends with a colon, and the report has the sum after it.
            number: what is added.
        """

    def leave_out(self, part: str, error: ConnectError) -> None:
        """The task reads no more of a part of the source; the run copies the others, then fails.

        What the task has returned of the part is committed. See `SourceConnectorContext.leave_out`.
        """

    def skip_to(self, partition: SourcePartition, offset: SourceOffset) -> None:
        """Set the offset after the next batch of `poll`, although no record has it (for skipped input).

        It also counts if that `poll` then raises a `RetriableError` and is repeated.
        """

    def raise_error(self, error: Exception) -> None:
        """Fail the task with `error` as soon as the task's current method returns."""


class SourceTask(Task):
    """Reads records. One object per Spark task, used by one thread.

    The order of calls: `initialize`, `start`, `poll` any number of times with `commit_record` and `commit` in between,
    `stop`. `stop` is always called.
    """

    context: SourceTaskContext

    def initialize(self, context: SourceTaskContext) -> None:
        """Take the context; before `start`."""
        self.context = context

    @abstractmethod
    def start(self, config: Mapping[str, str]) -> None:
        """Begin: read the committed offsets, and freeze the upper bound of this run (file size, highest id, time)."""

    @abstractmethod
    def poll(self) -> Sequence[SourceRecord] | None:
        """The next records, in order; None if there are none now.

        It may wait briefly for records, but must return. `source_offset` of a record is where reading resumes after
        that record.

        Raises:
            RetriableError: it is called again, after a pause. Raise it before records count as returned: the next call
                must return them.
            Exception: anything else fails the task.
        """

    def has_ended(self) -> bool:
        """Whether every record before the upper bound has been returned. Called after each `poll`.

        A source that never returns True is ended by the limits of the run (`run.idle.polls`, `run.max.seconds`).
        """
        return False

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        """Called when a record is in Kafka; `metadata` None: it was dropped, or an error in it was tolerated."""

    def commit(self) -> None:
        """Called when every record returned so far is committed with its offset: the source may delete it."""


@runtime_checkable
class ColumnarSourceTask(Protocol):
    """Optional method of a source task for the columnar path."""

    def poll_columns(self) -> SourceColumns | None:
        """The next records in columns; None: `poll` is called instead."""


@runtime_checkable
class JoiningSourceTask(Protocol):
    """Optional method of a source task that needs several polls for one batch."""

    def continues_batch(self) -> bool:
        """Whether the next poll returns more of the same batch, which `transaction.boundary=poll` commits as a whole.

        Called after each poll. False after a poll that returned nothing. Batches must stay small: with
        `delivery.guarantee=at_most_once` the records of one are kept in memory.
        """


@runtime_checkable
class AtomicSourceTask(Protocol):
    """Optional method of a source task whose records are of several topics, but have their offsets together."""

    def is_inside_batch(self) -> bool:
        """Whether the offsets of what was returned are still to come, with the next poll.

        Called after each poll. Neither an interval nor a limit of the run ends a transaction there.
        """


@runtime_checkable
class CheckingSourceTask(Protocol):
    """Optional method of a source task that looks at where its records are in Kafka, before they become visible."""

    def before_commit(self, first: Mapping[TopicPartition, int]) -> None:
        """Called in each transaction that has records, when Kafka has all of them; an error aborts the transaction.

        Without transactions it is not called.

        Args:
            first: offset of the first record of the transaction in each partition, those of offsets topics as well.
        """


@runtime_checkable
class ExplainingSourceTask(Protocol):
    """Optional method of a source task that can say more about an error than what failed."""

    def explained(self, error: ConnectError) -> ConnectError:
        """The error to report instead of one with which the task has failed, or the same. Called before `stop`.

        Kafka does not say which record it has refused, for example.
        """


class SourceColumns(NamedTuple):
    """Consecutive records of one source partition and one topic, in columns.

    Attributes:
        topic: of all records.
        source_partition: of all records.
        source_offset: where reading resumes after the last record; None: the offsets follow with the rest of the
            batch (`AtomicSourceTask`, `SourceTaskContext.skip_to`).
        key_schema, value_schema: None is schemaless.
        keys, values: Arrow arrays of equal length, in the representation of airflow_connect.api.columns; `keys` None:
            no keys.
        timestamps: int64 array of milliseconds since the epoch, or None.
        timestamps_are_now: they come from the clock, not from the source. The client may then set them itself, a moment
            later. Transformations see `timestamps`.
        partition: of the topic, for all records; None lets the producer choose.
        headers: for each record a list of structs with the binary fields `key` and `value`, in order; None: no
            record has headers. In objects, a name that is not UTF-8 has lone surrogates (PEP 383). Values are bytes:
            schema BYTES, or optional BYTES where one is null.
    """

    topic: str
    source_partition: SourcePartition
    source_offset: SourceOffset | None
    key_schema: Schema | None
    keys: pa.Array[Any] | None
    value_schema: Schema | None
    values: pa.Array[Any]
    timestamps: pa.Array[Any] | None = None
    timestamps_are_now: bool = False
    partition: int | None = None
    headers: pa.ListArray[Any] | None = None


class SourceConnector(Connector):
    """A source: copies from somewhere to topics.

    Attributes:
        task_class: the class of its tasks, created without arguments.
        converters: class names by `key.converter`, `value.converter` and `header.converter`, for connectors whose
            records have one form only. They take precedence over the worker's converters, but not over those in the
            connector's configuration.
    """

    task_class: ClassVar[type[SourceTask]]
    converters: ClassVar[Mapping[str, str]] = {}
    context: SourceConnectorContext

    @classmethod
    def default_converters(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        """The converters of a configuration that sets none: `converters`, unless they depend on the configuration.

        Args:
            config: of the connector, which may not be checked yet.
        """
        return cls.converters

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Like `Connector.task_configs`, or none if there is nothing to read: then no Spark session is started.

        The object is stopped when the tasks have ended, so it can hold what they share.
        """
        return super().task_configs(max_tasks)

    def source_partitions(self, task_config: Mapping[str, str]) -> Iterable[SourcePartition] | None:
        """The source partitions whose offsets a task will read or write. Optional.

        It makes starting a task cheap if a connector has many source partitions: a task receives only the offsets of
            its own. A task that needs another offset still gets it, but must read the offsets topics, which can take
            seconds. Called after `task_configs`, on the same object, once for each task.

        Args:
            task_config: one of the results of `task_configs`.

        Returns:
            Source partitions, with or without an offset. Partitions that only the task can discover may be omitted
                while they have none. None: unknown; the task receives all offsets.
        """
        return None

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport | None:
        """Whether this configuration supports exactly-once; None: unknown.

        It does if a task that starts from a committed offset returns the same records after it, and none before it.
        """
        return None

    def can_define_transaction_boundaries(self, config: Mapping[str, str]) -> bool:
        """Whether tasks use `context.transaction` with this configuration (`transaction.boundary=connector`)."""
        return False

    def names_changed_topics(self, config: Mapping[str, str]) -> bool:
        """Whether runs tell if a topic to which earlier ones wrote was deleted, or created again.

        It lacks what was copied before, because the connector continues at its offsets. False for a source that
        notices this itself, or that copies everything in each run.
        """
        return True

    def names_changed_routes(self, config: Mapping[str, str]) -> bool:
        """Whether runs tell if transformations that choose the topics of records, or drop some, were changed.

        What was copied before is not sent again, because the connector continues at its offsets. False for a source
        that copies everything in each run, or again after such a change.
        """
        return self.names_changed_topics(config)

    def reconcile_offsets(self, committed: Iterable[tuple[SourcePartition, SourceOffset]]) -> OffsetChanges:
        """Offsets to rewrite while no task runs: after the last task of a run ended, and before the next one plans.

        For sources whose tasks keep offsets of parts of a source partition (ranges of one large file): when all parts
            are complete, their offsets are merged. Called after `start`; must be idempotent, because a run may die
            before or after it. The changes are written in one transaction that is fenced like the run.

        Args:
            committed: every offset of the connector.

        Returns:
            Pairs of a source partition and its new offset, None to delete it; () to change nothing.
        """
        return ()

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Mapping[tuple[tuple[str, Any], ...], SourceOffset | None]
    ) -> bool:
        """Called before offsets are set, or deleted (None), while no run is active (KIP-875).

        Args:
            config: the connector's configuration; the object was not started.
            offsets: by source partition; a partition is the sorted tuple of its items, because a dict cannot be a key.

        Returns:
            Whether the connector has checked and accepted the request; False makes no promise.

        Raises:
            ConfigError: a partition or an offset does not belong to this connector.
        """
        return False

    def check_altered(self, changes: OffsetChanges, committed: Iterable[tuple[SourcePartition, SourceOffset]]) -> None:
        """Called after `alter_offsets`, on the same object, with what is committed: are the changes without effect?

        For connectors that find the offset of one thing under several source partitions, of which one counts.

        Args:
            changes: that are asked for; None deletes.
            committed: every offset of the connector, before them.

        Raises:
            ConfigError: a change would have no effect, or uncover an offset that did not count; names what to write.
        """
