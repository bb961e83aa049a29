"""The contract of a sink: a `SinkConnector`, which the driver uses, and a `SinkTask`, which executors use.

Source: org.apache.kafka.connect.sink.{SinkConnector,SinkTask,SinkTaskContext} (KIP-26, KIP-610, KIP-875). Each
method documents what is different in a bounded run.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from airflow_connect.api.connector import Connector, ConnectorContext, Task
from airflow_connect.api.own_offsets import OwnOffsets
from airflow_connect.api.publishing import ALL_LISTED, ConnectorPublisher, LeftoverPattern, Publisher
from airflow_connect.api.read_ahead import ReadAhead
from airflow_connect.api.sink_state import PlannedState, StateAfter
from airflow_connect.api.staging import LeftOver, Outcome

if TYPE_CHECKING:
    from airflow_connect.api.cluster_facts import ClusterFacts, TopicChange
    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.errant import ErrantRecordReporter
    from airflow_connect.api.offsets import OffsetRange, TopicPartition
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.api.sink_roles import RoleContext, SinkGroup, StartJvm
    from airflow_connect.api.sink_state import CopiedRun, PlannedRun
    from airflow_connect.api.staging import StagedFile
    from airflow_connect.documents.run import PublishedRun
    from airflow_connect.documents.run_tables import TableCommit


class Delivery(Enum):
    """How the output of a sink becomes visible, and therefore what a crash between output and offsets causes."""

    STAGED = "staged"
    """Tasks stage, the driver publishes from a manifest: exactly once. Needs a `StagingSinkConnector`."""
    IDEMPOTENT = "idempotent"
    """Writing a record again changes nothing, because its topic, partition and offset are stored with it or are its
    key: exactly once in effect. Records of a run that failed may be visible before the run that commits them."""
    TRANSACTIONAL = "transactional"
    """The target stores offsets in the same transaction as the output, and `open` tells where to resume
    (`SinkTaskContext.offset`): exactly once. Records of a run that failed may be visible before a run commits them."""
    AT_LEAST_ONCE = "at_least_once"
    """After a crash the next run writes records again. The plan and the report of a run say so."""


class SinkTaskContext(Protocol):
    """The run's services for a sink task. Call it from the thread that calls the task."""

    @property
    def config(self) -> Mapping[str, str]:
        """The configuration that was passed to `start`."""

    @property
    def run_id(self) -> str:
        """Identifier of the run: globally unique, and safe in file names. A lost file is staged again under it."""

    @property
    def clock_ms(self) -> int:
        """The run's frozen clock, milliseconds since the epoch: equal for all tasks, attempts and repetitions."""

    @property
    def run(self) -> RoleContext:
        """Everything that the run has passed to this task."""

    @property
    def ranges(self) -> Sequence[OffsetRange]:
        """The records that the task must copy: one half-open range per partition."""

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The open partitions."""

    @property
    def errant_record_reporter(self) -> ErrantRecordReporter:
        """Accepts records that cannot be written. Unlike in Kafka Connect, it is never None."""

    def leave_out(self, record: SinkRecord, reason: Exception | None = None) -> None:
        """Drop a record of the current `put` on purpose: it counts as filtered.

        With a reason it goes to the dead letter queue instead, if there is one, regardless of `errors.tolerance`.
        """

    def note(self, sentence: str) -> None:
        """Add a complete sentence to the run's report; the first ones are kept, without duplicates."""

    def must_flush(self, partition: TopicPartition) -> bool:
        """Whether the next `flush` must leave nothing open, because the run leaves no records to the next run.

        True under `flush.on.end=true`, and if the run would otherwise make no progress. Only if it is False may
        `pre_commit` return a smaller offset.
        """

    def pause(self, *partitions: TopicPartition) -> None:
        """Hold back records of these partitions until `resume`.

        A bounded number of them waits in memory. Before the run ends, `put([])` is called so that the task can resume.
        Records that are still held back then are left for the next run: their offsets are not committed.
        """

    def resume(self, *partitions: TopicPartition) -> None:
        """Continue with these partitions at the next `put`, in order and without a gap."""

    def request_commit(self) -> None:
        """Request a `flush` when `put` returns, not only at the end. Offsets move when the run commits."""

    def raise_error(self, error: Exception) -> None:
        """Fail the task with `error` as soon as the task's current method returns."""

    def offset(self, partition: TopicPartition, offset: int) -> None:
        """Skip the records of a partition before `offset`: the sink has them already.

        If called from `open`, these records are not even read. A target that stores offsets in its own transactions
        resumes in this way.

        Raises:
            OffsetError: `offset` is before the planned start of the run, or before records that were delivered. A run
                cannot go back: raise RetriableError in `put` to get the same records again, and set the offsets of
                the consumer group to copy older ones again.
        """


