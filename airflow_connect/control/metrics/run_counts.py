"""What the runs of a worker add up to since it started."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace

from airflow_connect.documents.run import RunReport


@dataclass(slots=True)
class OfConnector:
    """The runs of one connector by this process.

    Attributes:
        attempts, failures: begun runs, and those that failed.
        commits: runs that committed something.
        read, sent, skipped, dead_lettered: records: taken from the source, written, dropped by transformations or
            tolerated errors, sent to the dead letter queue.
        run_ms, longest_run_ms: of runs that have ended, in milliseconds.
        last_error_ms: when a run failed last; 0: never.
        began_s: when the run that has not ended began, by `time.monotonic`; None: there is none.
    """

    attempts: int = 0
    failures: int = 0
    commits: int = 0
    read: int = 0
    sent: int = 0
    skipped: int = 0
    dead_lettered: int = 0
    run_ms: int = 0
    longest_run_ms: int = 0
    last_error_ms: int = 0
    began_s: float | None = None


@dataclass(slots=True)
class RunCounts:
    """Counts runs; threads may share it.

    Attributes:
        attempts, failures: of all connectors, also of those that are gone.
    """

    attempts: int = 0
    failures: int = 0
    task_attempts: int = 0
    task_failures: int = 0
    _of: dict[str, OfConnector] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def began(self, name: str) -> None:
        """A run begins."""
        with self._lock:
            of = self._of.setdefault(name, OfConnector())
            of.attempts, of.began_s = of.attempts + 1, time.monotonic()
            self.attempts += 1

    def ended(self, name: str, report: RunReport | None, took_ms: int, now_ms: int) -> None:
        """It has ended; `report`: None if a defect ended it."""
        has_failed = report is None or report.error is not None
        with self._lock:
            of = self._of.setdefault(name, OfConnector())
            of.began_s = None
            of.run_ms += took_ms
            of.longest_run_ms = max(of.longest_run_ms, took_ms)
            tasks = report.tasks if report is not None else 0
            self.task_attempts += tasks
            if has_failed:
                of.failures, of.last_error_ms = of.failures + 1, now_ms
                self.failures += 1
                self.task_failures += tasks
            elif report is not None:
                _add(of, report)

    def of(self, name: str) -> OfConnector:
        """A copy of what is counted for a connector."""
        with self._lock:
            return replace(self._of.get(name, OfConnector()))

    def running_s(self) -> dict[str, float]:
        """The connectors that run now, with the seconds since their run began."""
        with self._lock:
            return {name: time.monotonic() - of.began_s for name, of in self._of.items() if of.began_s is not None}


def _add(of: OfConnector, report: RunReport) -> None:
    of.commits += report.status == "done"
    of.read += report.records + report.filtered + report.dead_lettered
    of.sent += report.records
    of.skipped += report.filtered
    of.dead_lettered += report.dead_lettered
