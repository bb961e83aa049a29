"""Topics that are created here: look them up, create them, wait for them."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from types import MappingProxyType

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import NewTopic, TopicDescription  # type: ignore[attr-defined]

from airflow_connect.errors import ConfigError, ConnectError, UnavailableError
from airflow_connect.kafka.clients.asking import ask
from airflow_connect.kafka.clients.short_lived import API_TIMEOUT_S, Admin, admin_client, kafka_error, translate
from airflow_connect.retrying import Backoff, Retry

VISIBLE_TIMEOUT_S = 30.0


def partition_count(admin: Admin, name: str) -> int | None:
    """Number of partitions of a topic; None if it does not exist."""
    found = _described(admin, name)
    return None if found is None else len(found.partitions)


def topic_id(admin: Admin, name: str) -> str:
    """Kafka's id of a topic, which changes if it is recreated; "" if it does not exist."""
    found = _described(admin, name)
    return "" if found is None else str(found.topic_id)


def _described(admin: Admin, name: str) -> TopicDescription | None:
    def request(client: Admin, timeout_s: float) -> Mapping[str, Future[TopicDescription]]:
        found: Mapping[str, Future[TopicDescription]] = client.describe_topics(
            TopicCollection([name]), request_timeout=timeout_s
        )
        return found

    try:
        return ask(admin, request, "looking for topic")[name]
    except ConnectError as error:
        inner = kafka_error(error.__cause__) if isinstance(error.__cause__, KafkaException) else None
        if inner is not None and inner.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise


def create(
    admin: Admin,
    name: str,
    partitions: int,
    replication_factor: int,
    settings: Mapping[str, str] = MappingProxyType({}),
    *,
    config_path: str = "",
) -> None:
    """Create a topic; another client may have created it first.

    Args:
        partitions, replication_factor: -1: the broker's default.
        config_path: key of the replication factor, for messages.

    Raises:
        ConfigError, AccessError, UnavailableError: Kafka refused.
    """
    new = NewTopic(name, partitions, replication_factor, config=dict(settings))
    try:
        admin.create_topics([new], request_timeout=API_TIMEOUT_S)[name].result(API_TIMEOUT_S)
    except KafkaException as error:
        inner = kafka_error(error)
        if inner is not None and inner.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return
        if inner is not None and inner.code() == KafkaError.INVALID_REPLICATION_FACTOR:
            raise ConfigError(
                f"Topic {name} does not exist and cannot be created with {replication_factor} replicas: {inner.str()}.",
                code="kafka.config",
                suggestion="Create the topic, or set the replication factor for it to a number of brokers that the "
                "cluster has, or to -1 for the broker's default.",
                config_path=config_path,
            ) from error
        raise translate(error, f"creating topic {name}") from error


def wait_until_visible(admin: Admin, name: str) -> int:
    """Wait until fresh clients see a leader for every partition; returns the number of partitions.

    Brokers learn of a new topic with a delay, and a client keeps the first answer.

    Raises:
        UnavailableError: no leaders within VISIBLE_TIMEOUT_S.
    """
    tries = Retry(Backoff(0.02, longest_s=0.02), within_s=VISIBLE_TIMEOUT_S)
    while True:
        fresh = admin_client(admin.settings)
        try:
            expected = partition_count(fresh, name)
            seen = fresh.list_topics(name, timeout=API_TIMEOUT_S).topics[name].partitions
        finally:
            fresh.close()
        if expected and len(seen) == expected and all(p.leader >= 0 for p in seen.values()):
            return expected
        if not tries.pause():
            raise UnavailableError(f"Topic {name} was created but has no leaders after {VISIBLE_TIMEOUT_S:.0f} s.")
