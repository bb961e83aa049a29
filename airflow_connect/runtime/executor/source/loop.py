"""The hot path of a source task: poll, transform, convert, send, and end transactions where they end.

Source: org.apache.kafka.connect.runtime.{AbstractWorkerSourceTask,ExactlyOnceWorkerSourceTask} (KIP-618). Two
differences: the offset also moves on for a record that a transformation drops or whose error is tolerated; and a run
ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_connect.api.source import (
    NO_OFFSET,
    AtomicSourceTask,
    CheckingSourceTask,
    ColumnarSourceTask,
    JoiningSourceTask,
    RecordMetadata,
    SourceTask,
)
from airflow_connect.config.keys import source as source_keys
from airflow_connect.config.keys.sink import SinkKeys
from airflow_connect.documents.source_run import SourceTaskReport
from airflow_connect.errors import ConnectError, RetriableError, TaskFailedError
from airflow_connect.kafka.writing.produced import ProducedColumns
from airflow_connect.retrying import AtDeadline, Backoff, Retry
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.executor.converting import ConversionError
from airflow_connect.runtime.executor.error_policy import Failure
from airflow_connect.runtime.executor.source.columns import SourceColumnConverter, records_of
from airflow_connect.runtime.reporting.exception_text import describe_exception

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.api.record import SourceRecord
    from airflow_connect.api.source import SourceColumns
    from airflow_connect.errors import DataError
    from airflow_connect.exactly_once.task_transaction import TaskDelivery
    from airflow_connect.kafka.admin.topic_creation import TopicCreation
    from airflow_connect.kafka.writing.produced import ProducedRecord
    from airflow_connect.kafka.writing.refused_records import Delivered, Refused
    from airflow_connect.runtime.executor.error_policy import ErrorPolicy
    from airflow_connect.runtime.executor.java_batches import SourceBatches
    from airflow_connect.runtime.executor.progress import ProgressSender
    from airflow_connect.runtime.executor.source.columns import ColumnMessages
    from airflow_connect.runtime.executor.source.context import SourceContext
    from airflow_connect.runtime.executor.source.converting import SourceRecordConverter
    from airflow_connect.runtime.executor.source.offsets import TaskOffsets

IDLE_POLLS = 3
IDLE_PAUSE_S = 0.1
"""Minimum time between two polls without a result: a source that does not wait must not use a whole core."""
POLL_RETRY_S = 60.0
"""How long a poll that fails for a temporary reason is repeated, unless errors.retry.timeout is longer."""
POLL_BACKOFF = Backoff(0.3, longest_s=10.0)

KAFKA_PRODUCE = "KAFKA_PRODUCE"
SENDER = "org.apache.kafka.connect.runtime.WorkerSourceTask"
"""Stage and class under which Connect logs a record that its producer refused."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class LoopParts:
    """The objects that the loop uses; the caller closes them."""

    context: SourceContext
    offsets: TaskOffsets
    converter: SourceRecordConverter
    delivery: TaskDelivery
    topics: TopicCreation
    policy: ErrorPolicy
    progress: ProgressSender


@dataclass(frozen=True, slots=True)
class LoopRules:
    """When transactions and the task end.

    Attributes:
        boundary: `poll`, `interval` or `connector`.
        interval_s: time between two commits with `interval`.
        idle_polls: None: no such end.
        max_records, max_bytes, max_seconds: 0: no limit.
        poll_retry_s: how long a failing poll is repeated.
        columnar: whether batches may be processed in columns.
        skips_refused: whether a record that Kafka refuses because of its content is skipped. Such records must be
            identified, so batches are not processed in columns.
    """

    boundary: str
    interval_s: float = 0.0
    idle_polls: int | None = None
    max_records: int = 0
    max_bytes: int = 0
    max_seconds: float = 0.0
    poll_retry_s: float = POLL_RETRY_S
    columnar: bool = True
    skips_refused: bool = False


def idle_polls_of(task: type[SourceTask], configured: int | None) -> int | None:
    """`run.idle.polls`, or the default for the class: no limit if it reports its end."""
    if configured is not None:
        return configured
    return None if task.has_ended is not SourceTask.has_ended else IDLE_POLLS


