"""In which state a connector is, from what Kafka holds about it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_connect.control.state.status_fold import Status
from airflow_connect.ui.overview.connector_states import Facts, missed_run_ms, next_run_ms, state_of
from airflow_connect.ui.overview.dag_schedules import DagSchedule, note_of, problem_of
from airflow_connect.ui.overview.model import Connector, Overview, Run, State, run_of

NOW = 10_000_000
MINUTE = 60_000
DONE = Run("r2", "done", NOW - 5 * MINUTE - 1000, NOW - 5 * MINUTE, records=10, phases_ms={"copy": 500})
FAILED = Run("r3", "failed", NOW - 2000, NOW - 1000, error={"code": "x", "message": "Why.", "suggestion": "Do."})
RUNNING, BROKEN = Status("RUNNING", "w:1"), Status("FAILED", "w:1", "It broke.")
REGISTERED = Facts({}, "STARTED", (RUNNING,), (DONE,), is_copying=False, lag=0, interval_s=600.0)
OF_DAG = replace(REGISTERED, config=None, statuses=())


def each(minutes: int, *, is_paused: bool = False) -> DagSchedule:
    """A DAG that runs at whole multiples of so many minutes."""
    step = minutes * MINUTE

    def two_after(ms: int) -> tuple[int, ...]:
        first = (ms // step + 1) * step
        return first, first + step

    return DagSchedule(f"each-{minutes}", is_paused, (NOW // step + 1) * step, two_after)


PAUSED, UNPLANNED = each(1, is_paused=True), DagSchedule("unplanned", is_paused=False)


@pytest.mark.parametrize(
    ("facts", "state", "message"),
    [
        (REGISTERED, State.CURRENT, ""),
        (replace(REGISTERED, lag=3), State.WAITING, ""),
        (replace(REGISTERED, lag=None), State.CURRENT, ""),
        (replace(REGISTERED, lag=None, is_lag_unknown=True), State.UNKNOWN, ""),  # such as: its topic is gone
        (replace(REGISTERED, lag=None, is_lag_unknown=True, runs=()), State.NEW, ""),
        (replace(REGISTERED, lag=None, is_lag_unknown=True, is_copying=True), State.RUNNING, ""),
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
        (replace(OF_DAG, lag=3, schedules=(each(1),)), State.LATE, ""),
        (replace(OF_DAG, lag=3, schedules=(UNPLANNED, each(1))), State.LATE, ""),
        (replace(OF_DAG, lag=0, schedules=(each(1),)), State.CURRENT, ""),
        (replace(OF_DAG, lag=None, schedules=(each(1),)), State.CURRENT, ""),
        (replace(OF_DAG, lag=None, is_lag_unknown=True, schedules=(each(1),)), State.UNKNOWN, ""),
        (replace(OF_DAG, lag=3, schedules=(each(10),)), State.WAITING, ""),
        (replace(OF_DAG, lag=3, schedules=(UNPLANNED,)), State.WAITING, ""),
        (replace(OF_DAG, lag=3, schedules=(each(1),), is_copying=True), State.RUNNING, ""),
        (replace(OF_DAG, lag=3, schedules=(PAUSED,)), State.PAUSED, ""),
        (replace(OF_DAG, lag=3, schedules=(PAUSED, each(10))), State.WAITING, ""),
        (replace(OF_DAG, runs=(FAILED, DONE), schedules=(PAUSED,)), State.FAILED, "Why."),
        (replace(OF_DAG, runs=(), lag=3, schedules=(each(1),)), State.NEW, ""),
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
    assert next_run_ms(replace(OF_DAG, schedules=(PAUSED, each(7), each(10)))) == (NOW // (7 * MINUTE) + 1) * 7 * MINUTE


def test_a_missing_run_is_the_first_of_two_that_were_due() -> None:
    assert missed_run_ms(replace(REGISTERED, lag=3, interval_s=60.0), NOW) == DONE.ended_ms + MINUTE
    late = replace(OF_DAG, lag=3, schedules=(each(2),))
    first = (DONE.ended_ms // (2 * MINUTE) + 1) * 2 * MINUTE
    assert missed_run_ms(late, NOW) == first
    assert missed_run_ms(late, first + 2 * MINUTE - 1) is None
    just_ended = replace(DONE, ended_ms=NOW - 119_000)
    assert missed_run_ms(replace(late, runs=(just_ended,), schedules=(each(1),)), NOW) is None


def test_why_a_connector_of_a_dag_is_not_late_is_said() -> None:
    unknown = DagSchedule("odd", is_paused=False, next_ms=NOW, problem="The schedule of DAG odd is not known here (x).")
    assert note_of((each(1),)) == problem_of(("each-1",), (each(1),)) == ""
    assert note_of((PAUSED,)) == "DAG each-1 is paused."
    assert note_of((UNPLANNED,)) == "DAG unplanned runs at no fixed times."
    assert problem_of(("odd",), (unknown,)) == unknown.problem
    assert note_of((unknown,)) == note_of(()) == problem_of((), ()) == ""
    assert problem_of(("gone",), ()) == "This Airflow has no DAG gone, so it is not known when this connector runs."


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
