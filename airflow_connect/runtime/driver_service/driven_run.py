"""One run of the service: its driver process, what the driver says, and how it ended."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from airflow_connect.api.config.references import ResolvedReferences
from airflow_connect.documents.run import RunReport
from airflow_connect.errors import ConnectError, UnavailableError
from airflow_connect.jvm.discovery.registry import use_plugin_path
from airflow_connect.runtime.driver.process import DriverProcess
from airflow_connect.runtime.driver_service.contract import EndedBy, RunNews, RunState, RunView
from airflow_connect.runtime.reporting.internal_errors import internal_error, name_connector
from airflow_connect.runtime.reporting.redaction import Redactor, redactor_of_run
from airflow_connect.runtime.spec import RunSpec

MOST_ENTRIES = 2000
"""Events and lines of a run that wait for a look; older ones are dropped."""
MOST_AT_ONCE = 500
"""Events and lines that one look returns of a run."""
_TASK = ("dag_id", "dag_run_id", "task_id", "map_index")
_CLUSTER = ("bootstrap.servers", "group.id")


class Driver(Protocol):
    """What the service uses of `DriverProcess`."""

    @property
    def log_tail(self) -> str:
        """The last lines of its log."""

    def events(self) -> Any:
        """Events until the driver closes its output."""

    def wait(self) -> RunReport | int:
        """The report, or the exit code."""

    def kill(self) -> None:
        """End all processes of the run."""


class DrivenRun:
    """A run that the service was asked for. Safe for several threads.

    Attributes:
        run_id: of the run.
        task: the Airflow task instance that it is for, whatever the attempt, and the connector that it runs; None: no
            task is named. Two installations of Airflow have task instances of the same name.
        work: a digest of what the run does. Two attempts of a task with the same one do the same.
        attempt: the run id of the request that asked for it last: of a later attempt of the task if that took it over.
        asked_at: when somebody asked after it last, by the service's clock.
        ended_at: when it ended; None: it has not.
    """

    def __init__(self, spec: RunSpec, key: bytes, now: float, lease_s: float) -> None:
        """Wait to be started.

        Args:
            spec: what to do.
            key: of the digest `work`: a secret that is in the specification cannot be guessed from it.
            now: by the service's clock.
            lease_s: see `RunView`.
        """
        self.run_id = spec.run_id
        self.task = _task_of(spec)
        self.work = _digest(spec, key)
        self.attempt = spec.run_id
        self.asked_at = now
        self.ended_at: float | None = None
        self._lease_s = lease_s
        self._spec: RunSpec | None = spec
        self._lock = threading.Lock()
        self._state = RunState.WAITING
        self._entries: deque[dict[str, Any]] = deque(maxlen=MOST_ENTRIES)
        self._skipped = 0
        self._driver: Driver | None = None
        self._ended_by = EndedBy.ITSELF
        self._view: RunView | None = None
        self._over = threading.Event()

    @property
    def state(self) -> RunState:
        """Where it is."""
        return self._state

    @property
    def is_done(self) -> bool:
        """Whether it has ended well: a new attempt of its task can take this result."""
        report = None if self._view is None else self._view.report
        return report is not None and not report.get("error")

    @property
    def is_ending(self) -> bool:
        """Whether it has ended, or was told to."""
        return self._state is RunState.ENDED or self._ended_by is not EndedBy.ITSELF

    def view(self) -> RunView:
        """The run, with its outcome if it has ended."""
        return self._view or RunView(self.run_id, self._state, self._lease_s, self._ended_by)

    def news(self) -> RunNews:
        """What happened since the last look; every entry is returned once."""
        with self._lock:
            taken = [self._entries.popleft() for _ in range(min(MOST_AT_ONCE, len(self._entries)))]
            skipped, self._skipped = self._skipped, 0
            # The end is told after everything before it.
            state = RunState.RUNNING if self._entries and self._state is RunState.ENDED else self._state
        return RunNews(state, taken, skipped)

    def drive(self, start: Callable[[RunSpec, Callable[[str], None]], Driver], clock: Callable[[], float]) -> None:
        """Run the driver until all of it is gone; called once, in a thread of its own.

        Args:
            start: starts a driver with what takes the lines of its log.
            clock: of the service.
        """
        with self._lock:
            spec, self._spec = self._spec, None
            if spec is None or self._ended_by is not EndedBy.ITSELF:
                self._finish(RunView(self.run_id, RunState.ENDED, self._lease_s, self._ended_by), clock())
                return
            self._state = RunState.RUNNING
        with suppress(ConnectError):  # The driver meets the same error, and reports it.
            use_plugin_path(spec.worker, spec.references)
        redact = redactor_of_run(spec, ResolvedReferences(spec.references))
        name = str(spec.connector.get("name") or "")
        try:
            view = self._driven(spec, redact, start)
        except Exception as error:  # noqa: BLE001 (no caller: whoever asks after the run has to learn of it)
            name_connector(error, name)
            failed = _not_started(error) if isinstance(error, OSError) else internal_error(error, redact)
            view = RunView(self.run_id, RunState.ENDED, self._lease_s, self._ended_by, error=failed.to_json())
        with self._lock:
            self._finish(view, clock())

    def _driven(
        self, spec: RunSpec, redact: Redactor, start: Callable[[RunSpec, Callable[[str], None]], Driver]
    ) -> RunView:
        driver = start(spec, lambda line: self._add({"event": "log", "line": redact(line)}))
        del spec  # Its secrets are the driver's now.
        self._driver = driver
        try:
            if self._ended_by is not EndedBy.ITSELF:  # between the start and the line above
                driver.kill()
            for event in driver.events():
                if event["event"] != "end":  # The report is the outcome, and no entry.
                    self._add(_without_secrets(event, redact))
            outcome = driver.wait()
        finally:
            driver.kill()
        tail, ended_by = redact(driver.log_tail), self._ended_by
        if isinstance(outcome, RunReport):
            report = outcome.to_json()
            hidden = {name: _without_secrets(report[name], redact) for name in ("error", "notes") if report.get(name)}
            return RunView(self.run_id, RunState.ENDED, self._lease_s, ended_by, {**report, **hidden}, None, tail)
        return RunView(self.run_id, RunState.ENDED, self._lease_s, ended_by, None, outcome, tail)

    def end(self, by: EndedBy) -> None:
        """End the driver and all its processes; nothing is committed afterwards. Returns when they are gone."""
        with self._lock:
            if self._state is RunState.ENDED:
                return
            if self._ended_by is EndedBy.ITSELF:
                self._ended_by = by
            driver, was_waiting = self._driver, self._state is RunState.WAITING
            if was_waiting:  # `drive` will never be called, or finds no specification.
                self._spec = None
                self._finish(RunView(self.run_id, RunState.ENDED, self._lease_s, by), None)
                return
        if driver is not None:
            driver.kill()
        self._over.wait()

    def _finish(self, view: RunView, now: float | None) -> None:
        """Take the outcome; the lock is held."""
        self._view = self._view or view
        self._state = RunState.ENDED
        self._driver = None
        self.ended_at = self.asked_at if now is None else now
        self._over.set()

    def _add(self, entry: dict[str, Any]) -> None:
        with self._lock:
            self._skipped += len(self._entries) == MOST_ENTRIES
            self._entries.append(entry)


def start_driver(spec: RunSpec, on_log: Callable[[str], None]) -> DriverProcess:
    """The real driver."""
    return DriverProcess(spec, on_log=on_log)


def _not_started(error: OSError) -> ConnectError:
    return UnavailableError(
        f"The driver service could not start a driver: {error}.",
        code="driver_service.start",
        suggestion="Check memory and process limits of its machine.",
    )


def _task_of(spec: RunSpec) -> tuple[str, ...] | None:
    found = tuple(str(spec.origin.get(name) or "") for name in _TASK)
    if not all(found[:3]):
        return None
    return (*found, str(spec.connector.get("name") or ""), *(str(spec.worker.get(key) or "") for key in _CLUSTER))


def _digest(spec: RunSpec, key: bytes) -> str:
    """Connector, worker and bounds. Credentials are not part of it: those of two attempts may differ."""
    work = [dict(spec.connector), dict(spec.worker), dict(spec.bounds)]
    text = json.dumps(work, sort_keys=True, default=str).encode()
    return hmac.new(key, text, hashlib.sha256).hexdigest()


def _without_secrets(value: Any, redact: Redactor) -> Any:
    """The same JSON with its texts redacted."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: _without_secrets(inner, redact) for key, inner in value.items()}
    return [_without_secrets(inner, redact) for inner in value] if isinstance(value, (list, tuple)) else value