class SourceLoop:
    """Polls one started task until it ends."""

    def __init__(self, task: SourceTask, parts: LoopParts, rules: LoopRules) -> None:
        """`task`: started."""
        self._task = task
        self._parts = parts
        self._rules = rules
        self._calls_commit_record = type(task).commit_record is not SourceTask.commit_record
        # Asked once: a protocol is compared method by method, which a poll of a small batch would notice.
        self._checks = isinstance(task, CheckingSourceTask)
        self._joining = task if isinstance(task, JoiningSourceTask) else None
        self._atomic = task if isinstance(task, AtomicSourceTask) else None
        self._columnar = task if isinstance(task, ColumnarSourceTask) else None
        self._batches = _batches_of(parts)
        by_record = self._calls_commit_record or rules.skips_refused or self._batches is not None
        self._columns = SourceColumnConverter(parts.converter) if rules.columnar and not by_record else None
        self._acknowledged: list[tuple[SourceRecord, RecordMetadata | None]] = []
        self._stored_at = time.monotonic()
        self._unit = _Counts()
        self._done = _Counts()
        self._read = self._bytes = self._transactions = self._discarded = 0
        self._update_records_left()

    def run(self) -> SourceTaskReport:
        """Copy until the task, or a limit, ends the run.

        Raises:
            ConnectError: the task or Kafka failed; what the last transaction committed stays committed.
        """
        ended_by = self._poll_until_end()
        self._end()
        crash_points.reached(crash_points.SOURCE_TASK_ENDED)
        self._tell_progress(force=True)
        return SourceTaskReport(
            written=sum(self._done.topics.values()),
            filtered=self._done.left_out - self._parts.policy.failed,
            discarded=self._discarded,
            size_bytes=self._done.size_bytes,
            transactions=self._transactions,
            topics=dict(sorted(self._done.topics.items())),
            partitions=self._parts.offsets.partitions,
            offsets=self._parts.offsets.moves,
            ended_by=ended_by,
            notes=self._parts.context.notes.sentences,
            left_out=self._parts.context.left_out.parts,
        )

    def _poll_until_end(self) -> str:
        started, idle, rules = time.monotonic(), 0, self._rules
        while True:
            polled_at = time.monotonic()
            moved = self._poll_once()
            crash_points.reached(crash_points.SOURCE_TASK_POLLED)
            if self._atomic is not None and self.call("is_inside_batch", self._atomic.is_inside_batch):
                continue
            self._boundary_after_batch()
            if self.call("has_ended", self._task.has_ended):
                return "end"
            idle = 0 if moved else idle + 1
            if rules.idle_polls is not None and idle >= rules.idle_polls:
                return "idle"
            if rules.max_records and self._read >= rules.max_records:
                return SinkKeys.run_max_records.name
            if rules.max_bytes and self._bytes >= rules.max_bytes:
                return SinkKeys.run_max_bytes.name
            if rules.max_seconds and time.monotonic() - started >= rules.max_seconds:
                return SinkKeys.run_max_seconds.name
            if not moved:
                time.sleep(max(0.0, IDLE_PAUSE_S - (time.monotonic() - polled_at)))

    # --- one batch ------------------------------------------------------------------------------------------------

    def _poll_once(self) -> bool:
        """Poll and send the result; returns whether there was anything, including lines that yield no record."""
        came = self._poll_and_send()
        self._account_for_chain()
        return self._keep_skipped() or came

    def _keep_skipped(self) -> bool:
        """Keep the offsets that the task has set without a record; returns whether there are any."""
        skipped = self._parts.context.take_skipped()
        for partition, offset in skipped:
            self._parts.offsets.reached(partition, offset)
        return bool(skipped)

    def _account_for_chain(self) -> None:
        """Count what a task that runs its own chain has dropped, and apply `errors.*` to what failed there."""
        context = self._parts.context
        dropped = context.take_dropped()
        self._unit.left_out += dropped
        self._account(dropped)
        for record, error in context.take_failed():
            self._parts.policy.handle(record, Failure.of(error, error.stage, error.stage_class))
            self._unit.left_out += 1
            self._account(1)

    def _poll_and_send(self) -> bool:
        task = self._task
        if self._columns is not None and self._columnar is not None:
            columns: SourceColumns | None = self._repeated("poll_columns", self._columnar.poll_columns)
            if columns is not None:
                self._take_columns(columns)
                return True
        batch = self._repeated("poll", task.poll) or ()
        if self._batches is None:
            for record in batch:
                self._take(record, moves=record.source_offset is not NO_OFFSET)
                self._boundary_after_record(record)
        else:
            for record, converted in self._batches.convert(batch):
                self._take_converted(record, converted, moves=record.source_offset is not NO_OFFSET)
                self._boundary_after_record(record)
        self._account(len(batch))
        return bool(batch)

    def _take_columns(self, columns: SourceColumns) -> None:
        assert self._columns is not None
        count = len(columns.values)
        messages = self._columns.convert(columns) if count else None
        if messages is not None:
            self._send(messages)
        else:
            for record in records_of(columns):
                self._take(record, moves=False)
        if columns.source_offset is not None:
            self._parts.offsets.reached(columns.source_partition, columns.source_offset)
        self._account(count)

    def _send(self, messages: ColumnMessages) -> None:
        self._unit.left_out += messages.left_out
        if len(messages.values):
            self._parts.topics.ensure(messages.topic)
            columns = ProducedColumns(
                messages.topic,
                messages.keys,
                messages.values,
                messages.partition,
                messages.timestamps,
                messages.headers,
            )
            size = self._parts.delivery.send_columns(columns)
            self._count(messages.topic, len(messages.values), size)

    def _take(self, record: SourceRecord, *, moves: bool) -> None:
        """Convert and send one record; its offset moves on whatever happens to it.

        Args:
            record: what the task has returned, or one of its batch in columns.
            moves: whether it has an offset of its own.
        """
        try:
            produced = self._parts.converter.convert(record)
        except ConversionError as error:
            produced = self._convert_again(record, error)
        self._take_converted(record, produced, moves=moves)

    def _take_converted(self, record: SourceRecord, produced: ProducedRecord | Failure | None, *, moves: bool) -> None:
        """Send what has become of a record."""
        if isinstance(produced, Failure):
            self._parts.policy.handle(record, produced)
            produced = None
        if moves:
            self._parts.offsets.reached(record.source_partition, record.source_offset)
        if produced is None:
            self._unit.left_out += 1
            if self._calls_commit_record:
                self._acknowledged.append((record, None))
            return
        self._parts.topics.ensure(produced.topic)
        size = len(produced.key or b"") + len(produced.value or b"")
        self._count(produced.topic, 1, size)
        refused = self._refused(record, produced.topic, size) if self._rules.skips_refused else None
        self._parts.delivery.send(produced, self._delivered(record) if self._calls_commit_record else None, refused)

    def _convert_again(self, record: SourceRecord, error: ConversionError) -> ProducedRecord | None:
        """Retry a conversion that failed for a temporary reason; None if the record is skipped."""
        try:
            return self._parts.policy.retries.repeat(lambda: self._parts.converter.convert(record), error)
        except ConversionError as last:
            self._parts.policy.handle(record, last.failure)
            return None

    def _delivered(self, record: SourceRecord) -> Delivered:
        def delivered(message: Any) -> None:
            stamp = message.timestamp()[1]
            where = RecordMetadata(message.topic(), message.partition(), message.offset(), stamp)
            self._acknowledged.append((record, where))

        return delivered

    def _refused(self, record: SourceRecord, topic: str, size: int) -> Refused:
        """The callback for a record that Kafka refused: it is skipped, as in Kafka Connect (KIP-779)."""

        def refused(error: DataError) -> None:
            self._parts.policy.handle(record, Failure(KAFKA_PRODUCE, SENDER, error))
            self._count(topic, -1, -size)
            self._unit.left_out += 1
            if self._calls_commit_record:
                self._acknowledged.append((record, None))

        return refused

    def _count(self, topic: str, records: int, size: int) -> None:
        self._unit.topics[topic] = self._unit.topics.get(topic, 0) + records
        self._unit.size_bytes += size
        self._bytes += size

    def _account(self, records: int) -> None:
        self._read += records
        self._update_records_left()
        self._tell_progress()

    def _tell_progress(self, *, force: bool = False) -> None:
        self._parts.progress.update(self._read, self._bytes, self._parts.context.done_parts, force=force)

    def _update_records_left(self) -> None:
        if self._rules.max_records:
            self._parts.context.records_left = max(0, self._rules.max_records - self._read)

    # --- boundaries -----------------------------------------------------------------------------------------------

    def _boundary_after_record(self, record: SourceRecord) -> None:
        marks = self._parts.context.transaction
        if marks is None:
            return
        if marks.aborts_on(record):
            self._discard()
            self._store()
        elif marks.commits_on(record):
            self._store()

    def _boundary_after_batch(self) -> None:
        marks = self._parts.context.transaction
        crash_points.reached(crash_points.SOURCE_TASK_SENT)
        if marks is not None:
            if marks.aborts_batch():
                self._discard()
                self._commit()
            elif marks.commits_batch():
                self._commit()
        elif self._is_boundary():
            self._commit()

    def _is_boundary(self) -> bool:
        """Whether a transaction ends here that the task itself does not end."""
        if self._rules.boundary == source_keys.INTERVAL:
            return time.monotonic() - self._stored_at >= self._rules.interval_s
        task = self._joining
        return task is None or not self.call("continues_batch", task.continues_batch)

    def _end(self) -> None:
        """End the last transaction. If the task itself ends transactions, an open one is not committed."""
        if self._parts.context.transaction is not None:
            self._parts.delivery.discard()
            self._parts.offsets.forget_waiting()
            return
        self._commit()

    def _commit(self) -> None:
        if self._store():
            self.call("commit", self._task.commit)

    def _store(self) -> bool:
        """End a unit; returns whether there was anything to store."""
        waiting = self._parts.offsets.take_waiting()
        stores = bool(waiting or self._unit.topics)
        self._parts.delivery.store(waiting, self._check if self._checks and self._unit.topics else None)
        self._stored_at = time.monotonic()
        if stores:
            self._transactions += 1
            crash_points.reached(crash_points.SOURCE_TASK_STORED)
        self._done.add(self._unit)
        self._unit = _Counts()
        acknowledged, self._acknowledged = self._acknowledged, []
        if acknowledged:
            self.call("commit_record", lambda: self._commit_records(acknowledged))
        return stores

    def _check(self, first: Mapping[TopicPartition, int]) -> None:
        task = self._task
        assert isinstance(task, CheckingSourceTask)
        self.call("before_commit", lambda: task.before_commit(first))

    def _commit_records(self, acknowledged: Sequence[tuple[SourceRecord, RecordMetadata | None]]) -> None:
        for record, metadata in acknowledged:
            self._task.commit_record(record, metadata)

    def _discard(self) -> None:
        """Discard the records of the open transaction; its offsets still count (KIP-618)."""
        self._parts.delivery.discard()
        self._discarded += sum(self._unit.topics.values())
        self._unit = _Counts()
        self._acknowledged.clear()

    # --- the task -------------------------------------------------------------------------------------------------

    def _repeated(self, method: str, poll: Callable[[], _Result]) -> _Result:
        """Repeat `poll`, with pauses, while it raises a RetriableError.

        Other errors, also those that a later run may not meet, may come after the task has taken what it does not
        return again.
        """
        tries = Retry(POLL_BACKOFF, within_s=self._rules.poll_retry_s, at_deadline=AtDeadline.STOP)
        while True:
            try:
                return self.call(method, poll)
            except ConnectError as error:
                # What the task has left behind before it failed, it does not tell again.
                self._keep_skipped()
                if not isinstance(error, RetriableError) or error.ends_task or not tries.pause():
                    raise

    def call(self, method: str, call: Callable[[], _Result]) -> _Result:
        """Call a method of the task; whatever goes wrong becomes an error with a sentence.

        Raises:
            ConnectError: what the task raised, or a sentence about it.
        """
        return call_task(self._task, method, call, self._parts.context)


