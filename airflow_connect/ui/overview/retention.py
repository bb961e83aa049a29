"""When Kafka deletes records that no sink has copied yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.control.settings import ControlSettings
from airflow_connect.errors import ConnectError
from airflow_connect.kafka.admin.topic_settings import settings_of_topics
from airflow_connect.kafka.clients.settings import READ_COMMITTED
from airflow_connect.kafka.clients.short_lived import Admin, admin_client
from airflow_connect.kafka.reading.first_timestamps import first_records
from airflow_connect.ui.overview.model import Connector, Position

SOON_MS = 24 * 3600 * 1000
"""A loss within a day is shown as an error."""
MOST_PLACES = 60
"""Partitions whose first record that is not copied is looked at: those with the longest lag."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """The first moment at which a topic loses a record that a connector has not copied.

    Attributes:
        at_ms: by the topic's `retention.ms`. Kafka deletes whole segments, so it may be later, never earlier.
        retention_ms: of the topic.
    """

    topic: str
    connector: str
    place: str
    at_ms: int
    retention_ms: int

    def urgency(self, now_ms: float) -> str:
        """`bad`: within a day; `warn`: most of the retention time has passed; otherwise `quiet`."""
        left_ms = self.at_ms - now_ms
        return "bad" if left_ms < SOON_MS else "warn" if left_ms * 4 < self.retention_ms else "quiet"


def deadlines(
    settings: ControlSettings,
    connectors: Sequence[Connector],
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> dict[str, Deadline]:
    """For each topic with lag and a retention time, when it first loses something. The clock is for records of today.

    Raises:
        UnavailableError, AccessError: Kafka.
    """
    behind = [(connector, p) for connector in connectors for p in connector.positions if p.lag]
    behind.sort(key=lambda found: -found[1].lag)
    slowest: dict[TopicPartition, tuple[Connector, Position]] = {}
    for connector, position in behind:
        place = TopicPartition(position.topic, position.partition)
        if place not in slowest or position.start < slowest[place][1].start:
            slowest[place] = connector, position
    chosen = dict(list(slowest.items())[:MOST_PLACES])
    admin = admin_client(settings.admin)
    kept_ms = _retention(admin, sorted({place.topic for place in chosen}))
    starts = {place: position.start for place, (_, position) in chosen.items() if place.topic in kept_ms}
    found: dict[str, Deadline] = {}
    for place, first in first_records(settings.reader, starts, READ_COMMITTED).items():
        if isinstance(first, ConnectError) or first.timestamp_ms is None:
            continue  # No time is known, so nothing can be said about this partition.
        connector, retention = chosen[place][0], kept_ms[place.topic]
        at_ms = min(first.timestamp_ms, now_ms()) + retention
        if place.topic not in found or at_ms < found[place.topic].at_ms:
            found[place.topic] = Deadline(place.topic, connector.name, str(place), at_ms, retention)
    return found


def _retention(admin: Admin, topics: Sequence[str]) -> dict[str, int]:
    """`retention.ms` of topics that delete old records; a topic whose settings may not be read is left out."""
    found: dict[str, int] = {}
    for topic, settings in settings_of_topics(admin, topics).items():
        if isinstance(settings, ConnectError):
            continue  # Without DESCRIBE_CONFIGS its retention is not known; the page says nothing about it.
        retention = int(settings["retention.ms"])
        if retention >= 0 and "delete" in settings["cleanup.policy"]:
            found[topic] = retention
    return found


def oldest_ms(settings: ControlSettings, positions: Sequence[Position]) -> int | None:
    """The oldest timestamp among the first records that are not copied, of the partitions with the longest lag.

    None: nothing waits, or no time is known.

    Raises:
        UnavailableError, AccessError: Kafka.
    """
    behind = sorted((p for p in positions if p.lag), key=lambda p: -p.lag)[:MOST_PLACES]
    starts = {TopicPartition(p.topic, p.partition): p.start for p in behind}
    found = first_records(settings.reader, starts, READ_COMMITTED).values()
    times = (first.timestamp_ms for first in found if not isinstance(first, ConnectError))
    return min((time_ms for time_ms in times if time_ms is not None and time_ms > 0), default=None)
