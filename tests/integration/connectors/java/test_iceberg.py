"""Apache's Iceberg sink, in Java: its tasks are members of the connector's group, and commit its offsets."""

from __future__ import annotations

from collections import Counter

import pytest
from confluent_kafka import Consumer

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.kafka.admin.consumer_group import read_committed_offsets
from airflow_connect.kafka.clients.short_lived import admin_client
from tests.conftest import TopicProducer
from tests.support.copies.java_iceberg import JavaIceberg, rows
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.budget(60)]


def test_two_tasks_copy_exactly_the_planned_records(java_iceberg_sink: JavaIceberg, produce: TopicProducer) -> None:
    sink = java_iceberg_sink
    topic = sink.config["topics"]
    sink.config["tasks.max"] = "2"
    produce(topic, rows(range(100)))
    first = sink.run()
    assert (first.records, first.tasks, first.delivery_guarantee) == (100, 2, "exactly_once")
    assert any("each of its tasks joins the consumer group" in note for note in first.notes)
    assert sink.numbers() == Counter(range(100))

    produce(topic, rows(range(100, 131)))
    second = sink.run()
    third = sink.run()
    assert (second.records, third.status) == (31, "empty")
    assert sink.numbers() == Counter(range(131))
    admin = admin_client({"bootstrap.servers": sink.bootstrap})
    places = [TopicPartition(topic, number) for number in range(2)]
    committed = read_committed_offsets(admin, f"connect-{sink.name}", places)
    assert committed == dict(zip(places, (66, 65), strict=True)), "as a worker's"


def test_group_of_another_name_is_refused(java_iceberg_sink: JavaIceberg) -> None:
    error = java_iceberg_sink.try_run(**{"iceberg_connect_group-id": "another"}).error
    assert error is not None
    assert error["code"] == "java.group_id"
    assert f"connect-{java_iceberg_sink.name}" in error["message"]


def test_group_with_another_consumer_is_refused(java_iceberg_sink: JavaIceberg, produce: TopicProducer) -> None:
    sink = java_iceberg_sink
    produce(sink.config["topics"], rows(range(10)))
    own = {"bootstrap.servers": sink.bootstrap, "group.id": f"connect-{sink.name}"}
    other = Consumer(own)
    try:
        other.subscribe([sink.config["topics"]])
        wait_until(lambda: other.poll(0.1) is None and bool(other.assignment()), "the other consumer", 60)
        error = sink.try_run().error
    finally:
        other.close()
    assert error is not None
    assert error["code"] == "group.not_empty", error
    assert sink.numbers() == Counter()
