"""Topics that a source writes to: looked up once, created according to `topic.creation.*`, waited for.

Source: KIP-158, org.apache.kafka.connect.util.TopicCreation, AbstractWorkerSourceTask.maybeCreateTopic. Without
`topic.creation.default.*` Connect leaves creation to the broker (`auto.create.topics.enable`); so does this module.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from airflow_connect.errors import AccessError, ConfigError
from airflow_connect.kafka.admin import new_topics
from airflow_connect.kafka.clients.short_lived import API_TIMEOUT_S, Admin, producer, translate
from airflow_connect.retrying import Backoff, Retry

if TYPE_CHECKING:
    from airflow_connect.config.resolved.source import TopicGroup

AUTO_CREATE_S = 5.0
"""How long to wait for a broker that creates topics automatically."""


class TopicCreation:
    """Makes sure that topics exist before a record is sent to them."""

    def __init__(self, admin: Admin, groups: Sequence[TopicGroup], own: Collection[str] = ()) -> None:
        """Asks nothing yet.

        Args:
            groups: in order of precedence; () leaves creation to the broker.
            own: state topics of the worker, which a connector must not write to.
        """
        self._own = frozenset(own)
        self._admin = admin
        self._groups = tuple(groups)
        self._known: set[str] = set()

    def ensure(self, topic: str) -> None:
        """Find a topic, or create it and wait until clients see it.

        Raises:
            AccessError: it does not exist and is not created automatically, or creating it is not allowed.
            ConfigError: the replication factor is not possible, a topic setting is wrong, or it is a state topic of
                the worker.
        """
        if topic in self._known:
            return
        if topic in self._own:
            raise ConfigError(
                f"A record would go to {topic}, in which this worker keeps its own state.",
                code="source.state_topic",
                suggestion="Let the connector write to another topic, or give the worker other state topics.",
            )
        if new_topics.partition_count(self._admin, topic) is None:
            group = next((g for g in self._groups if g.takes(topic)), None)
            if group is None:
                self._trigger_auto_creation(topic)
            else:
                new_topics.create(
                    self._admin, topic, group.partitions, group.replication_factor, _settings(group.settings)
                )
            new_topics.wait_until_visible(self._admin, topic)
        self._known.add(topic)

    def _trigger_auto_creation(self, topic: str) -> None:
        """Request the topic like a producer, with a new client: the old one would remember that it did not exist."""
        tries = Retry(Backoff(0.05, longest_s=0.05), within_s=AUTO_CREATE_S)
        asking = producer(self._admin.settings)
        while True:
            try:
                asking.list_topics(topic, timeout=API_TIMEOUT_S)
            except KafkaException as error:
                raise translate(error, f"asking for topic {topic}") from error
            if new_topics.partition_count(self._admin, topic) is not None:
                return
            if not tries.pause():
                raise AccessError(
                    f"Topic {topic} does not exist, and the broker does not create it.",
                    code="kafka.no_topic",
                    suggestion="Create the topic, or let the connector do it: set topic.creation.default.partitions "
                    "and topic.creation.default.replication.factor.",
                    config_path="topic.creation.default.partitions",
                )


def _settings(given: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if value}
