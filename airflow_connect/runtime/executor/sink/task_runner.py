"""Runs the sink task of one Spark task: Connect's order of calls, and a ledger of every record.

`SinkTaskRunner` connects the loop, which has one record or one batch at a time, with the task (api/sink.py), which
expects initialize, start, open, put, flush, close, stop. Every sink runs this way, built-in or third-party.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeGuard, TypeVar

from airflow_connect.api.columns import NullDroppingSinkTask, NullValues
from airflow_connect.api.config import plugins
from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.own_chain import ChainSinkTask
from airflow_connect.api.read_ahead import ReadAhead
from airflow_connect.api.sink import ColumnarSinkTask, Delivery, SinkConnector, SinkTask
from airflow_connect.errors import ConnectError, DataError, FatalDataError, OffsetError, TaskFailedError
from airflow_connect.kafka.clients.settings import MAX_POLL_RECORDS
from airflow_connect.runtime.executor.error_policy import put_failed
from airflow_connect.runtime.executor.sink.ledger import PartitionLedger, Unsettled
from airflow_connect.runtime.executor.sink.task_context import TaskContext
from airflow_connect.runtime.plain_documents import plain_document
from airflow_connect.runtime.reporting.exception_text import describe_exception
from airflow_connect.runtime.reporting.internal_errors import is_own_defect
from airflow_connect.runtime.reporting.notes import Notes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.api.sink_roles import ErrorHandling, RoleContext
    from airflow_connect.api.staging import StagedFile
    from airflow_connect.documents.run import PartitionReport

MAX_HELD_RECORDS = 20_000
"""Maximum number of records of paused partitions in memory, over all partitions of a task."""
RESUME_WITHIN_S = 10.0
"""How long a task may take to resume paused partitions when there is nothing left to read."""
_RESUME_POLL_S = 0.1

log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


def task_class_of(connector: type[SinkConnector]) -> type[SinkTask]:
    """The class of a connector's tasks; it may be named by its path."""
    named = connector.task_class
    found: type[SinkTask] = plugins.load_path(named) if isinstance(named, str) else named
    return found


def open_runner(
    connector: type[SinkConnector], context: RoleContext, ranges: Sequence[OffsetRange], max_poll_records: int
) -> SinkTaskRunner:
    """The started task of a connector, open for its partitions; see `SinkTaskRunner` for the arguments.

    Raises:
        ConnectError: what the task raised.
    """
    stages = connector.delivery is Delivery.STAGED
    runner = SinkTaskRunner(
        task_class_of(connector)(), context, ranges, stages=stages, max_poll_records=max_poll_records
    )
    try:
        runner.open()
    except BaseException:
        runner.abort()
        raise
    return runner


class LeftOut(NamedTuple):
    """An entry of the queue: a record that was dropped before it reached the task keeps its turn in the ledger."""

    partition: TopicPartition
    offset: int
    is_dead_letter: bool


