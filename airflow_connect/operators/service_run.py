"""A run at a driver service, as a task starts it, waits for it in its slot, ends it, and learns how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException, AirflowTaskTimeout

from airflow_connect.airflow.outcome import KILLED, driver_failure, error_of
from airflow_connect.documents.run import RunReport
from airflow_connect.errors import ConnectError, TaskFailedError
from airflow_connect.hooks.connect_driver import ConnectDriverHook
from airflow_connect.retrying import REAL_TIME, Timing
from airflow_connect.runtime.driver_service.contract import EndedBy, RunNews, RunState, RunView

if TYPE_CHECKING:
    from airflow_connect.runtime.spec import RunSpec

WAIT_EVERY_S = 1.0
END_WITHIN_S = 4.0
"""Airflow sends SIGKILL five seconds after SIGTERM."""
_LOG = Callable[..., None]


class ServiceRun:
    """The run of one attempt of a task.

    `kill` may be called from a signal handler, at any time.

    Attributes:
        run_id: of the run; an earlier attempt may have started it.
        attempt: the run id that this attempt has asked with; it ends no run that a later one has taken over.
        is_killed: whether `kill` was called.
    """

    def __init__(self, driver_conn_id: str, run_id: str, warn: _LOG, timing: Timing = REAL_TIME) -> None:
        """Read the connection.

        Args:
            driver_conn_id: of the service.
            run_id: of the run.
            warn: writes a warning.
            timing: for tests.

        Raises:
            ConfigError: the connection is missing or wrong.
        """
        self.run_id = self.attempt = run_id
        self.is_killed = False
        self._warn, self._timing = warn, timing
        self._hook = ConnectDriverHook(driver_conn_id)
        self._ender = self._hook.for_ending(END_WITHIN_S)

    def start(self, spec: RunSpec) -> RunView:
        """Start the run, or find the one of an earlier attempt.

        Raises:
            AirflowException: the task was killed meanwhile.
            ConnectError: see `ConnectDriverHook.start`.
        """
        view = self._hook.start(spec)
        self.run_id = view.run_id
        if self.is_killed:  # before the service knew the run
            self.kill()
            raise AirflowException(KILLED)
        return view

    def follow(self, tell: Callable[[RunNews], None]) -> RunState:
        """Wait until the run has ended, or the service does not know it any more; `tell` gets what happens.

        Raises:
            AirflowException: the task was killed.
            ConnectError: the service refuses, or does not answer. The run goes on, and the next attempt finds it.
        """
        while True:
            news = self._hook.news([self.run_id])[self.run_id]
            if self.is_killed:
                raise AirflowException(KILLED)
            tell(news)
            if news.state in (RunState.ENDED, RunState.UNKNOWN):
                return news.state
            self._timing.sleep(WAIT_EVERY_S)

    def kill(self) -> None:
        """End the run. If the service cannot be asked, it ends the run when the lease is over."""
        self.is_killed = True
        try:
            self._ender.end(self.run_id, self.attempt)
        except ConnectError as error:
            self._warn("%s: %s The service ends the run when its lease is over.", error.code, error)

    def outcome(self, event: Mapping[str, Any], committed: Callable[[str], RunReport | None]) -> RunReport:
        """The report of the ended run, which may be of a failure.

        Args:
            event: of `DriverRunTrigger`.
            committed: the report of a run, from the history in Kafka.

        Raises:
            AirflowTaskTimeout: the time of the task was over.
            ConnectError: the service refuses or does not answer; or the run ended without a report.
        """
        if "error" in event:
            raise error_of(event["error"])
        if event["state"] == "timed_out":
            raise AirflowTaskTimeout(
                f"The time of the task was over, and run {self.run_id} was ended. What it had not committed is left to"
                " the next run."
            )
        view = self._hook.view(self.run_id) if event["state"] == "ended" else None
        if view is not None and view.report is not None:
            return RunReport.from_json(dict(view.report))
        # A driver that was ended may have committed just before.
        report = committed(self.run_id)
        if report is not None:
            return report
        raise self._lost(str(event.get("why", ""))) if view is None else _ended_without_report(view)

    def release(self) -> None:
        """Have the service forget the run, whose outcome was taken."""
        try:
            self._hook.end(self.run_id)
        except ConnectError as error:
            self._warn("%s: %s The service keeps the outcome of the run for a day.", error.code, error)

    def _lost(self, why: str) -> TaskFailedError:
        return TaskFailedError(
            f"Run {self.run_id} was lost at the driver service, and its history has no end of it. {why}".rstrip(),
            code="driver_service.run_lost",
            suggestion="The next attempt resumes after the last committed run.",
        )


def _ended_without_report(view: RunView) -> ConnectError:
    if view.error is not None:
        return error_of(dict(view.error))
    why = {
        EndedBy.LEASE: f"because nobody had asked after it for {view.lease_s:g} seconds",
        EndedBy.SHUTDOWN: "because the service was stopped",
        EndedBy.REQUEST: "because it was asked to",
    }
    if view.ended_by in why:
        return TaskFailedError(
            f"The driver service ended run {view.run_id}, {why[view.ended_by]}.",
            code="driver_service.run_ended",
            suggestion="The next attempt resumes after the last committed run. Check that a triggerer runs; with "
            "--lease, the service waits longer for one.",
        )
    return driver_failure(view.exit_code or 0, view.log_tail)


__all__ = ["KILLED", "ServiceRun"]
