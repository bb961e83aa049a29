"""In which state a connector is, from what Kafka holds about it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_connect.control.state.status_fold import Status
from airflow_connect.ui.overview.connector_states import Facts, next_run_ms, state_of
from airflow_connect.ui.overview.model import Connector, Overview, Run, State, run_of

NOW = 10_000_000
MINUTE = 60_000
DONE = Run("r2", "done", NOW - 5 * MINUTE - 1000, NOW - 5 * MINUTE, records=10, phases_ms={"copy": 500})
FAILED = Run("r3", "failed", NOW - 2000, NOW - 1000, error={"code": "x", "message": "Why.", "suggestion": "Do."})
RUNNING, BROKEN = Status("RUNNING", "w:1"), Status("FAILED", "w:1", "It broke.")
REGISTERED = Facts({}, "STARTED", (RUNNING,), (DONE,), is_copying=False, lag=0, interval_s=600.0)
OF_DAG = replace(REGISTERED, config=None, statuses=())


@pytest.mark.parametrize(
    ("facts", "state", "message"),
    [
        (REGISTERED, State.CURRENT, ""),
        (replace(REGISTERED, lag=3), State.WAITING, ""),
        (replace(REGISTERED, lag=None), State.CURRENT, ""),
        (replace(REGISTERED, runs=(), lag=3), State.NEW, ""),
        (replace(REGISTERED, is_copying=True), State.RUNNING, ""),
        (replace(REGISTERED, target="PAUSED", statuses=(BROKEN,)), State.PAUSED, ""),
        (replace(REGISTERED, target="STOPPED", lag=9), State.STOPPED, ""),
        (replace(REGISTERED, lag=3, interval_s=60.0), State.LATE, ""),
        (replace(REGISTERED, lag=3, config={"run.interval.seconds": "60"}), State.LATE, ""),
        (replace(REGISTERED, lag=3, config={"run.interval.seconds": "soon"}), State.WAITING, ""),
        (replace(REGISTERED, lag=0, interval_s=60.0), State.CURRENT, ""),
        (replace(REGISTERED, statuses=(RUNNING, BROKEN)), State.FAILED, "It broke."),
        (replace(REGISTERED, statuses=(Status("FAILED", "w:1"),)), State.FAILED, "without a reason"),
        (replace(REGISTERED, runs=(FAILED, DONE)), State.CURRENT, ""),  # its worker says that it runs again
        (replace(REGISTERED, runs=(FAILED, DONE), statuses=()), State.FAILED, "Why."),
        (replace(OF_DAG, runs=(FAILED, DONE)), State.FAILED, "Why."),
        (replace(OF_DAG, runs=(replace(FAILED, error={}),)), State.FAILED, "Its last run failed."),
        (replace(OF_DAG, runs=(DONE, FAILED), lag=3), State.WAITING, ""),
    ],
    ids=str,
)
def test_state_of_a_connector(facts: Facts, state: State, message: str) -> None:
    found, error = state_of(facts, NOW)
    assert found is state
    assert message in error.get("message", "")


def test_next_run_is_told_only_where_it_is_known() -> None:
    assert next_run_ms(REGISTERED) == NOW + 5 * MINUTE
    for unknown in (OF_DAG, replace(REGISTERED, target="PAUSED"), replace(REGISTERED, statuses=(BROKEN,))):
        assert next_run_ms(unknown) is None


def test_the_list_begins_with_failures_then_late_ones_then_names() -> None:
    states = {"e": State.CURRENT, "d": State.FAILED, "c": State.LATE, "b": State.PAUSED, "a": State.WAITING}
    overview = Overview(NOW, {name: Connector(name, "sink", {}, state) for name, state in states.items()})
    assert [connector.name for connector in overview.worst_first()] == ["d", "c", "a", "b", "e"]


def test_a_run_is_read_from_entries_of_every_release() -> None:
    old = {"run_id": "r", "status": "done", "started_ms": 0, "ended_ms": 2000, "records": 8, "dead_lettered": 2}
    run = run_of(old)
    assert (run.read, run.records_per_s, run.origin, run.queue) == (10, 5.0, {}, "")
    end = {"run_id": "r", "status": "failed", "started_ms": 1, "ended_ms": 2, "error_code": "config.invalid"}
    assert run_of(end).error == {"code": "config.invalid"}
    assert run_of(end).records_per_s is None
