"""The reports of the other tasks of a job in which one task fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_connect.documents.run import TaskReport


class OtherTasksError(Exception):
    """The cause of a task's error: carries the reports of the tasks of the job that succeeded."""

    def __init__(self, reports: Sequence[TaskReport]) -> None:
        """`reports`: of the tasks that succeeded."""
        super().__init__(f"{len(reports)} other tasks had staged {sum(len(r.files) for r in reports)} files")
        self.reports = tuple(reports)
