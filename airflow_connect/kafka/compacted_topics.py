"""Topics of Kafka Connect that hold state: found, or created as Connect creates them, and read to their end.

Source: org.apache.kafka.connect.util.TopicAdmin, org.apache.kafka.connect.util.KafkaBasedLog. One difference: Connect
reads up to the last stable offset, where a stranger's open transaction hides what was committed behind it. Here the
reader waits for the stranger instead, up to the high watermark, because an offset that is not seen is a record that is
copied twice.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, TopicCollection
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
    names,
    state_consumer,
    translate,
    wait,
)
from airflow_connect.kafka.watermarks import READ_UNCOMMITTED, earliest_offsets, latest_offsets

VISIBLE_TIMEOUT_S = 30.0
STRANGER_TIMEOUT_S = 75.0
"""Longer than a transaction stays open by default, and the broker's 10 s check."""
_BATCH = 10_000
_LOG = logging.getLogger(__name__)

TakeRecord = Callable[[bytes | None, bytes | None], None]
"""Gets key and value of one record, in the order of its partition."""


@dataclass(frozen=True, slots=True)
class CompactedTopic:
    """How a topic is to be, if it is not there.

    Attributes:
        partitions, replication_factor: -1: the broker's default.
        config_path: the configuration key that names it, for messages.
    """

    name: str
    partitions: int
    replication_factor: int
    config_path: str


def ensure(admin: Admin, wanted: CompactedTopic) -> int:
    """Find a topic, or create it; returns its number of partitions.

    Raises:
        ConfigError: cleanup.policy is not exactly `compact`, or the replication factor cannot be had.
        AccessError: it does not exist and may not be created.
    """
    found = partition_count(admin, wanted.name)
    if found is None:
        create(admin, wanted.name, wanted.partitions, wanted.replication_factor, {"cleanup.policy": "compact"})
        return wait_until_visible(admin, wanted.name)
    _check_policy(admin, wanted)
    return found


def partition_count(admin: Admin, name: str) -> int | None:
    """Number of partitions of a topic, None when there is no such topic."""
    future = admin.describe_topics(TopicCollection([name]), request_timeout=API_TIMEOUT_S)[name]
    try:
        return len(future.result(API_TIMEOUT_S).partitions)
    except KafkaException as error:
        inner = kafka_error(error)
        if inner is not None and inner.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise translate(error, f"looking for topic {name}") from error


def create(admin: Admin, name: str, partitions: int, replication_factor: int, settings: Mapping[str, str]) -> None:
    """Create a topic; somebody else may have been faster.

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
            ) from error
        raise translate(error, f"creating topic {name}") from error


def wait_until_visible(admin: Admin, name: str) -> int:
    """Wait until fresh clients see a leader for every partition; returns the number of partitions.

    Brokers learn of a topic late, and a client keeps what it was told first.

    Raises:
        UnavailableError: no leaders within VISIBLE_TIMEOUT_S.
    """
    deadline = time.monotonic() + VISIBLE_TIMEOUT_S
    while True:
        fresh = admin_client(admin.settings)
        expected = partition_count(fresh, name)
        seen = fresh.list_topics(name, timeout=API_TIMEOUT_S).topics[name].partitions
        if expected and len(seen) == expected and all(p.leader >= 0 for p in seen.values()):
            return expected
        if time.monotonic() >= deadline:
            raise UnavailableError(f"Topic {name} was created but has no leaders after {VISIBLE_TIMEOUT_S:.0f} s.")
        time.sleep(0.02)


def read(admin: Admin, settings: Mapping[str, Any], name: str, take: TakeRecord) -> None:
    """Give every committed record of a topic to `take`; the records of one partition in order.

    Args:
        settings: librdkafka settings of the reader.

    Raises:
        AccessError: there is no such topic, or it may not be read.
        UnavailableError: a transaction of somebody else stays open, or Kafka does not answer.
    """
    count = partition_count(admin, name)
    tps = [TopicPartition(name, number) for number in range(count or 0)]
    ends = latest_offsets(admin, tps, READ_UNCOMMITTED)
    starts = earliest_offsets(admin, tps)
    missing = {tp: ends[tp] for tp in tps if ends[tp] > starts[tp]}
    if not missing:
        return
    consumer = state_consumer(
        settings,
        isolation_level="read_committed",
        enable_partition_eof=True,
        auto_offset_reset="earliest",
        fetch_wait_max_ms=10,
    )
    try:
        # Without known leaders `assign` would wait for librdkafka's next metadata timer, up to a second.
        consumer.list_topics(name, timeout=API_TIMEOUT_S)
        consumer.assign([_Partition(tp.topic, tp.partition, starts[tp]) for tp in missing])
        _read_to(consumer, missing, take)
    except KafkaException as error:
        raise translate(error, f"reading topic {name}") from error
    finally:
        consumer.close()


def _read_to(consumer: QuickConsumer, missing: dict[TopicPartition, int], take: TakeRecord) -> None:
    deadline = time.monotonic() + STRANGER_TIMEOUT_S
    while missing:
        messages = consumer.consume(_BATCH, 0.05)
        for message in messages:
            _take(message, missing, take)
        if any(message.error() is None for message in messages):
            deadline = time.monotonic() + STRANGER_TIMEOUT_S
        elif time.monotonic() >= deadline:
            raise UnavailableError(
                f"{names(sorted(missing))} could not be read to the end within {STRANGER_TIMEOUT_S:.0f} s.",
                suggestion="Another producer has a transaction open there; Kafka aborts it after its timeout "
                "(`kafka-transactions.sh find-hanging`). Run again.",
            )


def _take(message: Message[Any, Any], missing: dict[TopicPartition, int], take: TakeRecord) -> None:
    tp = TopicPartition(str(message.topic()), int(message.partition() or 0))
    problem = message.error()
    if problem is not None and problem.code() != KafkaError._PARTITION_EOF:
        if problem.retriable():
            return
        raise translate(problem, f"reading {tp}")
    if problem is None:
        take(message.key(), message.value())
    # The position at the end of a partition lies behind transaction markers and aborted records.
    position = int(message.offset() or 0) + (0 if problem is not None else 1)
    if position >= missing.get(tp, position + 1):
        del missing[tp]


def _check_policy(admin: Admin, wanted: CompactedTopic) -> None:
    resource = ConfigResource(ResourceType.TOPIC, wanted.name)
    try:
        configs = wait(
            admin.describe_configs([resource], request_timeout=API_TIMEOUT_S)[resource],
            f"reading the configuration of topic {wanted.name}",
        )
    except AccessError as error:
        # As Kafka Connect does (TopicAdmin.verifyTopicCleanupPolicyOnlyCompact): without DESCRIBE_CONFIGS it goes on.
        _LOG.warning("The cleanup policy of topic %s could not be checked: %s", wanted.name, error)
        return
    policy = configs["cleanup.policy"].value
    if policy != "compact":
        raise ConfigError(
            f"The topic {wanted.name} has cleanup.policy={policy}; only `compact` keeps state for ever.",
            suggestion=f"kafka-configs.sh --alter --topic {wanted.name} --add-config cleanup.policy=compact",
            config_path=wanted.config_path,
        )
