"""Topics of state are read once in a run of a source: later reads, also by its tasks, begin where that one ended."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.state.offsets.offsets_view import OffsetsView
from tests.integration.runtime.source.conftest import Numbers
from tests.support.kafka_data import create_topic, delete_topic

pytestmark = pytest.mark.integration

OTHERS = 2_000
Written = list[tuple[str, int, int | None]]


def write(kafka: KafkaBroker, topic: str, offsets: Written) -> None:
    """Offsets as Kafka Connect writes them: connector, source partition, position; None deletes."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for name, number, position in offsets:
        value = None if position is None else json.dumps({"n": position})
        producer.produce(topic, value, json.dumps([name, {"p": number}], separators=(",", ":")), partition=0)
    assert producer.flush(30) == 0


def test_tasks_read_only_what_came_after_the_driver(
    kafka: KafkaBroker, numbers: Numbers, unique_name: str, read_counts: list[tuple[str, int]]
):
    topics = {"offset.storage.topic": f"{unique_name}-offsets", "runs.storage.topic": f"{unique_name}-runs"}
    numbers.worker_config = {**topics, "offset.storage.partitions": "1", "runs.storage.partitions": "1"}
    numbers.feed(30, 20)
    numbers.run()
    write(kafka, topics["offset.storage.topic"], [("other", number, 1) for number in range(OTHERS)])
    others = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(OTHERS):
        others.produce(topics["runs.storage.topic"], b"{}", json.dumps(["state", f"other-{number}", 0]), partition=0)
    assert others.flush(30) == 0
    read_counts.clear()
    numbers.feed(35, 25)

    assert numbers.run().records == 10

    for topic in topics.values():
        sizes = sorted(size for name, size in read_counts if name == topic)
        assert len(sizes) >= 3, "the driver and two tasks"
        assert sizes[-1] >= OTHERS
        assert sizes[-2] < 100
    numbers.assert_exactly_once(35, 25)


def test_packed_view_goes_on_where_it_was_and_begins_anew_on_another_topic(
    kafka: KafkaBroker, unique_name: str, read_counts: list[tuple[str, int]]
):
    own, shared = f"{unique_name}-own", f"{unique_name}-shared"
    for topic in (own, shared):
        create_topic(kafka.bootstrap, topic, 1, {"cleanup.policy": "compact"})
    settings = {"bootstrap.servers": kafka.bootstrap}
    admin = admin_client(settings)
    write(kafka, shared, [("c", 1, 6), ("c", 2, 2), ("other", 3, 3)])
    write(kafka, own, [("c", 0, 5), ("c", 1, 6)])
    view = OffsetsView("c", [own, shared])

    def read(again: OffsetsView) -> dict[int, int]:
        read_counts.clear()
        return {int(str(p["p"])): int(str(o["n"])) for p, o in again.read(admin, settings).items()}

    assert read(view) == {0: 5, 1: 6, 2: 2}
    packed = view.packed()
    write(kafka, own, [("c", 0, 7), ("c", 1, None)])

    assert read(OffsetsView.of_packed("c", [own, shared], packed)) == {0: 7, 1: 6, 2: 2}
    assert sorted(read_counts) == [(own, 2), (shared, 0)]
    assert read(OffsetsView.of_packed("c", [own, shared], b"")) == {0: 7, 1: 6, 2: 2}
    assert read(OffsetsView.of_packed("c", [own, shared], view.packed_starts())) == {0: 7, 1: 6, 2: 2}

    delete_topic(kafka.bootstrap, own)
    create_topic(kafka.bootstrap, own, 1, {"cleanup.policy": "compact"})
    write(kafka, own, [("c", 9, n) for n in range(5)])
    assert read(OffsetsView.of_packed("c", [own, shared], packed)) == {1: 6, 2: 2, 9: 4}
