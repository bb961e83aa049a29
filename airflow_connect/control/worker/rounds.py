"""Runs registered connectors when they are due, several at a time, on one Spark session."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_connect.config.resolved.loading import secret_names
from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.herder.recording import topics_of
from airflow_connect.control.metrics.run_counts import RunCounts
from airflow_connect.control.state.topics import State, StateTopics
from airflow_connect.control.worker.due import Due, Early, Ended, Schedule, timeout_of
from airflow_connect.control.worker.lag_looks import LagLooks
from airflow_connect.control.worker.looking_early import early_after_s
from airflow_connect.control.worker.run_notes import Heard, RunNotes
from airflow_connect.control.worker.slots import Outcome, Running, Slots
from airflow_connect.documents.run import DONE, EMPTY, RunReport
from airflow_connect.errors import AccessError, ConnectError, FencedError, NotStoppedError
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.driver.stopping import RunTimeoutError, StoppedError
from airflow_connect.runtime.reporting.internal_errors import internal_error, traceback_of
from airflow_connect.runtime.reporting.presentation import report_line, table_lines
from airflow_connect.runtime.reporting.redaction import Redactor, secret_values
from airflow_connect.runtime.spec import new_run_id

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


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a worker runs connectors that do not say so themselves, and how many of them together.

    Attributes:
        interval_s: pause between two runs of a connector.
        looks_early: whether it may run before that, because there is something to copy; see `looking_early`.
        timeout_s: after which a run is ended; 0: never.
        at_once: runs at the same time.
    """

    interval_s: float = 60.0
    looks_early: bool = False
    timeout_s: float = 0.0
    at_once: int = 1


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
        self._lags = LagLooks(herder.spec_of)
        self._reached: set[str] = set()
        self._empty: set[str] = set()
        self._notes = RunNotes(tell)
        self._next_lag_s = 0.0
        self._pace = Pace()

    def run_until(self, stopping: threading.Event, pace: Pace) -> None:
        """Run what is due until `stopping` is set; runs that have begun end first."""
        self._pace = pace
        slots = Slots(pace.at_once, self._run)
        schedule: Schedule | None = None
        try:
            while not stopping.is_set():
                try:
                    if schedule is None:
                        first = self._topics.look(lambda state: state.config.next_offset)
                        schedule = Schedule(pace.interval_s, first)
                    self._turn(schedule, slots, stopping)
                except ConnectError as error:
                    self._tell(f"No connector can run now. {error}")
                    stopping.wait(_AFTER_FAILED_LOOK_S)
            while slots.running and schedule is not None:
                self._take_ended(schedule, slots)
        finally:
            slots.close()

    def _turn(self, schedule: Schedule, slots: Slots, stopping: threading.Event) -> None:
        """Begin what is due while there are free slots; then wait for the end of a run, or for the next look."""
        self._look_at_lags(schedule)
        while slots.has_free and not stopping.is_set():
            running = self._topics.look(lambda state: self._next(schedule, state))
            if running is None:
                break
            if self._sharing is None:  # A member of the group knows that no worker of Kafka Connect is there.
                try:
                    self._topics.refuse_live_workers()
                except ConnectError:
                    schedule.end(running.due.name, time.monotonic(), Ended())
                    raise
            slots.start(running)
        self._take_ended(schedule, slots)
        if slots.running:
            self._stop_some(slots)

    def _take_ended(self, schedule: Schedule, slots: Slots) -> None:
        """Account for runs that have ended, and for those that should have.

        The schedule hears of all of them before anything is raised: it never begins a connector again whose run has
        not ended.
        """
        outcomes = slots.ended(LOOK_EVERY_S)
        for outcome in outcomes:
            self._end(schedule, outcome)
        defects = [outcome.defect for outcome in outcomes if outcome.defect is not None]
        if defects:  # An outage raises the same in several runs, and must not hide anything else.
            raise next((defect for defect in defects if not isinstance(defect, ConnectError)), defects[0])
        for running in slots.running:
            if running.is_overdue:
                slots.abandon(running)
                self._end(schedule, Outcome(running, Ended(has_failed=True)))
                self._tell_abandoned(running)

    def _end(self, schedule: Schedule, outcome: Outcome) -> None:
        due = outcome.running.due
        schedule.end(due.name, time.monotonic(), outcome.ended)
        if self._sharing is not None:
            self._sharing.end(due.name)

    def _stop_some(self, slots: Slots) -> None:
        """Ask runs to end that last too long, or whose connector was deleted or stopped."""
        now_s = time.monotonic()
        unwanted = self._topics.look(
            lambda state: {
                running.due.name: what
                for running in slots.running
                if (what := state.config.taken_away_since(running.due.name, running.seen))
            }
        )
        for running in slots.running:
            name, longest_s = running.due.name, timeout_of(running.due.config) or self._pace.timeout_s
            if name in unwanted:
                running.ask(_taken_away(name, unwanted[name]))
            elif longest_s and now_s - running.began_s >= longest_s:
                running.ask(_timeout(name, longest_s))
            if running.stop.error is not None and not running.stop.is_finishing:
                self._engine.cancel(running.run_id)  # Again and again: its job may only be about to begin.

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

    def _next(self, schedule: Schedule, state: State) -> Running | None:
        """The run to begin next. Decided before each run, because states may change during a long run."""
        ready = (due for due in self._due(schedule, state) if due.lag is None or due.name in self._reached)
        due = next(ready, None)
        if due is None:
            return None
        self._reached.discard(due.name)
        schedule.begin(state.config, due)
        if self._sharing is not None:
            self._sharing.begin(due.name)
        return Running(due, due.run_id or new_run_id(), seen=state.config.next_offset)

    # --- in the thread of a slot -----------------------------------------------------------------------------------

    def _run(self, running: Running) -> Ended:
        """Run a connector and record the result."""
        due = running.due
        redact = Redactor(secret_values(due.config, secret_names=secret_names(due.config)))
        report: RunReport | None
        error: dict[str, Any] | None
        heard = Heard()
        self._counts.began(due.name)
        started_s = time.monotonic()
        try:
            spec = replace(self._herder.spec_of(due.config, {"command": "worker"}), run_id=running.run_id)
            report = run_connector(spec, heard, self._engine, running.stop)
            error = report.error
        except Exception as failure:  # noqa: BLE001 (a defect must not keep the other connectors from running)
            _LOG.error("The run of %s failed. %s", due.name, traceback_of(failure, redact))
            report, error = None, internal_error(failure, redact).to_json()
        if running.is_abandoned:
            return Ended()
        took_ms = round((time.monotonic() - started_s) * 1000)
        self._counts.ended(due.name, report, took_ms, time.time_ns() // 1_000_000)
        has_copied = report is not None and report.status == DONE
        self._notes.tell(due.name, [*heard.texts, *(report.notes if report else ())], redact, has_copied=has_copied)
        if error is not None:
            return self._failed(running, error, redact)
        assert report is not None
        if report.status != EMPTY or due.name not in self._empty:  # Most runs find nothing, every minute.
            for line in (report_line(report), *table_lines(report)):
                self._tell(redact(line))
        (self._empty.add if report.status == EMPTY else self._empty.discard)(due.name)
        self._herder.used_topics(due.name, topics_of(report))
        self._record(due, None, is_config=False)
        return Ended(early=self._early(due, report))

    def _failed(self, running: Running, error: Mapping[str, Any], redact: Redactor) -> Ended:
        due = running.due
        self._empty.discard(due.name)
        if error["code"] == StoppedError.code:  # Which says nothing about the connector.
            if running.stop.error is not None:  # Otherwise the worker ends.
                self._tell(redact(error["message"]))
            return Ended()
        if error["code"] == FencedError.code and self._sharing is not None:
            # Its offsets were changed, which needs a stop; or another worker took it, when the members changed.
            what = self._topics.look(lambda state: state.config.taken_away_since(due.name, running.seen))
            self._tell(str(_taken_away(due.name, what)) if what else redact(f"{due.name}: {error['message']}"))
            return Ended()
        trace = redact(f"{error['message']} {error['suggestion']}".strip())
        self._tell(f"{due.name}: {trace}")
        self._record(due, trace, is_config=error["type"] == _CONFIG)
        return Ended(_may_repeat(error), has_failed=True)

    def _tell_abandoned(self, running: Running) -> None:
        """A run did not end although it was asked to. The next one fences it."""
        name, error = running.due.name, running.stop.error
        assert error is not None
        self._counts.ended(name, None, round((time.monotonic() - running.began_s) * 1000), time.time_ns() // 1_000_000)
        trace = f"{error} The run does not end; it is left alone, and the next run of the connector fences it."
        self._tell(f"{name}: {trace}")
        if error.code != StoppedError.code:
            self._record(running.due, trace, is_config=False)

    def _early(self, due: Due, report: RunReport) -> Early | None:
        if not self._pace.looks_early:
            return None
        connectors = self._topics.look(lambda state: len(self._own(state)))
        after_s = early_after_s(due.config, report, connectors, was_early=due.is_early)
        return None if after_s is None else Early(after_s, report.source is not None, report.files > 0)

    def _own(self, state: State) -> Collection[str]:
        return state.config.connectors if self._sharing is None else self._sharing.own(state)

    def _record(self, due: Due, trace: str | None, *, is_config: bool) -> None:
        # The result of a run that another worker has fenced says nothing about the connector.
        only_own = self._sharing is not None
        self._herder.run_ended(due.name, due.offset, trace, is_config=is_config, only_own=only_own)


def _taken_away(name: str, what: str) -> StoppedError:
    return StoppedError(f"Connector {name} was {what} during a run, which has ended.")


def _timeout(name: str, longest_s: float) -> RunTimeoutError:
    return RunTimeoutError(
        f"A run of {name} has taken longer than {longest_s:g} s.",
        suggestion="It was ended, and the next run continues from what is committed. If runs of this size are expected,"
        " limit them with run.max.records, or set a longer run.timeout.seconds.",
    )


def _may_repeat(error: Mapping[str, Any]) -> bool:
    """Whether a later run may succeed although nothing is changed here."""
    return bool(error["retriable"]) or error["code"] == TOPIC_MISSING or error["type"] in _REPAIRED_ELSEWHERE