class SinkTask(Task):
    """Writes records. One object per Spark task, used by one thread.

    The order of calls, which is Connect's: `initialize`, `start`, `open`, `put` any number of times, `flush`, `close`,
    `stop`. After an error the remaining calls are skipped, but `close` still follows every `open`, and `stop` is always
    called exactly once, even if `start` failed. Discard what was not flushed by then.
    """

    needs_keys: ClassVar[bool] = True  # whether `put_columns` uses keys
    needs_headers: ClassVar[bool] = False  # whether `put_columns` uses `RecordColumns.headers`
    takes_whole_records: bool = False  # after `open`: whether each value is the whole message (`api.whole_record`)
    repeats_put: ClassVar[bool] = True
    """Whether `put` may get the same list again after a RetriableError. If False, such an error ends the task."""
    read_ahead: ClassVar[ReadAhead] = ReadAhead()
    """How far the task is read ahead. Settings of the consumer take precedence."""
    writing: SinkRecord | None = None
    """The record that `put` is writing, if the task sets it: errors other than ConnectError then name the record."""

    context: SinkTaskContext

    def initialize(self, context: SinkTaskContext) -> None:
        """Take the context; before `start`."""
        self.context = context

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Prepare for records of these partitions: all that the task will get. Called once."""

    @abstractmethod
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Write records, or keep them until `flush`. At most 500, of any of the open partitions, each in offset order.

        The list may be empty. `record.original_topic`, `original_partition` and `offset` tell where a record is from,
        even if a transformation has renamed its topic.

        Raises:
            RetriableError: the records are fine, but cannot be written now. `put` gets the same list again after a
                pause, until `errors.retry.timeout` has passed.
            Exception: anything else fails the task, regardless of `errors.tolerance`. Report a single record that
                cannot be written to `context.errant_record_reporter`.
        """

    def flush(self) -> Sequence[StagedFile]:
        """Make everything that was put durable.

        Returns:
            What was staged since the last call, for a `StagingSinkConnector`; otherwise nothing. A staged file holds
            complete records of one original partition: the audit compares its `start`, `end` and `records` with what
            was put.
        """
        return ()

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """The offsets that the run may commit, given that everything before `offsets` was put.

        By default `offsets` itself. A sink that keeps records in files that are not full yet returns the offset of the
        first record that is in no staged file. The records from there on are left for the next run. Called between
        calls of `put`, and after the last `flush` (SinkTask.preCommit, KIP-89).
        """
        return offsets

    def details(self, partition: TopicPartition) -> Mapping[str, Any]:
        """What the connector's `state_after` is to know of a partition: a JSON document; called after `pre_commit`."""
        return {}

    def abort(self) -> None:
        """The attempt has failed: discard what was put and what was staged. Called before `close`.

        It must not raise if output cannot be discarded: later runs find it through the connector's `list_staged`.
        """

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """No more records of these partitions follow. Called after `flush`, or after an error in its place."""


@runtime_checkable
class ColumnarSinkTask(Protocol):
    """Optional methods of a sink task for the columnar path.

    A task may also have `accepts_columns() -> bool`, called after `open`: whether it supports columns with its
    configuration; `refused_columns`, a noun for reports: why all it gets is put one by one; and
    `columns_need_schemas`, true if that is so for values without a schema: their batches are then not tried in parts.
    """

    def put_columns(self, batches: Sequence[RecordColumns]) -> bool:
        """Write converted records of one partition in columns, all or nothing; equal to `put` of the same records.

        Args:
            batches: at least one, in the order of the log. Each has one topic and one schema.

        Returns:
            True; or False, with nothing written, if the records must be put one by one, as one for the reporter must.
        """


@dataclass(frozen=True, slots=True)
class Splitting:
    """How the ranges of one partition may be divided among tasks; see `SinkConnector.splitting`.

    Attributes:
        refused: why they may not, as a clause that can follow a colon; "" if they may.
        multiple_of: every range but the last one of a partition has a multiple of so many offsets, at least 1.
    """

    refused: str = ""
    multiple_of: int = 1


class SinkConnectorContext(ConnectorContext, Protocol):
    """The run's services for a sink connector."""

    @property
    def aws(self) -> Mapping[str, str]:
        """Credentials of an Airflow `aws` connection, or {}; the configuration takes precedence over them."""

    @property
    def cluster(self) -> ClusterFacts:
        """What Kafka knows about the topics, asked when it is used."""

    @property
    def group(self) -> SinkGroup:
        """The consumer group of the connector, and settings of its clients; opens no connection."""

    @property
    def overwrite(self) -> bool:
        """Whether publishing replaces a foreign file with the same key: for every guarantee except `exactly_once`."""

    @property
    def start_jvm(self) -> StartJvm:
        """Starts a JVM next to the driver, for sinks that need Java's clients there."""


