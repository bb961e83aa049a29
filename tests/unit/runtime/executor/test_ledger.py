"""The ledger of a sink's partitions: what may be committed, what is left for the next run, and every count."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pytest

from airflow_connect.api import DataError, OffsetRange, SinkRecord, SinkTask, StagedFile, TopicPartition
from airflow_connect.api.record import KafkaRecord
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.errors import TaskFailedError
from airflow_connect.runtime.executor.sink import task_runner
from airflow_connect.runtime.executor.sink.task_runner import SinkTaskRunner
from tests.support.copies.sink_tasks import Tolerant

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def record(offset: int) -> SinkRecord:
    message = KafkaRecord("t", 0, offset, b"k", b"v")
    return SinkRecord(
        topic="t", partition=0, offset=offset, original_topic="t", original_partition=0, value=offset, consumed=message
    )


class Task(SinkTask):
    """Notes how it is called."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def start(self, config: Mapping[str, str]) -> None:
        self.calls.append("start")

    def open(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append("open")

    def put(self, records: Sequence[SinkRecord]) -> None:
        self.calls.append("put")

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append("close")

    def stop(self) -> None:
        self.calls.append("stop")


class Buffering(Task):
    """Keeps records in files of three; what is in no full file is left, unless the run must leave nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.full = 0
        self.given: list[int] = []
        self.aborted = 0

    def put(self, records: Sequence[SinkRecord]) -> None:
        self.given += [r.offset for r in records]
        self.full = len(self.given) // 3 * 3

    def flush(self) -> Sequence[StagedFile]:
        if self.context.must_flush(T0):
            self.full = len(self.given)
        return ()

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        safe = self.given[self.full - 1] + 1 if self.full else 0
        return {tp: given if self.full == len(self.given) else safe for tp, given in offsets.items()}

    def abort(self) -> None:
        self.aborted += 1


def buffering(*, flush_on_end: bool = False, end: int = 100) -> tuple[Buffering, SinkTaskRunner]:
    task = Buffering()
    context = RoleContext({}, errors=Tolerant(), flush_on_end=flush_on_end)
    runner = SinkTaskRunner(task, context, [OffsetRange("t", 0, 0, end)])
    runner.open()
    return task, runner


def test_records_in_files_that_are_not_full_are_left_and_counted():
    _, runner = buffering()
    for offset in (0, 1, 4, 5, 6):
        runner.put(record(offset))
        runner.count_left_out(T0, offset + 10, is_dead_letter=False)
    runner.count_left_out(T0, 3, is_dead_letter=True)
    report = runner.report(T0, 100, end=None, reason="")

    assert (report.commit_offset, report.written, report.dead_lettered, report.left) == (5, 3, 1, 7)
    assert report.read == report.written + report.filtered + report.dead_lettered + report.left


def test_a_run_that_leaves_nothing_says_so_and_keeps_no_offsets():
    task, runner = buffering(flush_on_end=True)
    for offset in range(5):
        runner.put(record(offset))
    report = runner.report(T0, 100, end=None, reason="")

    assert task.full == 5
    assert (report.commit_offset, report.written, report.left) == (100, 5, 0)


def test_a_partition_stopped_by_dead_letters_is_flushed_where_it_would_make_no_progress():
    task, runner = buffering()
    runner.put(record(0))
    runner.count_left_out(T0, 1, is_dead_letter=True)
    runner.complete({T0})
    report = runner.report(T0, 2, end=2, reason="dead letters")

    assert task.full == 1
    assert (report.commit_offset, report.written, report.dead_lettered, report.left) == (2, 1, 1, 0)


def test_a_record_that_is_reported_or_left_out_after_it_was_put_moves_in_the_ledger():
    task, runner = buffering()
    for offset in range(4):
        runner.put(record(offset))
    runner.count_left_out(T0, 4, is_dead_letter=False)
    runner.complete()
    task.context.leave_out(record(1))
    task.context.leave_out(record(1))
    task.context.leave_out(record(3), DataError("null"))
    report = runner.report(T0, 100, end=None, reason="")

    assert (report.commit_offset, report.written, report.filtered, report.left) == (3, 2, 1, 2)


@pytest.mark.parametrize("answer", [-1, 7, None])
def test_an_offset_that_nobody_was_given_is_refused(answer: int | None):
    class Wrong(Task):
        def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
            return {} if answer is None else {T0: answer}

    runner = SinkTaskRunner(
        Wrong(), RoleContext({}, errors=Tolerant(), flush_on_end=False), [OffsetRange("t", 0, 0, 5)]
    )
    runner.open()
    with pytest.raises(TaskFailedError, match=r"pre_commit returned the offset .* from 0 to 5"):
        runner.report(T0, 5, end=None, reason="")


def test_a_task_that_must_leave_nothing_and_does_is_refused():
    class Keeps(Task):
        def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
            return dict.fromkeys(offsets, 0)

    runner = SinkTaskRunner(Keeps(), RoleContext({}, errors=Tolerant()), [OffsetRange("t", 0, 0, 5)])
    runner.open()
    with pytest.raises(TaskFailedError, match="although flush had to leave nothing open before 5"):
        runner.report(T0, 5, end=None, reason="")


def test_what_a_task_has_skipped_in_open_is_not_read():
    class Resumes(Task):
        def open(self, partitions: Collection[TopicPartition]) -> None:
            self.context.offset(T0, 3)
            self.context.offset(T1, 9)

    runner = SinkTaskRunner(
        Resumes(), RoleContext({}, errors=Tolerant()), [OffsetRange("t", 0, 0, 5), OffsetRange("t", 1, 0, 5)]
    )
    runner.open()
    assert runner.read_ranges() == [OffsetRange("t", 0, 3, 5), OffsetRange("t", 1, 5, 5)]


def test_abort_discards_once_and_before_close():
    task, runner = buffering()
    runner.abort()
    runner.abort()
    assert task.aborted == 1
    assert task.calls == ["start", "open", "close", "stop"]


def test_a_defect_in_abort_hides_no_error_and_close_and_stop_still_come():
    class Defective(Task):
        def abort(self) -> None:
            raise TypeError("defect")

        def close(self, partitions: Collection[TopicPartition]) -> None:
            super().close(partitions)
            raise TypeError("defect")

    task = Defective()
    runner = SinkTaskRunner(task, RoleContext({}, errors=Tolerant()), [OffsetRange("t", 0, 0, 5)])
    runner.open()
    runner.abort()

    assert task.calls == ["start", "open", "close", "stop"]


def test_an_own_defect_stays_as_it_is_and_is_not_its_own_cause(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(task_runner, "is_own_defect", lambda error: True)

    class Defective(Task):
        def put(self, records: Sequence[SinkRecord]) -> None:
            self.writing = records[0]
            raise TypeError("defect")

    runner = SinkTaskRunner(Defective(), RoleContext({}, errors=Tolerant()), [OffsetRange("t", 0, 0, 5)])
    runner.open()
    runner.put(record(3))
    with pytest.raises(TypeError, match="defect") as caught:
        runner.complete()
    assert caught.value.__cause__ is None
    assert caught.value.__notes__ == ["while the record at t-0@3 was written"]
