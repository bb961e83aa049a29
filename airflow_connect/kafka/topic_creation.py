"""Topics that a source writes to: looked up once, created as `topic.creation.*` says, waited for.

Source: KIP-158, org.apache.kafka.connect.util.TopicCreation, AbstractWorkerSourceTask.maybeCreateTopic. Without
`topic.creation.default.*` Connect leaves creation to the broker (`auto.create.topics.enable`); so does this.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from airflow_connect.api.errors import AccessError
from airflow_connect.kafka import new_topics
from airflow_connect.kafka.clients import API_TIMEOUT_S, Admin, producer, translate

if TYPE_CHECKING:
    from airflow_connect.api.source_config import TopicGroup

AUTO_CREATE_S = 5.0
"""How long a broker that creates topics by itself is given to do it."""


class TopicCreation:
    """Makes sure that topics exist before a record is sent to them."""

    def __init__(self, admin: Admin, groups: Sequence[TopicGroup]) -> None:
        """`groups`: in order of precedence; () leaves creation to the broker."""
        self._admin = admin
        self._groups = tuple(groups)
        self._known: set[str] = set()

    def ensure(self, topic: str) -> None:
        """Find a topic, or create it and wait until clients see it.

        Raises:
            AccessError: it does not exist and nobody creates it, or creating it is not allowed.
            ConfigError: the replication factor cannot be had, or a topic setting is wrong.
        """
        if topic in self._known:
            return
        if new_topics.partition_count(self._admin, topic) is None:
            group = next((g for g in self._groups if g.takes(topic)), None)
            if group is None:
                self._let_broker_create(topic)
            else:
                new_topics.create(
                    self._admin, topic, group.partitions, group.replication_factor, _settings(group.settings)
                )
            new_topics.wait_until_visible(self._admin, topic)
        self._known.add(topic)

    def _let_broker_create(self, topic: str) -> None:
        """Ask for the topic as a producer does, with a client of its own: it would remember that there was none."""
        deadline = time.monotonic() + AUTO_CREATE_S
        asking = producer(self._admin.settings)
        while new_topics.partition_count(self._admin, topic) is None:
            if time.monotonic() >= deadline:
                raise AccessError(
                    f"Topic {topic} does not exist, and the broker does not create it.",
                    code="kafka.no_topic",
                    suggestion="Create the topic, or let the connector do it: set topic.creation.default.partitions "
                    "and topic.creation.default.replication.factor.",
                    config_path="topic.creation.default.partitions",
                )
            try:
                asking.list_topics(topic, timeout=API_TIMEOUT_S)
            except KafkaException as error:
                raise translate(error, f"asking for topic {topic}") from error
            time.sleep(0.05)


def _settings(given: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if value}