class SinkConnector(OwnOffsets, Connector):
    """A sink: copies topics to somewhere.

    The driver creates one object per configuration of a run. It calls `initialize`, `check_config`, `start` on first
    use, then what it needs, and `stop` once, at the end. Methods that a class does not override are not called, and an
    object that is not needed is not started.

    Attributes:
        task_class: the class of its tasks, created without arguments; or its dotted path (`package.module:Class`), so
            that the driver does not import what only executors need.
        delivery: what the sink can promise; determines which `delivery.guarantee` a run may have.
    """

    task_class: ClassVar[type[SinkTask] | str]
    delivery: ClassVar[Delivery] = Delivery.AT_LEAST_ONCE
    context: SinkConnectorContext

    @classmethod
    def delivery_for(cls, config: Mapping[str, str]) -> Delivery:
        """What the sink can promise with this configuration: `delivery`, unless a key changes it."""
        return cls.delivery

    @classmethod
    def replaces_by_key(cls, config: Mapping[str, str], *, same_offsets: bool = False) -> bool:
        """Whether a replayed record, at its old offset or as a new copy, replaces what a newer one of its key wrote."""
        return False

    @classmethod
    def notes_on_config(cls, config: Mapping[str, str]) -> Sequence[str]:
        """Sentences for the plan and the report of each run with this configuration; opens no connections."""
        return ()

    def check_config(self, config: Mapping[str, str]) -> None:
        """Find problems that `validate` cannot. Called after `initialize`, often without `start`; opens no connections.

        Raises:
            ConfigError: what is wrong; `config_path` names the key.
        """

    def first_offsets(self, partitions: Collection[TopicPartition], *, apply: bool) -> Mapping[TopicPartition, int]:
        """First offset that is not in the sink yet, for those of `partitions` that an earlier connector has copied.

        Called for partitions that no run of this connector has committed: once in its life, and again for new
        partitions. The result takes precedence over the group's offset.

        Args:
            partitions: at least one.
            apply: whether to finish what the other connector has begun; False if only a plan is shown.

        Raises:
            ConnectError: the sink refused, or did not answer.
        """
        return {}

    def kept_offsets(
        self, topic_ids: Mapping[TopicPartition, str], last_run_id: str, kept: Mapping[str, Any]
    ) -> Mapping[TopicPartition, int]:
        """Offsets in the target, of a sink that stores them with its records, if the target was set back.

        A restored database lacks records that were committed to Kafka: the run writes them again, or names them if
        another client has set the group's offset. Called if there is something to copy after a run with offsets.

        Args:
            topic_ids: the partitions, with the id of each topic ("": the brokers have none).
            last_run_id, kept: the last run that has begun to copy; the document of the last commit, or {}.

        Returns:
            The offsets that the target has, of the partitions that it had further when a run ended.

        Raises:
            ConnectError: the target refused, or did not answer.
        """
        return {}

    def notes_on_changes(self, changes: Sequence[TopicChange]) -> Sequence[str]:
        """What it means for the target that topics got partitions, or were created again: sentences for the report.

        Called once for a change, at the plan, also if there is nothing to copy. `changes`: at least one.
        """
        return ()

    def plan_state(self, run: PlannedRun) -> PlannedState:
        """What tasks are to know of earlier runs, as a document of the connector's own; see `api.sink_state`.

        Called once by every run, also if it has nothing to copy; then it may not need the sink. All that depends on
        something outside `run` must be decided here, because the result is frozen: files that are copied again must
        come out equal.

        Raises:
            ConnectError: the sink refused, did not answer, or holds something that cannot be read.
        """
        return PlannedState()

    def state_after(self, run: CopiedRun) -> StateAfter:
        """What the commit of a run keeps for the next one.

        Called once the tasks are done and audited, and by a run that has nothing to copy; such a run keeps the result
        only if something is complete. It is not called by a run that recovers a manifest: the result is in it. A pure
        function of its argument and the configuration.
        """
        return StateAfter(run.planned.kept)

    def deletes_by_null(self) -> bool:
        """Whether a record without value deletes what was written of its key: Kafka may remove it before it is read."""
        return False

    def splitting(self) -> Splitting:
        """Whether several tasks may copy one partition at the same time. By default they may not.

        A sink that allows it gets the same partition in `open` of several tasks, each with a range of its own
        (`SinkTaskContext.ranges`). A task gets the records of its range in offset order; between ranges there is no
        order. So a sink whose output depends on the order of all records of a partition, such as one that updates rows
        by key, must not allow it. Called at the plan, after `start`, only if it would make the run shorter.
        """
        return Splitting(f"{type(self).__name__} does not allow it")

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None], topic_ids: Mapping[str, str]
    ) -> bool:
        """Called before offsets of the consumer group are set, or deleted (None), while no run is active (KIP-875).

        Also by a run that replaces one beyond the end of the log. The sink updates its own record of offsets, if it has
        one, by the ids of topics: other clusters have the same names. On a new object, not started; idempotent.

        Returns:
            Whether the sink has checked and accepted the request; False makes no promise.

        Raises:
            ConfigError: the sink cannot continue from there.
        """
        return False


