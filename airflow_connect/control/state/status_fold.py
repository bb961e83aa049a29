"""What the records of the status topic add up to: states of connectors and tasks, and the topics that they use.

A pure fold with the rules of Kafka Connect's KafkaStatusBackingStore. Values that cannot be read change nothing.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.control.state import records

_LOG = logging.getLogger(__name__)
STATES = frozenset({"UNASSIGNED", "RUNNING", "PAUSED", "FAILED", "RESTARTING", "STOPPED", "DESTROYED"})


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a connector or of a task.

    Attributes:
        state: one of `STATES`.
        worker_id: host:port of the worker that wrote it.
        trace: why it failed.
        generation: of the worker group that wrote it.
        version: of the plugin; None: it was not loaded.
    """

    state: str
    worker_id: str
    trace: str | None = None
    generation: int = 0
    version: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The value of the record, its members in Kafka Connect's order."""
        return {
            "state": self.state,
            "trace": self.trace,
            "worker_id": self.worker_id,
            "generation": self.generation,
            "version": self.version,
        }


@dataclass(slots=True)
class StatusState:
    """The status topic as far as it was read.

    Attributes:
        connectors: by name.
        tasks: by connector, then by task.
        topics: names of active topics by connector, with the time of discovery in ms.
    """

    connectors: dict[str, Status] = field(default_factory=dict)
    tasks: dict[str, dict[int, Status]] = field(default_factory=dict)
    topics: dict[str, dict[str, int]] = field(default_factory=dict)

    def take(self, key: bytes | None, value: bytes | None) -> None:
        """Apply one record."""
        try:
            name = "" if key is None else key.decode()
            found = None if value is None else json.loads(value)
        except (ValueError, RecursionError):
            _LOG.warning("The status topic has a record that Kafka Connect did not write: %r.", (key or b"")[:200])
            return
        if name.startswith(records.STATUS_CONNECTOR):
            self._take_connector(name.removeprefix(records.STATUS_CONNECTOR), found)
        elif name.startswith(records.STATUS_TASK):
            self._take_task(name.removeprefix(records.STATUS_TASK), found)
        elif name.startswith(records.STATUS_TOPIC):
            self._take_topic(name.removeprefix(records.STATUS_TOPIC), found)
        else:
            _LOG.info("The status topic has a record of an unknown kind: %r.", (key or b"")[:200])

    def _take_connector(self, name: str, found: Any) -> None:
        if found is None:
            self.connectors.pop(name, None)
        elif name and (status := _status(found)) is not None:
            self.connectors[name] = status

    def _take_task(self, rest: str, found: Any) -> None:
        name, separator, number = rest.rpartition("-")
        if not separator or not name or not (number.isascii() and number.isdigit()):
            return
        if found is not None:
            if (status := _status(found)) is not None:
                self.tasks.setdefault(name, {})[int(number)] = status
            return
        tasks = self.tasks.get(name, {})
        tasks.pop(int(number), None)
        if not tasks:
            self.tasks.pop(name, None)

    def _take_topic(self, rest: str, found: Any) -> None:
        topic, separator, name = rest.partition(records.TOPIC_SEPARATOR)
        if not separator or not topic or not name:
            return
        if found is None:
            topics = self.topics.get(name, {})
            topics.pop(topic, None)
            if not topics:
                self.topics.pop(name, None)
            return
        about = found.get("topic") if isinstance(found, dict) else None
        at = about.get("discoverTimestamp") if isinstance(about, dict) else None
        if isinstance(at, int):
            self.topics.setdefault(name, {})[topic] = at


def _status(found: Any) -> Status | None:
    if not isinstance(found, dict) or found.get("state") not in STATES:
        return None
    worker, trace, generation, version = (found.get(k) for k in ("worker_id", "trace", "generation", "version"))
    if not isinstance(worker, str) or not isinstance(generation, int):
        return None
    return Status(
        found["state"],
        worker,
        trace if isinstance(trace, str) else None,
        generation,
        version if isinstance(version, str) else None,
    )
