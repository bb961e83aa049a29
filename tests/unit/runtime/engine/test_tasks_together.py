"""Tasks in this process that need each other."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from airflow_connect.documents.run import TaskPlan
from airflow_connect.errors import JavaGroupError, TaskFailedError
from airflow_connect.runtime.engine.in_process import InProcessEngine
from airflow_connect.runtime.executor import task as task_module
from airflow_connect.runtime.settings import TaskSettings

LONGEST_S = 10.0
TASKS = [TaskPlan(0, ()), TaskPlan(1, ())]


def test_they_run_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=LONGEST_S)

    def run(_settings: TaskSettings, task: TaskPlan, attempt: int) -> Any:
        both.wait()
        return (task.task, attempt)

    monkeypatch.setattr(task_module, "run_task", run)
    assert InProcessEngine().run(TaskSettings({}, {}, together=True), TASKS) == [(0, 0), (1, 0)]


def test_error_of_the_task_that_failed_first_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_settings: TaskSettings, task: TaskPlan, attempt: int) -> Any:
        raise JavaGroupError("alone") if task.task == 0 else TaskFailedError("the reason")

    monkeypatch.setattr(task_module, "run_task", run)
    with pytest.raises(TaskFailedError, match="the reason"):
        InProcessEngine().run(TaskSettings({}, {}, together=True), TASKS)
