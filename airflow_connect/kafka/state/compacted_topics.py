"""Kafka Connect's state topics: find them, or create them as Connect does, and read them to their end.

Source: org.apache.kafka.connect.util.TopicAdmin, org.apache.kafka.connect.util.KafkaBasedLog. One difference: Connect
reads up to the last stable offset, where another client's open transaction hides what was committed after it. Here the
reader waits for that transaction and reads up to the high watermark, because a record whose offset is missed is copied
twice.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as _Partition
from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.counting import names
from airflow_connect.errors import AccessError, ConfigError, UnavailableError
from airflow_connect.kafka.admin.new_topics import create, partition_count, wait_until_visible
from airflow_connect.kafka.admin.watermarks import READ_UNCOMMITTED, earliest_offsets, latest_offsets
from airflow_connect.kafka.clients.short_lived import (
    API_TIMEOUT_S,
    Admin,
    QuickConsumer,
    state_consumer,
    translate,
    wait,
)
from airflow_connect.kafka.state.topic_upkeep import COMPACT, SMALL, Upkeep, maintain_topic

OPEN_TRANSACTION_TIMEOUT_S = 75.0
"""Longer than a transaction stays open by default, and the broker's 10 s check."""
_BATCH = 10_000
_LOG = logging.getLogger(__name__)

TakeRecord = Callable[[bytes | None, bytes | None], None]
"""Gets key and value of one record, in the order of its partition."""
TakeMessage = Callable[[Message], None]
"""Gets the record with its partition, offset and leader epoch."""


@dataclass(frozen=True, slots=True)
class CompactedTopic:
    """How to create a topic that does not exist.

    Attributes:
        partitions, replication_factor: -1: the broker's default.
        config_path: the configuration key that names it, for messages.
        upkeep: what keeps it small.
    """

    name: str
    partitions: int
    replication_factor: int
    config_path: str
    upkeep: Upkeep = field(default_factory=Upkeep)


def ensure(admin: Admin, wanted: CompactedTopic) -> int:
    """Find a topic, or create it; returns its number of partitions; about 4 ms if it exists.

    Raises:
        ConfigError: cleanup.policy is not exactly `compact`, or the replication factor is not possible.
        AccessError: it does not exist and may not be created.
    """
    resource = ConfigResource(ResourceType.TOPIC, wanted.name)
    configs = admin.describe_configs([resource], request_timeout=API_TIMEOUT_S)[resource]
    found = partition_count(admin, wanted.name)
    if found is None:
        _create(admin, wanted)
        return wait_until_visible(admin, wanted.name)
    described = _check_policy(configs, wanted)
    if described is not None:
        maintain_topic(admin, wanted.name, described, wanted.upkeep)
    return found


def check(admin: Admin, wanted: CompactedTopic) -> int | None:
    """As `ensure`, but creates and changes nothing; None: the topic does not exist.

    Raises:
        ConfigError: cleanup.policy is not exactly `compact`.
    """
    found = partition_count(admin, wanted.name)
    if found is not None:
        resource = ConfigResource(ResourceType.TOPIC, wanted.name)
        _check_policy(admin.describe_configs([resource], request_timeout=API_TIMEOUT_S)[resource], wanted)
    return found


def _create(admin: Admin, wanted: CompactedTopic) -> None:
    path = wanted.config_path.removesuffix("topic") + "replication.factor"
    partitions, factor = wanted.partitions, wanted.replication_factor
    try:
        create(admin, wanted.name, partitions, factor, {**wanted.upkeep.wanted, **COMPACT}, config_path=path)
    except ConfigError as error:
        # A managed service may not allow these settings; settings from the worker's configuration are required.
        create(admin, wanted.name, partitions, factor, {**wanted.upkeep.settings, **COMPACT}, config_path=path)
        wanted.upkeep.tell(f"State topic {wanted.name} was created without {', '.join(SMALL)}: {error.message}")


