"""What operations write."""

from __future__ import annotations

import pytest

from airflow_connect.control.herder import views
from airflow_connect.control.herder.changes import Writer
from airflow_connect.control.herder.herder import _restarted
from airflow_connect.control.herder.refusals import RefusedError
from airflow_connect.control.herder.task_configs import task_configs
from airflow_connect.control.state.topics import Change, State

SINK = {"connector.class": "FileStreamSink", "tasks.max": "2", "topics": "t", "name": "c"}
WRITER = Writer("w:1")


def applied(state: State, *changes: Change) -> State:
    for change in changes:
        for key, value in change.config:
            state.config.take(key, value, state.config.next_offset)
        for key, value in change.status:
            state.status.take(key, value)
    return state


def created(initial: str | None = None) -> State:
    state = State()
    return applied(state, WRITER.created(state, "c", SINK, initial))


def states(state: State) -> tuple[str, list[str]]:
    shown = views.status(state, "c")
    return shown["connector"]["state"], [task["state"] for task in shown["tasks"]]


def keys(change: Change) -> list[str]:
    return [key.decode() for key, _ in change.config]


def test_a_new_connector_is_running_with_its_tasks():
    state = created()
    assert states(state) == ("RUNNING", ["RUNNING", "RUNNING"])
    assert keys(WRITER.created(State(), "c", SINK, None)) == ["connector-c", "task-c-0", "task-c-1", "commit-c"]


def test_references_in_class_and_number_of_tasks_are_resolved_and_tasks_get_them_as_written():
    values = {"${env:CLASS}": "FileStreamSink", "${env:TASKS}": "3"}
    asked: list[dict[str, str | None]] = []

    def resolve(config):
        asked.append(dict(config))
        return {key: values.get(value, value) for key, value in config.items()}

    given = {**SINK, "connector.class": "${env:CLASS}", "tasks.max": "${env:TASKS}", "topics": "${env:OTHER}"}
    state = applied(State(), Writer("w:1", resolve).created(State(), "c", given, None))
    tasks = state.config.tasks("c")
    assert [task["tasks.max"] for task in tasks] == ["${env:TASKS}"] * 3
    assert asked == [{"connector.class": "${env:CLASS}", "tasks.max": "${env:TASKS}"}]
    applied(state, Writer("w:1", resolve).stopped(state, "c"))
    applied(state, Writer("w:1", resolve).resumed(state, "c"))
    assert state.config.tasks("c") == tasks


@pytest.mark.parametrize("initial", ["PAUSED", "STOPPED"])
def test_the_initial_state_is_written_before_the_connector(initial):
    assert keys(WRITER.created(State(), "c", SINK, initial)) == ["target-state-c", "connector-c"]
    assert states(created(initial)) == (initial, [])


def test_stopping_removes_the_tasks_and_resuming_creates_them():
    state = created()
    applied(state, WRITER.stopped(state, "c"))
    assert states(state) == ("STOPPED", []) and state.config.tasks("c") == []
    applied(state, WRITER.resumed(state, "c"))
    assert states(state) == ("RUNNING", ["RUNNING", "RUNNING"])


def test_pausing_keeps_the_tasks():
    state = created()
    applied(state, WRITER.paused(state, "c"))
    assert states(state) == ("PAUSED", ["PAUSED", "PAUSED"]) and len(state.config.tasks("c")) == 2


def test_fewer_tasks_leave_no_states_behind():
    state = created()
    applied(state, WRITER.updated(state, "c", {**SINK, "tasks.max": "1"}))
    assert states(state) == ("RUNNING", ["RUNNING"])


def test_a_paused_connector_gets_its_new_tasks_when_it_is_resumed():
    state = created()
    applied(state, WRITER.paused(state, "c"))
    applied(state, WRITER.updated(state, "c", {**SINK, "tasks.max": "3"}))
    assert states(state) == ("PAUSED", ["PAUSED", "PAUSED"])
    applied(state, WRITER.resumed(state, "c"))
    assert states(state) == ("RUNNING", ["RUNNING"] * 3)


