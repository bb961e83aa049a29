"""Topics that cannot be read any more: found long before a reader gives up.

librdkafka says nothing about a topic that may not be described any more: it waits for a leader.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaException

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.counting import names
from airflow_connect.errors import AccessError
from airflow_connect.kafka.clients.short_lived import QuickConsumer, translate

LOOK_AFTER_S = 5.0
"""Time without progress before the first look at the metadata, and between two looks."""
_ANSWER_TIMEOUT_S = 3.0


class ReadWatch:
    """Looks for topics while a reader waits for records."""

    def __init__(self, consumer: QuickConsumer) -> None:
        """`consumer`: asks for the metadata. Time without progress starts now."""
        self._consumer = consumer
        self._found: set[str] = set()
        self.progressed()

    def progressed(self) -> None:
        """Something was read."""
        self._next_look = time.monotonic() + LOOK_AFTER_S
        self._found.clear()

    def refuse_unreadable(self, positions: Mapping[TopicPartition, int]) -> None:
        """Fail if two looks in a row have found the same reason: a broker that has just started may not know all.

        Looks only when it is time, so this may be called often.

        Args:
            positions: next offsets of what is still to be read.

        Raises:
            AccessError: a topic may not be described, or does not exist.
        """
        if time.monotonic() < self._next_look:
            return
        errors = list(self._unreadable(positions))
        for error in errors:
            if error.message in self._found:
                raise error
        self._found = {error.message for error in errors}
        self._next_look = time.monotonic() + LOOK_AFTER_S

    def _unreadable(self, positions: Mapping[TopicPartition, int]) -> Iterable[AccessError]:
        for topic in sorted({tp.topic for tp in positions}):
            own = {tp: offset for tp, offset in sorted(positions.items()) if tp.topic == topic}
            doing = f"reading {names(f'{tp}@{offset}' for tp, offset in own.items())}"
            try:
                found: Any = self._consumer.list_topics(topic, _ANSWER_TIMEOUT_S).topics.get(topic)
            except KafkaException:
                return  # Unknown: the reader goes on waiting, and says at its end what it waited for.
            if found is not None and found.error is not None:
                error = translate(found.error, f"looking for topic {topic}, {doing}")
                if isinstance(error, AccessError):
                    denied = f"Grant the principal the ACLs Describe and Read on topic {topic}, and run again."
                    suggestion = denied if error.code == "kafka.denied" else error.suggestion
                    yield AccessError(error.message, code=error.code, suggestion=suggestion)