def read(admin: Admin, settings: Mapping[str, Any], name: str, take: TakeRecord) -> None:
    """Pass every committed record of a topic to `take`; the records of one partition in order.

    Args:
        settings: librdkafka settings of the reader.

    Raises:
        AccessError: the topic does not exist, or may not be read.
        UnavailableError: another client's transaction stays open, or Kafka does not answer.
    """
    count = partition_count(admin, name)
    tps = [TopicPartition(name, number) for number in range(count or 0)]
    ends = latest_offsets(admin, tps, READ_UNCOMMITTED)
    starts = earliest_offsets(admin, tps)
    read_to(settings, starts, ends, lambda record: take(record.key(), record.value()))


def read_to(
    settings: Mapping[str, Any],
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    take: TakeMessage,
) -> None:
    """Pass every committed record between `starts` and `ends`, high watermarks of one topic, to `take`; about 15 ms.

    If the log begins after a start, it is read from its beginning.

    Raises:
        AccessError, UnavailableError: as `read`.
    """
    missing = {tp: end for tp, end in ends.items() if end > starts[tp]}
    if not missing:
        return
    topic = next(iter(missing)).topic
    consumer = state_consumer(
        settings, isolation_level="read_committed", enable_partition_eof=True, auto_offset_reset="earliest"
    )
    try:
        # Without known leaders `assign` would wait for librdkafka's next metadata timer, up to a second.
        consumer.list_topics(topic, timeout=API_TIMEOUT_S)
        consumer.assign([_Partition(tp.topic, tp.partition, starts[tp]) for tp in missing])
        _read_missing(consumer, missing, take)
    except KafkaException as error:
        raise translate(error, f"reading topic {topic}") from error
    finally:
        consumer.close()


def _read_missing(consumer: QuickConsumer, missing: dict[TopicPartition, int], take: TakeMessage) -> None:
    deadline = time.monotonic() + OPEN_TRANSACTION_TIMEOUT_S
    while missing:
        # `consume` alone would wait until it has the requested number.
        first = consumer.poll(0.1)
        messages = [] if first is None else [first, *consumer.consume(_BATCH, 0)]
        for message in messages:
            _take(message, missing, take)
        if any(message.error() is None for message in messages):
            deadline = time.monotonic() + OPEN_TRANSACTION_TIMEOUT_S
        elif time.monotonic() >= deadline:
            places = [f"{tp} to offset {end}" for tp, end in sorted(missing.items())]
            raise UnavailableError(
                f"{names(places)} could not be read within {OPEN_TRANSACTION_TIMEOUT_S:.0f} s.",
                suggestion="Another producer has a transaction open there; Kafka aborts it after its timeout "
                "(`kafka-transactions.sh find-hanging`). Run again.",
            )


def _take(message: Message[Any, Any], missing: dict[TopicPartition, int], take: TakeMessage) -> None:
    tp = TopicPartition(str(message.topic()), int(message.partition() or 0))
    problem = message.error()
    if problem is not None and problem.code() != KafkaError._PARTITION_EOF:
        if problem.retriable():
            return
        raise translate(problem, f"reading {tp}")
    if problem is None:
        take(message)
    # The position at the end of a partition is after transaction markers and aborted records.
    position = int(message.offset() or 0) + (0 if problem is not None else 1)
    if position >= missing.get(tp, position + 1):
        del missing[tp]


def _check_policy(described: Future[dict[str, Any]], wanted: CompactedTopic) -> dict[str, Any] | None:
    try:
        configs = wait(described, f"reading the configuration of topic {wanted.name}")
    except AccessError as error:
        # As in Kafka Connect (TopicAdmin.verifyTopicCleanupPolicyOnlyCompact): without DESCRIBE_CONFIGS it continues.
        _LOG.warning("The cleanup policy of topic %s could not be checked: %s", wanted.name, error)
        return None
    policy = configs["cleanup.policy"].value
    if policy != "compact":
        raise ConfigError(
            f"The topic {wanted.name} has cleanup.policy={policy}; only `compact` keeps state forever.",
            suggestion=f"kafka-configs.sh --alter --topic {wanted.name} --add-config cleanup.policy=compact",
            config_path=wanted.config_path,
        )
    return configs
