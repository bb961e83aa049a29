"""Sensors for topics: how much they hold, and which time they have passed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from airflow_connect.errors import ConfigError
from airflow_connect.observe.watches.conditions import TimePassed, TopicsHold
from airflow_connect.sensors.peeking import TopicsSensor, milliseconds, milliseconds_of
from airflow_connect.triggers.request import PeekRequest


class TopicHasDataSensor(TopicsSensor):
    """Waits until topics hold records.

    XCom: `records` and, by name, `topics`: the 100 topics with the most records.

    Args:
        min_records: over all topics. Offsets are counted, so gaps count.
        since: only from the first record at or after this time on; a datetime or its text; None: all that the log
            still holds. Templated.
        kwargs: as for `TopicsSensor`.

    Raises:
        ConfigError: `min_records` is not positive.
    """

    template_fields: Sequence[str] = (*TopicsSensor.template_fields, "since")

    def __init__(self, *, min_records: int = 1, since: datetime | str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.min_records = min_records
        self.since = since
        TopicsHold(min_records)

    def request(self) -> PeekRequest:
        """See `PeekingSensor`."""
        return PeekRequest.of(self.arguments(), TopicsHold(self.min_records, milliseconds(self.since, "since")))


class PartitionCompleteSensor(TopicsSensor):
    """Waits until every Kafka partition of topics has passed a time, such as the end of an hour.

    A partition has passed it if it holds a committed record with this timestamp or a later one. As for
    `complete.directories` of a sink, later records with an earlier timestamp are late. The sensor looks at the topics
    only; whether a connector has copied them is what `complete_outlet` of `ConnectorOperator` tells.

    XCom: `time_ms`, and the numbers of partitions that have `passed` or are `idle`.

    Args:
        time: exclusive end of what is waited for; a datetime or its text, such as `{{ data_interval_end }}`. Templated.
        idle_after: a partition without such a record has also passed, once this much time has gone by since `time` and
            if no transaction is open at its end. A timedelta, or seconds. None: a quiet or empty partition is waited
            for.
        kwargs: as for `TopicsSensor`.
    """

    template_fields: Sequence[str] = (*TopicsSensor.template_fields, "time")

    def __init__(self, *, time: datetime | str, idle_after: timedelta | float | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.time = time
        self.idle_after = idle_after

    def request(self) -> PeekRequest:
        """See `PeekingSensor`."""
        time_ms = milliseconds(self.time, "time")
        if time_ms is None:
            raise ConfigError(
                f"The time of task {self.task_id!r} is empty.",
                config_path="time",
                suggestion="Give a datetime, its text, or a template such as {{ data_interval_end }}.",
            )
        return PeekRequest.of(self.arguments(), TimePassed(time_ms, milliseconds_of(self.idle_after)))


__all__ = ["PartitionCompleteSensor", "TopicHasDataSensor"]
