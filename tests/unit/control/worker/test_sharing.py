"""Status records that give a connector to another worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from airflow_connect.control.herder.changes import Writer
from airflow_connect.control.state import records
from airflow_connect.control.state.status_fold import Status
from airflow_connect.control.state.topics import Change, State
from airflow_connect.control.worker import sharing
from airflow_connect.control.worker.sharing import Sharing, moved_to
from airflow_connect.kafka.admin.worker_membership import View

SINK = {"connector.class": "FileStreamSink", "tasks.max": "2", "topics": "t", "name": "c"}


def applied(state: State, change: Change) -> State:
    for key, value in change.config:
        state.config.take(key, value, state.config.next_offset)
    for key, value in change.status:
        state.status.take(key, value)
    return state


def registered() -> State:
    return applied(State(), Writer("a:1").created(State(), "c", SINK, None))


def shown(state: State) -> list[tuple[str, str]]:
    every = [state.status.connectors["c"], *state.status.tasks.get("c", {}).values()]
    return [(status.state, status.worker_id) for status in every]


def test_the_connector_and_its_tasks_get_the_other_worker():
    state = registered()
    assert shown(applied(state, Change((), moved_to(state, "c", "b:2")))) == [("RUNNING", "b:2")] * 3


def test_what_has_failed_stays_failed_with_its_trace():
    state = registered()
    applied(state, Writer("a:1").run_ended(state, "c", "no bucket", is_config=False))
    applied(state, Change((), moved_to(state, "c", "b:2")))
    assert shown(state) == [("RUNNING", "b:2"), ("FAILED", "b:2"), ("FAILED", "b:2")]
    assert state.status.tasks["c"][1].trace == "no bucket"


@pytest.mark.parametrize(("target", "state_shown"), [("STARTED", "RUNNING"), ("PAUSED", "PAUSED")])
def test_what_a_stopped_kafka_connect_worker_has_left_unassigned_gets_the_state_that_is_wanted(target, state_shown):
    state = registered()
    left = Status("UNASSIGNED", "their-worker:8083").to_json()
    written = [records.connector_status("c", left), *(records.task_status("c", task, left) for task in range(2))]
    applied(state, Change([records.target_state("c", target)], written))
    assert shown(applied(state, Change((), moved_to(state, "c", "b:2")))) == [(state_shown, "b:2")] * 3


def test_a_connector_without_a_state_gets_one():
    state = registered()
    state.status.connectors.clear()
    state.status.tasks.clear()
    assert shown(applied(state, Change((), moved_to(state, "c", "b:2")))) == [("RUNNING", "b:2")]


def test_requests_at_another_worker_leave_the_connector_where_it_is():
    state, other = registered(), Writer("b:2")
    applied(state, other.updated(state, "c", {**SINK, "tasks.max": "1"}))
    applied(state, other.restarted(state, "c", [None, 0], None))
    applied(state, other.paused(state, "c"))
    assert shown(state) == [("PAUSED", "a:1")] * 2


class OneState:
    """State topics in memory."""

    admin = None

    def __init__(self, state: State) -> None:
        self.state = state

    def look(self, use: Callable[[State], Any]) -> Any:
        return use(self.state)

    def change(self, decide: Callable[[State], Change], use: Callable[[State], Any]) -> Any:
        return use(applied(self.state, decide(self.state)))


class Members:
    """A membership that sees what the test says."""

    token = "one"

    def __init__(self) -> None:
        self.seen = View(0, {}, is_leader=True)

    def view(self, _: Any) -> View:
        return self.seen

    def are(self, **tokens: str) -> None:
        workers = {f"{worker}:1": (token,) for worker, token in tokens.items()}
        self.seen = View(self.seen.generation + 1, workers, is_leader=True)


def test_worker_that_is_killed_and_started_again_between_two_looks_gets_its_share_again(monkeypatch):
    monkeypatch.setattr(sharing, "busy_seconds", lambda *_: {})
    state, members = State(), Members()
    for name in ("c", "d", "e", "f"):
        applied(state, Writer("a:1").created(state, name, {**SINK, "name": name}, None))
    of_a = Sharing(cast("Any", OneState(state)), cast("Any", None), cast("Any", members), "a:1", lambda _: None)

    def share_of_b() -> int:
        of_a.look()
        return sum(status.worker_id == "b:1" for status in state.status.connectors.values())

    members.are(a="one", b="two")
    assert [share_of_b(), share_of_b()] == [2, 2]
    members.are(a="one")
    assert share_of_b() == 0
    members.are(a="one", b="three")
    assert share_of_b() == 2
