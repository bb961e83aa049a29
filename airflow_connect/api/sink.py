"""What the author of a sink writes: a `SinkConnector`, which the driver uses, and a `SinkTask`, which executors use.

Source: org.apache.kafka.connect.sink.{SinkConnector,SinkTask,SinkTaskContext} (KIP-26, KIP-610, KIP-875). What is
different in a bounded run stands at each method.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from airflow_connect.api.connector import Connector, Task
from airflow_connect.api.staging import LeftOver, Outcome

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.errant import ErrantRecordReporter
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.api.run import StagedFile


class Delivery(Enum):
    """How the output of a sink becomes visible, and so what a crash between output and offsets does."""

    STAGED = "staged"
    """Tasks stage, the driver publishes from a manifest: exactly once. Needs a `StagingSinkConnector`."""
    IDEMPOTENT = "idempotent"
    """Writing a record again changes nothing, because its topic, partition and offset are stored with it or are its
    key: exactly once in effect. Records of a run that failed may be visible before the run that commits them."""
    AT_LEAST_ONCE = "at_least_once"
    """A crash makes the next run write records again. Runs say so."""


class SinkTaskContext(Protocol):
    """What a sink task may ask of the run. Call it from the thread that calls the task."""

    @property
    def config(self) -> Mapping[str, str]:
        """The configuration that `start` got."""

    @property
    def run_id(self) -> str:
        """Identity of the run, unique for ever, safe in file names. A file that was lost is staged under it again."""

    @property
    def clock_ms(self) -> int:
        """The run's frozen clock, milliseconds since the epoch: equal for all tasks, attempts and repetitions."""

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """Partitions that are open now."""

    @property
    def errant_record_reporter(self) -> ErrantRecordReporter:
        """Takes records that cannot be written. Unlike Connect's it is always there."""

    def pause(self, *partitions: TopicPartition) -> None:
        """Hold back records of these partitions until `resume`.

        They wait in memory, a bounded number of them, and `put([])` is called before the run ends, so that the task
        can resume. What is held back then stays for the next run: its offsets are not committed.
        """

    def resume(self, *partitions: TopicPartition) -> None:
        """Go on with these partitions, at the next `put`, in order and without a gap."""

    def request_commit(self) -> None:
        """Have `flush` called when `put` returns, and not only at the end. Offsets move when the run commits."""

    def raise_error(self, error: Exception) -> None:
        """Fail the task with `error`, as soon as the method of the task that runs now has returned."""

    def offset(self, partition: TopicPartition, offset: int) -> None:
        """Skip the records of a partition before `offset`: the sink has them already. Mostly called from `open`.

        Raises:
            OffsetError: `offset` lies before records that were delivered or the run was planned to begin at. A run
                cannot go back: raise RetriableError in `put` to get the same records again, and set the offsets of
                the consumer group to copy older ones again.
        """


class SinkTask(Task):
    """Writes records. One object per Spark task, used by one thread.

    The order of calls, which is Connect's: `initialize`, `start`, `open`, `put` any number of times, `flush`, `close`,
    `stop`. After an error the rest is left out, except that `close` follows every `open`, and that `stop` always comes,
    exactly once, also when `start` failed. What was not flushed by then is to be discarded.
    """

    context: SinkTaskContext

    def initialize(self, context: SinkTaskContext) -> None:
        """Take the context; before `start`."""
        self.context = context

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Get ready for records of these partitions: all that the task will see. Called once."""

    @abstractmethod
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Write records, or keep them until `flush`. At most 500, of any of the open partitions, each in offset order.

        The list may be empty. `record.original_topic`, `original_partition` and `offset` say where a record is from,
        even when a transformation has renamed its topic.

        Raises:
            RetriableError: nothing is wrong with the records. The same list comes again, after a pause, for as long
                as `errors.retry.timeout` says.
            Exception: anything else fails the task, whatever `errors.tolerance` says. A single record that cannot be
                written goes to `context.errant_record_reporter`.
        """

    def flush(self) -> Sequence[StagedFile]:
        """Make everything that was put durable.

        Returns:
            What was staged since the last call, for a `StagingSinkConnector`; else nothing. A staged file holds
            records of one original partition, whole and countable: the audit compares its `start`, `end` and
            `records` with what was put.
        """
        return ()

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """No more records of these partitions come. Comes after `flush`, or after an error instead of it."""


