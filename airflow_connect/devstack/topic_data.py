"""A topic with records in it, for the demo."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from airflow_connect.devstack.launching.errors import DevStackError

TIMEOUT_S = 60.0


class DemoRecord(NamedTuple):
    """A record to write. `timestamp_ms`: milliseconds since the epoch."""

    partition: int
    key: bytes
    value: bytes
    timestamp_ms: int


def create_topic(bootstrap: str, topic: str, partitions: int) -> None:
    """Create a topic.

    Raises:
        DevStackError: the broker refused, or did not answer in time.
    """
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    created = admin.create_topics([NewTopic(topic, num_partitions=partitions, replication_factor=1)])
    try:
        created[topic].result(TIMEOUT_S)
    except KafkaException as error:
        raise DevStackError(f"Topic {topic} could not be created: {error}.", code="devstack.topic") from error
    _wait_until_visible(bootstrap, topic, partitions)


def _wait_until_visible(bootstrap: str, topic: str, partitions: int) -> None:
    """Use new clients: a broker learns of a new topic late, and a client keeps its first answer."""
    from confluent_kafka.admin import AdminClient

    deadline = time.monotonic() + TIMEOUT_S
    while True:
        found = AdminClient({"bootstrap.servers": bootstrap}).list_topics(topic, timeout=TIMEOUT_S).topics.get(topic)
        if found is not None and sum(p.leader >= 0 for p in found.partitions.values()) == partitions:
            return
        if time.monotonic() >= deadline:
            raise DevStackError(f"Topic {topic} has no leaders after {TIMEOUT_S:.0f} s.", code="devstack.topic")
        time.sleep(0.02)


def write_records(bootstrap: str, topic: str, records: Iterable[DemoRecord]) -> int:
    """Write records and wait until the broker has all of them; returns how many.

    Raises:
        DevStackError: some were refused, or not acknowledged in time.
    """
    from confluent_kafka import Producer

    settings = {"bootstrap.servers": bootstrap, "linger.ms": 50, "compression.type": "lz4"}
    producer = Producer({**settings, "queue.buffering.max.messages": 1_000_000})
    refused: list[str] = []

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            refused.append(str(error))

    count = 0
    for count, record in enumerate(records, 1):
        producer.produce(
            topic,
            record.value,
            record.key,
            record.partition,
            timestamp=record.timestamp_ms,
            on_delivery=delivered,
        )
        if count % 10_000 == 0:
            producer.poll(0)
    left = producer.flush(TIMEOUT_S)
    if refused:
        raise DevStackError(
            f"{len(refused)} of {count} records were not written to {topic}: {refused[0]}.", code="devstack.topic"
        )
    if left:
        raise DevStackError(
            f"{left} of {count} records were not written to {topic} within {TIMEOUT_S:.0f} s.", code="devstack.topic"
        )
    return count
