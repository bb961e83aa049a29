"""Runs registered connectors one after the other, each when it is due, on one Spark session."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.herder.recording import topics_of
from airflow_connect.control.metrics.run_counts import RunCounts
from airflow_connect.control.state.topics import State, StateTopics
from airflow_connect.control.worker.due import Due, Early, Schedule
from airflow_connect.control.worker.lag_looks import LagLooks
from airflow_connect.control.worker.looking_early import early_after_s
from airflow_connect.documents.run import EMPTY, RunReport
from airflow_connect.errors import AccessError, ConnectError, FencedError, NotStoppedError
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.driver.stopping import StoppedError
from airflow_connect.runtime.reporting.internal_errors import internal_error, traceback_of
from airflow_connect.runtime.reporting.presentation import report_line
from airflow_connect.runtime.reporting.redaction import Redactor, secret_values

if TYPE_CHECKING:
    from airflow_connect.control.worker.sharing import Sharing
    from airflow_connect.runtime.driver.run_in_progress import Engine

_LOG = logging.getLogger(__name__)
LOOK_EVERY_S = 0.5
"""How late a restart, or a new connector, may be noticed."""
LAG_EVERY_S = 5.0
"""How late it may be noticed that a connector has enough to copy."""
_AFTER_FAILED_LOOK_S = 5.0
_CONFIG = "ConfigError"
TOPIC_MISSING = "config.topic_missing"
"""Another connector may create the topic; Kafka Connect's sinks wait for it as well."""
_REPAIRED_ELSEWHERE = frozenset({AccessError.__name__, NotStoppedError.__name__})
"""Errors that end without a change here: a permission is granted, or Kafka Connect's worker is stopped."""


class _Ended(NamedTuple):
    """What a run says about the next one; see `Schedule.end`."""

    may_repeat: bool = True
    has_failed: bool = False
    early: Early | None = None