def call_task(task: SourceTask, method: str, call: Callable[[], _Result], context: SourceContext) -> _Result:
    """Call a method of a task, then check whether it requested to fail.

    Raises:
        ConnectError: what the task raised, or a sentence about it.
    """
    try:
        result = call()
        if context.error is not None:
            raise context.error
    except (ConnectError, MemoryError):
        raise
    except Exception as error:
        raise TaskFailedError(
            f"{type(task).__name__}.{method} failed with {describe_exception(error)}.",
            code="task.plugin_failed",
            suggestion="What was committed stays, and the next run continues from there. If it happens again, look for "
            "the cause in the connector.",
        ) from error
    return result


def _batches_of(parts: LoopParts) -> SourceBatches | None:
    """What converts whole batches; None: there is no Java class in the chain."""
    if parts.converter.java is None:
        return None
    from airflow_connect.runtime.executor.java_batches import SourceBatches

    return SourceBatches(parts.converter, parts.policy.retries)


class _Counts:
    """Records of a unit, or of all units."""

    def __init__(self) -> None:
        self.topics: dict[str, int] = {}
        self.size_bytes = 0
        self.left_out = 0

    def add(self, unit: _Counts) -> None:
        """Add the counts of a committed unit."""
        for topic, count in unit.topics.items():
            if count:  # 0: Kafka refused all of them
                self.topics[topic] = self.topics.get(topic, 0) + count
        self.size_bytes += unit.size_bytes
        self.left_out += unit.left_out
