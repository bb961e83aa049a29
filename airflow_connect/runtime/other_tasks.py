"""What a job of several tasks leaves when one of them fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_connect.api.run import TaskReport


class OtherTasksError(Exception):
    """The cause of a task's error: what the tasks of its job report that did their work."""

    def __init__(self, reports: Sequence[TaskReport]) -> None:
        """`reports`: of the tasks that did not fail."""
        super().__init__(f"{len(reports)} other tasks had staged {sum(len(r.files) for r in reports)} files")
        self.reports = tuple(reports)
