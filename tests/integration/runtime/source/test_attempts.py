"""Attempts of one task beside each other, or waking up when all is over: its records arrive once, whoever is late.

Speculation and executors that Spark has lost sight of bring them about.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.documents.run import RunReport, TaskPlan, TaskReport
from airflow_connect.errors import ConnectError, FencedError, TaskFailedError
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.executor.task import run_task
from airflow_connect.runtime.settings import TaskSettings
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.runs import InProcessEngine
from tests.integration.connectors.file_stream.source.conftest import MakeLines, make_lines
from tests.integration.runtime.source.conftest import Numbers
from tests.support.steps import Steps
from tests.support.waiting import TIMEOUT_S

__all__ = ["make_lines"]
pytestmark = [pytest.mark.crash, pytest.mark.integration]


class Attempt:
    """The first attempt of a task: it stands still at a step until it is told to go on."""

    def __init__(self, steps: Steps, point: str, skip: int = 0) -> None:
        self._stands, self._go = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self.result: TaskReport | ConnectError | None = None
        steps.on(point, self._stand, skip)

    def start(self, settings: TaskSettings, task: TaskPlan) -> None:
        """Returns when it stands still."""
        self._thread = threading.Thread(target=self._run, args=(settings, task), daemon=True)
        self._thread.start()
        assert self._stands.wait(TIMEOUT_S), f"the attempt never came to the step: {self.result!r}"

    def thaw(self) -> TaskReport | ConnectError | None:
        """Let it go on; what became of it."""
        self._go.set()
        assert self._thread is not None
        self._thread.join(TIMEOUT_S)
        assert self.result is not None, "the attempt did not end"
        return self.result

    def _run(self, settings: TaskSettings, task: TaskPlan) -> None:
        try:
            self.result = run_task(settings, task, attempt=0)
        except ConnectError as error:
            self.result = error

    def _stand(self) -> None:
        self._stands.set()
        assert self._go.wait(TIMEOUT_S * 2)


class OtherAttempts(InProcessEngine):
    """Gives the first attempt of the first task to `first` and takes the reports of the second attempts."""

    may_leave_duplicates = True

    def __init__(self, first: Attempt, after: Callable[[], Any] = lambda: None) -> None:
        """`after`: called when the second attempts have ended, before the driver hears of it."""
        super().__init__()
        self._first, self._after = first, after

    def run(self, settings: TaskSettings, tasks: Sequence[TaskPlan]) -> list[TaskReport]:
        self._first.start(settings, tasks[0])
        reports = [run_task(settings, task, attempt=1) for task in tasks]
        self._after()
        return reports


STEPS = [
    pytest.param(crash_points.SOURCE_TASK_OPENED, 0, id="before it has read its offsets"),
    pytest.param(crash_points.SOURCE_TASK_SENT, 0, id="inside its first transaction"),
    pytest.param(crash_points.SOURCE_TASK_SENT, 4, id="inside its fifth transaction"),
    pytest.param(crash_points.SOURCE_TASK_STORED, 2, id="behind its third transaction"),
    pytest.param(crash_points.SOURCE_TASK_ENDED, 0, id="when it has nothing left to do"),
]


@pytest.mark.parametrize(("point", "skip"), STEPS)
def test_attempt_that_wakes_up_after_another_one_has_done_its_work_changes_nothing(
    numbers: Numbers, monkeypatch: pytest.MonkeyPatch, point: str, skip: int
):
    numbers.feed(30)
    attempt = Attempt(Steps(monkeypatch), point, skip)

    report = run_connector(numbers.spec(tasks_max="1", numbers_batch="3"), engine=OtherAttempts(attempt))
    numbers.feed(40)
    zombie = attempt.thaw()
    numbers.run(tasks_max="2")

    assert report.status == "done", report.error  # although the attempt that counts may have found nothing to do
    assert report.notes == ("1 task needed more than one attempt; counts are those of the last attempts.",)
    if point == crash_points.SOURCE_TASK_ENDED:
        assert isinstance(zombie, TaskReport)
    else:
        assert isinstance(zombie, FencedError | TaskFailedError), zombie
    numbers.assert_exactly_once(40)


@pytest.mark.parametrize(("point", "skip"), STEPS[1:4])
def test_attempt_that_wakes_up_between_other_attempt_and_driver_is_no_result(
    numbers: Numbers, monkeypatch: pytest.MonkeyPatch, point: str, skip: int
):
    numbers.feed(30)
    attempt = Attempt(Steps(monkeypatch), point, skip)
    zombies: list[Any] = []
    engine = OtherAttempts(attempt, after=lambda: zombies.append(attempt.thaw()))

    report = run_connector(numbers.spec(tasks_max="1", numbers_batch="3"), engine=engine)

    assert report.status == "done", report.error
    assert [(z.code, z.retriable) for z in zombies] == [("task.taken_over", True)], zombies
    numbers.run()
    numbers.assert_exactly_once(30)


class LateAttempts(InProcessEngine):
    """Remembers what tasks were given, so that attempts of them can start when the run is over."""

    may_leave_duplicates = True

    def run(self, settings: TaskSettings, tasks: Sequence[TaskPlan]) -> list[TaskReport]:
        self.given = [(settings, task) for task in tasks]
        return super().run(settings, tasks)

    def start(self) -> list[ConnectError]:
        """How attempts that start now fail."""
        errors: list[ConnectError] = []
        for settings, task in self.given:
            with pytest.raises(ConnectError) as failed:
                run_task(settings, task, attempt=1)
            errors.append(failed.value)
        return errors


def run_with(engine: InProcessEngine, spec: RunSpec) -> RunReport:
    report = run_connector(spec, engine=engine)
    assert report.status == "done", report.error
    return report


def test_attempts_that_start_after_their_run_has_ended_are_refused(numbers: Numbers):
    numbers.feed(10, 10)
    late = LateAttempts()
    run_with(late, numbers.spec())

    assert {(type(error), error.code) for error in late.start()} == {(FencedError, "run.fenced")}
    assert numbers.run().status == "empty"
    numbers.assert_exactly_once(10, 10)


def test_attempts_that_start_after_ranges_of_a_file_were_brought_together_read_nothing_twice(
    make_lines: MakeLines,
    tmp_path: Path,
):
    wanted = [f"line {n}" for n in range(300)]
    (tmp_path / "big.log").write_text("".join(f"{line}\n" for line in wanted))
    source = make_lines(tmp_path / "big.log", split_bytes="700")
    late = LateAttempts()
    report = run_with(late, source.spec(tasks_max="3"))

    errors = late.start()

    assert report.tasks == len(errors) == 3
    assert sorted(source.lines()) == sorted(wanted)
    source.run()
    assert sorted(source.lines()) == sorted(wanted)


def test_attempt_that_opens_before_offsets_are_reconciled_commits_nothing_after_it(
    make_lines: MakeLines,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    """The attempt is past its look at the claim and has read no offset when the driver begins to reconcile."""
    wanted = [f"line {n}" for n in range(300)]
    (tmp_path / "big.log").write_text("".join(f"{line}\n" for line in wanted))
    source = make_lines(tmp_path / "big.log", split_bytes="700")
    attempt = Attempt(Steps(monkeypatch), crash_points.SOURCE_TASK_OPENED, skip=3)

    class Late(InProcessEngine):
        may_leave_duplicates = True

        def run(self, settings: TaskSettings, tasks: Sequence[TaskPlan]) -> list[TaskReport]:
            reports = super().run(settings, tasks)
            attempt.start(settings, tasks[0])
            return reports

    run_with(Late(), source.spec(tasks_max="3"))

    assert isinstance(attempt.thaw(), FencedError)
    source.run()
    assert sorted(source.lines()) == sorted(wanted)
