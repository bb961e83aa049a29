"""The context of a sink task: what it can query and request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_connect.api.offsets import OffsetRange, TopicPartition
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.api.sink_roles import RoleContext
    from airflow_connect.runtime.executor.sink.task_runner import SinkTaskRunner


class TaskContext:
    """`api.sink.SinkTaskContext` of one task."""

    def __init__(self, runner: SinkTaskRunner, role: RoleContext) -> None:
        """`runner`: the task's runner."""
        self._runner = runner
        self._role = role

    @property
    def config(self) -> Mapping[str, str]:
        """The configuration that was passed to `start`."""
        return self._role.task_config or self._role.config

    @property
    def run_id(self) -> str:
        """Identity of the run."""
        return self._role.run_id

    @property
    def clock_ms(self) -> int:
        """The run's frozen clock, milliseconds since the epoch."""
        return self._role.now_ms

    @property
    def run(self) -> RoleContext:
        """Everything that the run provides to this task."""
        return self._role

    @property
    def ranges(self) -> Sequence[OffsetRange]:
        """The ranges that the task copies."""
        return self._runner.ranges

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """Partitions that are currently open."""
        return self._runner.assignment

    @property
    def errant_record_reporter(self) -> TaskContext:
        """The reporter for records that cannot be written."""
        return self

    def report(self, record: SinkRecord, error: BaseException) -> None:
        """See `api.errant.ErrantRecordReporter`."""
        self._runner.report_errant(record, error)

    def leave_out(self, record: SinkRecord, reason: Exception | None = None) -> None:
        """Deliberately drop a record of the current `put`."""
        self._runner.leave_out(record, reason)

    def note(self, sentence: str) -> None:
        """Add a sentence to the report."""
        self._runner.notes.add(sentence)

    def must_flush(self, partition: TopicPartition) -> bool:
        """Whether the current `flush` must not leave anything open."""
        return self._runner.must_flush(partition)

    def pause(self, *partitions: TopicPartition) -> None:
        """Hold back records of these partitions until `resume`."""
        for partition in partitions:
            self._runner.partition(partition).is_paused = True

    def resume(self, *partitions: TopicPartition) -> None:
        """Continue with these partitions."""
        for partition in partitions:
            self._runner.partition(partition).is_paused = False

    def request_commit(self) -> None:
        """Request a `flush` after `put` returns."""
        self._runner.flush_is_due = True

    def raise_error(self, error: Exception) -> None:
        """Fail the task as soon as its method has returned."""
        self._runner.fail_with(error)

    def offset(self, partition: TopicPartition, offset: int) -> None:
        """Skip the records of a partition before `offset`."""
        self._runner.skip_to(partition, offset)
