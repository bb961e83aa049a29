"""What the author of a source writes: a `SourceConnector` and a `SourceTask`.

Source: org.apache.kafka.connect.source.{SourceConnector,SourceTask,SourceTaskContext,TransactionContext},
org.apache.kafka.connect.storage.OffsetStorageReader (KIP-26, KIP-618, KIP-875).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from airflow_connect.api.connector import Connector, ConnectorContext, Task

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.api.record import SourceRecord
    from airflow_connect.api.schema import Schema

SourcePartition = Mapping[str, Any]
"""Where records come from: `{"filename": "/var/log/syslog"}`. Flat; JSON's types."""

SourceOffset = Mapping[str, Any]
"""A position in a source partition: `{"position": 30}`. Flat; JSON's types."""

OffsetChanges = Iterable[tuple[SourcePartition, SourceOffset | None]]
"""New offsets of source partitions, None to delete one."""


class ExactlyOnceSupport(Enum):
    """Whether a source can be copied exactly once with a given configuration."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"


class RecordMetadata(NamedTuple):
    """Where a record went."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None


class OffsetReader(Protocol):
    """Reads the offsets that earlier runs have committed."""

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """The committed offset of a source partition, None when there is none."""

    def offsets(self, partitions: Iterable[SourcePartition]) -> list[SourceOffset | None]:
        """The committed offsets, in the order of `partitions`."""

    def committed(self) -> Iterable[tuple[SourcePartition, SourceOffset]]:
        """Every source partition of this connector that has an offset (beyond Connect's own reader, which must ask)."""


class TransactionContext(Protocol):
    """Lets a task say where transactions end (`transaction.boundary=connector`, KIP-618)."""

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """End the transaction after the batch that `poll` returns next, or after `record` of it."""

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """Discard the transaction's records, those of the next batch, or up to `record` of it, included.

        Their offsets count as committed, as in Kafka Connect: they are not read again.
        """


class SourceConnectorContext(ConnectorContext, Protocol):
    """What a source connector may ask of the run."""

    @property
    def offset_reader(self) -> OffsetReader:
        """Committed offsets."""

    @property
    def aws(self) -> Mapping[str, str]:
        """Credentials of an Airflow `aws` connection, or {}; what the configuration says counts before them."""

    @property
    def only_plans(self) -> bool:
        """Whether no task will run after `task_configs`: somebody looks at the plan, and nothing may be used up."""

    def note(self, sentence: str) -> None:
        """Put a complete sentence into the report of the run; the first of them are kept, each once."""


class SourceTaskContext(Protocol):
    """What a source task may ask of the run."""

    @property
    def config(self) -> Mapping[str, str]:
        """The configuration that `start` got."""

    @property
    def run_id(self) -> str:
        """Identity of the run."""

    @property
    def clock_ms(self) -> int:
        """The run's frozen clock, milliseconds since the epoch; what a task uses as its upper bound in time."""

    @property
    def offset_reader(self) -> OffsetReader:
        """Committed offsets, those of an earlier attempt of this task included."""

    @property
    def transaction(self) -> TransactionContext | None:
        """Transaction boundaries; None unless `transaction.boundary=connector`."""

    @property
    def aws(self) -> Mapping[str, str]:
        """Credentials of an Airflow `aws` connection, or {}; what the configuration says counts before them."""

    @property
    def records_left(self) -> int | None:
        """Records until `run.max.records` ends this task; None: no limit. More are copied too: no batch is cut."""

    def note(self, sentence: str) -> None:
        """Put a complete sentence into the report of the run; the first of them are kept, each once."""

    def skip_to(self, partition: SourcePartition, offset: SourceOffset) -> None:
        """Reading goes on at `offset` after what `poll` returns now, although no record is there (lines left out)."""

    def raise_error(self, error: Exception) -> None:
        """Fail the task with `error`, as soon as the method of the task that runs now has returned."""


