"""A mirror between two real clusters, whose runs go through the real protocol."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from airflow_connect.api import offsets
from airflow_connect.connectors.mirror.protocol.records import Checkpoint
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.documents.run import RunReport
from airflow_connect.kafka.admin.consumer_group import read_committed
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.reading.topic_contents import committed_records, ranges_of
from airflow_connect.runtime.driver.source.configuration import SourceConfiguration
from airflow_connect.runtime.driver.source.kafka_session import SourceSession
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.runs import run_here
from tests.support.kafka_data import TopicProducer, create_topic, every_record
from tests.support.waiting import TIMEOUT_S

JSON = "org.apache.kafka.connect.json.JsonConverter"
CHECKPOINTS = "west.checkpoints.internal"
MIRROR = "org.apache.kafka.connect.mirror.MirrorSourceConnector"


class Copied(NamedTuple):
    """Everything of a record that a mirror must keep."""

    partition: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...]


def records_of(bootstrap: str, topic: str) -> dict[int, list[Copied]]:
    """Every committed record of a topic, by partition."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "compares", "enable.auto.commit": False,
         "enable.partition.eof": True, "isolation.level": "read_committed", "enable.sparse.connections": False}
    )  # fmt: skip
    try:
        numbers = sorted(consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions)
        found: dict[int, list[Copied]] = {number: [] for number in numbers}
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers])
        unread, deadline = set(numbers), time.monotonic() + TIMEOUT_S
        while unread:
            assert time.monotonic() < deadline, f"{topic} could not be read to its end."
            for message in consumer.consume(500, 0.02):
                number = int(message.partition() or 0)
                error = message.error()
                if error is None:
                    headers: Any = message.headers() or ()
                    copied = Copied(number, message.key(), message.value(), message.timestamp()[1], tuple(headers))
                    found[number].append(copied)
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    unread.discard(number)
        return found
    finally:
        consumer.close()


def offsets_of(bootstrap: str, topic: str) -> dict[int, list[int]]:
    """Offsets of all committed records, by partition."""
    settings = {"bootstrap.servers": bootstrap}
    found: dict[int, list[int]] = {}
    for record in committed_records(settings, ranges_of(admin_client(settings), topic)):
        found.setdefault(record.partition, []).append(record.offset)
    return found


def commit(bootstrap: str, group: str, topic: str, by_partition: Mapping[int, int], note: str = "") -> None:
    """What an application does that has read up to these offsets."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    places = [TopicPartition(topic, number, offset, note) for number, offset in by_partition.items()]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def committed(bootstrap: str, group: str, topic: str) -> dict[int, tuple[int, str]]:
    tps = [offsets.TopicPartition(topic, number) for number in range(3)]
    found = read_committed(admin_client({"bootstrap.servers": bootstrap}), group, tps)
    return {tp.partition: tuple(one) for tp, one in found.items()}


@dataclass
class Mirror:
    """A connector that mirrors one topic, and both clusters."""

    source: str
    target: str
    topic: str
    write: TopicProducer
    config: dict[str, str] = field(default_factory=dict)
    alias: str = "west"

    @property
    def name(self) -> str:
        """Of the connector."""
        return f"mirror-{self.topic}"

    @property
    def remote(self) -> str:
        """Name of the copy."""
        return f"{self.alias}.{self.topic}"

    def spec(self, **overrides: str) -> RunSpec:
        """A run; `_` in a key stands for `.`."""
        connector = {
            "name": self.name,
            "connector.class": MIRROR,
            "tasks.max": "2",
            "source.cluster.alias": self.alias,
            "target.cluster.alias": "east",
            "source.cluster.bootstrap.servers": self.source,
            "target.cluster.bootstrap.servers": self.target,
            "topics": self.topic,
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            **self.config,
            **{key.replace("_", "."): value for key, value in overrides.items()},
        }
        # The converters of the worker are not those of a mirror: it must not use them.
        worker = {
            "bootstrap.servers": self.target,
            "group.id": "mirror-workers",
            "key.converter": JSON,
            "value.converter": JSON,
            "runs.storage.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "config.storage.replication.factor": "1",
        }
        return RunSpec(connector, worker)

    def try_run(self, *, columnar: bool = True, **overrides: str) -> RunReport:
        """One run in this process, with any outcome."""
        return run_here(self.spec(**overrides), columnar=columnar)[0]

    def run(self, *, columnar: bool = True, **overrides: str) -> RunReport:
        """One run in this process that must not fail."""
        report = self.try_run(columnar=columnar, **overrides)
        assert report.status in ("done", "empty"), report.error
        return report

    def originals(self) -> dict[int, list[Copied]]:
        """Records of the source cluster."""
        return records_of(self.source, self.topic)

    def copies(self) -> dict[int, list[Copied]]:
        """Records of the target cluster."""
        return records_of(self.target, self.remote)

    def offsets(self) -> dict[int, Mapping[str, Any]]:
        """Committed offsets, by partition."""
        with SourceSession(SourceConfiguration.from_spec(self.spec())) as session:
            return {partition["partition"]: dict(offset) for partition, offset in session.read_offsets().items()}

    def set_offsets(self, offsets: Mapping[int, Mapping[str, Any] | None]) -> None:
        """Set offsets in the form of MirrorMaker 2."""
        with SourceSession(SourceConfiguration.from_spec(self.spec())) as session:
            session.open_writer().fence()
            known = session.read_offsets()
            changes = [
                ({"cluster": self.alias, "partition": number, "topic": self.topic}, offset)
                for number, offset in offsets.items()
            ]
            session.write_offsets(known, changes)


def checkpoints_of(mirror: Mirror, group: str, topic: str = CHECKPOINTS) -> list[Checkpoint]:
    found = (Checkpoint.of(key, value) for key, value in every_record(mirror.target, topic))
    return [one for one in found if one.group == group]


@pytest.fixture
def mirror(kafka: KafkaBroker, upstream_kafka: KafkaBroker, unique_name: str) -> Iterator[Mirror]:
    """A mirror of a topic with three partitions."""
    create_topic(upstream_kafka.bootstrap, unique_name, 3)
    writer = TopicProducer(upstream_kafka.bootstrap)
    yield Mirror(upstream_kafka.bootstrap, kafka.bootstrap, unique_name, writer)
    writer.close()


@pytest.fixture(scope="package")
def own_kafka() -> Iterator[KafkaBroker]:
    """A broker with an authorizer, for these tests alone: heartbeats would be copied by all tests that mirror."""
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # Clients without a login are one user, ANONYMOUS.
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "true",
    }
    with KafkaBroker.start(properties=properties) as broker:
        yield broker
