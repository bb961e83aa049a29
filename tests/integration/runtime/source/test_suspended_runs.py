"""A run that is suspended between its claim and the fencing of tasks, and wakes up while a newer run copies."""

from __future__ import annotations

import pytest

from airflow_connect.kafka.writing import transactions
from airflow_connect.runtime import crash_points
from tests.integration.runtime.source.conftest import Numbers
from tests.support.steps import Frozen, Steps

pytestmark = [pytest.mark.crash, pytest.mark.integration]


@pytest.mark.parametrize(
    ("point", "skip", "times"),
    [
        pytest.param(crash_points.SOURCE_TASK_OPENED, 0, 2, id="before the first poll"),
        pytest.param(crash_points.SOURCE_TASK_SENT, 1, 2, id="inside a transaction"),
        pytest.param(crash_points.SOURCE_TASK_STORED, 3, 2, id="behind a transaction"),
        pytest.param(crash_points.SOURCE_TASK_ENDED, 0, 1, id="when a task has ended and the next one has not begun"),
    ],
)
def test_newer_run_goes_on_although_an_older_one_fences_its_tasks(
    numbers: Numbers, monkeypatch: pytest.MonkeyPatch, point: str, skip: int, times: int
):
    numbers.feed(5, 5)
    numbers.run(numbers_batch="3")  # Its tasks are those that the suspended run has to fence.
    numbers.feed(30, 31)
    steps = Steps(monkeypatch)
    suspended = Frozen.at(steps, crash_points.BEGUN, numbers)
    woken = []
    steps.on(point, lambda: woken.append(suspended.thaw()), skip)

    report = numbers.try_run(numbers_batch="3")

    assert woken[0].error is not None
    assert woken[0].error["code"] == "run.fenced"
    assert report.status == "done", report.error
    assert len([note for note in report.notes if "The tasks ran a second time" in note]) == times - 1, report.notes
    numbers.assert_exactly_once(30, 31)


def test_tasks_that_are_fenced_again_end_the_run(numbers: Numbers, monkeypatch: pytest.MonkeyPatch):
    numbers.feed(30)
    steps = Steps(monkeypatch)

    def fence() -> None:
        """What a suspended run does, or Kafka to a transaction that is open for too long."""
        task = transactions.TransactionalWriter(
            {"bootstrap.servers": numbers.bootstrap}, f"source-workers-{numbers.name}-0"
        )
        task.fence()

    for _ in range(2):
        steps.on(crash_points.SOURCE_TASK_SENT, fence)
    report = numbers.try_run(numbers_batch="3", tasks_max="1")
    numbers.run()

    assert report.error is not None
    assert (report.error["code"], report.error["retriable"]) == ("task.taken_over", True)
    numbers.assert_exactly_once(30)