class SinkTaskRunner:
    """Calls a sink task in Connect's order and keeps the ledgers of its partitions."""

    def __init__(
        self,
        task: SinkTask,
        context: RoleContext,
        ranges: Sequence[OffsetRange],
        *,
        stages: bool = True,
        max_poll_records: int = MAX_POLL_RECORDS,
    ) -> None:
        """Calls no method of the task yet.

        Args:
            task: the task.
            context: of its run.
            ranges: the ranges that it copies.
            stages: whether its connector can publish.
            max_poll_records: maximum number of records of one `put`.
        """
        if context.errors is None:
            raise TypeError("A sink task needs the error handling of its run.")
        self._task = task
        self._chain = task if isinstance(task, ChainSinkTask) else None
        self._name = type(task).__name__
        self._errors: ErrorHandling = context.errors
        self._context = TaskContext(self, context)
        self.ranges = tuple(ranges)
        self.notes = Notes()
        self._leaves_nothing = context.flush_on_end
        # Offsets are kept only if the sink may leave records that it was given.
        may_leave = not self._leaves_nothing and type(task).pre_commit is not SinkTask.pre_commit
        self._partitions = {
            r.topic_partition: PartitionLedger(r, r.start, Unsettled() if may_leave else None) for r in ranges
        }
        self._may_leave = may_leave
        self._must_flush: frozenset[TopicPartition] = frozenset()
        self._waiting: list[SinkRecord | LeftOut] = []
        self._staged: list[StagedFile] = []
        self._stages = stages
        self._max_poll_records = max_poll_records
        self._error: Exception | None = None
        self._is_complete = False
        self._is_ending = False
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

    def read_ranges(self) -> list[OffsetRange]:
        """The ranges to read: the planned ones without what the task has skipped in `open`."""
        starts = {tp: min(state.next_offset, state.planned.end) for tp, state in self._partitions.items()}
        return [replace(r, start=starts[r.topic_partition]) for r in self.ranges]

    def abort(self) -> None:
        """End the task after an error, and discard what it has written and staged. A failure to do so is logged."""
        if self._is_stopped:
            return
        if self.assignment:
            try:
                self._call("abort", self._task.abort, look_for_errors=False)
            except Exception as error:  # noqa: BLE001 (it must not hide why the task fails)
                log.warning("What the task has staged could not be discarded: %s", error)
        self._end(is_complete=False)

    def close(self) -> None:
        """End the task after success: the driver takes over what it has staged.

        Raises:
            Exception: `close` or `stop` of the task failed.
        """
        self._end(is_complete=True)

    def _end(self, *, is_complete: bool) -> None:
        """Call `close` and `stop` exactly once, whatever happened before."""
        if self._is_stopped:
            return
        self._is_stopped = True
        opened = self.assignment
        steps: list[tuple[str, Callable[[], None]]] = [("stop", self._task.stop)]
        if opened:
            steps.insert(0, ("close", lambda: self._task.close(sorted(opened))))
        failures: list[Exception] = []
        for method, step in steps:
            try:
                self._call(method, step, look_for_errors=False)
            except Exception as error:  # noqa: BLE001 (raised below, or only logged after an error)
                log.warning("%s", error)
                failures.append(error)
        self.assignment = frozenset()
        if failures and is_complete:
            raise failures[0]

    # --- what the loop calls --------------------------------------------------------------------------------------

    def put(self, entry: SinkRecord | LeftOut) -> None:
        """Accept one record; the task gets it along with others."""
        if len(self._waiting) >= self._max_poll_records:
            self.deliver()
        self._waiting.append(entry)

    def count_left_out(self, tp: TopicPartition, offset: int, *, is_dead_letter: bool) -> None:
        """Account for a record of `tp` that does not reach `put`: it is dropped, or goes to the dead letter queue."""
        self.put(LeftOut(tp, offset, is_dead_letter))

    @property
    def needs_keys(self) -> bool:
        """Whether `put_columns` uses keys."""
        return self._task.needs_keys

    @property
    def needs_headers(self) -> bool:
        """Whether `put_columns` uses headers."""
        return self._task.needs_headers

    @property
    def takes_whole_records(self) -> bool:
        """Whether the task gets messages as they are, without converters and transformations."""
        return self._task.takes_whole_records

    @property
    def read_ahead(self) -> ReadAhead:
        """How much the task holds of what it has not put yet."""
        return self._task.read_ahead

    @property
    def null_values(self) -> NullValues:
        """What the task does with records whose value is null."""
        task = self._task
        return task.null_values if isinstance(task, NullDroppingSinkTask) else NullValues.NEEDED

    @property
    def refused_columns(self) -> str:
        """Why `put_columns` has returned False, as words that follow "because of"."""
        return str(getattr(self._task, "refused_columns", "")) or "the sink"

    @property
    def columns_need_schemas(self) -> bool:
        """Whether `put_columns` never takes values without a schema."""
        return bool(getattr(self._task, "columns_need_schemas", False))

    def accepts_columns(self) -> bool:
        """Whether the task has a columnar form with its configuration."""
        accepts: Callable[[], bool] = getattr(self._task, "accepts_columns", lambda: True)
        return isinstance(self._task, ColumnarSinkTask) and self._call("accepts_columns", accepts)

    def put_columns(
        self, batches: Sequence[RecordColumns], read: NDArray[np.int64], nulls: NDArray[np.int64] | None = None
    ) -> bool:
        """Write the records of one batch in columns, all or nothing.

        Args:
            batches: at least one; see `ColumnarSinkTask.put_columns`. Records in none of them were filtered.
            read: int64[n], offsets of the batch that was read.
            nulls: int64[m], offsets of those that the task would only leave out, because they have no value.

        Returns:
            False, without writing or counting anything, if its records must be put one by one.
        """
        task = self._task
        self.deliver()  # Records that were put one by one before come first.
        tp = TopicPartition(batches[0].original_topic, batches[0].original_partition)
        state = self._partitions[tp]
        if not isinstance(task, ColumnarSinkTask) or not state.is_open:
            return False
        first = state.next_offset
        filled = [batch for batch in batches if len(batch)]
        if filled and int(read[0]) < first:  # The task has skipped some of them.
            filled = [batch.filter(batch.offsets >= first) for batch in filled]
            filled = [batch for batch in filled if len(batch)]
        if filled and not self._call("put_columns", lambda: task.put_columns(filled)):
            return False
        left_out = 0 if nulls is None else int((nulls >= first).sum())
        if left_out and isinstance(task, NullDroppingSinkTask):
            task.count_null_values(left_out)
        state.delivered_columns(read, self._without_dropped(offsets_of(filled)))
        if self._chain is not None:
            self._call("report_failed", self._chain.report_failed)
        self._after_put()
        return True

    def _without_dropped(self, delivered: NDArray[np.int64]) -> NDArray[np.int64]:
        """What is left of a batch after the transformations of the task itself."""
        if self._chain is None or not len(delivered):
            return delivered
        import numpy as np

        dropped = self._call("take_dropped", self._chain.take_dropped)
        return np.setdiff1d(delivered, dropped, assume_unique=True) if len(dropped) else delivered

    def complete(self, stopped: Collection[TopicPartition] = ()) -> None:
        """Everything was read: deliver the rest, flush, and determine what is left for the next run. Call it once.

        Args:
            stopped: partitions that ended early because of their dead letters. If nothing of one of them may be
                committed yet, the task must flush it; otherwise no run would make progress.
        """
        if self._is_complete:
            return
        self._is_complete = True
        self.deliver()
        self._resume_held()
        if self._may_leave:
            given = {tp: self._partitions[tp].next_offset for tp in stopped}
            safe = self._pre_commit(given) if given else {}
            self._must_flush = frozenset(tp for tp in given if safe[tp] <= self._partitions[tp].planned.start)
        self._is_ending = True
        self._flush()

    def report(self, tp: TopicPartition, position: int, *, end: int | None, reason: str) -> PartitionReport:
        """The report of a range. `end` and `reason`: where and why reading stopped early, else None and ""."""
        self.complete()
        state = self._partitions[tp]
        given = state.end_of(end)
        safe = self._pre_commit({tp: given})[tp]
        if safe < given and self.must_flush(tp):
            raise TaskFailedError(
                f"{self._name}.pre_commit returned the offset {safe} for {tp.topic}-{tp.partition}, although flush had "
                f"to leave nothing open before {given}.",
                code="task.plugin_failed",
                suggestion="Return a smaller offset only if context.must_flush(partition) is False.",
            )
        given_back = self._call("details", lambda: self._task.details(tp))
        details = plain_document(given_back, f"{self._name}.details")
        return state.report(position, end, reason, safe, details)

    def staged_files(self) -> list[StagedFile]:
        """What the task has staged."""
        self.complete()
        return self._staged

    # --- what the task asks for -----------------------------------------------------------------------------------

    def partition(self, partition: TopicPartition) -> PartitionLedger:
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
        state.take_back(record, is_dead_letter=self._errors.report_errant(record, error))

    def leave_out(self, record: SinkRecord, reason: Exception | None) -> None:
        """Deliberately drop a record that the task was given."""
        state = self.partition(TopicPartition(record.original_topic, record.original_partition))
        if record.offset not in state.reported:
            is_dead_letter = reason is not None and self._errors.leave_out(record, reason)
            state.take_back(record, is_dead_letter=is_dead_letter)

    def must_flush(self, partition: TopicPartition) -> bool:
        """Whether the current `flush` must not leave anything open."""
        return self._is_ending and (self._leaves_nothing or partition in self._must_flush)

    def fail_with(self, error: Exception) -> None:
        """Fail as soon as the task's method has returned; the first error counts."""
        self._error = self._error or error

    def skip_to(self, partition: TopicPartition, offset: int) -> None:
        """Continue a partition at `offset`."""
        state = self.partition(partition)
        if offset < state.next_offset:
            raise OffsetError(
                f"{self._name} requested {partition[0]}-{partition[1]}@{offset}, but this run continues at "
                f"{state.next_offset} and cannot go back.",
                suggestion="To get the same records again, raise RetriableError in put; to copy older ones again, set "
                "the offset of the connector's consumer group.",
            )
        state.next_offset = offset

    def deliver(self) -> None:
        """Give the task the waiting records, those of resumed partitions first, because they are older."""
        resumed = [r for s in self._partitions.values() if not s.is_paused for r in s.take_held()]
        waiting, self._waiting = [*resumed, *self._waiting], []
        for start in range(0, len(waiting), self._max_poll_records):
            # The task may pause or skip while it is given a part, so the following records are checked only then.
            records = [e for e in waiting[start : start + self._max_poll_records] if self._is_due(e)]
            if records:
                self._put_some(records)

    def _is_due(self, entry: SinkRecord | LeftOut) -> TypeGuard[SinkRecord]:
        """Whether the task gets this record now; accounts for it in any case."""
        if isinstance(entry, LeftOut):
            ledger = self._partitions[entry.partition]
            ledger.count_left_out(entry.offset, is_dead_letter=entry.is_dead_letter)
            return False
        state = self._partitions[TopicPartition(entry.original_topic, entry.original_partition)]
        if state.is_left() or state.is_skipped(entry):
            return False
        if state.is_paused or state.held:
            state.held.append(entry)
            if sum(len(s.held) for s in self._partitions.values()) > MAX_HELD_RECORDS:
                state.leave_held()
            return False
        # Counted before it is put, because the task may report it immediately.
        state.delivered(entry.offset)
        return True

    def _put_some(self, records: list[SinkRecord]) -> None:
        def put() -> None:
            self._task.put(records)

        self._call("put", (lambda: self._errors.repeat_put(put)) if self._task.repeats_put else put)
        self._after_put()

    def _after_put(self) -> None:
        if self.flush_is_due:
            self._flush()
        if self._may_leave:
            safe = self._pre_commit({tp: state.next_offset for tp, state in self._partitions.items()})
            for tp, offset in safe.items():
                self._partitions[tp].settle(offset)

    def _pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """The offsets that the task allows to commit, for partitions delivered completely up to `offsets`."""
        safe = self._call("pre_commit", lambda: self._task.pre_commit(offsets))
        for tp, given in offsets.items():
            start = self._partitions[tp].planned.start
            if not start <= safe.get(tp, -1) <= given:
                raise TaskFailedError(
                    f"{self._name}.pre_commit returned the offset {safe.get(tp)} for {tp.topic}-{tp.partition}; the "
                    f"task was given the records from {start} to {given}.",
                    code="task.plugin_failed",
                    suggestion="Return an offset between the two, inclusive, for each partition.",
                )
        return safe

    def _resume_held(self) -> None:
        """Give the task time to resume what it has paused; what stays paused is left for the next run."""
        deadline = time.monotonic() + RESUME_WITHIN_S
        while any(state.held for state in self._partitions.values()):
            self._put_some([])
            self.deliver()
            if time.monotonic() >= deadline:
                break
            if any(state.held for state in self._partitions.values()):
                time.sleep(_RESUME_POLL_S)
        for state in self._partitions.values():
            state.leave_held()

    def _flush(self) -> None:
        self.flush_is_due = False
        self._staged += self._call("flush", self._task.flush) or ()
        if self._staged and not self._stages:
            raise TaskFailedError(
                f"{self._name} staged {self._staged[0].key}, but its connector has no way to publish it.",
                code="task.plugin_failed",
                suggestion="Extend StagingSinkConnector, or return nothing from flush.",
            )

    def _call(self, method: str, call: Callable[[], _Result], *, look_for_errors: bool = True) -> _Result:
        """Call a method of the task; whatever goes wrong becomes an error with a sentence."""
        try:
            result = call()
        except FatalDataError:  # UnencodableError among them: the task starts over.
            raise
        except DataError as error:
            # As in Connect: it is unknown which record is the cause, and whether it was written.
            raise FatalDataError(
                error.message, code=error.code, suggestion=error.suggestion, config_path=error.config_path
            ) from error
        except (ConnectError, MemoryError):
            raise
        except Exception as error:
            failed = self._failed(method, error)
            if failed is error:
                raise
            raise failed from error
        if look_for_errors:
            self._errors.raise_pending_error()
            if self._error is not None:
                asked = self._error
                if isinstance(asked, ConnectError):
                    raise asked
                raise self._failed(method, asked) from asked
        return result

    def _failed(self, method: str, error: Exception) -> Exception:
        if is_own_defect(error):
            if method == "put" and self._task.writing is not None:
                error.add_note(f"while the record at {self._task.writing.where} was written")
            return error
        if method == "put" and self._task.writing is not None:
            return put_failed(self._task.writing.where, error)
        return TaskFailedError(
            f"{self._name}.{method} failed with {describe_exception(error)}.",
            code="task.plugin_failed",
            suggestion="No offset was committed. If it happens again, look for the cause in the connector.",
        )


def offsets_of(batches: Sequence[RecordColumns]) -> NDArray[np.int64]:
    """Offsets of all records of these batches, ascending."""
    import numpy as np

    if len(batches) == 1:
        return batches[0].offsets
    return np.sort(np.concatenate([batch.offsets for batch in batches])) if batches else np.empty(0, dtype=np.int64)
