"""A run reads its state from where it still matters, whatever the topic has gathered and whatever became of it."""

import json
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.exactly_once import kafka_journal
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.state import bookmarks, compacted_topics
from tests.support.copies.s3 import numbered
from tests.support.kafka_data import create_topic, delete_topic
from tests.support.steps import Crashed, Steps

OTHERS = 1_500
"""Records of another connector between two runs, each an offset: more than a bookmark is worth."""


@pytest.fixture
def busy(make_topic, produce, make_sink, unique_name):
    """A connector that has run, with a state topic of its own that others fill."""
    topic = make_topic()
    produce(topic, numbered(0, 5)[0])
    sink = make_sink(topic)
    sink.worker_config = {"runs.storage.topic": f"runs-{unique_name}", "runs.storage.partitions": "1"}
    sink.run()
    return sink


@pytest.fixture
def read_counts(monkeypatch) -> list[int]:
    """Offsets that were read of state topics, one number for each time."""
    counts: list[int] = []
    original: Callable[..., None] = compacted_topics.read_to

    def counted(settings, starts, ends, take):
        counts.append(sum(ends[tp] - starts[tp] for tp in ends))
        original(settings, starts, ends, take)

    monkeypatch.setattr(compacted_topics, "read_to", counted)
    return counts


def place_of(sink):
    return TopicPartition(sink.worker_config["runs.storage.topic"], 0)


def fill(sink, records: int = OTHERS) -> None:
    """What other connectors write, between two runs of this one."""
    producer = Producer({"bootstrap.servers": sink.kafka.bootstrap, "linger.ms": 5})
    value = json.dumps({"v": 1, "of": 1, "document": {}})
    for number in range(records):
        producer.produce(place_of(sink).topic, value, json.dumps(["state", f"other-{number}", 0]), partition=0)
    assert producer.flush(30) == 0


def test_run_reads_from_the_bookmark_and_goes_on_as_before(busy, produce, read_counts):
    fill(busy)
    busy.run()  # Reads everything; nothing of it is worth a bookmark: the state lies at the beginning.
    produce(busy.topic, numbered(5, 8)[0])
    busy.run()  # Writes state behind the others' records.
    assert busy.run().status == "empty"  # Sets the bookmark there.
    read_counts.clear()
    produce(busy.topic, numbered(8, 9)[0])

    assert busy.run().records == 1

    assert read_counts and max(read_counts) < 100
    busy.assert_exactly_once(numbered(0, 9)[1])


def test_open_manifest_is_found_behind_a_bookmark(busy, produce, monkeypatch, read_counts):
    fill(busy)
    produce(busy.topic, numbered(5, 8)[0])
    busy.run()
    busy.run()
    produce(busy.topic, numbered(8, 12)[0])
    steps = Steps(monkeypatch)
    steps.crash("manifest.written")
    with pytest.raises(Crashed):
        busy.run()
    fill(busy, 10)
    read_counts.clear()

    busy.run()

    assert read_counts[0] < 100
    busy.assert_exactly_once(numbered(0, 12)[1])


def test_history_keeps_its_length_although_old_entries_are_not_read(busy, produce, monkeypatch):
    monkeypatch.setattr(kafka_journal, "HISTORY", 4)
    monkeypatch.setattr(kafka_journal, "WORTH_A_BOOKMARK", 1)
    for number in range(5, 12):
        produce(busy.topic, numbered(number, number + 1)[0])
        busy.run()
    assert len(busy.history(place_of(busy).topic)) == 4


def test_bookmark_of_a_recreated_topic_or_past_its_end_is_not_used(busy, produce, read_counts):
    fill(busy)
    produce(busy.topic, numbered(5, 8)[0])
    busy.run()
    busy.run()
    admin = admin_client({"bootstrap.servers": busy.kafka.bootstrap})
    mark = bookmarks.read(admin, busy.name, place_of(busy))
    assert mark is not None and mark.offset >= OTHERS
    settings = {"bootstrap.servers": busy.kafka.bootstrap}

    # A log that lost its end and has grown again: no state is found behind the bookmark.
    fill(busy, 20)
    bookmarks.save(admin, settings, busy.name, place_of(busy), mark._replace(offset=mark.offset + 15))
    read_counts.clear()
    assert busy.run().status == "empty"
    assert max(read_counts) > OTHERS
    busy.assert_exactly_once(numbered(0, 8)[1])

    delete_topic(busy.kafka.bootstrap, place_of(busy).topic)
    create_topic(busy.kafka.bootstrap, place_of(busy).topic, 1, {"cleanup.policy": "compact"})
    fill(busy, 2 * OTHERS)
    assert bookmarks.read(admin, busy.name, place_of(busy)) is None
    produce(busy.topic, numbered(8, 9)[0])
    assert busy.run().records == 1
    busy.assert_exactly_once(numbered(0, 9)[1])
