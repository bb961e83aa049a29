"""Runs the tasks of a run one after the other in this process: for tests, and for small copies inside a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_connect.documents.run import TaskPlan, TaskReport
    from airflow_connect.runtime.settings import TaskSettings


class InProcessEngine:
    """An engine for embedded use, and for tests."""

    may_leave_duplicates = False

    def __init__(self, *, columnar: bool = True) -> None:
        """`columnar`: whether the columnar path may be used."""
        self._columnar = columnar

    def run(self, settings: TaskSettings, tasks: Sequence[TaskPlan]) -> list[TaskReport]:
        """Run every task."""
        from airflow_connect.runtime.executor.task import run_task

        settings = replace(settings, columnar=settings.columnar and self._columnar)
        return [run_task(settings, task, attempt=0) for task in tasks]

    def cancel(self, run_id: str) -> None:
        """Nothing: a task is not interrupted here, and its run ends before the next step."""

    def progress_host(self) -> str:
        """Where tasks reach this process."""
        return "127.0.0.1"
