"""Our own state: one compact topic, one partition per connector, read and written under transactions.

All records of a connector live in partition murmur2(connector) % partitions, so a run reads a single
partition. Other connectors share that partition, and their transactions with it: while a stranger's
transaction is open, the last stable offset stands still and hides what *this* connector has committed
behind it. Therefore `read` does not stop at the last stable offset but at the high watermark, and waits for
the stranger (milliseconds; at most its transaction timeout, if it crashed).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as _Partition
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType  # type: ignore[attr-defined]

from airflow_connect.api.errors import AccessError, ConfigError, UnavailableError
from airflow_connect.api.offsets import TopicPartition
from airflow_connect.kafka.clients import (
    API_TIMEOUT_S,
    Admin,
    QuickConsumer,
    admin_client,
    kafka_error,
    state_consumer,
    translate,
    wait,
)
from airflow_connect.kafka.murmur2 import partition_for
from airflow_connect.kafka.state_documents import decode_document, document_names, encode_document, parse_key
from airflow_connect.kafka.watermarks import READ_UNCOMMITTED, latest_offsets

VISIBLE_TIMEOUT_S = 30.0
STRANGER_TIMEOUT_S = 75.0
"""Longer than a transaction stays open: transactions.TRANSACTION_TIMEOUT_MS and the broker's 10 s check."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunsTopic:
    """The runs topic as it exists."""

    name: str
    partitions: int

    def partition_of(self, connector: str) -> int:
        """Partition that holds every record of a connector."""
        return partition_for(connector.encode(), self.partitions)


def ensure(admin: Admin, name: str, partitions: int, replication_factor: int) -> RunsTopic:
    """Find the runs topic, or create it; about 4 ms when it exists.

    Args:
        partitions: as configured. An existing topic must have exactly as many: a connector's records are
        found by
            its name modulo this number, so adding partitions would hide them.
        replication_factor: for a new topic; -1 takes the broker's default.

    Raises:
        ConfigError: cleanup.policy is not exactly `compact`, or another number of partitions.
        AccessError: it does not exist and may not be created.
    """
    resource = ConfigResource(ResourceType.TOPIC, name)
    configs = admin.describe_configs([resource], request_timeout=API_TIMEOUT_S)[resource]
    found = _partition_count(admin, name)
    if found is None:
        _create(admin, name, partitions, replication_factor)
        _wait_until_visible(admin, name, partitions)
        return RunsTopic(name, partitions)
    if found != partitions:
        raise ConfigError(
            f"The runs topic {name} has {found} partitions, but {partitions} are configured.",
            suggestion="A connector's state is found by the number of partitions: set it to the number with "
            "which the topic was created, and never add partitions to this topic.",
            config_path="runs.storage.partitions",
        )
    try:
        _check_policy(name, wait(configs, f"reading the configuration of topic {name}"))
    except AccessError as error:
        # As Kafka Connect does (TopicAdmin.verifyTopicCleanupPolicyOnlyCompact): without DESCRIBE_CONFIGS
        # it goes on.
        _LOG.warning("The cleanup policy of topic %s could not be checked: %s", name, error)
    return RunsTopic(name, partitions)


def find(admin: Admin, name: str) -> RunsTopic | None:
    """The runs topic as it exists, or None; creates nothing."""
    partitions = _partition_count(admin, name)
    return None if partitions is None else RunsTopic(name, partitions)


def read(admin: Admin, settings: Mapping[str, Any], topic: RunsTopic, connector: str) -> dict[str, bytes]:
    """Latest committed records of a connector, by key; about 15 ms. Call it after fencing.

    Raises:
        UnavailableError: a transaction of another connector stays open in the partition, or Kafka does not
        answer.
    """
    partition = topic.partition_of(connector)
    tp = TopicPartition(topic.name, partition)
    end = latest_offsets(admin, [tp], READ_UNCOMMITTED)[tp]
    if end == 0:
        return {}
    consumer = state_consumer(settings, isolation_level="read_committed", enable_partition_eof=True)
    try:
        # Without known leaders `assign` would wait for librdkafka's next metadata timer, up to a second.
        consumer.list_topics(topic.name, timeout=API_TIMEOUT_S)
        consumer.assign([_Partition(topic.name, partition, 0)])
        return _read_until(consumer, tp, end, connector)
    except KafkaException as error:
        raise translate(error, f"reading {tp}") from error
    finally:
        consumer.close()