@runtime_checkable
class ColumnarSinkTask(Protocol):
    """What a sink task adds to take part in the columnar path. Optional."""

    def put_columns(self, batch: RecordColumns) -> bool:
        """Write a batch of converted records of one partition in columns; equal to `put` of the same records.

        The columns hold keys and values, not headers: a sink that stores headers has no columnar form.

        Returns:
            False, with nothing written, when the batch is not plain: its records then come to `put`. A batch with a
            record for the errant record reporter is not plain.
        """


class SinkConnector(Connector):
    """A sink: copies topics to somewhere.

    Attributes:
        task_class: makes its tasks, without arguments.
        delivery: what the sink can promise; decides which `delivery.guarantee` a run may have.
        task_role, driver_role: dotted paths of the adapters between this class and the runtime. Sinks with a
            book-keeping of their own name their own; see api/sink_roles.py.
    """

    task_class: ClassVar[type[SinkTask]]
    delivery: ClassVar[Delivery] = Delivery.AT_LEAST_ONCE
    task_role: ClassVar[str] = "airflow_connect.runtime.executor.plugin_sink:open_task"
    driver_role: ClassVar[str] = "airflow_connect.runtime.driver.plugin_driver:open_driver"

    @classmethod
    def delivery_for(cls, config: Mapping[str, str]) -> Delivery:
        """What the sink can promise with this configuration: `delivery`, where no key changes it."""
        return cls.delivery

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Offsets of the consumer group are about to be set (an offset) or deleted (None), while no run is active.

        Bring what the sink itself keeps about offsets in line with it. Called on a new object, without `start`; must
        be idempotent (KIP-875).

        Returns:
            Whether the sink has looked at the request and is ready for it; False makes no promise.

        Raises:
            ConfigError: the sink cannot go on from there.
        """
        return False


class StagingSinkConnector(SinkConnector):
    """A sink whose tasks stage what nobody can see, and whose connector makes it visible, on the driver only.

    `publish`, `abort` and `list_staged` come after `start`. All three are idempotent: a run that died is rolled
    forward by the next one, and a run that was taken for dead may still be about.
    """

    delivery: ClassVar[Delivery] = Delivery.STAGED

    @classmethod
    def store_name(cls, config: Mapping[str, str]) -> str:
        """Where this configuration publishes, for messages, without secrets: `s3://bucket`.

        A run whose configuration has another name than the one that staged files leaves those alone. By default every
        key of `config_def` counts that is no secret.
        """
        secrets = cls.config_def.secret_names
        own = sorted(name for name in config if name in cls.config_def.keys and name not in secrets)
        return f"{cls.__name__}({', '.join(f'{name}={config[name]}' for name in own)})"

    def preflight(self) -> None:
        """Look whether the store can be reached and written to; called before anything is copied.

        Raises:
            AccessError, UnavailableError, ConfigError: it cannot, with what is missing.
        """

    @abstractmethod
    def publish(self, files: Sequence[StagedFile]) -> Mapping[str, Outcome]:
        """Make staged files visible, in this order or in parallel; returns key -> outcome for each.

        A file that is there already counts only if it is this one, recognised by more than its name.

        Raises:
            PublishConflictError: something else stands under a key.
            UnavailableError: the store did not answer; a later run goes on.
        """

    @abstractmethod
    def abort(self, files: Iterable[StagedFile | LeftOver]) -> int:
        """Discard staged files that were not published; returns how many existed. Those that are gone are no error."""

    @abstractmethod
    def list_staged(self) -> Iterable[LeftOver]:
        """Everything that any run of this connector (its `name`) has staged, and that is not published.

        The runtime aborts what belongs to no open manifest. What another connector staged must not be in it.
        """
