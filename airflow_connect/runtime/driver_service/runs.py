"""All runs of the service: starts them at most once, a few at a time, and ends those that nobody asks after."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from airflow_connect.errors import UnavailableError
from airflow_connect.runtime.driver_service.contract import EndedBy, RunNews, RunState, RunView
from airflow_connect.runtime.driver_service.driven_run import DrivenRun, Driver, start_driver
from airflow_connect.runtime.spec import RunSpec

Start = Callable[[RunSpec, Callable[[str], None]], Driver]
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """What the service allows.

    Attributes:
        at_once: drivers that run at the same time; others wait for a place, in the order in which they came.
        waiting: runs that wait at the same time; more are refused.
        lease_s: seconds after which a run that nobody asks after is ended.
        kept_s: seconds for which the outcome of a run is kept if nobody fetches it.
        kept: outcomes that are kept; of more, the oldest are dropped.
    """

    at_once: int = 4
    waiting: int = 1000
    lease_s: float = 300.0
    kept_s: float = 24 * 3600.0
    kept: int = 10_000


class DriverRuns:
    """The runs of one service. Safe for several threads."""

    def __init__(
        self,
        limits: Limits,
        tell: Tell,
        *,
        start: Start = start_driver,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin without runs.

        Args:
            limits: what is allowed.
            tell: writes a line of the service's log.
            start: starts a driver.
            clock: seconds since an arbitrary point.
        """
        self.limits = limits
        self._tell = tell
        self._start_driver, self._clock = start, clock
        self._key = secrets.token_bytes(32)
        self._lock = threading.RLock()
        self._runs: dict[str, DrivenRun] = {}
        self._waiting: list[DrivenRun] = []
        self._threads: dict[str, threading.Thread] = {}
        self._is_closed = False

    def start(self, spec: RunSpec) -> RunView:
        """Start a run, or find the one that was started before for the same id or by an earlier attempt of its task.

        A run of an earlier attempt is found if it does the same and has not failed. One that does something else, since
        the task has changed, is ended first.

        Raises:
            UnavailableError: too many runs wait, or the service is ending.
        """
        while True:
            with self._lock:
                known = self._runs.get(spec.run_id)
                if known is not None:
                    return self._asked(known).view()
                run = DrivenRun(spec, self._key, self._clock(), self.limits.lease_s)
                earlier = self._of_task(run)
                if earlier is None:
                    return self._enter(run)
                if earlier.work == run.work:
                    self._tell(f"Run {earlier.run_id} is taken over by another attempt of its task.")
                    earlier.attempt = spec.run_id
                    return self._asked(earlier).view()
            self.end(earlier.run_id)  # Outside the lock: it takes seconds.

    def _of_task(self, run: DrivenRun) -> DrivenRun | None:
        """The run of an earlier attempt of the same task that works, waits, or has ended well."""
        if run.task is None:
            return None
        same = (other for other in self._runs.values() if other.task == run.task)
        return next((other for other in same if other.is_done or not other.is_ending), None)

    def _enter(self, run: DrivenRun) -> RunView:
        if self._is_closed:
            raise _ending()
        if len(self._waiting) >= self.limits.waiting:
            raise UnavailableError(
                f"The driver service has {len(self._waiting)} runs waiting, which is its limit.",
                code="driver_service.busy",
                suggestion="Try again later, raise --at-once or --waiting of the service, or start another service.",
            )
        self._runs[run.run_id] = run
        self._waiting.append(run)
        self._start_next()
        return run.view()

    def _start_next(self) -> None:
        while self._waiting and len(self._threads) < self.limits.at_once and not self._is_closed:
            run = self._waiting.pop(0)
            thread = threading.Thread(target=self._drive, args=(run,), name=f"run-{run.run_id}", daemon=True)
            self._threads[run.run_id] = thread
            thread.start()

    def _drive(self, run: DrivenRun) -> None:
        self._tell(f"Run {run.run_id} begins.")
        try:
            run.drive(self._start_driver, self._clock)
        finally:
            self._tell(f"Run {run.run_id} has ended{_how(run.view())}.")
            with self._lock:
                del self._threads[run.run_id]
                self._start_next()

    def view(self, run_id: str) -> RunView | None:
        """A run; None: it is not known. Whoever asks renews its lease."""
        with self._lock:
            run = self._runs.get(run_id)
        return None if run is None else self._asked(run).view()

    def news(self, run_ids: Iterable[str]) -> dict[str, RunNews]:
        """What happened in some runs since the last look; renews their leases."""
        with self._lock:
            found = {run_id: self._runs.get(run_id) for run_id in run_ids}
        return {
            run_id: RunNews(RunState.UNKNOWN) if run is None else self._asked(run).news()
            for run_id, run in found.items()
        }

    def end(self, run_id: str, attempt: str = "") -> RunView | None:
        """End a run and forget it. Returns when all its processes are gone.

        Args:
            run_id: of the run.
            attempt: the run id that the attempt of the task has asked with. If a later attempt has taken the run over,
                it is left alone: a task that is cleared starts again while its old attempt is still being ended. "":
                whoever has it.

        Returns:
            The run as it ended, which may be well, or as it goes on for a later attempt; None: it is not known.
        """
        with self._lock:
            run = self._runs.get(run_id)
            if run is None:
                return None
            if attempt and run.attempt != attempt:
                self._tell(f"Run {run_id} is not ended for an attempt of its task that another one has followed.")
                return run.view()
        self._end(run, EndedBy.REQUEST)
        with self._lock:
            self._runs.pop(run_id, None)
        return run.view()

    def counts(self) -> dict[str, int]:
        """How many drivers run, and how many runs wait."""
        with self._lock:
            return {"running": len(self._threads), "waiting": len(self._waiting)}

    def sweep(self) -> None:
        """End the runs whose lease is over, drop old outcomes. To be called every second or so."""
        now = self._clock()
        with self._lock:
            lost = [
                run for run in self._runs.values() if not run.is_ending and now - run.asked_at > self.limits.lease_s
            ]
            ended = sorted((at, run.run_id) for run in self._runs.values() if (at := run.ended_at) is not None)
            too_many = len(ended) - self.limits.kept
            for number, (at, run_id) in enumerate(ended):
                if number < too_many or now - at > self.limits.kept_s:
                    del self._runs[run_id]
        for run in lost:
            self._tell(f"Run {run.run_id} is ended: nobody asked after it for {self.limits.lease_s:g} seconds.")
        self._end_all(lost, EndedBy.LEASE)

    def close(self) -> None:
        """End all runs; start no more. Returns when all processes are gone."""
        with self._lock:
            self._is_closed = True
            runs = [run for run in self._runs.values() if run.state is not RunState.ENDED]
        self._end_all(runs, EndedBy.SHUTDOWN)

    def _end_all(self, runs: list[DrivenRun], by: EndedBy) -> None:
        if runs:
            with ThreadPoolExecutor(len(runs), thread_name_prefix="ending") as threads:
                list(threads.map(lambda run: self._end(run, by), runs))

    def _end(self, run: DrivenRun, by: EndedBy) -> None:
        with self._lock:
            if run in self._waiting:
                self._waiting.remove(run)
        run.end(by)

    def _asked(self, run: DrivenRun) -> DrivenRun:
        run.asked_at = self._clock()
        return run


def _ending() -> UnavailableError:
    return UnavailableError(
        "The driver service is ending and starts no more runs.",
        code="driver_service.ending",
        suggestion="Start it again; the next attempt of the task starts the run.",
    )


def _how(view: RunView) -> str:
    if view.ended_by is not EndedBy.ITSELF:
        return f", on {view.ended_by.value}"
    if view.report is not None:
        return f": {view.report.get('status')}"
    return f" with exit code {view.exit_code}" if view.error is None else ", because its driver could not be started"
