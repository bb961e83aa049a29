"""Spark as the engine: one job per run, one Spark task per Connect task, results as rows.

DataFrame API only, so that classic Spark (local, standalone, YARN, Kubernetes) and Spark Connect run the same code. A
row of the job is a task's number; `mapInArrow` hands it to one Python process that does the whole copy and returns one
row with the report. Bytes of records never pass through the JVM. Spark keeps the rows of the first successful attempt
of each task and there is no commit coordinator: what losing attempts did is invisible by design (exactly_once/).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from airflow_connect.api.errors import ConnectError, TaskFailedError
from airflow_connect.api.run import TaskPlan, TaskReport
from airflow_connect.runtime.engine.session import OpenSession, open_session
from airflow_connect.runtime.engine.task_rows import error_of, task_function

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_connect.runtime.settings import TaskSettings


class SparkEngine:
    """Runs tasks on Spark; starts its session at the first job and keeps it for the next ones."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        """`settings`: `spark.*` of the worker (`spark.master` or `spark.remote`, and whatever Spark accepts)."""
        self._settings = dict(settings)
        self._open: OpenSession | None = None

    def __enter__(self) -> SparkEngine:
        """Starts nothing yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the session."""
        self.stop()

    @property
    def may_leave_duplicates(self) -> bool:
        """True when Spark may run second copies of slow tasks (`spark.speculation`)."""
        return self._settings.get("spark.speculation", "false").lower() == "true"

    def progress_host(self) -> str:
        """Address under which executors reach this process: Spark's own for the driver, else loopback."""
        configured = self._settings.get("spark.driver.host") or os.environ.get("SPARK_LOCAL_IP")
        return configured or "127.0.0.1"

    def run(self, settings: TaskSettings, tasks: Sequence[TaskPlan]) -> list[TaskReport]:
        """Run every task.

        Raises:
            TaskFailedError: Spark failed, or gave up on a task for a reason that is not ours.
            ConnectError: the error with which a task failed for the last time.
        """
        session = self._get_session()
        function = task_function(settings, tasks)
        frame = session.range(0, len(tasks), 1, numPartitions=len(tasks)).mapInArrow(function, "report string")
        try:
            rows = frame.collect()
        except Exception as error:
            ours = error_of(str(error))
            raise ours or TaskFailedError(
                f"The Spark job failed: {_first_lines(str(error))}.",
                suggestion="The Spark log says more; nothing was committed and running again is safe.",
            ) from error
        return sorted((_report(row[0]) for row in rows), key=lambda report: report.task)

    def stop(self) -> None:
        """End the session and its JVM; idempotent."""
        opened, self._open = self._open, None
        if opened is not None:
            opened.stop()

    def _get_session(self) -> SparkSession:
        if self._open is None:
            # Executors would start whatever `python3` is first in PATH, without this package.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            try:
                self._open = open_session(self._settings)
            except ConnectError:
                raise
            except Exception as error:
                raise TaskFailedError(
                    f"Spark did not start: {_first_lines(str(error))}.",
                    suggestion="Check spark.master or spark.remote of the worker, and Java.",
                ) from error
        return self._open.session


def _report(text: str) -> TaskReport:
    return TaskReport.from_json(json.loads(text))


def _first_lines(text: str, lines: int = 3) -> str:
    kept = [line.strip() for line in text.splitlines() if line.strip()][:lines]
    return " ".join(kept)[:1000].rstrip(".")