class SourceTask(Task):
    """Reads records. One object per Spark task, used by one thread.

    The order of calls: `initialize`, `start`, `poll` any number of times with `commit_record` and `commit` in between,
    `stop`. `stop` always comes.
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
        """The next records, in order; None when there are none now.

        It may wait a little for records, but must return. `source_offset` of a record is where reading goes on after
        that record.

        Raises:
            RetriableError: it is called again, after a pause.
            Exception: anything else fails the task.
        """

    def has_ended(self) -> bool:
        """Whether every record before the upper bound was returned. Asked after each `poll`.

        A source that never says so is ended by the limits of the run (`run.idle.polls`, `run.max.seconds`).
        """
        return False

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        """A record is in Kafka; `metadata` None: a transformation dropped it, or an error in it was tolerated."""

    def commit(self) -> None:
        """Every record returned so far is committed, with its offset: the source may forget or delete it."""


@runtime_checkable
class ColumnarSourceTask(Protocol):
    """What a source task adds to take part in the columnar path. Optional."""

    def poll_columns(self) -> SourceColumns | None:
        """The next records in columns; None: `poll` is called instead."""


class SourceColumns(NamedTuple):
    """Consecutive records of one source partition and one topic, in columns.

    Attributes:
        topic: of all records.
        source_partition: of all records.
        source_offset: where reading goes on after the last record.
        key_schema, value_schema: None is schemaless.
        keys, values: Arrow arrays of equal length, laid out as airflow_connect.api.columns says; `keys` None: no keys.
        timestamps: int64 array of milliseconds since the epoch, or None.
        timestamps_are_now: they are the clock's, not the source's: the client may stamp records itself, a moment
            later, which is what lets them be sent without an object each. Transformations see `timestamps`.
    """

    topic: str
    source_partition: SourcePartition
    source_offset: SourceOffset
    key_schema: Schema | None
    keys: pa.Array[Any] | None
    value_schema: Schema | None
    values: pa.Array[Any]
    timestamps: pa.Array[Any] | None = None
    timestamps_are_now: bool = False


class SourceConnector(Connector):
    """A source: copies from somewhere to topics.

    Attributes:
        task_class: makes its tasks, without arguments.
    """

    task_class: ClassVar[type[SourceTask]]
    context: SourceConnectorContext

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """As `Connector.task_configs`; or none where there is nothing to read: then no Spark session is started."""
        return super().task_configs(max_tasks)

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport | None:
        """Whether this configuration can be copied exactly once; None: the connector does not say.

        It can if a task that starts from a committed offset returns the same records after it, none before it.
        """
        return None

    def can_define_transaction_boundaries(self, config: Mapping[str, str]) -> bool:
        """Whether tasks use `context.transaction` with this configuration (`transaction.boundary=connector`)."""
        return False

    def settle_offsets(self, committed: Iterable[tuple[SourcePartition, SourceOffset]]) -> OffsetChanges:
        """Offsets to rewrite while no task runs: after the last task of a run ended, and before the next one plans.

        For sources whose tasks keep offsets of parts of a source partition (ranges of one large file): when all parts
        are through, their offsets become one. Called after `start`; must be idempotent, because a run may die before
        or after it. The changes are written in one transaction that is fenced like the run.

        Args:
            committed: every offset of the connector.

        Returns:
            Pairs of a source partition and its new offset, None to delete it; () to leave everything as it is.
        """
        return ()

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Mapping[tuple[tuple[str, Any], ...], SourceOffset | None]
    ) -> bool:
        """Offsets are about to be set, or deleted (None), while no run is active (KIP-875).

        Args:
            config: the connector's configuration; the object was not started.
            offsets: by source partition; a partition is the sorted tuple of its items, because a dict cannot be a key.

        Returns:
            Whether the connector has looked at the request and is ready for it; False makes no promise.

        Raises:
            ConfigError: a partition or an offset is not one of this connector's.
        """
        return False
