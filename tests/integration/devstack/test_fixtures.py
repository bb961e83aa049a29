"""The fixtures that every other integration test stands on."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Consumer, TopicPartition

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.s3 import S3Server
from tests.support.kafka_data import add_partitions, delete_records, delete_topic, partition_count

pytestmark = pytest.mark.integration


def read(broker: KafkaBroker, topic: str, partition: int, isolation: str = "read_committed"):
    """Return the records of a partition up to its end for this isolation level."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": uuid.uuid4().hex,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    low, _ = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
    consumer.assign([TopicPartition(topic, partition, low)])
    found = []
    while True:
        message = consumer.poll(10)
        assert message is not None, "neither a record nor the end of the partition within 10 s"
        if message.error():
            consumer.close()
            return found
        found.append(message)


def test_produce_with_all_fields_is_read_back_unchanged(kafka, make_topic, produce):
    topic = make_topic(partitions=2)
    produce(
        topic,
        [(0, b"k", b"v", 1_700_000_000_123, [("h", b"x"), ("n", None)]), (1, None, None), (0, "k2", "v2", 5)],
    )
    first, second = read(kafka, topic, 0)
    assert (first.key(), first.value(), first.timestamp()[1]) == (b"k", b"v", 1_700_000_000_123)
    assert first.headers() == [("h", b"x"), ("n", None)]
    assert (second.value(), second.timestamp()[1]) == (b"v2", 5)
    (null,) = read(kafka, topic, 1)
    assert null.key() is None and null.value() is None


def test_transaction_outcomes_only_committed_is_visible(kafka, make_topic, produce):
    topic = make_topic()
    produce.transaction(topic, [(0, None, b"kept")])
    produce.transaction(topic, [(0, None, b"dropped")], outcome="abort")
    still_open = produce.transaction(topic, [(0, None, b"open")], outcome="open")
    assert [m.value() for m in read(kafka, topic, 0)] == [b"kept"]
    assert [m.value() for m in read(kafka, topic, 0, "read_uncommitted")] == [b"kept", b"dropped", b"open"]
    still_open.commit_transaction(10)
    assert [m.value() for m in read(kafka, topic, 0)] == [b"kept", b"open"]


def test_add_partitions_when_returned_are_writable(kafka, make_topic, produce):
    topic = make_topic(partitions=1)
    add_partitions(kafka.bootstrap, topic, 3)
    produce(topic, [(2, None, b"x")])
    assert [m.value() for m in read(kafka, topic, 2)] == [b"x"]


def test_delete_records_moves_the_start_of_the_log(kafka, make_topic, produce):
    topic = make_topic()
    produce(topic, [(0, None, str(n)) for n in range(10)])
    delete_records(kafka.bootstrap, topic, 0, 7)
    assert [m.offset() for m in read(kafka, topic, 0)] == [7, 8, 9]


def test_delete_topic_when_returned_is_unknown(kafka, make_topic):
    topic = make_topic()
    delete_topic(kafka.bootstrap, topic)
    assert partition_count(kafka.bootstrap, topic) == 0


def test_bucket_is_new_and_writable(s3: S3Server, bucket):
    client = s3.client()
    assert client.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
    client.put_object(Bucket=bucket, Key="a/b", Body=b"x")
    assert client.get_object(Bucket=bucket, Key="a/b")["Body"].read() == b"x"