def _read_until(consumer: QuickConsumer, tp: TopicPartition, end: int, connector: str) -> dict[str, bytes]:
    records: dict[str, bytes] = {}
    position = 0
    deadline = time.monotonic() + STRANGER_TIMEOUT_S
    while position < end:
        message = consumer.poll(0.1)
        if time.monotonic() >= deadline:
            raise UnavailableError(
                f"{tp} could not be read from offset {position} to {end} within {STRANGER_TIMEOUT_S:.0f} s.",
                suggestion="Another producer has a transaction open there; Kafka aborts it after its timeout "
                "(`kafka-transactions.sh find-hanging`). Run again.",
            )
        if message is None:
            continue
        position = max(position, (message.offset() or 0) + (0 if message.error() else 1))
        if (problem := message.error()) is not None:
            if problem.code() != KafkaError._PARTITION_EOF and not problem.retriable():
                raise translate(problem, f"reading {tp} at offset {position}")
            continue
        _take(records, message.key(), message.value(), connector)
    return records


def _take(records: dict[str, bytes], key: bytes | None, value: bytes | None, connector: str) -> None:
    text = (key or b"").decode("utf-8", "replace")
    parts = parse_key(text)
    if not parts or parts[1] != connector:
        return
    if value is None:
        records.pop(text, None)
    else:
        records[text] = value


def _partition_count(admin: Admin, name: str) -> int | None:
    future = admin.describe_topics(TopicCollection([name]), request_timeout=API_TIMEOUT_S)[name]
    try:
        return len(future.result(API_TIMEOUT_S).partitions)
    except KafkaException as error:
        inner = kafka_error(error)
        if inner is not None and inner.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise translate(error, f"looking for topic {name}") from error


def _create(admin: Admin, name: str, partitions: int, replication_factor: int) -> None:
    new = NewTopic(name, partitions, replication_factor, config={"cleanup.policy": "compact"})
    future = admin.create_topics([new], request_timeout=API_TIMEOUT_S)[name]
    try:
        future.result(API_TIMEOUT_S)
    except KafkaException as error:
        inner = kafka_error(error)
        # Two first runs at once: the other one was faster.
        if inner is None or inner.code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise translate(error, f"creating the runs topic {name}") from error


def _wait_until_visible(admin: Admin, name: str, partitions: int) -> None:
    """Ask fresh clients: brokers learn of a topic late, and a client keeps what it was told first."""
    deadline = time.monotonic() + VISIBLE_TIMEOUT_S
    while True:
        fresh = admin_client(admin.settings)
        seen = fresh.list_topics(name, timeout=API_TIMEOUT_S).topics[name].partitions
        if len(seen) == partitions and all(p.leader >= 0 for p in seen.values()):
            return
        if time.monotonic() >= deadline:
            raise UnavailableError(f"Topic {name} was created but has no leaders after {VISIBLE_TIMEOUT_S:.0f} s.")
        time.sleep(0.02)


def _check_policy(name: str, configs: Mapping[str, Any]) -> None:
    policy = configs["cleanup.policy"].value
    if policy != "compact":
        raise ConfigError(
            f"The runs topic {name} has cleanup.policy={policy}; only `compact` keeps state for ever.",
            suggestion=f"kafka-configs.sh --alter --topic {name} --add-config cleanup.policy=compact",
            config_path="runs.storage.topic",
        )


__all__ = ["RunsTopic", "decode_document", "document_names", "encode_document", "ensure", "read"]
