"""Topics of state stay small: with what they are made, what is said of old ones, and that the cleaner does its work."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import ConfigResource, ResourceType

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.kafka.clients.short_lived import Admin, admin_client
from airflow_connect.kafka.state import compacted_topics, topic_upkeep
from airflow_connect.kafka.state.compacted_topics import CompactedTopic
from airflow_connect.kafka.state.topic_upkeep import SMALL, Upkeep
from tests.support.kafka_data import create_topic
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration


@pytest.fixture
def admin(kafka: KafkaBroker) -> Admin:
    return admin_client({"bootstrap.servers": kafka.bootstrap})


def settings_of(admin: Admin, topic: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    return {name: entry.value for name, entry in admin.describe_configs([resource])[resource].result(30).items()}


def ensure(admin: Admin, topic: str, upkeep: Upkeep) -> None:
    compacted_topics.ensure(admin, CompactedTopic(topic, 1, -1, "runs.storage.topic", upkeep))


def test_new_topic_has_settings_that_keep_it_small_and_those_of_the_worker_win(admin: Admin, unique_name: str):
    notes: list[str] = []
    ensure(admin, unique_name, Upkeep({"segment.ms": "7200000", "min.insync.replicas": "1"}, tell=notes.append))
    found = settings_of(admin, unique_name)
    expected = {**SMALL, "segment.ms": "7200000", "cleanup.policy": "compact"}
    assert {name: found[name] for name in expected} == expected
    ensure(admin, unique_name, Upkeep(tell=notes.append))
    assert notes == []


def test_topic_that_exists_is_only_spoken_of_unless_the_worker_lets_it_be_altered(
    kafka: KafkaBroker, admin: Admin, unique_name: str
):
    create_topic(kafka.bootstrap, unique_name, 1, {"cleanup.policy": "compact"})
    before, notes = settings_of(admin, unique_name), list[str]()

    ensure(admin, unique_name, Upkeep(tell=notes.append))

    assert settings_of(admin, unique_name) == before
    assert len(notes) == 1
    assert f"kafka-configs.sh --bootstrap-server {kafka.bootstrap} --alter --entity-type topics" in notes[0]
    assert f"--entity-name {unique_name} --add-config max.compaction.lag.ms=3600000,segment.bytes=52428800" in notes[0]

    ensure(admin, unique_name, Upkeep({"segment.bytes": "1048576"}, alters=True, tell=notes.append))

    wait_until(lambda: settings_of(admin, unique_name)["max.compaction.lag.ms"] == "3600000", "the settings")
    assert settings_of(admin, unique_name)["segment.bytes"] == "1048576"
    assert "got max.compaction.lag.ms=3600000" in notes[1]
    ensure(admin, unique_name, Upkeep(alters=True, tell=notes.append))
    assert len(notes) == 2


def test_topic_is_made_without_settings_that_the_cluster_refuses(
    admin: Admin, unique_name: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(topic_upkeep, "SMALL", {**SMALL, "no.such.setting": "1"})
    notes: list[str] = []
    ensure(admin, unique_name, Upkeep({"segment.ms": "7200000"}, tell=notes.append))
    found = settings_of(admin, unique_name)
    assert (found["cleanup.policy"], found["segment.ms"]) == ("compact", "7200000")
    assert "was created without" in notes[0] and "no.such.setting" in notes[0]


def test_cleaner_compacts_a_topic_with_the_lag_and_leaves_one_with_defaults(
    kafka: KafkaBroker, admin: Admin, unique_name: str
):
    """With a lag of a second in the place of the hour."""
    ensure(admin, unique_name, Upkeep({name: "1000" for name in SMALL if name.endswith(".ms")}))
    by_default = f"{unique_name}-default"
    create_topic(kafka.bootstrap, by_default, 1, {"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 5})
    for topic in (unique_name, by_default):
        for number in range(3_000):
            producer.produce(topic, b"v%d" % number, b"k%d" % (number % 10), 0)
    assert producer.flush(30) == 0

    def is_compacted() -> bool:
        producer.produce(unique_name, b"v", b"k0", 0)  # A segment closes when something is written behind it.
        producer.flush(30)
        return count(kafka, unique_name) < 100

    wait_until(is_compacted, "the cleaner")
    assert count(kafka, by_default) == 3_000


def count(kafka: KafkaBroker, topic: str) -> int:
    """Records that a reader from the beginning gets."""
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap, "group.id": "unused", "enable.partition.eof": True,
         "enable.auto.commit": False}
    )  # fmt: skip
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = 0
        while True:
            for message in consumer.consume(5_000, 0.2):
                if message.error() is not None:
                    return found
                found += 1
    finally:
        consumer.close()
