"""Sink tasks of the public API inside a run: order of calls, counts, pausing, skipping, errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from airflow_connect.api import (
    DataError,
    OffsetError,
    OffsetRange,
    RecordColumns,
    RetriableError,
    SinkRecord,
    SinkTask,
    StagedFile,
    TopicPartition,
    UnavailableError,
    ValueColumns,
)
from airflow_connect.api.record import KafkaRecord
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.documents.run import PartitionReport
from airflow_connect.errors import FatalDataError, TaskFailedError
from airflow_connect.runtime.executor.sink import task_runner
from airflow_connect.runtime.executor.sink.task_runner import SinkTaskRunner

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Errors:
    """`errors.tolerance=all`, with a dead letter queue if `has_queue`; repeats a failed put at once."""

    def __init__(self, *, tolerate: bool = True, has_queue: bool = True) -> None:
        self._tolerate, self._has_queue = tolerate, has_queue
        self._final: DataError | None = None
        self.tries = 0

    def report_errant(self, record: SinkRecord, error: BaseException) -> bool:
        if not self._tolerate:
            self._final = DataError(f"{record.where}: {error}")
            raise self._final
        return self._has_queue

    def leave_out(self, record: SinkRecord, reason: Exception) -> bool:
        return self._has_queue

    def raise_pending_error(self) -> None:
        if self._final is not None:
            raise self._final

    def repeat_put(self, put: Callable[[], None]) -> None:
        while True:
            self.tries += 1
            try:
                return put()
            except RetriableError:
                if self.tries > 5:
                    raise


class Task(SinkTask):
    """Notes what it is given; `on_put(task, records)` is called in every put."""

    def __init__(self, on_put: Callable[[Task, Sequence[SinkRecord]], None] = lambda task, records: None) -> None:
        self.calls: list[str] = []
        self.batches: list[list[int]] = []
        self.on_put = on_put

    def start(self, config: Mapping[str, str]) -> None:
        self.calls.append("start")

    def open(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append("open")

    def put(self, records: Sequence[SinkRecord]) -> None:
        self.on_put(self, records)
        self.calls.append("put")
        self.batches.append([r.offset for r in records])

    def flush(self) -> Sequence[StagedFile]:
        self.calls.append("flush")
        return ()

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append("close")

    def stop(self) -> None:
        self.calls.append("stop")

    @property
    def offsets(self) -> list[int]:
        return [offset for batch in self.batches for offset in batch]


def sink_of(task: SinkTask, errors: Errors | None = None, ranges: Sequence[OffsetRange] = ()) -> SinkTaskRunner:
    context = RoleContext({"name": "n"}, run_id="run-1", now_ms=5, errors=errors or Errors())
    sink = SinkTaskRunner(task, context, ranges or [OffsetRange("t", 0, 0, 2000)])
    sink.open()
    return sink


def record(offset: int, partition: int = 0, topic: str = "t") -> SinkRecord:
    message = KafkaRecord("t", partition, offset, b"k", b"v")
    return SinkRecord(
        topic=topic, partition=partition, offset=offset, original_topic="t", original_partition=partition,
        value=offset, consumed=message,
    )  # fmt: skip


def finished(sink: SinkTaskRunner, end: int, tp: TopicPartition = T0) -> PartitionReport:
    return sink.report(tp, end, end=end, reason="")


def test_records_come_in_batches_of_at_most_500_and_in_order():
    task = Task()
    sink = sink_of(task)
    for offset in range(1201):
        sink.put(record(offset))
    report = finished(sink, 1201)
    sink.abort()

    assert [len(batch) for batch in task.batches] == [500, 500, 201]
    assert task.offsets == list(range(1201))
    assert (report.read, report.written, report.commit_offset) == (1201, 1201, 1201)
    assert task.calls == ["start", "open", "put", "put", "put", "flush", "close", "stop"]


def test_task_without_records_is_opened_flushed_closed_and_stopped():
    task = Task()
    sink = sink_of(task)

    report = finished(sink, 0)
    sink.abort()
    sink.abort()

    assert task.calls == ["start", "open", "flush", "close", "stop"]
    assert report.read == 0


def test_context_tells_what_the_run_knows():
    task = Task()
    sink = sink_of(task, ranges=[OffsetRange("t", 1, 0, 1), OffsetRange("t", 0, 0, 1)])

    assert (task.context.run_id, task.context.clock_ms) == ("run-1", 5)
    assert task.context.config == {"name": "n"}
    assert task.context.assignment == {T0, T1}
    sink.abort()
    assert task.context.assignment == frozenset()


def test_renamed_topic_is_counted_for_the_original_one():
    sink = sink_of(Task())
    sink.put(record(0, topic="renamed"))
    assert finished(sink, 1).written == 1


def test_retriable_error_brings_the_same_batch_again_without_counting_twice():
    def fail_twice(task: Task, records: Sequence[SinkRecord]) -> None:
        seen.append([r.offset for r in records])
        if len(seen) < 3:
            raise RetriableError("Not now.")

    seen: list[list[int]] = []
    task = Task(fail_twice)
    sink = sink_of(task)
    sink.put(record(0))
    sink.put(record(1))

    report = finished(sink, 2)

    assert seen == [[0, 1]] * 3
    assert (report.read, report.written) == (2, 2)


@pytest.mark.parametrize(
    ("raised", "expected", "text"),
    [
        (DataError("Bad."), FatalDataError, "Bad."),
        (UnavailableError("Away."), UnavailableError, "Away."),
        (KeyError("x"), TaskFailedError, "Task.put failed with KeyError: 'x'."),
        (RetriableError("Still not."), RetriableError, "Still not."),
    ],
)
def test_error_in_put_fails_the_task_whatever_is_tolerated(raised: Exception, expected: type[Exception], text: str):
    def fail(task: Task, records: Sequence[SinkRecord]) -> None:
        raise raised

    task = Task(fail)
    sink = sink_of(task)
    sink.put(record(0))
    with pytest.raises(expected) as caught:
        finished(sink, 1)
    sink.abort()

    assert text in str(caught.value)
    assert task.calls == ["start", "open", "close", "stop"]


def test_reported_record_is_a_dead_letter_once():
    def report(task: Task, records: Sequence[SinkRecord]) -> None:
        for r in records:
            if r.offset == 1:
                task.context.errant_record_reporter.report(r.changed(value=None), ValueError("No."))
                task.context.errant_record_reporter.report(r, ValueError("No."))

    sink = sink_of(Task(report))
    for offset in range(3):
        sink.put(record(offset))
    report_ = finished(sink, 3)

    assert (report_.read, report_.written, report_.dead_lettered, report_.filtered) == (3, 2, 1, 0)


def test_reported_record_without_a_queue_is_left_out():
    sink = sink_of(Task(lambda task, records: [_report(task, r) for r in records] and None), Errors(has_queue=False))
    sink.put(record(0))
    report = finished(sink, 1)
    assert (report.read, report.written, report.filtered) == (1, 0, 1)


def _report(task: Task, errant: SinkRecord) -> None:
    task.context.errant_record_reporter.report(errant, ValueError("No."))


def test_task_that_swallows_the_refusal_of_its_report_fails_all_the_same():
    def swallow(task: Task, records: Sequence[SinkRecord]) -> None:
        with pytest.raises(DataError):
            _report(task, records[0])

    sink = sink_of(Task(swallow), Errors(tolerate=False))
    sink.put(record(0))
    with pytest.raises(DataError, match="t-0@0: No"):
        finished(sink, 1)


def test_error_that_the_task_asks_for_fails_it_after_its_method():
    sink = sink_of(Task(lambda task, records: task.context.raise_error(OSError("disk"))))
    sink.put(record(0))
    with pytest.raises(TaskFailedError, match=r"Task\.put failed with OSError: disk"):
        finished(sink, 1)


def test_commit_that_the_task_asks_for_flushes_after_the_put():
    task = Task(lambda task, records: task.context.request_commit())
    sink = sink_of(task)
    for offset in range(501):
        sink.put(record(offset))
    finished(sink, 501)
    assert task.calls == ["start", "open", "put", "flush", "put", "flush", "flush"]


def test_skipped_records_are_not_put_and_count_as_filtered():
    class Remembers(Task):
        def open(self, partitions: Collection[TopicPartition]) -> None:
            self.context.offset(T0, 3)

    task = Remembers()
    sink = sink_of(task)
    for offset in range(5):
        sink.put(record(offset))
    report = finished(sink, 5)

    assert task.offsets == [3, 4]
    assert (report.read, report.written, report.filtered, report.commit_offset) == (5, 2, 3, 5)


def test_going_back_is_refused_with_both_offsets():
    task = Task()
    sink = sink_of(task, ranges=[OffsetRange("t", 0, 10, 20)])
    with pytest.raises(OffsetError, match=r"t-0@9, but this run continues at 10"):
        task.context.offset(T0, 9)
    with pytest.raises(OffsetError, match="u-7, which it does not have"):
        task.context.offset(TopicPartition("u", 7), 0)
    sink.abort()


def test_paused_partition_waits_and_comes_in_order_after_resume():
    def pause_then_resume(task: Task, records: Sequence[SinkRecord]) -> None:
        if not task.batches:
            task.context.pause(T0)
        elif any(r.original_partition == 1 for r in records):
            task.context.resume(T0)

    task = Task(pause_then_resume)
    sink = sink_of(task, ranges=[OffsetRange("t", 0, 0, 2000), OffsetRange("t", 1, 0, 2000)])
    for offset in range(700):
        sink.put(record(offset))
    sink.put(record(0, partition=1))
    report = finished(sink, 700)

    assert task.offsets == [*range(500), 0, *range(500, 700)]
    assert (report.read, report.written, report.left) == (700, 700, 0)


def test_partition_that_stays_paused_is_left_for_the_next_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(task_runner, "RESUME_WITHIN_S", 0.0)
    task = Task(lambda task, records: task.context.pause(T0))
    sink = sink_of(task)
    for offset in range(505):
        sink.put(record(offset))
    sink.count_left_out(T0, 10, is_dead_letter=True)
    sink.count_left_out(T0, 10, is_dead_letter=False)
    report = finished(sink, 507)

    assert task.batches == [list(range(500)), []]
    assert (report.read, report.written, report.left, report.commit_offset) == (507, 500, 7, 500)
    assert (report.dead_lettered, report.filtered) == (0, 0)


def test_too_many_held_records_are_left_for_the_next_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(task_runner, "MAX_HELD_RECORDS", 3)
    task = Task(lambda task, records: task.context.pause(T0))
    sink = sink_of(task)
    for offset in range(600):
        sink.put(record(offset))
    report = finished(sink, 600)

    assert task.offsets == list(range(500))
    assert (report.read, report.written, report.left, report.commit_offset) == (600, 500, 100, 500)


def test_dead_letters_and_dropped_records_are_counted_between_records():
    sink = sink_of(Task())
    sink.put(record(0))
    sink.count_left_out(T0, 10, is_dead_letter=True)
    sink.count_left_out(T0, 10, is_dead_letter=False)
    sink.put(record(3))
    report = finished(sink, 4)
    assert (report.read, report.written, report.dead_lettered, report.filtered) == (4, 2, 1, 1)


def test_staged_file_of_a_connector_that_cannot_publish_fails_before_the_manifest():
    class Stages(Task):
        def flush(self) -> Sequence[StagedFile]:
            return [StagedFile("k", "t", 0, 0, 1, 1, 1)]

    context = RoleContext({}, errors=Errors())
    sink = SinkTaskRunner(Stages(), context, [OffsetRange("t", 0, 0, 1)], stages=False)
    sink.open()
    with pytest.raises(TaskFailedError, match="Stages staged k, but its connector has no way to publish it"):
        finished(sink, 1)


class Columns(Task):
    """Takes batches whose values are all above `least`."""

    def __init__(self, least: int = -1) -> None:
        super().__init__()
        self.least = least

    def put_columns(self, batches: Sequence[RecordColumns]) -> bool:
        if min(value for batch in batches for value in batch.value.values.to_pylist()) <= self.least:
            return False
        self.calls.append("put_columns")
        self.batches += [batch.offsets.tolist() for batch in batches]
        return True


def columns(start: int, stop: int) -> RecordColumns:
    offsets = np.arange(start, stop, dtype=np.int64)
    return RecordColumns(
        topic="t", original_topic="t", original_partition=0, offsets=offsets, timestamps=offsets, timestamp_type=1,
        key=None, value=ValueColumns(None, pa.array(offsets)), read_records=lambda indexes: [], indexes=offsets - start,
    )  # fmt: skip


def test_columns_come_after_the_records_before_them_and_dropped_ones_are_filtered():
    task = Columns()
    sink = sink_of(task)
    sink.put(record(0))
    assert sink.accepts_columns()
    assert sink.put_columns([columns(1, 4), columns(4, 4)], np.arange(1, 6))
    report = finished(sink, 6)

    assert task.calls == ["start", "open", "put", "put_columns", "flush"]
    assert task.offsets == [0, 1, 2, 3]
    assert (report.read, report.written, report.filtered) == (6, 4, 2)


def test_columns_that_the_task_refuses_leave_no_trace():
    task = Columns(least=2)
    sink = sink_of(task)
    assert not sink.put_columns([columns(2, 5)], np.arange(2, 5))
    assert not sink.put_columns([columns(2, 4), columns(4, 5)], np.arange(2, 5))
    assert finished(sink, 0).read == 0


def test_columns_before_the_offset_that_the_sink_has_are_skipped():
    task = Columns()
    sink = sink_of(task)
    task.context.offset(T0, 3)
    assert sink.put_columns([columns(0, 2)], np.arange(2))
    assert sink.put_columns([columns(2, 5)], np.arange(2, 5))
    report = finished(sink, 5)

    assert task.offsets == [3, 4]
    assert (report.read, report.written, report.filtered) == (5, 2, 3)


def test_columns_of_a_paused_partition_go_record_by_record():
    task = Columns()
    sink = sink_of(task)
    task.context.pause(T0)
    assert not sink.put_columns([columns(0, 2)], np.arange(2))


def test_task_without_columns_says_so():
    assert not sink_of(Task()).accepts_columns()


def test_error_while_stopping_after_success_fails_the_task():
    class Stuck(Task):
        def stop(self) -> None:
            raise OSError("stuck")

    sink = sink_of(Stuck())
    finished(sink, 0)
    with pytest.raises(TaskFailedError, match=r"Stuck\.stop failed with OSError: stuck"):
        sink.close()


def test_error_while_closing_after_an_error_is_logged(caplog: pytest.LogCaptureFixture):
    class Stuck(Task):
        def close(self, partitions: Any) -> None:
            raise OSError("stuck")

    task = Stuck()
    sink = sink_of(task)
    with caplog.at_level(logging.WARNING):
        sink.abort()

    assert "Stuck.close failed with OSError: stuck" in caplog.text
    assert task.calls == ["start", "open", "stop"]
