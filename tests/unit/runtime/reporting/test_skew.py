"""The sentence about the slowest task: only if it decides how long the run takes."""

from __future__ import annotations

import pytest

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.documents.run import PartitionReport, TaskReport
from airflow_connect.runtime.reporting.skew import skew_notes


def _task(number: int, took_ms: int, records: int) -> TaskReport:
    part = PartitionReport(
        OffsetRange("t", number, 0, records), position=records, commit_offset=records, read=records, written=records
    )
    return TaskReport(number, 0, (part,), (), timings_ms={"read": took_ms - 1000, "flush": 1000})


def test_slowest_task_is_compared_with_the_mean():
    reports = [_task(0, 10_000, 1000), _task(1, 70_000, 9000), _task(2, 10_000, 2000)]
    assert skew_notes(reports) == (
        "Task 1 took 70.0 s, 2.3 times the mean of 3 tasks (30.0 s). It had 9,000 records, the mean is 4,000.",
    )


@pytest.mark.parametrize(
    "times",
    [(), (90_000,), (60_000, 60_000), (1_000, 9_000), (100_000, 130_000)],
    ids=["no task", "one task", "even", "a short run", "a small ratio"],
)
def test_small_skew_has_no_sentence(times: tuple[int, ...]):
    assert skew_notes([_task(number, took, 100) for number, took in enumerate(times)]) == ()
