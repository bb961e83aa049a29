"""What state a connector is in: pure functions of what Kafka holds about it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from airflow_connect.config.keys.sink import SinkKeys
from airflow_connect.control.herder.changes import FAILED
from airflow_connect.control.state import records
from airflow_connect.control.state.config_fold import ConfigState
from airflow_connect.control.state.status_fold import Status, StatusState
from airflow_connect.documents.run import DONE, EMPTY
from airflow_connect.ui.overview.dag_schedules import DagSchedule, are_paused, next_of
from airflow_connect.ui.overview.model import Run, State

LATE_AFTER_INTERVALS = 2
"""A connector is late if it has something to copy, and has not run for this many intervals."""
SHORTEST_LATE_S = 120.0
"""Short intervals: a run that waits for its turn behind others is not late yet."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a connector.

    Attributes:
        config: None: it is not registered.
        target: target state.
        statuses: what a worker has reported last, of the connector and of its tasks.
        runs: the newest first.
        is_copying: whether its last run has begun to copy and has not committed.
        lag: records to copy; None: not known, or it is a source.
        is_lag_unknown: whether it is a sink whose lag could not be found.
        interval_s: of the worker.
        schedules: of the DAGs that have run it and still exist; () if it is registered.
    """

    config: Mapping[str, str | None] | None
    target: str
    statuses: tuple[Status, ...]
    runs: tuple[Run, ...]
    is_copying: bool
    lag: int | None
    interval_s: float
    schedules: tuple[DagSchedule, ...] = ()
    is_lag_unknown: bool = False


def state_of(facts: Facts, now_ms: int) -> tuple[State, Mapping[str, str]]:
    """The state, and the error of a connector that has failed: `message` and `suggestion`."""
    target = {records.PAUSED: State.PAUSED, records.STOPPED: State.STOPPED}.get(facts.target)
    if target is not None:
        return target, {}
    error = _error_of(facts)
    if error:
        return State.FAILED, error
    if facts.is_copying:
        return State.RUNNING, {}
    if are_paused(facts.schedules):
        return State.PAUSED, {}
    if missed_run_ms(facts, now_ms) is not None:
        return State.LATE, {}
    if not facts.runs:
        return State.NEW, {}
    if facts.is_lag_unknown:
        return State.UNKNOWN, {}
    return (State.WAITING if facts.lag else State.CURRENT), {}


def _error_of(facts: Facts) -> Mapping[str, str]:
    failed = [status for status in facts.statuses if status.state == FAILED]
    if facts.config is not None and failed:
        trace = next((status.trace for status in failed if status.trace), None)
        return {"message": trace or "A worker has reported that it failed, without a reason."}
    last = facts.runs[0] if facts.runs else None
    if last is None or last.status in (DONE, EMPTY) or (facts.config is not None and facts.statuses):
        return {}
    # A registered connector that runs again after a failure has a status of its own; a DAG's has only this.
    return last.error or {"message": "Its last run failed.", "suggestion": "Look at the log of its task."}


def next_run_ms(facts: Facts) -> int | None:
    """When a worker runs it again, or Airflow starts one of its DAGs; None: unknown.

    A worker repeats a run that has failed only if another attempt may succeed, which its state does not tell.
    """
    if facts.config is None:
        return next_of(facts.schedules)
    if facts.target != records.STARTED or not facts.runs or _error_of(facts):
        return None
    return facts.runs[0].ended_ms + round(_interval_s(facts) * 1000)


def missed_run_ms(facts: Facts, now_ms: int) -> int | None:
    """When a run was due without which the connector is late; None: it is not late.

    A worker is to begin one each interval, a DAG by its schedule. Two have to be missing: the first one may be running.
    """
    if not facts.lag or not facts.runs:
        return None
    ended_ms = facts.runs[0].ended_ms
    if now_ms - ended_ms <= SHORTEST_LATE_S * 1000:
        return None
    if facts.config is None:
        missed = (schedule.missed_since(ended_ms, now_ms) for schedule in facts.schedules)
        return min((due for due in missed if due is not None), default=None)
    interval_ms = round(_interval_s(facts) * 1000)
    return ended_ms + interval_ms if now_ms - ended_ms > LATE_AFTER_INTERVALS * interval_ms else None


def _interval_s(facts: Facts) -> float:
    given = (facts.config or {}).get(SinkKeys.run_interval_seconds.name) or ""
    return float(given) if given.isascii() and given.isdigit() else facts.interval_s


def workers_of(status: StatusState, config: ConfigState) -> dict[str, list[str]]:
    """Workers by `worker_id`, each with the connectors and tasks whose state it was the last to report."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in sorted(config.connectors):
        if name in status.connectors:
            found[status.connectors[name].worker_id].append(name)
        for task, known in sorted(status.tasks.get(name, {}).items()):
            found[known.worker_id].append(f"{name}-{task}")
    return {worker: found[worker] for worker in sorted(found)}
