"""What the runtime itself asks of a sink: one role on executors, one on the driver.

This is the runtime's inner interface, for sinks that do their own book-keeping, as those that write files do. Authors
of connectors write a `SinkConnector` and a `SinkTask` (api/sink.py); adapters in runtime/ give those both roles.

A connector class names its roles as dotted paths (`module:callable`), so that code on executors never imports what
publishes, and an empty run imports neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.api.run import PartitionReport, StagedFile


class ErrorHandling(Protocol):
    """What a sink with an interface of its own needs of `errors.*`."""

    def report_errant(self, record: SinkRecord, error: BaseException) -> bool:
        """Take note of a record that the sink cannot write; whether the dead letter queue gets it, else it is left out.

        Raises:
            ConnectError: the task must end, as docs of `api.errant` say.
        """

    def refuse_to_go_on(self) -> None:
        """Raise again what `report_errant` raised, for a sink that swallowed it."""

    def repeat_put(self, put: Callable[[], None]) -> None:
        """Call `put` again, with pauses, for as long as it raises an error that may pass.

        Raises:
            Exception: the last error, or the first that does not pass.
        """


class Jvm(Protocol):
    """A JVM beside the driver that Python speaks to with py4j."""

    gateway: Any
    """py4j's `JavaGateway`."""

    @property
    def is_running(self) -> bool:
        """Whether it can be asked anything."""

    def stop(self) -> None:
        """End it; idempotent."""


StartJvm = Callable[[Sequence[str], Sequence[str]], Jvm]
"""Starts a JVM with Hadoop's client on its class path: folders before the jars, more options -> the JVM.

Raises AccessError where Java, py4j or Hadoop are missing, UnavailableError where it does not start.
"""


@dataclass(frozen=True, slots=True)
class RoleContext:
    """What a role of a sink is opened with.

    Attributes:
        config: the connector's configuration, resolved; may hold secrets.
        aws: credentials of an Airflow connection, or {}.
        run_id: identity of the run; goes into object metadata.
        now_ms: the run's frozen clock.
        flush_on_end: see design section 9.
        overwrite: an object that stands under a file's key is replaced (guarantees other than exactly-once).
        schedule_expired: a tick of `rotate.schedule.interval.ms` lies between the last run and this one.
        late_before: per consumed topic, milliseconds since the epoch: records for directories of time that end then or
            earlier are late, because those directories were announced as complete.
        schemas_before: schema of the last file of each topic-partition, as JsonConverter writes it (`null` for none),
            where the sink goes on with it; frozen with the plan.
        task_config: what the connector's `task_configs` said for this task; {} on the driver.
        errors: applies `errors.*`; None on the driver.
        start_jvm: for sinks that need Java's clients on the driver; None on executors.
        check_each: whether `put` must find out for each record alone that it can be encoded. Tasks begin without: an
            encoder that is given many records at once is far quicker. When it raises UnencodableError the task starts
            over with this, so that only the record that is to blame is left out.
    """

    config: Mapping[str, str] = field(repr=False)
    aws: Mapping[str, str] = field(default_factory=dict, repr=False)
    run_id: str = ""
    now_ms: int = 0
    flush_on_end: bool = True
    schedule_expired: bool = False
    overwrite: bool = False
    late_before: Mapping[str, int] = field(default_factory=dict)
    schemas_before: Mapping[TopicPartition, str] = field(default_factory=dict)
    task_config: Mapping[str, str] = field(default_factory=dict, repr=False)
    errors: ErrorHandling | None = None
    check_each: bool = False
    start_jvm: StartJvm | None = None


class SinkWriter(Protocol):
    """Executor role: gets records in offset order per topic-partition and stages files.

    `task_role` of the connector class: `open_task(context: RoleContext, ranges: Sequence[OffsetRange]) -> SinkWriter`.
    """

    needs_keys: bool
    """Whether `put_columns` looks at keys."""

    def put(self, record: SinkRecord) -> bool:
        """Write one record; False when it must be reported to the dead letter queue (an errant record).

        Raises:
            DataError: the record cannot be written.
        """

    def count_dead_letter(self, tp: TopicPartition, *, already_read: bool) -> None:
        """Account for a record of `tp` that goes to the dead letter queue; `already_read`: `put` has counted it."""

    def count_skipped(self, tp: TopicPartition) -> None:
        """Account for a record of `tp` that could not be converted and is tolerated (`errors.tolerance=all`)."""

    def accepts_columns(self) -> bool:
        """Whether `put_columns` may be used: this configuration of the sink has a columnar form."""

    def put_columns(self, pieces: Sequence[RecordColumns], count: int) -> bool:
        """Write the records of one batch of one topic-partition, all or nothing; equal to `put` of each.

        Args:
            pieces: at least one, in the order of the log; each has one schema and one topic, and may be empty.
            count: records that were read. Those that are in no piece were dropped by a transformation: they count as
                if `count_skipped` were called between their neighbours (`RecordColumns.indexes` run from 0 to `count`).

        Returns:
            False, with nothing written or counted, when the batch is not plain: its records are then put one by one.
        """

    def finish(self, tp: TopicPartition, position: int, *, end: int | None, reason: str) -> PartitionReport:
        """End a range. `end` and `reason`: where and why reading stopped early, else None and ""."""

    def staged_files(self) -> list[StagedFile]:
        """Wait until everything staged is on the server and return it."""

    def abort(self) -> None:
        """Give up: discard every file of the task, also those that were staged, and release everything; idempotent.

        Called after an error. It must not raise for a file that cannot be discarded: the next run sweeps it.
        """

    def close(self) -> None:
        """Release threads and connections after `staged_files` has returned; what was staged stays. Idempotent."""
