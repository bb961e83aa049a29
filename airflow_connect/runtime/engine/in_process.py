"""Runs the tasks of a run in this process, one after the other if they allow it: for tests, and for small copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from airflow_connect.errors import ConnectError, JavaGroupError
from airflow_connect.runtime.other_tasks import OtherTasksError

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
        """Run every task.

        As on Spark, a task goes on if another one has failed for a reason that stays, such as a bad record: what it
        writes may be what the next run of the other one needs.

        Raises:
            ConnectError: the first error with which a task failed; its cause is `OtherTasksError`.
        """
        from airflow_connect.runtime.executor.task import run_task

        settings = replace(settings, columnar=settings.columnar and self._columnar)
        reports: list[TaskReport] = []
        errors: list[ConnectError] = []
        for result in _results(partial(run_task, settings, attempt=0), tasks, together=settings.together):
            try:
                reports.append(result())
            except ConnectError as error:
                if error.retriable:
                    raise
                errors.append(error)
        if errors:
            raise errors[0] from OtherTasksError(reports)
        return reports

    def cancel(self, run_id: str) -> None:
        """Nothing: a task is not interrupted here, and its run ends before the next step."""

    def progress_host(self) -> str:
        """Where tasks reach this process."""
        return "127.0.0.1"


def _results(
    run: Callable[[TaskPlan], TaskReport], tasks: Sequence[TaskPlan], *, together: bool
) -> Iterator[Callable[[], TaskReport]]:
    """What returns the report of each task, or raises its error: one after another, unless they need each other."""
    if not together or len(tasks) == 1:
        yield from (partial(run, task) for task in tasks)
        return
    with ThreadPoolExecutor(len(tasks), "task") as threads:
        started = [threads.submit(run, task) for task in tasks]
        wait(started)
    # If one of them fails, the others do because of it: its error comes first.
    yield from [one.result for one in sorted(started, key=lambda one: isinstance(one.exception(), JavaGroupError))]
