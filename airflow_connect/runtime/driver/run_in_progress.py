"""What runs of sinks and of sources have in common: timed phases, an engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from airflow_connect.errors import TaskFailedError
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.crash_points import reached
from airflow_connect.runtime.driver.reporting import failed_end_of, now_ms
from airflow_connect.runtime.driver.stopping import refuse_when_stopping
from airflow_connect.runtime.reporting.redaction import redactor_of_run

if TYPE_CHECKING:
    from airflow_connect.api.config.references import ResolvedReferences
    from airflow_connect.documents.run import Plan, TaskPlan, TaskReport
    from airflow_connect.runtime.driver.pages_progress import PagesProgress
    from airflow_connect.runtime.settings import TaskSettings
    from airflow_connect.runtime.spec import Observer, RunSpec


class Engine(Protocol):
    """Runs the tasks of a plan somewhere. `runtime.engine.spark.SparkEngine` is the real one."""

    def run(self, settings: TaskSettings, tasks: Sequence[TaskPlan]) -> list[TaskReport]:
        """Run every task; returns one report per task, of its first successful attempt.

        Raises:
            TaskFailedError: Spark gave up.
            ConnectError: a task failed with an error of ours.
        """

    def cancel(self, run_id: str) -> None:
        """Let the job of a run fail, from another thread; does not wait for that."""

    def progress_host(self) -> str:
        """Address under which executors reach this process."""

    @property
    def may_leave_duplicates(self) -> bool:
        """Whether lost attempts may have staged something although every successful attempt was the first one."""


class TellsOthers(Protocol):
    """The session of a run, as far as sensors and pages are concerned."""

    def tell_end(self, end: Mapping[str, Any]) -> str:
        """See `ClusterSession.tell_end`."""

    def tell_progress(self, progress: Mapping[str, Any]) -> str:
        """See `ClusterSession.tell_progress`."""


class RunInProgress:
    """The frame of a run; the protocols are in sink/run.py and source/run.py.

    Attributes:
        references: the values of references in the configurations; every text of the run hides them.
        phases_ms: how long each phase took, in milliseconds.
    """

    def __init__(
        self, references: ResolvedReferences, spark: Mapping[str, str], observer: Observer, engine: Engine | None
    ) -> None:
        """Opens nothing.

        Args:
            references: see above.
            spark: `spark.*` of the worker, for the run's own engine.
            observer: receives events.
            engine: a shared one, or None.
        """
        self.references = references
        self.phases_ms: dict[str, int] = {}
        self._observer = observer
        self._pages: PagesProgress | None = None
        self._spark = spark
        self._engine = engine
        self._own_engine: Engine | None = None
        self._started_ms = now_ms()

    def stop_own_engine(self) -> None:
        """End the Spark session, if this run started one."""
        stop: Callable[[], None] | None = getattr(self._own_engine, "stop", None)
        if stop is not None:
            stop()

    def _get_engine(self) -> Engine:
        if self._engine is None:
            from airflow_connect.runtime.engine.spark import SparkEngine

            self._engine = self._own_engine = SparkEngine(self._spark)
        return self._engine

    def _run_tasks(
        self, plan: Plan, settings: TaskSettings, total: int, expected: tuple[int, str] = (0, "")
    ) -> list[TaskReport]:
        """The phase `copy`: one report per task of the plan.

        Args:
            plan: with the tasks to run.
            settings: what the tasks get; the address for progress reports is added.
            total: offsets to copy, for the progress; 0 if unknown.
            expected: parts that a source has to copy, and what they are.

        Raises:
            ConnectError: a task failed, or Spark lost one.
        """
        from airflow_connect.runtime.driver.progress import ProgressListener

        with self._phase("copy", tasks=len(plan.tasks), total=total):
            engine = self._get_engine()
            with ProgressListener(self._observer, engine.progress_host(), total) as listener:
                if self._pages is not None:
                    self._pages.tasks, self._pages.expected = listener.tasks, expected
                reports = engine.run(replace(settings, progress=listener.target), plan.tasks)
            if sorted(r.task for r in reports) != [t.task for t in plan.tasks]:
                raise TaskFailedError(
                    f"Spark returned the results of tasks {sorted(r.task for r in reports)}, "
                    f"not of {[t.task for t in plan.tasks]}."
                )
            reached(crash_points.COPIED)
        return reports

    @contextmanager
    def _telling_others(self, kafka: TellsOthers, spec: RunSpec) -> Iterator[None]:
        """Let pages know how far the block is, and sensors if it fails; see `reporting.failed_end_of`."""
        from airflow_connect.runtime.driver.pages_progress import PagesProgress

        self._observer = self._pages = PagesProgress(self._observer, kafka.tell_progress, spec, self._started_ms)
        try:
            yield
        except Exception as error:
            end = failed_end_of(spec.run_id, self._started_ms, error, spec.origin)
            if end is not None:
                redact = redactor_of_run(spec, self.references)
                hidden = {part: redact(end[part]) for part in ("message", "suggestion")}
                self._tell_end(kafka, {**end, **hidden})
            raise

    def _tell_end(self, kafka: TellsOthers, end: Mapping[str, Any]) -> None:
        warning = kafka.tell_end(end)
        if warning:
            self._warn(warning)

    def _warn(self, message: str) -> None:
        self._observer({"event": "warning", "message": self.references.hide(message)})

    @contextmanager
    def _phase(self, name: str, **details: Any) -> Iterator[None]:
        refuse_when_stopping()
        self._observer({"event": "phase", "phase": name, **details})
        started = time.monotonic()
        try:
            yield
        finally:
            self.phases_ms[name] = self.phases_ms.get(name, 0) + round((time.monotonic() - started) * 1000)
