"""Recorded config and status topics of a real Kafka Connect: our writers give the same bytes, our fold its state."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.control.state import records
from airflow_connect.control.state.config_fold import ConfigState
from airflow_connect.control.state.java_map_order import in_java_order
from airflow_connect.control.state.status_fold import Status, StatusState
from airflow_connect.kafka.state import config_topic

DATA = Path(__file__).parents[3] / "data" / "connect_topics"
Recorded = list[tuple[bytes, bytes | None, int]]


def recorded(name: str) -> Recorded:
    lines = [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text("utf-8").splitlines()[1:]]
    return [
        (
            base64.b64decode(line["key"]["base64"]),
            None if line["value"] is None else base64.b64decode(line["value"]["base64"]),
            line["offset"],
        )
        for line in lines
    ]


def rewritten_config(key: str, value: Any) -> records.Record:
    kind = next(
        k
        for k in ("target-state-", "restart-connector-", "tasks-fencing-", "connector-", "task-", "commit-")
        if key.startswith(k)
    )
    name = key.removeprefix(kind)
    if value is None:
        return next(record for record in records.no_connector(name) if record[0] == key.encode())
    match kind:
        case "connector-":
            return records.connector_config(name, value["properties"])
        case "task-":
            connector, _, task = name.rpartition("-")
            return records.task_config(connector, int(task), value["properties"])
        case "commit-":
            return records.commit(name, value["tasks"])
        case "target-state-":
            return records.target_state(name, value["state.v2"])
        case "tasks-fencing-":
            return config_topic.task_count_record(name, value["task-count"])
        case "restart-connector-":
            return records.restart(name, include_tasks=value["include-tasks"], only_failed=value["only-failed"])
        case _:
            raise AssertionError(key)


@pytest.mark.parametrize("topic", ["clean-connect-configs", "eos-connect-configs"])
def test_every_record_of_a_recorded_config_topic_is_written_with_the_same_bytes(topic):
    for key, value, _ in recorded(topic):
        if key == b"session-key":  # Only Kafka Connect's workers write it, for requests between them.
            continue
        parsed = None if value is None else json.loads(value)
        assert rewritten_config(key.decode(), parsed) == (key, value)


@pytest.mark.parametrize("topic", ["clean-connect-status", "eos-connect-status"])
def test_every_record_of_a_recorded_status_topic_is_written_with_the_same_bytes(topic):
    for key, value, _ in recorded(topic):
        text, parsed = key.decode(), None if value is None else json.loads(value)
        if text.startswith("status-topic-"):
            name, _, connector = text.removeprefix("status-topic-").partition(":connector-")
            about = None if parsed is None else parsed["topic"]
            ours = (
                records.no_active_topic(name, connector)
                if about is None
                else records.active_topic(name, connector, about["task"], about["discoverTimestamp"])
            )
        elif text.startswith("status-task-"):
            connector, _, task = text.removeprefix("status-task-").rpartition("-")
            ours = records.task_status(connector, int(task), parsed and Status(**parsed).to_json())
        else:
            connector = text.removeprefix("status-connector-")
            ours = records.connector_status(connector, parsed and Status(**parsed).to_json())
        assert ours == (key, value)


@pytest.mark.parametrize("topic", ["clean-connect-configs", "eos-connect-configs"])
def test_task_configurations_of_file_connectors_are_in_the_order_of_a_java_map(topic):
    compared = 0
    connectors: dict[str, dict[str, str]] = {}
    for key, value, _ in recorded(topic):
        if value is None:
            continue
        name, properties = key.decode(), json.loads(value).get("properties")
        if name.startswith("connector-"):
            connectors[name.removeprefix("connector-")] = properties
        if name.startswith("task-") and b"connect.file" in value:
            given = connectors[name.removeprefix("task-").rpartition("-")[0]]
            assert list(in_java_order(given | {"task.class": properties["task.class"]})) == list(properties)
            compared += 1
    assert compared > 20


def test_the_recorded_config_topic_adds_up_to_the_connectors_that_the_session_left():
    state = ConfigState()
    for record in recorded("clean-connect-configs"):
        state.take(*record)
    assert {name: (state.target(name), len(state.tasks(name))) for name in state.connectors} == {
        "tc-src": ("STOPPED", 0),
        "tc-snk": ("PAUSED", 2),
        "tc-mm": ("STOPPED", 0),
        "tc-hb": ("STOPPED", 0),
        "tc-ck": ("STOPPED", 0),
    }
    assert state.next_offset == 149
    assert not state.inconsistent
    assert state.tasks("tc-snk")[1]["task.class"] == "org.apache.kafka.connect.file.FileStreamSinkTask"
    assert state.connectors["tc-snk"].config["name"] == "tc-snk"


def test_the_recorded_exactly_once_topic_adds_up_to_task_counts_and_restarts():
    state = ConfigState()
    for record in recorded("eos-connect-configs"):
        state.take(*record)
    assert state.target("eos-poll") == "STOPPED" and state.fenced["eos-poll"] == 0
    assert len(state.tasks("eos-interval")) == 1 and state.fenced["eos-interval"] == 1
    assert ("eos-poll", True, False) in [restart[1:4] for restart in state.restarts]


def test_the_recorded_status_topic_adds_up_to_the_states_that_the_session_left():
    state = StatusState()
    for key, value, _ in recorded("clean-connect-status"):
        state.take(key, value)
    assert {name: status.state for name, status in state.connectors.items()} == {
        "tc-src": "STOPPED",
        "tc-snk": "PAUSED",
        "tc-mm": "STOPPED",
        "tc-hb": "STOPPED",
        "tc-ck": "STOPPED",
    }
    assert {task: status.state for task, status in state.tasks["tc-snk"].items()} == {0: "PAUSED", 1: "PAUSED"}
    assert "tc-lines" in state.topics["tc-src"]
    assert state.connectors["tc-snk"].version == "4.3.1"
