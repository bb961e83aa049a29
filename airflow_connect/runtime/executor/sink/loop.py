"""The hot loop of a sink task: from the reader to the sink, on the reference path or in columns."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.record import TIMESTAMP_NOT_AVAILABLE
from airflow_connect.documents.run import STOPPED_BY_DEAD_LETTERS, TaskPlan
from airflow_connect.errors import ConnectError, DataError
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.executor.allocators import bound_allocators
from airflow_connect.runtime.executor.converting import ConversionError
from airflow_connect.runtime.executor.error_policy import Failure
from airflow_connect.runtime.executor.sink.whole_records import WholeRecordConverter, WholeRecordPath
from airflow_connect.runtime.executor.slow_path import SlowPath

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.record import KafkaRecord, SinkRecord
    from airflow_connect.documents.run import PartitionReport
    from airflow_connect.kafka.reading.batch_reader import RangeReader
    from airflow_connect.kafka.reading.column_batch import ColumnBatch
    from airflow_connect.runtime.executor.converting import RecordConverter
    from airflow_connect.runtime.executor.error_policy import ErrorPolicy
    from airflow_connect.runtime.executor.java_batches import SinkBatches
    from airflow_connect.runtime.executor.progress import ProgressSender
    from airflow_connect.runtime.executor.sink.column_path import Attempts, ColumnPath
    from airflow_connect.runtime.executor.sink.task_runner import SinkTaskRunner


log = logging.getLogger(__name__)

SMALLEST_COLUMN_BATCH = 64
"""Records. A batch that is not vectorizable is halved down to this size: one null value slows down few others."""


class SinkLoop:
    """Reads ranges to their ends and counts records."""

    def __init__(
        self,
        sink: SinkTaskRunner,
        converter: RecordConverter | WholeRecordConverter,
        policy: ErrorPolicy,
        progress: ProgressSender,
    ) -> None:
        """Use open parts."""
        self._sink = sink
        self._converter = converter
        self._policy = policy
        self._progress = progress
        self._batches = _batches_of(converter, policy)
        self._columns: ColumnPath | WholeRecordPath | None = None
        self.slow_path = SlowPath()
        self._records = 0
        self._bytes = 0
        self._letters = 0
        self._limit = _Limit(TaskPlan(0, ()))
        self._next_offsets: dict[TopicPartition, int] = {}
        self._first_ms: dict[TopicPartition, int] = {}
        self._stopped: dict[TopicPartition, int] = {}
        """Partitions that have ended because of their dead letters: the offset after the last record that was put."""

    def read(self, reader: RangeReader, plan: TaskPlan, *, columnar: bool) -> None:
        """Put the records of every range.

        Raises:
            DataError: a record failed and errors are not tolerated.
        """
        bound_allocators()
        self._limit = _Limit(plan)
        self._next_offsets = {r.topic_partition: r.start for r in plan.ranges}
        if columnar and self._opens_columns():
            self._run_columns(reader, self._limit, self._next_offsets)
        else:
            self._run_records(reader, self._limit, self._next_offsets)
        self._progress.update(self._records, self._bytes, force=True)

    def finish(self, reader: RangeReader, plan: TaskPlan) -> list[PartitionReport]:
        """Flush the sink; returns one report per range."""
        self._sink.complete({tp for tp in self._stopped if self._is_cut_short(plan, tp)})
        positions = reader.positions()
        return [self._report(r, positions[r.topic_partition]) for r in plan.ranges]

    @property
    def oldest_ms(self) -> int:
        """The oldest timestamp among the first records of all partitions, in milliseconds; 0: none has one."""
        return min((ms for ms in self._first_ms.values() if ms > 0), default=0)

    def _opens_columns(self) -> bool:
        """Whether every stage has a columnar form, so none is Java, and headers that are not used cannot fail."""
        if self._batches is not None:
            return self._stays_slow("Java classes in the chain")
        if not self._sink.accepts_columns():
            return self._stays_slow("the sink with this configuration")
        if isinstance(self._converter, WholeRecordConverter):
            self._columns = WholeRecordPath()
            return True
        if not self._converter.has_known_headers:
            return self._stays_slow(f"the header converter ({type(self._converter.headers).__name__})")
        from airflow_connect.runtime.executor.sink.column_path import column_path, stage_without_columns
        from airflow_connect.runtime.executor.sink.header_texts import HeaderTexts

        value, steps = self._converter.value, self._converter.steps
        key = self._converter.key if self._sink.needs_keys else None
        headers = HeaderTexts(self._converter.headers) if self._sink.needs_headers else None
        self._columns = column_path(value, steps, key, self._nulls_of, headers)
        if self._columns is None:
            return self._stays_slow(stage_without_columns(value, steps, with_headers=headers is not None))
        return True

    def _nulls_of(self, batch: ColumnBatch) -> NDArray[np.int64] | None:
        """See `NullsOf`."""
        from airflow_connect.runtime.executor.sink.null_values import left_to_sink

        assert not isinstance(self._converter, WholeRecordConverter)
        nulls, has_queue = self._sink.null_values, self._policy.has_queue
        return left_to_sink(batch, self._converter, nulls, has_queue=has_queue)

    def _stays_slow(self, stage: str) -> bool:
        self.slow_path.because_of(stage)
        return False

    def _run_records(self, reader: RangeReader, limit: _Limit, next_offsets: dict[TopicPartition, int]) -> None:
        for tp, records in reader.records():
            crash_points.reached(crash_points.TASK_READING)
            self._put_all(tp, records)
            self.slow_path.add(len(records))
            self._first_ms.setdefault(tp, records[0].timestamp or 0)
            size = sum(len(r.value or b"") + len(r.key or b"") for r in records)
            next_offsets[tp] = records[-1].offset + 1
            self._account(len(records), size)
            if limit.is_reached(size):
                return
            self._stop_reading(reader)

    def _run_columns(self, reader: RangeReader, limit: _Limit, next_offsets: dict[TopicPartition, int]) -> None:
        from airflow_connect.runtime.executor.sink.coalescing import BatchCoalescer
        from airflow_connect.runtime.executor.sink.column_path import Attempts

        coalescer, attempts = BatchCoalescer(self._sink.read_ahead.column_records), Attempts()
        for batch in reader.columns():
            crash_points.reached(crash_points.TASK_READING)
            has_time = batch.timestamp_type != TIMESTAMP_NOT_AVAILABLE
            self._first_ms.setdefault(batch.topic_partition, int(batch.timestamps[0]) if has_time else 0)
            size = batch.size_bytes
            next_offsets[batch.topic_partition] = int(batch.offsets[-1]) + 1
            for joined in coalescer.add(batch, size):
                self._put_batch(joined, attempts)
            self._account(len(batch), size)
            if limit.is_reached(size):
                break
            self._stop_reading(reader)
        for joined in coalescer.take_all():
            self._put_batch(joined, attempts)

    def _put_batch(self, batch: ColumnBatch, attempts: Attempts) -> None:
        if attempts.is_due():
            attempts.note(self._put_columns(batch), len(batch))
        else:
            self._put_one_by_one(batch)

    def _put_one_by_one(self, batch: ColumnBatch) -> None:
        self.slow_path.add(len(batch))
        self._put_all(batch.topic_partition, batch.records())

    def _stop_reading(self, reader: RangeReader) -> None:
        """A partition that has ended early is not read any further; the next run continues it."""
        for tp in self._stopped:
            reader.stop(tp)

    def _put_columns(self, batch: ColumnBatch) -> int:
        """Write a batch in columns, and the rest record by record; returns how many records went in columns."""
        if batch.topic_partition in self._stopped:
            return 0
        assert self._columns is not None
        pieces = self._converted(batch)
        filled = [piece for piece in pieces or () if len(piece)]
        if filled and self._sink.columns_need_schemas and all(piece.value.schema is None for piece in filled):
            # No part of it would be taken, and what the sink makes of values may depend on which are put together.
            self.slow_path.because_of("values without a schema")
            pieces = None
        if pieces:
            if self._sink.put_columns(pieces, batch.offsets, self._columns.nulls):
                self._converter.unread.add_batch(batch)
                if len(self._policy.dead_letters) != self._letters:
                    self._ends_with(batch.topic_partition, int(batch.offsets[-1]))
                return len(batch)
            self.slow_path.because_of(self._sink.refused_columns)
        if pieces is None or len(batch) <= SMALLEST_COLUMN_BATCH:
            self._put_one_by_one(batch)
            return 0
        middle = len(batch) // 2
        return self._put_columns(batch.slice(0, middle)) + self._put_columns(batch.slice(middle, len(batch)))

    def _converted(self, batch: ColumnBatch) -> Sequence[RecordColumns] | None:
        """A batch after all stages; () if it is not vectorizable, None if a stage cannot work at all right now."""
        assert self._columns is not None
        self._converter.unread.clear()
        try:
            if not self._converter.accepts_keys(batch.topic, batch.keys):
                self.slow_path.because_of("the key converter")
                return ()
            if not self._sink.needs_headers and not self._converter.accepts_headers(batch):
                self.slow_path.because_of("the header converter")
                return ()
            converted = self._columns.convert(batch)
            if converted is None:
                self.slow_path.because_of(self._columns.refused_by)
            return converted or ()
        except DataError:
            self.slow_path.because_of("records that a stage refuses")
            return ()
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 (comes again record by record, where it is repeated, or reported)
            self.slow_path.because_of(f"errors of a stage ({type(error).__name__})")
            log.warning(
                "%d records are processed one by one, because columns failed with %s.", len(batch), type(error).__name__
            )
            return None

    def _account(self, records: int, size: int) -> None:
        self._records += records
        self._bytes += size
        self._progress.update(self._records, self._bytes)

    def _put_all(self, tp: TopicPartition, records: Sequence[KafkaRecord]) -> None:
        """Write records one by one.

        Once the dead letters have the size that one run may commit, a partition ends after its next one. Partitions
        without dead letters are copied to their ends, and every run makes progress in every partition.
        """
        if tp in self._stopped:
            return
        if self._batches is not None:
            self._put_converted(tp, self._batches.convert(records))
            return
        letters = self._policy.dead_letters
        for record in records:
            self._put(tp, record)
            if len(letters) != self._letters and self._ends_with(tp, record.offset):
                return

    def _put_converted(
        self, tp: TopicPartition, records: Iterable[tuple[KafkaRecord, SinkRecord | Failure | None]]
    ) -> None:
        """The same for records that have passed the chain together."""
        letters = self._policy.dead_letters
        for record, converted in records:
            if isinstance(converted, Failure):
                self._failed(tp, record, converted)
            elif converted is None:
                self._sink.count_left_out(tp, record.offset, is_dead_letter=False)
            else:
                self._sink.put(converted)
            if len(letters) != self._letters and self._ends_with(tp, record.offset):
                return

    def _ends_with(self, tp: TopicPartition, offset: int) -> bool:
        """Whether a partition ends with a record that has a dead letter, or with one after which some were reported."""
        self._letters = len(self._policy.dead_letters)
        if self._policy.is_full:
            self._stopped[tp] = offset + 1
        return self._policy.is_full

    def _put(self, tp: TopicPartition, record: KafkaRecord) -> None:
        try:
            converted = self._converter.convert(record)
        except ConversionError as error:
            try:
                converted = self._convert_again(record, error)
            except ConversionError as last:
                self._failed(tp, record, last.failure)
                return
        if converted is None:
            self._sink.count_left_out(tp, record.offset, is_dead_letter=False)
        else:
            self._sink.put(converted)

    def _convert_again(self, record: KafkaRecord, error: ConversionError) -> SinkRecord | None:
        """Retry a conversion that failed for a temporary reason; raises the last error if it keeps failing."""
        return self._policy.retries.repeat(lambda: self._converter.convert(record), error)

    def _failed(self, tp: TopicPartition, record: KafkaRecord, failure: Failure) -> None:
        try:
            is_dead_letter = self._policy.handle(record, failure)
        except ConnectError:
            # Records before it still wait: if one of them fails as well, the first one in the log must be named.
            self._sink.deliver()
            raise
        self._sink.count_left_out(tp, record.offset, is_dead_letter=is_dead_letter)

    def _is_cut_short(self, plan: TaskPlan, tp: TopicPartition) -> bool:
        return any(r.topic_partition == tp and self._stopped[tp] < r.end for r in plan.ranges)

    def _report(self, planned: OffsetRange, position: int) -> PartitionReport:
        tp = planned.topic_partition
        stopped = self._stopped.get(tp, planned.end)
        if stopped < planned.end:
            return self._sink.report(tp, max(position, stopped), end=stopped, reason=STOPPED_BY_DEAD_LETTERS)
        if self._limit.reason and position < planned.end:
            stop = self._next_offsets[tp]
            return self._sink.report(tp, max(position, stop), end=stop, reason=self._limit.reason)
        return self._sink.report(tp, position, end=None, reason="")


def _batches_of(converter: RecordConverter | WholeRecordConverter, policy: ErrorPolicy) -> SinkBatches | None:
    """What converts whole batches; None: there is no Java class in the chain."""
    if isinstance(converter, WholeRecordConverter) or converter.java is None:
        return None
    from airflow_connect.runtime.executor.java_batches import SinkBatches

    return SinkBatches(converter, policy.retries)


class _Limit:
    """`run.max.bytes` and `run.max.seconds`: a task stops after the batch that exceeds one of them."""

    def __init__(self, plan: TaskPlan) -> None:
        self._bytes_left = plan.max_bytes or None
        self._deadline = time.monotonic() + plan.max_seconds if plan.max_seconds else None
        self.reason = ""

    def is_reached(self, size: int) -> bool:
        """Count `size` bytes; returns True if reading must stop."""
        if self._bytes_left is not None:
            self._bytes_left -= size
            if self._bytes_left <= 0:
                self.reason = "run.max.bytes"
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self.reason = "run.max.seconds"
        return bool(self.reason)
