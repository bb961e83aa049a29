"""Rules of the config topic that recordings do not show: compaction, foreign and broken records."""

from __future__ import annotations

import pytest

from airflow_connect.control.state import records
from airflow_connect.control.state.config_fold import ConfigState
from airflow_connect.control.state.status_fold import Status, StatusState

CONFIG = {"connector.class": "FileStreamSink", "name": "c"}


def folded(*given: records.Record) -> ConfigState:
    state = ConfigState()
    for offset, (key, value) in enumerate(given):
        state.take(key, value, offset)
    return state


def registered(tasks: int) -> list[records.Record]:
    return [
        records.connector_config("c", CONFIG),
        *(records.task_config("c", task, {**CONFIG, "n": str(task)}) for task in range(tasks)),
        records.commit("c", tasks),
    ]


def test_a_connector_that_is_there_again_was_taken_away_since():
    state = folded(*registered(1))
    began = state.next_offset
    assert state.taken_away_since("c", began) is None
    state.take(*records.target_state("c", "STOPPED"), began)
    assert state.taken_away_since("c", began) == "stopped"
    state.take(*records.target_state("c", "STARTED"), began + 1)
    assert state.taken_away_since("c", began) == "stopped"
    assert state.taken_away_since("c", state.next_offset) is None
    for number, (key, value) in enumerate([*records.no_connector("c"), records.connector_config("c", CONFIG)]):
        state.take(key, value, began + 2 + number)
    assert state.taken_away_since("c", began + 2) == "deleted"
    assert state.taken_away_since("c", state.next_offset) is None


def test_tasks_apply_only_with_their_commit():
    assert folded(*registered(2)[:-1]).tasks("c") == []
    assert [task["n"] for task in folded(*registered(2)).tasks("c")] == ["0", "1"]


def test_a_commit_without_its_task_after_compaction_makes_the_connector_inconsistent():
    whole = registered(2)
    state = folded(whole[0], whole[2], whole[3])
    assert state.inconsistent == {"c"} and state.tasks("c") == []


def test_an_inconsistent_connector_is_whole_again_after_new_tasks():
    whole = registered(2)
    state = folded(whole[0], whole[2], whole[3], *registered(1)[1:])
    assert not state.inconsistent and len(state.tasks("c")) == 1


def test_a_task_of_an_older_generation_that_compaction_left_does_not_hinder_a_smaller_commit():
    whole = registered(2)
    state = folded(whole[0], whole[2], whole[1], records.commit("c", 1))
    assert [task["n"] for task in state.tasks("c")] == ["0"]


def test_deleting_removes_the_tasks_and_the_same_name_starts_without_them():
    state = folded(*registered(2), *records.no_connector("c"), records.connector_config("c", CONFIG))
    assert state.tasks("c") == [] and state.target("c") == "STARTED"


def test_the_offset_of_a_connector_is_that_of_its_own_record():
    state = folded(*registered(1), records.target_state("c", "PAUSED"))
    assert state.connectors["c"].offset == 0 and state.next_offset == 4


def test_a_target_state_of_an_older_worker_has_only_the_old_member():
    assert folded((b"target-state-c", b'{"state":"PAUSED"}')).target("c") == "PAUSED"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"target-state-c", b'{"state.v2":"HIBERNATING","state":"PAUSED"}'),
        (b"target-state-c", b"[]"),
        (b"connector-c", b"{"),
        (b"connector-c", b'{"properties":{"a":[1]}}'),
        (b"connector-c", b"[" * 100_000),
        (b"task-c", b'{"properties":{}}'),
        (b"task-c-x", b'{"properties":{}}'),
        (b"task-c-0", None),
        (b"commit-c", b'{"tasks":"1"}'),
        (b"commit-c", b'{"tasks":-1}'),
        (b"commit-c", b'{"tasks":999999999999}'),
        (b"commit-c", None),
        (b"tasks-fencing-c", b"null"),
        (b"assignment-of-2031-c", b'{"v":9}'),
        (b"\xff\xfe", b"{}"),
        (None, b"{}"),
    ],
)
def test_records_that_cannot_be_read_or_are_of_a_future_version_change_nothing(key, value):
    before, after = folded(*registered(2)), folded(*registered(2), (key, value))
    assert (after.connectors, after.targets, after.tasks("c")) == (before.connectors, before.targets, before.tasks("c"))
    assert after.next_offset == before.next_offset + 1


def test_a_connector_whose_name_looks_like_other_records_is_found_by_its_whole_name():
    state = folded(records.connector_config("a-0", {"name": "a-0"}), records.task_config("a-0", 0, {"x": "y"}))
    state.take(*records.commit("a-0", 1), 2)
    assert state.tasks("a-0") == [{"x": "y"}]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"status-connector-c", b'{"state":"SLEEPING","trace":null,"worker_id":"w","generation":1}'),
        (b"status-connector-c", b"{"),
        (b"status-connector-c", b'"x"'),
        (b"status-connector-", b'{"state":"RUNNING","trace":null,"worker_id":"w","generation":1}'),
        (b"status-task-c", b'{"state":"RUNNING","trace":null,"worker_id":"w","generation":1}'),
        (b"status-topic-t", b'{"topic":{}}'),
        (b"status-topic-t:connector-c", b'{"topic":7}'),
        (b"status-cluster-x", b"{}"),
        (b"\xff", b"{}"),
        (None, None),
    ],
)
def test_status_records_that_cannot_be_read_change_nothing(key, value):
    state = StatusState()
    state.take(*records.connector_status("c", Status("RUNNING", "w").to_json()))
    state.take(key, value)
    assert state == StatusState(connectors={"c": Status("RUNNING", "w")})


def test_a_status_of_a_worker_before_4_3_has_no_version():
    state = StatusState()
    state.take(b"status-task-c-0", b'{"state":"FAILED","trace":"why","worker_id":"w","generation":1}')
    assert state.tasks == {"c": {0: Status("FAILED", "w", "why", 1)}}