class Rounds:
    """The loop of a worker."""

    def __init__(
        self,
        topics: StateTopics,
        herder: Herder,
        engine: Engine,
        tell: Callable[[str], None],
        sharing: Sharing | None = None,
        counts: RunCounts | None = None,
    ) -> None:
        """Begins nothing.

        Args:
            topics: open.
            herder: over them.
            engine: the Spark session that all runs share.
            tell: writes a line of the worker's log; what it gets has no secrets.
            sharing: which connectors are this worker's; None: all.
            counts: gets every run.
        """
        self._topics = topics
        self._herder = herder
        self._engine = engine
        self._tell = tell
        self._sharing = sharing
        self._counts = counts or RunCounts()
        self._looks_early = False
        self._lags = LagLooks(herder.spec_of)
        self._reached: set[str] = set()
        self._empty: set[str] = set()
        self._next_lag_s = 0.0

    def run_until(self, stopping: threading.Event, interval_s: float, *, looks_early: bool = False) -> None:
        """Run what is due until `stopping` is set; a run that has begun ends first.

        Args:
            stopping: ends the loop.
            interval_s: pause between two runs of a connector that sets none.
            looks_early: whether such connectors may run before that, because there is something to copy; see
                `looking_early`.
        """
        self._looks_early = looks_early
        schedule: Schedule | None = None
        while not stopping.is_set():
            pause_s = LOOK_EVERY_S
            try:
                if schedule is None:
                    first = self._topics.look(lambda state: state.config.next_offset)
                    schedule = Schedule(interval_s, first)
                self._round(schedule, stopping)
            except ConnectError as error:
                self._tell(f"No connector can run now. {error}")
                pause_s = _AFTER_FAILED_LOOK_S
            stopping.wait(pause_s)

    def _round(self, schedule: Schedule, stopping: threading.Event) -> None:
        while not stopping.is_set():
            self._look_at_lags(schedule)
            due = self._topics.look(lambda state: self._next(schedule, state))
            if due is None:
                return
            ended = _Ended()
            try:
                if self._sharing is None:  # A member of the group knows that no worker of Kafka Connect is there.
                    self._topics.refuse_live_workers()
                ended = self._run(due)
            finally:
                schedule.end(due.name, time.monotonic(), **ended._asdict())
                if self._sharing is not None:
                    self._sharing.end()

    def _look_at_lags(self, schedule: Schedule) -> None:
        """Find connectors whose lag is reached; `_next` runs them."""
        now_s = time.monotonic()
        if now_s < self._next_lag_s:
            return
        self._next_lag_s = now_s + LAG_EVERY_S
        waiting = self._topics.look(lambda state: [due for due in self._due(schedule, state) if due.lag is not None])
        self._reached = self._lags.reached(waiting)

    def _due(self, schedule: Schedule, state: State) -> list[Due]:
        if self._sharing is None:
            return schedule.due(state.config, time.monotonic())
        if not self._sharing.may_run:
            return []
        return schedule.due(state.config, time.monotonic(), self._sharing.own(state))

    def _next(self, schedule: Schedule, state: State) -> Due | None:
        """The connector to run next. Decided before each run, because states may change during a long run."""
        ready = (due for due in self._due(schedule, state) if due.lag is None or due.name in self._reached)
        due = next(ready, None)
        if due is not None:
            self._reached.discard(due.name)
            schedule.begin(state.config, due)
            if self._sharing is not None:
                self._sharing.begin(due.name)
        return due

    def _run(self, due: Due) -> _Ended:
        """Run a connector and record the result."""
        redact = Redactor(secret_values(due.config))
        report: RunReport | None
        self._counts.began(due.name)
        started_s = time.monotonic()
        try:
            report = run_connector(self._herder.spec_of(due.config, {"command": "worker"}), engine=self._engine)
            error = report.error
        except Exception as failure:  # noqa: BLE001 (a defect must not keep the other connectors from running)
            _LOG.error("The run of %s failed. %s", due.name, traceback_of(failure, redact))
            report, error = None, internal_error(failure, redact).to_json()
        took_ms = round((time.monotonic() - started_s) * 1000)
        self._counts.ended(due.name, report, took_ms, time.time_ns() // 1_000_000)
        if error is None and report is not None:
            if report.status != EMPTY or due.name not in self._empty:  # Most runs find nothing, every minute.
                self._tell(redact(report_line(report)))
            (self._empty.add if report.status == EMPTY else self._empty.discard)(due.name)
            self._herder.used_topics(due.name, topics_of(report))
            self._record(due, None, is_config=False)
            return _Ended(early=self._early(due, report))
        assert error is not None
        self._empty.discard(due.name)
        if error["code"] == StoppedError.code:
            return _Ended()  # The worker ends, which says nothing about the connector.
        if error["code"] == FencedError.code and self._sharing is not None:
            # Another worker took it for its own, in the moment in which the members changed.
            self._tell(f"{due.name}: another worker has run it at the same time.")
            return _Ended()
        trace = redact(f"{error['message']} {error['suggestion']}".strip())
        self._tell(f"{due.name}: {trace}")
        self._record(due, trace, is_config=error["type"] == _CONFIG)
        return _Ended(_may_repeat(error), has_failed=True)

    def _early(self, due: Due, report: RunReport) -> Early | None:
        if not self._looks_early:
            return None
        connectors = self._topics.look(lambda state: len(self._own(state)))
        after_s = early_after_s(due.config, report, connectors, was_early=due.is_early)
        return None if after_s is None else Early(after_s, asks=report.source is not None)

    def _own(self, state: State) -> Collection[str]:
        return state.config.connectors if self._sharing is None else self._sharing.own(state)

    def _record(self, due: Due, trace: str | None, *, is_config: bool) -> None:
        # The result of a run that another worker has fenced says nothing about the connector.
        only_own = self._sharing is not None
        self._herder.run_ended(due.name, due.offset, trace, is_config=is_config, only_own=only_own)


def _may_repeat(error: Mapping[str, Any]) -> bool:
    """Whether a later run may succeed although nothing is changed here."""
    return bool(error["retriable"]) or error["code"] == TOPIC_MISSING or error["type"] in _REPAIRED_ELSEWHERE
