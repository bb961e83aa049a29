"""Named points of a run at which a test may kill it. In production this module costs one dictionary look-up.

A test sets AIRFLOW_CONNECT_CRASH_AT to one of the names below; the process that reaches it is killed with SIGKILL,
together with its whole process group, as if the machine had lost power. AIRFLOW_CONNECT_CRASH_SKIP lets the first n
arrivals pass.
"""

from __future__ import annotations

import os
import signal

VARIABLE = "AIRFLOW_CONNECT_CRASH_AT"
SKIP = "AIRFLOW_CONNECT_CRASH_SKIP"

FENCED = "fenced"
RECOVERED = "recovered"
PLANNED = "planned"
BEGUN = "begun"
TASK_READING = "task.reading"
TASK_STAGED = "task.staged"
COPIED = "copied"
AUDITED = "audited"
MANIFEST_WRITTEN = "manifest.written"
PUBLISHING = "publishing"
PUBLISHED = "published"
COMMITTED = "committed"

SOURCE_TASKS_FENCED = "source.tasks.fenced"
SOURCE_PLANNED = "source.planned"
SOURCE_RECONCILED = "source.reconciled"
SOURCE_TASK_OPENED = "source.task.opened"
SOURCE_TASK_POLLED = "source.task.polled"
SOURCE_TASK_SENT = "source.task.sent"
SOURCE_TASK_STORED = "source.task.stored"
SOURCE_TASK_ENDED = "source.task.ended"

DRIVER_POINTS = (
    FENCED,
    RECOVERED,
    PLANNED,
    BEGUN,
    COPIED,
    AUDITED,
    MANIFEST_WRITTEN,
    PUBLISHING,
    PUBLISHED,
    COMMITTED,
)
TASK_POINTS = (TASK_READING, TASK_STAGED)
SOURCE_DRIVER_POINTS = (FENCED, BEGUN, SOURCE_TASKS_FENCED, SOURCE_PLANNED, COPIED, SOURCE_RECONCILED, COMMITTED)
SOURCE_TASK_POINTS = (
    SOURCE_TASK_OPENED,
    SOURCE_TASK_POLLED,
    SOURCE_TASK_SENT,
    SOURCE_TASK_STORED,
    SOURCE_TASK_ENDED,
)

_arrivals: dict[str, int] = {}


def reached(name: str) -> None:
    """Kill the process here if a test requested it."""
    if os.environ.get(VARIABLE) != name:
        return
    _arrivals[name] = _arrivals.get(name, 0) + 1
    if _arrivals[name] > int(os.environ.get(SKIP, "0")):
        os.killpg(os.getpgrp(), signal.SIGKILL)
