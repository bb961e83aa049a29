"""Topics and records for tests on a real broker."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.support.waiting import TIMEOUT_S, wait_until


class Record(NamedTuple):
    """A record to produce. `timestamp_ms` 0 means now; a header value may be None."""

    partition: int
    key: bytes | str | None
    value: bytes | str | None
    timestamp_ms: int = 0
    headers: Sequence[tuple[str, bytes | None]] = ()


Records = Iterable[Record | tuple[Any, ...]]
Outcome = Literal["commit", "abort", "open"]

QUICK: Mapping[str, Any] = {"linger.ms": 1, "enable.sparse.connections": False}
"""Sparse connections would now and then wait a second for the first one."""


def partition_count(bootstrap: str, topic: str) -> int:
    """Return how many partitions of a topic have a leader, seen by a client without any cached metadata.

    It asks for this topic alone: a broker of the whole session has thousands.
    """
    found = AdminClient({"bootstrap.servers": bootstrap}).list_topics(topic, timeout=10).topics.get(topic)
    if found is None or found.error is not None:
        return 0
    return sum(1 for partition in found.partitions.values() if partition.error is None and partition.leader >= 0)


def create_topic(
    bootstrap: str, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None, copies: int = 1
) -> None:
    """Create a topic and wait until every partition is visible to a new client."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    request = NewTopic(topic, num_partitions=partitions, replication_factor=copies, config=dict(config or {}))
    admin.create_topics([request])[topic].result(TIMEOUT_S)
    wait_until(lambda: partition_count(bootstrap, topic) == partitions, f"{topic} with {partitions} partitions")


def add_partitions(bootstrap: str, topic: str, total: int) -> None:
    """Raise a topic to `total` partitions and wait until a new client sees them."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(topic, total)])[topic].result(TIMEOUT_S)
    wait_until(lambda: partition_count(bootstrap, topic) == total, f"{topic} with {total} partitions")


def delete_topic(bootstrap: str, topic: str) -> None:
    """Delete a topic and wait until a new client no longer sees it."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(TIMEOUT_S)
    # Of all topics: a broker may create one that is asked for.
    seen = lambda: AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=10).topics  # noqa: E731
    wait_until(lambda: topic not in seen(), f"{topic} deleted")


def every_record(bootstrap: str, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """Key and value of every record of a topic, those of aborted transactions too."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "nobody", "isolation.level": "read_uncommitted"}
    consumer = Consumer({**settings, "enable.partition.eof": True, "enable.auto.commit": False})
    try:
        places = [TopicPartition(topic, number, 0) for number in range(partition_count(bootstrap, topic))]
        consumer.assign(places)
        found, left = [], len(places)
        while left:
            message = consumer.poll(20)
            assert message is not None, f"{topic} could not be read"
            if message.error() is None:
                found.append((message.key(), message.value()))
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                left -= 1
        return found
    finally:
        consumer.close()


def delete_records(bootstrap: str, topic: str, partition: int, before_offset: int) -> None:
    """Move the start of a partition's log to `before_offset`, as retention does."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (future,) = admin.delete_records([TopicPartition(topic, partition, before_offset)]).values()
    future.result(TIMEOUT_S)


def produce(bootstrap: str, topic: str, records: Records, config: Mapping[str, Any] | None = None) -> None:
    """Write records and return when the broker has all of them."""
    producer = Producer({**QUICK, "bootstrap.servers": bootstrap, "enable.idempotence": True, **(config or {})})
    # An idempotent producer that asks for its id before it is connected waits half a second before it asks again.
    producer.list_topics(topic, timeout=TIMEOUT_S)
    _send(producer, topic, records)


def produce_transaction(
    bootstrap: str,
    topic: str,
    records: Records,
    outcome: Outcome = "commit",
    transactional_id: str | None = None,
) -> Producer:
    """Write records in one transaction and end it as `outcome` says.

    With `open` the records are in the log and the transaction is not ended: end it by `commit_transaction()`
    or `abort_transaction()` of the producer that is returned.
    """
    name = transactional_id or f"test-{topic}-{time.monotonic_ns()}"
    producer = Producer({**QUICK, "bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    _send(producer, topic, records)
    if outcome == "commit":
        producer.commit_transaction(TIMEOUT_S)
    elif outcome == "abort":
        producer.abort_transaction(TIMEOUT_S)
    return producer


def _send(producer: Producer, topic: str, records: Records) -> None:
    failures: list[str] = []

    def delivered(error: Any, message: Message) -> None:
        if error is not None:
            failures.append(f"{message.topic()}-{message.partition()}: {error}")

    for row in records:
        record = Record(*row)
        while True:
            try:
                producer.produce(
                    topic,
                    partition=record.partition,
                    key=record.key,
                    value=record.value,
                    timestamp=record.timestamp_ms,
                    headers=list(record.headers),
                    on_delivery=delivered,
                )
                break
            except BufferError:  # the local queue is full: let some of it go
                producer.poll(0.1)
        producer.poll(0)
    left = producer.flush(TIMEOUT_S)
    assert (left, failures) == (0, []), f"records not delivered in time: {left}"


class TopicProducer:
    """The `produce` fixture: `produce(topic, records)` and `produce.transaction(topic, records, outcome)`."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._open: list[Producer] = []

    def __call__(self, topic: str, records: Records, config: Mapping[str, Any] | None = None) -> None:
        """Write records and return when the broker has all of them."""
        produce(self._bootstrap, topic, records, config)

    def transaction(self, topic: str, records: Records, outcome: Outcome = "commit") -> Producer:
        """Write records in one transaction; if it is still open when the test ends, it is aborted then."""
        producer = produce_transaction(self._bootstrap, topic, records, outcome)
        if outcome == "open":
            self._open.append(producer)
        return producer

    def close(self) -> None:
        """Abort what a test left open; what the test itself ended or fenced is done."""
        for producer in self._open:
            try:
                producer.abort_transaction(TIMEOUT_S)
            except KafkaException as error:
                if error.args[0].code() not in (KafkaError._STATE, KafkaError._FENCED):
                    raise
