"""Records of the config and status topics, byte for byte as Kafka Connect 4.3 writes them.

Keys are plain text, values are JSON as JsonConverter writes it without schemas. Source: KafkaConfigBackingStore and
KafkaStatusBackingStore of Kafka Connect; recordings in tests/data/connect_topics.

Two kinds of records are not written here: `tasks-fencing-`, which runs of sources write
(`kafka/state/config_topic.py`), and `session-key`, which is only for requests between Kafka Connect's workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from airflow_connect.converters.json.converter import JsonConverter

CONNECTOR = "connector-"
TASK = "task-"
COMMIT = "commit-"
TARGET_STATE = "target-state-"
TASKS_FENCING = "tasks-fencing-"
RESTART = "restart-connector-"
LOGGER = "logger-cluster-"
SESSION_KEY = "session-key"
STATUS_CONNECTOR = "status-connector-"
STATUS_TASK = "status-task-"
STATUS_TOPIC = "status-topic-"
TOPIC_SEPARATOR = ":connector-"

STARTED = "STARTED"
PAUSED = "PAUSED"
STOPPED = "STOPPED"

RUN_LIMITS = frozenset({"run.max.records", "run.max.bytes", "run.max.seconds", "run.until.timestamp"})
"""Keys that a request may set for its run."""

Properties = Mapping[str, str | None]
Record = tuple[bytes, bytes | None]
"""Key and value; a value of None deletes."""


def connector_config(name: str, properties: Properties) -> Record:
    """The configuration of a connector, in the order of its request."""
    return _record(f"{CONNECTOR}{name}", {"properties": dict(properties)})


def no_connector(name: str) -> list[Record]:
    """What deletes a connector: Kafka Connect leaves its task and commit records, and readers ignore them."""
    return [(f"{CONNECTOR}{name}".encode(), None), (f"{TARGET_STATE}{name}".encode(), None)]


def task_config(name: str, task: int, properties: Properties) -> Record:
    """The configuration of a task; it applies with the next `commit`."""
    return _record(f"{TASK}{name}-{task}", {"properties": dict(properties)})


def commit(name: str, tasks: int) -> Record:
    """The connector has this many tasks, whose configurations are in the records before."""
    return _record(f"{COMMIT}{name}", {"tasks": tasks})


def target_state(name: str, state: str) -> Record:
    """`STARTED`, `PAUSED` or `STOPPED`. Workers before Kafka 3.5 do not know STOPPED, and read PAUSED instead."""
    return _record(f"{TARGET_STATE}{name}", {"state": PAUSED if state == STOPPED else state, "state.v2": state})


def restart(name: str, *, include_tasks: bool, only_failed: bool) -> Record:
    """A request to restart a connector; it is valid once, for whoever reads it when it is written."""
    return _record(f"{RESTART}{name}", {"include-tasks": include_tasks, "only-failed": only_failed})


def run_request(name: str, run_id: str, limits: Mapping[str, str]) -> Record:
    """A request to restart a connector, and how its run is called and limited: members that Kafka Connect ignores.

    Args:
        name: the connector.
        run_id: of the run.
        limits: of `RUN_LIMITS`, for this run only.
    """
    run = {"id": run_id, "limits": dict(limits)}
    return _record(f"{RESTART}{name}", {"include-tasks": True, "only-failed": False, "run": run})


def logger_level(namespace: str, level: str) -> Record:
    """A log level for every running worker; workers that start later ignore it, as they ignore restarts."""
    return _record(f"{LOGGER}{namespace}", {"level": level})


def connector_status(name: str, status: Mapping[str, Any] | None) -> Record:
    """`status`: see `status_fold.Status.to_json`; None deletes."""
    return _record(f"{STATUS_CONNECTOR}{name}", status)


def task_status(name: str, task: int, status: Mapping[str, Any] | None) -> Record:
    """`status`: see `status_fold.Status.to_json`; None deletes."""
    return _record(f"{STATUS_TASK}{name}-{task}", status)


def active_topic(topic: str, name: str, task: int, discovered_ms: int) -> Record:
    """A connector reads or writes a topic (KIP-558)."""
    about = {"name": topic, "connector": name, "task": task, "discoverTimestamp": discovered_ms}
    return _record(f"{STATUS_TOPIC}{topic}{TOPIC_SEPARATOR}{name}", {"topic": about})


def no_active_topic(topic: str, name: str) -> Record:
    """Forget that a connector uses a topic."""
    return _record(f"{STATUS_TOPIC}{topic}{TOPIC_SEPARATOR}{name}", None)


def _record(key: str, value: Mapping[str, Any] | None) -> Record:
    return key.encode(), None if value is None else _converter().from_connect("", None, dict(value))


@cache
def _converter() -> JsonConverter:
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false"}, False)
    return converter
