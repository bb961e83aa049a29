"""The hot loop of a sink task: from the reader to the sink, on the reference path or in columns."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_connect.api.errors import ConnectError, DataError, FatalDataError
from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.run import STOPPED_BY_DEAD_LETTERS
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.executor.allocators import bound_allocators
from airflow_connect.runtime.executor.converting import ConversionError
from airflow_connect.runtime.executor.error_policy import SINK_TASK, TASK_PUT, Failure, put_failed

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.record import KafkaRecord, SinkRecord
    from airflow_connect.api.run import PartitionReport, TaskPlan
    from airflow_connect.api.sink_roles import SinkWriter
    from airflow_connect.kafka.batch_reader import RangeReader
    from airflow_connect.kafka.column_batch import ColumnBatch
    from airflow_connect.runtime.executor.column_path import Attempts, ColumnPath
    from airflow_connect.runtime.executor.converting import RecordConverter
    from airflow_connect.runtime.executor.error_policy import ErrorPolicy
    from airflow_connect.runtime.executor.progress import ProgressSender


log = logging.getLogger(__name__)

RECORD_BY_RECORD = 64
"""A batch that is not plain is halved until it is this small: one null value costs its neighbours, not thousands."""


class SinkLoop:
    """Reads ranges to their ends and keeps the counts straight."""

    def __init__(
        self, sink: SinkWriter, converter: RecordConverter, policy: ErrorPolicy, progress: ProgressSender
    ) -> None:
        """All parts are open."""
        self._sink = sink
        self._converter = converter
        self._policy = policy
        self._progress = progress
        self._columns: ColumnPath | None = None
        self._records = 0
        self._bytes = 0
        self._letters = 0
        self._stopped: dict[TopicPartition, int] = {}
        """Where partitions have ended because of their dead letters: the offset behind the last record that was put."""

    def run(self, reader: RangeReader, plan: TaskPlan, *, columnar: bool) -> list[PartitionReport]:
        """Copy every range; returns one report per range.

        Raises:
            DataError: a record failed and errors are not tolerated.
        """
        bound_allocators()
        limit = _Limit(plan)
        next_offsets = {r.topic_partition: r.start for r in plan.ranges}
        if columnar and self._opens_columns():
            self._run_columns(reader, limit, next_offsets)
        else:
            self._run_records(reader, limit, next_offsets)
        self._progress.update(self._records, self._bytes, force=True)
        positions = reader.positions()
        return [self._finish(r, positions[r.topic_partition], next_offsets, limit) for r in plan.ranges]

    def _opens_columns(self) -> bool:
        """Whether every stage has a columnar form, and no headers can fail that nobody looks at."""
        if not (self._converter.has_plain_headers and self._sink.accepts_columns()):
            return False
        from airflow_connect.runtime.executor.column_path import column_path

        key = self._converter.key if self._sink.needs_keys else None
        self._columns = column_path(self._converter.value, self._converter.steps, key)
        return self._columns is not None

    def _run_records(self, reader: RangeReader, limit: _Limit, next_offsets: dict[TopicPartition, int]) -> None:
        for tp, records in reader.records():
            crash_points.reached(crash_points.TASK_READING)
            self._put_all(tp, records)
            size = sum(len(r.value or b"") + len(r.key or b"") for r in records)
            next_offsets[tp] = records[-1].offset + 1
            self._account(len(records), size)
            if limit.is_reached(size):
                return
            self._stop_reading(reader)

    def _run_columns(self, reader: RangeReader, limit: _Limit, next_offsets: dict[TopicPartition, int]) -> None:
        from airflow_connect.runtime.executor.column_path import Attempts
        from airflow_connect.runtime.executor.gathering import Gathering

        gathering, attempts = Gathering(), Attempts()
        for batch in reader.columns():
            crash_points.reached(crash_points.TASK_READING)
            size = batch.size_bytes
            next_offsets[batch.topic_partition] = int(batch.offsets[-1]) + 1
            for gathered in gathering.add(batch, size):
                self._put_gathered(gathered, attempts)
            self._account(len(batch), size)
            if limit.is_reached(size):
                break
            self._stop_reading(reader)
        for gathered in gathering.take_all():
            self._put_gathered(gathered, attempts)

    def _put_gathered(self, batch: ColumnBatch, attempts: Attempts) -> None:
        if attempts.is_due():
            attempts.note(self._put_columns(batch))
        else:
            self._put_all(batch.topic_partition, batch.records())

    def _stop_reading(self, reader: RangeReader) -> None:
        """A partition that has ended early is not read any further: the next run reads it again."""
        for tp in self._stopped:
            reader.stop(tp)

    def _put_columns(self, batch: ColumnBatch) -> int:
        """Write a batch, what is not plain of it record by record; returns how many records went in columns."""
        if batch.topic_partition in self._stopped:
            return 0
        pieces = self._converted(batch)
        if pieces and self._sink.put_columns(pieces, len(batch)):
            return len(batch)
        if pieces is None or len(batch) <= RECORD_BY_RECORD:
            self._put_all(batch.topic_partition, batch.records())
            return 0
        middle = len(batch) // 2
        return self._put_columns(batch.slice(0, middle)) + self._put_columns(batch.slice(middle, len(batch)))

    def _converted(self, batch: ColumnBatch) -> Sequence[RecordColumns] | None:
        """A batch after all stages; () when it is not plain, None when a stage cannot work at all right now."""
        assert self._columns is not None
        try:
            if not self._converter.accepts_keys(batch.topic, batch.keys):
                return ()
            return self._columns.convert(batch) or ()
        except DataError:
            return ()
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 (comes again record by record, where it is repeated, or reported)
            log.warning("%d records go one by one, because columns failed with %s.", len(batch), type(error).__name__)
            return None

    def _account(self, records: int, size: int) -> None:
        self._records += records
        self._bytes += size
        self._progress.update(self._records, self._bytes)

    def _put_all(self, tp: TopicPartition, records: Sequence[KafkaRecord]) -> None:
        """Write records one by one.

        Once the dead letters have the size that one run may commit, a partition ends behind its next one: those without
        any are copied to their ends, and every run gets on in every partition.
        """
        letters = self._policy.dead_letters
        for record in () if tp in self._stopped else records:
            self._put(tp, record)
            if len(letters) != self._letters:
                self._letters = len(letters)
                if self._policy.is_full:
                    self._stopped[tp] = record.offset + 1
                    return

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
            self._sink.count_skipped(tp)
            return
        try:
            is_accepted = self._sink.put(converted)
        except FatalDataError:
            raise
        except DataError as error:
            self._failed(tp, record, Failure(TASK_PUT, SINK_TASK, error))
            return
        except (ConnectError, MemoryError):
            raise
        except Exception as error:
            raise put_failed(record.where, error) from error
        if not is_accepted:
            reason = DataError(f"The record at {record.where} has a null value.", code="data.null_value")
            if self._policy.report(record, Failure(TASK_PUT, SINK_TASK, reason)):
                self._sink.count_dead_letter(tp, already_read=True)

    def _convert_again(self, record: KafkaRecord, error: ConversionError) -> SinkRecord | None:
        """Repeat a conversion that failed for a passing reason; raises the last error when it has failed for good."""
        return self._policy.retries.repeat(lambda: self._converter.convert(record), error)

    def _failed(self, tp: TopicPartition, record: KafkaRecord, failure: Failure) -> None:
        if self._policy.handle(record, failure):
            self._sink.count_dead_letter(tp, already_read=False)
        else:
            self._sink.count_skipped(tp)

    def _finish(
        self, planned: OffsetRange, position: int, next_offsets: dict[TopicPartition, int], limit: _Limit
    ) -> PartitionReport:
        tp = planned.topic_partition
        stopped = self._stopped.get(tp, planned.end)
        if stopped < planned.end:
            return self._sink.finish(tp, max(position, stopped), end=stopped, reason=STOPPED_BY_DEAD_LETTERS)
        if limit.reason and position < planned.end:
            stop = next_offsets[tp]
            return self._sink.finish(tp, max(position, stop), end=stop, reason=limit.reason)
        return self._sink.finish(tp, position, end=None, reason="")


class _Limit:
    """`run.max.bytes` and `run.max.seconds`: a task stops after the batch that crosses one of them."""

    def __init__(self, plan: TaskPlan) -> None:
        self._bytes_left = plan.max_bytes or None
        self._deadline = time.monotonic() + plan.max_seconds if plan.max_seconds else None
        self.reason = ""

    def is_reached(self, size: int) -> bool:
        """Count `size` bytes; True when reading must stop."""
        if self._bytes_left is not None:
            self._bytes_left -= size
            if self._bytes_left <= 0:
                self.reason = "run.max.bytes"
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self.reason = "run.max.seconds"
        return bool(self.reason)