def test_the_same_configuration_again_writes_no_tasks():
    assert keys(WRITER.updated(created(), "c", SINK)) == ["connector-c"]


def test_tasks_that_compaction_has_taken_are_written_again_with_the_next_configuration():
    state = created()
    state.config.inconsistent.add("c")
    assert keys(WRITER.updated(state, "c", SINK)) == ["connector-c", "task-c-0", "task-c-1", "commit-c"]


def test_a_failed_run_fails_all_tasks_and_the_connector_only_because_of_its_configuration():
    state = created()
    applied(state, WRITER.run_ended(state, "c", "Kafka is away.", is_config=False))
    assert states(state) == ("RUNNING", ["FAILED", "FAILED"])
    assert views.task_status(state.status, "c", 1)["trace"] == "Kafka is away."
    applied(state, WRITER.run_ended(state, "c", "No such key.", is_config=True))
    assert states(state) == ("FAILED", ["FAILED", "FAILED"])
    applied(state, WRITER.run_ended(state, "c", None, is_config=False))
    assert states(state) == ("RUNNING", ["RUNNING", "RUNNING"])


def test_a_run_with_the_same_result_writes_nothing():
    state = created()
    assert WRITER.run_ended(state, "c", None, is_config=False) == Change((), [])


def test_resuming_what_may_run_already_does_not_hide_a_failure():
    state = created()
    applied(state, WRITER.run_ended(state, "c", "why", is_config=False))
    applied(state, WRITER.resumed(state, "c"))
    assert states(state) == ("RUNNING", ["FAILED", "FAILED"])


@pytest.mark.parametrize(
    ("include_tasks", "only_failed", "wanted"),
    [
        (False, False, {None}),
        (True, False, {None, 0, 1}),
        (False, True, set()),
        (True, True, {0, 1}),
    ],
)
def test_a_restart_affects_what_it_asks_for(include_tasks, only_failed, wanted):
    state = created()
    applied(state, WRITER.run_ended(state, "c", "why", is_config=False))
    assert _restarted(state, "c", include_tasks=include_tasks, only_failed=only_failed) == wanted
    applied(state, WRITER.restarted(state, "c", wanted, None))
    assert states(state) == ("RUNNING", ["RUNNING", "RUNNING"] if 0 in wanted else ["FAILED", "FAILED"])


def test_deleting_leaves_nothing():
    state = created()
    applied(state, WRITER.used_topics(state, "c", ["t"], 1))
    assert views.active_topics(state.status, "c") == {"c": {"topics": ["t"]}}
    assert WRITER.used_topics(state, "c", ["t"], 2).status == []
    applied(state, WRITER.deleted(state, "c"))
    assert (state.status.connectors, state.status.tasks, state.status.topics) == ({}, {}, {})
    with pytest.raises(RefusedError, match="Connector c not found"):
        views.info(state.config, "c")


@pytest.mark.parametrize(
    ("connector", "count", "task_class"),
    [
        ("FileStreamSource", 1, "org.apache.kafka.connect.file.FileStreamSourceTask"),
        ("io.confluent.connect.s3.S3SinkConnector", 4, "io.confluent.connect.s3.S3SinkTask"),
        ("io.confluent.connect.jdbc.JdbcSinkConnector", 4, "io.confluent.connect.jdbc.sink.JdbcSinkTask"),
        ("JdbcSource", 1, "io.confluent.connect.jdbc.source.JdbcSourceTask"),
        ("airflow_connect.connectors.files.local.connector:LocalSinkConnector", 4, "LocalSinkTask"),
    ],
)
def test_tasks_have_the_class_that_kafka_connect_would_start(connector, count, task_class):
    tasks = task_configs({"connector.class": connector, "tasks.max": "4"})
    assert len(tasks) == count
    assert (tasks[0]["task.class"] or "").endswith(task_class)
