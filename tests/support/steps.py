"""Acting at the named steps of runs in this process: crash there, wait there, do something there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from airflow_connect.documents.run import RunReport, TaskPlan, TaskReport
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.driver import reporting, run_in_progress
from airflow_connect.runtime.driver.sink import run
from airflow_connect.runtime.driver.source import run as source_run
from airflow_connect.runtime.settings import TaskSettings
from tests.support.copies.s3 import InProcessEngine, Sink
from tests.support.waiting import TIMEOUT_S


class Crashed(BaseException):
    """Ends a run like a killed process: nothing of its own code handles it."""


class Steps:
    """Runs actions when a run reaches a crash point; each action once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._actions: list[tuple[str, int, Callable[[], None]]] = []
        self.seen: list[str] = []
        for module in (run, source_run, run_in_progress, reporting, crash_points):
            monkeypatch.setattr(module, "reached", self._reached)

    def on(self, point: str, action: Callable[[], None], skip: int = 0) -> None:
        """Call `action` at the first arrival at `point` after `skip` others."""
        self._actions.append((point, skip, action))

    def crash(self, point: str, skip: int = 0) -> None:
        """Crash the first run that arrives at `point`."""

        def die() -> None:
            raise Crashed(point)

        self.on(point, die, skip)

    def _reached(self, name: str) -> None:
        self.seen.append(name)
        for index, (point, skip, action) in enumerate(self._actions):
            if point != name:
                continue
            if skip:
                self._actions[index] = (point, skip - 1, action)
                continue
            del self._actions[index]
            action()
            return


class Frozen:
    """A run in a thread of its own that stands still at a step until it is told to go on."""

    def __init__(self, sink: Sink, hold: Callable[[Callable[[], None]], Sink | None]) -> None:
        """`hold` gets the function that blocks and installs it; it may return the sink to run instead."""
        self._arrived, self._go = threading.Event(), threading.Event()
        own = hold(self._stand) or sink
        self._sink = replace(own, events=[])
        self._result: list[RunReport | BaseException] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._arrived.wait(TIMEOUT_S), f"the run never came to the step: {self._result}"

    @classmethod
    def at(cls, steps: Steps, point: str, sink: Sink) -> Frozen:
        """Freeze a run at a crash point."""
        return cls(sink, lambda stand: steps.on(point, stand))

    @classmethod
    def while_copying(cls, sink: Sink) -> Frozen:
        """Freeze a run after its tasks have staged everything and before their reports arrive."""
        return cls(sink, lambda stand: replace(sink, engine=HookedEngine(after=stand)))

    def thaw(self) -> RunReport:
        """Let it go on; returns its report."""
        self._go.set()
        self._thread.join(TIMEOUT_S)
        assert self._result, "the run did not end"
        found = self._result[0]
        if isinstance(found, BaseException):
            raise found
        return found

    def _stand(self) -> None:
        self._arrived.set()
        assert self._go.wait(TIMEOUT_S * 2)

    def _run(self) -> None:
        try:
            self._result.append(self._sink.try_run())
        except BaseException as error:  # noqa: BLE001 (handed to the test's thread by `thaw`)
            self._result.append(error)


class HookedEngine(InProcessEngine):
    """Calls `before` and `after` around a job; `change` may replace tasks, `tamper` reports."""

    def __init__(
        self,
        before: Callable[[], None] = lambda: None,
        after: Callable[[], None] = lambda: None,
        change: Callable[[TaskPlan], TaskPlan] = lambda task: task,
        tamper: Callable[[TaskReport], TaskReport] = lambda report: report,
    ) -> None:
        super().__init__()
        self._before, self._after, self._change, self._tamper = before, after, change, tamper

    def run(self, settings: TaskSettings, tasks: Sequence[TaskPlan]) -> list[TaskReport]:
        self._before()
        reports = super().run(settings, [self._change(task) for task in tasks])
        self._after()
        return [self._tamper(report) for report in reports]
