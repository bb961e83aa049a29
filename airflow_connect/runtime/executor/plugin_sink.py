"""Executor role of every sink that is written as a `SinkConnector` and a `SinkTask` (api/sink.py).

`PluginSink` stands between the runtime, which hands over one record or one batch at a time and wants everything
accounted for, and the task, which wants Connect's order of calls: initialize, start, open, put, flush, close, stop.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeGuard, TypeVar

from airflow_connect.api import connector_keys, plugins
from airflow_connect.api.errors import ConnectError, DataError, FatalDataError, OffsetError, TaskFailedError
from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.sink import ColumnarSinkTask, SinkConnector, SinkTask, StagingSinkConnector
from airflow_connect.runtime.executor.plugin_partition import PluginPartition
from airflow_connect.runtime.raised import words_for

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.api.run import PartitionReport, StagedFile
    from airflow_connect.api.sink_roles import ErrorHandling, RoleContext

MAX_PUT_RECORDS = 500
"""Kafka Connect's default of `max.poll.records`."""
MAX_HELD_RECORDS = 20_000
"""Records of paused partitions that wait in memory, over all partitions of a task."""
RESUME_WITHIN_S = 10.0
"""How long a task that has paused partitions is given to resume them when there is nothing left to read."""
_RESUME_POLL_S = 0.1

log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


def open_task(context: RoleContext, ranges: Sequence[OffsetRange]) -> PluginSink:
    """A started task that is open for its partitions.

    Raises:
        ConnectError: what the task raised.
    """
    name = context.config[connector_keys.CONNECTOR_CLASS]
    connector: type[SinkConnector] = plugins.load_class(plugins.PluginKind.CONNECTOR, name)
    sink = PluginSink(connector.task_class(), context, ranges, stages=issubclass(connector, StagingSinkConnector))
    try:
        sink.open()
    except BaseException:
        sink.abort()
        raise
    return sink


class TaskContext:
    """`api.sink.SinkTaskContext` of one task."""

    def __init__(self, sink: PluginSink, role: RoleContext) -> None:
        """`sink`: whose task it is."""
        self._sink = sink
        self._role = role

    @property
    def config(self) -> Mapping[str, str]:
        """The configuration that `start` got."""
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
    def assignment(self) -> frozenset[TopicPartition]:
        """Partitions that are open now."""
        return self._sink.assignment

    @property
    def errant_record_reporter(self) -> TaskContext:
        """Takes records that cannot be written."""
        return self

    def report(self, record: SinkRecord, error: BaseException) -> None:
        """See `api.errant.ErrantRecordReporter`."""
        self._sink.report_errant(record, error)

    def pause(self, *partitions: TopicPartition) -> None:
        """Hold back records of these partitions until `resume`."""
        for partition in partitions:
            self._sink.partition(partition).is_paused = True

    def resume(self, *partitions: TopicPartition) -> None:
        """Go on with these partitions."""
        for partition in partitions:
            self._sink.partition(partition).is_paused = False

    def request_commit(self) -> None:
        """Have `flush` called when `put` returns."""
        self._sink.flush_is_due = True

    def raise_error(self, error: Exception) -> None:
        """Fail the task as soon as its method has returned."""
        self._sink.fail_with(error)

    def offset(self, partition: TopicPartition, offset: int) -> None:
        """Skip the records of a partition before `offset`."""
        self._sink.skip_to(partition, offset)


class LeftOut(NamedTuple):
    """Stands in the queue for a record that was left out before it came to the task."""

    partition: TopicPartition
    is_dead_letter: bool


