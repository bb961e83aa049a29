"""The config topic of Kafka Connect, as far as source runs need it: the number of tasks, and whether a worker runs it.

Keys and values: `tasks-fencing-<name>` -> `{"task-count":N}`, `target-state-<name>` ->
`{"state":"PAUSED","state.v2":"STOPPED"}`, `connector-<name>` -> `{"properties":{...}}`; JSON without schemas, one
partition. Source: KafkaConfigBackingStore (KIP-618, KIP-875) and recordings in tests/data/connect_topics.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.errors import StateError
from airflow_connect.kafka.admin import new_topics
from airflow_connect.kafka.state import compacted_topics

if TYPE_CHECKING:
    from airflow_connect.kafka.clients.short_lived import Admin

PARTITION = 0
STOPPED = "STOPPED"


@dataclass(slots=True)
class SourceState:
    """The contents of the config topic for a connector.

    Attributes:
        task_count: tasks of the last generation; None: it is not recorded.
        is_configured: a connector of this name is registered.
        target_state: `STARTED`, `PAUSED` or `STOPPED`.
    """

    task_count: int | None = None
    is_configured: bool = False
    target_state: str = "STARTED"


def read(admin: Admin, settings: Mapping[str, Any], topic: str, connector: str) -> SourceState:
    """The contents of the topic for `connector`; empty if the topic does not exist.

    Raises:
        StateError: one of its records was not written by Kafka Connect.
        UnavailableError, AccessError: the topic cannot be read.
    """
    values: dict[str, bytes | None] = {}
    wanted = {f"{kind}-{connector}".encode() for kind in ("tasks-fencing", "connector", "target-state")}

    def take(key: bytes | None, value: bytes | None) -> None:
        if key in wanted and key is not None:
            values[key.decode()] = value

    if new_topics.partition_count(admin, topic) is not None:
        compacted_topics.read(admin, settings, topic, take)
    found = {key: _parsed(topic, key, value) for key, value in values.items() if value is not None}
    fencing = found.get(f"tasks-fencing-{connector}")
    target = found.get(f"target-state-{connector}", {})
    return SourceState(
        task_count=None if fencing is None else _count(topic, connector, fencing),
        is_configured=f"connector-{connector}" in found,
        target_state=str(target.get("state.v2") or target.get("state") or "STARTED"),
    )


def task_count_record(connector: str, count: int) -> tuple[bytes, bytes]:
    """Key and value that record how many tasks may be running from now on."""
    return f"tasks-fencing-{connector}".encode(), json.dumps({"task-count": count}, separators=(",", ":")).encode()


def _parsed(topic: str, key: str, value: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise StateError(
            f"The record {key} of the config topic {topic} is not a JSON object.",
            suggestion="Look who else writes to this topic; config.storage.topic must be one of Kafka Connect.",
            config_path="config.storage.topic",
        )
    return parsed


def _count(topic: str, connector: str, value: Mapping[str, Any]) -> int:
    count = value.get("task-count")
    if not isinstance(count, int) or count < 0:
        raise StateError(
            f"The record tasks-fencing-{connector} of the config topic {topic} has no task-count.",
            suggestion="Look who else writes to this topic; config.storage.topic must be one of Kafka Connect.",
            config_path="config.storage.topic",
        )
    return count
