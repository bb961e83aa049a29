"""What connectors cost a worker: the seconds that their runs took lately, and something for each task.

Read from the runs topic, so all workers see the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from airflow_connect.control.state import records
from airflow_connect.control.state.config_fold import ConfigState
from airflow_connect.errors import ConnectError
from airflow_connect.exactly_once.kafka_journal import RUN
from airflow_connect.kafka.admin import many_offsets
from airflow_connect.kafka.state.runs_tail import RunsTail

if TYPE_CHECKING:
    from airflow_connect.control.settings import ControlSettings
    from airflow_connect.kafka.clients.short_lived import Admin

WINDOW_MS = 24 * 60 * 60 * 1000
HOUR_MS = 60 * 60 * 1000
SECONDS_PER_TASK = 1.0
"""So that connectors without runs are shared as well: by their tasks."""


def costs(state: ConfigState, busy: Mapping[str, float]) -> dict[str, float]:
    """The cost of each connector, in seconds per hour; one that may not run costs as much as a task.

    Args:
        state: of the config topic.
        busy: see `busy_seconds`; a connector that is not there has had no run.
    """
    return {
        name: busy.get(name, 0.0) + SECONDS_PER_TASK * max(1, len(state.tasks(name)))
        if state.target(name) == records.STARTED
        else SECONDS_PER_TASK
        for name in state.connectors
    }


def busy_seconds(admin: Admin, settings: ControlSettings, names: Iterable[str], now_ms: int) -> dict[str, float]:
    """Seconds per hour that committed runs of the last day took, by connector.

    Raises:
        ConnectError: the runs topic cannot be read.
    """
    runs = settings.worker.runs_topic
    topic = many_offsets.describe_each(admin, [runs])[runs]
    if isinstance(topic, ConnectError):
        if topic.code == "kafka.no_topic":
            return {}
        raise topic
    found = RunsTail(runs, settings.reader).refresh(admin, topic, dict.fromkeys(names, (RUN,)))
    busy: dict[str, float] = {}
    for name, documents in found.items():
        if isinstance(documents, ConnectError):
            raise documents
        busy[name] = seconds_per_hour(documents.values(), now_ms)
    return busy


def seconds_per_hour(entries: Iterable[bytes], now_ms: int) -> float:
    """The share of the clock that runs took since the first of them, or since a day ago; at least an hour is counted.

    Args:
        entries: of the history of one connector, as JSON; what cannot be read does not count.
        now_ms: the clock.
    """
    times = [times for entry in entries if (times := _times(entry)) is not None and times[0] >= now_ms - WINDOW_MS]
    if not times:
        return 0.0
    since = max(HOUR_MS, now_ms - min(started for started, _ in times))
    return sum(max(0, ended - started) for started, ended in times) / 1000 * HOUR_MS / since


def _times(entry: bytes) -> tuple[int, int] | None:
    try:
        found = json.loads(entry)
        return int(found["started_ms"]), int(found["ended_ms"])
    except (ValueError, KeyError, TypeError):
        return None
