"""Topics of a conformance run: created, filled, read and reset on a real broker."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer
from confluent_kafka import TopicPartition as Position

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.devstack.topic_data import create_topic
from airflow_connect.kafka.admin import consumer_group, new_topics
from airflow_connect.kafka.clients.short_lived import Admin, admin_client

TIMEOUT_S = 60.0


class Row(NamedTuple):
    """A record to write."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


class Topics:
    """What a conformance run does to Kafka itself."""

    def __init__(self, bootstrap: str) -> None:
        """`bootstrap`: the broker."""
        self._bootstrap = bootstrap
        self._admin: Admin = admin_client({"bootstrap.servers": bootstrap})

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic and wait until clients see it."""
        create_topic(self._bootstrap, topic, partitions)

    def write(self, topic: str, rows: Iterable[Row]) -> None:
        """Write records and wait until the broker has all of them."""
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 5, "enable.idempotence": True})
        # An idempotent producer that has no connection yet when it requests its id retries after half a second.
        producer.list_topics(topic, timeout=TIMEOUT_S)
        refused: list[str] = []

        def delivered(error: object, _: Message) -> None:
            if error is not None:
                refused.append(str(error))

        for row in rows:
            headers: list[tuple[str, str | bytes | None]] = list(row.headers)
            producer.produce(topic, row.value, row.key, row.partition, headers=headers, on_delivery=delivered)
            producer.poll(0)
        left = producer.flush(TIMEOUT_S)
        if left or refused:
            raise TimeoutError(f"{left + len(refused)} records were not written to {topic}: {refused[:1]}")

    def read(self, topic: str) -> list[Message]:
        """Every committed record of a topic, partition by partition."""
        consumer = Consumer(
            {"bootstrap.servers": self._bootstrap, "group.id": f"reads-{topic}", "enable.auto.commit": False,
             "enable.partition.eof": True, "isolation.level": "read_committed"}
        )  # fmt: skip
        try:
            found: list[Message] = []
            for partition in sorted(consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions):
                found += self._read_partition(consumer, TopicPartition(topic, partition))
            return found
        finally:
            consumer.close()

    def _read_partition(self, consumer: Consumer, tp: TopicPartition) -> list[Message]:
        consumer.assign([Position(tp.topic, tp.partition, OFFSET_BEGINNING)])
        found: list[Message] = []
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            message = consumer.poll(0.1)
            if message is None:
                continue
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                return found
        raise TimeoutError(f"{tp} could not be read to its end.")

    def committed(self, group: str, topic: str, partitions: int) -> dict[int, int]:
        """Committed offsets of a group, by partition."""
        tps = [TopicPartition(topic, number) for number in range(partitions)]
        return {tp.partition: o for tp, o in consumer_group.read_committed_offsets(self._admin, group, tps).items()}

    def topic_id(self, topic: str) -> str:
        """Kafka's id of a topic."""
        return new_topics.topic_id(self._admin, topic)

    def set_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Set the offsets of a group without members, as an operator does."""
        consumer_group.alter_offsets(self._admin, group, offsets)