class StagingSinkConnector(SinkConnector):
    """A sink whose tasks stage invisible output, and whose connector makes it visible, on the driver only.

    A class defines `publish`, `abort` and `list_staged`, or else `publisher`. They are called after `start`, and must
    be idempotent: the next run rolls a dead run forward, and a run that was taken for dead may still be running.
    """

    delivery: ClassVar[Delivery] = Delivery.STAGED

    @property
    def counted_role(self) -> str:
        """Role of the staged files that hold one entry per written record: the audit counts those (`value`, `key`)."""
        return "value"

    def store_name(self, config: Mapping[str, str]) -> str:
        """Where this configuration publishes, without secrets: `s3://bucket`. Also called before `start`.

        Appears in messages. A run leaves staged files alone if they were staged under another store name. By default
        the name consists of all keys of `config_def` that are not secret.
        """
        secrets = self.config_def.secret_names
        own = sorted(name for name in config if name in self.config_def.keys and name not in secrets)
        return f"{type(self).__name__}({', '.join(f'{name}={config[name]}' for name in own)})"

    def publisher(self) -> Publisher:
        """What makes staged files visible; sends no request yet. The default one calls the methods below.

        Override it for what those cannot do: progress while files are published, or a listing by prefix. The driver
        calls it once, and closes the publisher before `stop`.
        """
        return ConnectorPublisher(self)

    def leftovers(self, ranges: Sequence[OffsetRange]) -> LeftoverPattern:
        """How to recognise files staged by a run over `ranges`. If the run dies, only such files are swept.

        By default everything that the publisher lists, which must then belong to this connector.
        """
        return LeftoverPattern(self.store_name(self.config), (), ALL_LISTED, tuple(ranges))

    def prepare(self, files: Sequence[StagedFile]) -> Sequence[StagedFile]:
        """The last step before the manifest: returns the same files, with the tokens that it is to hold.

        Called if there are files. Raises ConnectError if nothing can be published.
        """
        return files

    def published(self, run: PublishedRun, publisher: Publisher) -> Sequence[str]:
        """Do what must follow publishing: every file of a manifest is visible, its offsets are not committed yet.

        Also called for a recovered manifest, on an object with that run's own configuration. Must be idempotent: after
        a crash before the commit it is called again. Under `at_most_once` the commit comes first, and a crash can
        prevent this call.

        Args:
            run: what is visible.
            publisher: the one that published it, possibly of another object with the same store; do not close it.

        Returns:
            Notes for the report.

        Raises:
            ConnectError: it failed. Offsets do not move, and the next run publishes and calls this method again.
        """
        return ()

    def table_commits(self, run: PublishedRun) -> Sequence[TableCommit]:
        """The snapshots that a run adds to tables of a lake: a pure function of its argument and the configuration."""
        return ()

    def preflight(self) -> None:
        """Check that the store can be reached and written to. Called before anything is copied.

        Raises:
            AccessError, UnavailableError, ConfigError: with what is missing.
        """

    @classmethod
    def uses_current(cls, key: str, staged: Mapping[str, str]) -> bool:
        """Whether a run that recovers a manifest uses its own value of a key, because no staged file depends on it.

        All other keys keep the values with which the files were staged, which tell what is where. Secrets and
        references are always resolved again.

        Args:
            key: of the connector's configuration.
            staged: the configuration of the run that staged, without secrets, references as written.
        """
        return False

    def publish(self, files: Sequence[StagedFile]) -> Mapping[str, Outcome]:
        """Make staged files visible, in this order or in parallel; returns key -> outcome for each.

        A file that already exists counts as published only if it is the same file, recognised by more than its name.

        Raises:
            PublishConflictError: a key holds something else.
            NothingPublishedError: none is visible, and none can ever be; a recovering run then copies again.
            UnavailableError: the store did not answer; a later run continues.
        """
        raise NotImplementedError("A class without `publisher` defines `publish`.")

    def abort(self, files: Iterable[StagedFile | LeftOver]) -> int:
        """Discard staged files that were not published; returns how many existed. A missing file is not an error."""
        raise NotImplementedError("A class without `publisher` defines `abort`.")

    def list_staged(self) -> Iterable[LeftOver]:
        """Everything that any run of this connector (its `name`) has staged and that is not published.

        The runtime aborts what belongs to no open manifest. Files of another connector must not be included.
        """
        raise NotImplementedError("A class without `publisher` defines `list_staged`.")