class PluginSink:
    """Calls a sink task in Connect's order and keeps the counts straight. See `api.sink_roles.SinkWriter`."""

    needs_keys = True

    def __init__(
        self, task: SinkTask, context: RoleContext, ranges: Sequence[OffsetRange], *, stages: bool = True
    ) -> None:
        """Nothing of the task is called yet, except that it was made. `stages`: its connector can publish."""
        if context.errors is None:
            raise TypeError("A sink task needs the error handling of its run.")
        self._task = task
        self._name = type(task).__name__
        self._errors: ErrorHandling = context.errors
        self._context = TaskContext(self, context)
        self._partitions = {r.topic_partition: PluginPartition(r, r.start) for r in ranges}
        self._waiting: list[SinkRecord | LeftOut] = []
        self._staged: list[StagedFile] = []
        self._stages = stages
        self._error: Exception | None = None
        self._is_complete = False
        self._is_flushed = False
        self._is_stopped = False
        self.assignment: frozenset[TopicPartition] = frozenset()
        self.flush_is_due = False

    # --- the task's life ------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Start the task and open its partitions."""
        self._task.initialize(self._context)
        self._call("start", lambda: self._task.start(self._context.config))
        self.assignment = frozenset(self._partitions)
        self._call("open", lambda: self._task.open(sorted(self._partitions)))

    def abort(self) -> None:
        """End the task; `close` and `stop` come exactly once, whatever happened.

        Raises:
            ConnectError: `close` or `stop` failed after everything else went well. After an error it is only logged:
                the first error is the one to know.
        """
        if self._is_stopped:
            return
        self._is_stopped = True
        opened = self.assignment
        steps: list[tuple[str, Callable[[], None]]] = [("stop", self._task.stop)]
        if opened:
            steps.insert(0, ("close", lambda: self._task.close(sorted(opened))))
        failures = []
        for method, step in steps:
            try:
                self._call(method, step, look_for_errors=False)
            except ConnectError as error:
                log.warning("%s", error)
                failures.append(error)
        self.assignment = frozenset()
        if failures and self._is_flushed:
            raise failures[0]

    def close(self) -> None:
        """As `abort`: what the task has staged belongs to the driver, which makes it visible or discards it."""
        self.abort()

    # --- what the runtime calls -----------------------------------------------------------------------------------

    def put(self, record: SinkRecord) -> bool:
        """Take one record; the task gets it with others."""
        self._wait(record)
        return True

    def count_dead_letter(self, tp: TopicPartition, *, already_read: bool) -> None:
        """Account for a record of `tp` that goes to the dead letter queue; it never came to `put`."""
        self._wait(LeftOut(tp, is_dead_letter=True))

    def count_skipped(self, tp: TopicPartition) -> None:
        """Account for a record of `tp` that is dropped on purpose."""
        self._wait(LeftOut(tp, is_dead_letter=False))

    def accepts_columns(self) -> bool:
        """Whether the task has a columnar form."""
        return isinstance(self._task, ColumnarSinkTask)

    def put_columns(self, pieces: Sequence[RecordColumns], count: int) -> bool:
        """Write the records of one batch in columns, all or nothing.

        A batch of several schemas is not plain: the task could refuse the second piece when it has the first.
        """
        task = self._task
        self._deliver()  # What went record by record before comes first.
        state = self._partitions[TopicPartition(pieces[0].original_topic, pieces[0].original_partition)]
        filled = [piece for piece in pieces if len(piece)]
        if not isinstance(task, ColumnarSinkTask) or len(filled) > 1 or not state.is_open:
            return False
        left_out = count
        for batch in filled:
            first = state.next_offset
            wanted = batch if int(batch.offsets[0]) >= first else batch.filter(batch.offsets >= first)
            if len(wanted):
                if not self._call("put_columns", lambda: task.put_columns(wanted)):  # noqa: B023 (called at once)
                    return False
                state.delivered(int(wanted.offsets[-1]), len(wanted))
                left_out -= len(wanted)
        state.settled.filtered += left_out
        self._flush_if_due()
        return True

    def finish(self, tp: TopicPartition, position: int, *, end: int | None, reason: str) -> PartitionReport:
        """End a range. The first one ends all of them: everything was read."""
        self._complete()
        return self._partitions[tp].report(position, end, reason)

    def staged_files(self) -> list[StagedFile]:
        """What the task has staged."""
        self._complete()
        return self._staged

    # --- what the task asks for -----------------------------------------------------------------------------------

    def partition(self, partition: TopicPartition) -> PluginPartition:
        """State of a partition of the task."""
        found = self._partitions.get(TopicPartition(*partition))
        if found is None:
            mine = ", ".join(str(tp) for tp in sorted(self._partitions))
            raise OffsetError(
                f"{self._name} named the partition {partition[0]}-{partition[1]}, which it does not have.",
                suggestion=f"Its partitions are {mine}.",
            )
        return found

    def report_errant(self, record: SinkRecord, error: BaseException) -> None:
        """Apply `errors.*` to a record that the task was given and cannot write."""
        state = self.partition(TopicPartition(record.original_topic, record.original_partition))
        if record.offset in state.reported:
            return
        state.reported_errant(record, is_dead_letter=self._errors.report_errant(record, error))

    def fail_with(self, error: Exception) -> None:
        """Fail as soon as the task's method has returned; the first error counts."""
        self._error = self._error or error

    def skip_to(self, partition: TopicPartition, offset: int) -> None:
        """Go on with a partition at `offset`."""
        state = self.partition(partition)
        if offset < state.next_offset:
            raise OffsetError(
                f"{self._name} asked for {partition[0]}-{partition[1]}@{offset}, but this run goes on at "
                f"{state.next_offset} and cannot go back.",
                suggestion="To get the same records again raise RetriableError in put; to copy older records again set "
                "the offset of the connector's consumer group.",
            )
        state.next_offset = offset

    # --- parts ----------------------------------------------------------------------------------------------------

    def _wait(self, entry: SinkRecord | LeftOut) -> None:
        if len(self._waiting) >= MAX_PUT_RECORDS:
            self._deliver()
        self._waiting.append(entry)

    def _deliver(self) -> None:
        """Give the task what waits, resumed partitions first: theirs is older."""
        resumed = [r for s in self._partitions.values() if not s.is_paused for r in s.take_held()]
        waiting, self._waiting = [*resumed, *self._waiting], []
        for start in range(0, len(waiting), MAX_PUT_RECORDS):
            # The task may pause or skip while it is given a part: what follows is looked at only then.
            records = [e for e in waiting[start : start + MAX_PUT_RECORDS] if self._is_due(e)]
            if records:
                self._put_some(records)

    def _is_due(self, entry: SinkRecord | LeftOut) -> TypeGuard[SinkRecord]:
        """Whether the task gets this now; accounts for it in any case."""
        if isinstance(entry, LeftOut):
            self._partitions[entry.partition].count_left_out(is_dead_letter=entry.is_dead_letter)
            return False
        state = self._partitions[TopicPartition(entry.original_topic, entry.original_partition)]
        if state.is_left() or state.is_skipped(entry):
            return False
        if state.is_paused or state.held:
            state.held.append(entry)
            if sum(len(s.held) for s in self._partitions.values()) > MAX_HELD_RECORDS:
                state.leave_held()
            return False
        # Counted before it is put: the task may report it at once.
        state.delivered(entry.offset)
        return True

    def _put_some(self, records: list[SinkRecord]) -> None:
        def put() -> None:
            self._task.put(records)

        self._call("put", lambda: self._errors.repeat_put(put))
        self._flush_if_due()

    def _complete(self) -> None:
        """Deliver the rest, flush, and settle what is left for the next run; once."""
        if self._is_complete:
            return
        self._is_complete = True
        self._deliver()
        deadline = time.monotonic() + RESUME_WITHIN_S
        while any(state.held for state in self._partitions.values()):
            self._put_some([])
            self._deliver()
            if time.monotonic() >= deadline:
                break
            if any(state.held for state in self._partitions.values()):
                time.sleep(_RESUME_POLL_S)
        for state in self._partitions.values():
            state.leave_held()
        self._flush()

    def _flush_if_due(self) -> None:
        if self.flush_is_due:
            self._flush()

    def _flush(self) -> None:
        self.flush_is_due = False
        self._staged += self._call("flush", self._task.flush) or ()
        if self._staged and not self._stages:
            raise TaskFailedError(
                f"{self._name} staged {self._staged[0].key}, but its connector has no way to publish it.",
                code="task.plugin_failed",
                suggestion="Extend StagingSinkConnector, or return nothing from flush.",
            )
        self._is_flushed = self._is_complete

    def _call(self, method: str, call: Callable[[], _Result], *, look_for_errors: bool = True) -> _Result:
        """Call a method of the task; whatever goes wrong becomes an error with a sentence."""
        try:
            result = call()
        except FatalDataError:
            raise
        except DataError as error:
            # As in Connect: nobody knows which record it is about and whether it was written.
            raise FatalDataError(
                error.message, code=error.code, suggestion=error.suggestion, config_path=error.config_path
            ) from error
        except (ConnectError, MemoryError):
            raise
        except Exception as error:
            raise self._failed(method, error) from error
        if look_for_errors:
            self._errors.refuse_to_go_on()
            if self._error is not None:
                asked = self._error
                raise asked if isinstance(asked, ConnectError) else self._failed(method, asked) from asked
        return result

    def _failed(self, method: str, error: Exception) -> TaskFailedError:
        return TaskFailedError(
            f"{self._name}.{method} failed with {words_for(error)}.",
            code="task.plugin_failed",
            suggestion="No offset was moved. If it happens again, look for the cause in the connector.",
        )
