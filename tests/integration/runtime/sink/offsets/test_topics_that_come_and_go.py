"""Topics that are deleted, created again, left out of a run, or get more partitions: no record of them is skipped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.runtime.driver.entry import reset_offsets
from tests.support.copies.local import LocalSink, local_sink
from tests.support.copies.s3 import numbered
from tests.support.kafka_data import add_partitions, create_topic, delete_topic
from tests.support.steps import Crashed, Steps

MakeSink = Callable[..., LocalSink]


@pytest.fixture
def make_local(kafka: Any, tmp_path: Path) -> MakeSink:
    """Makes connectors that write below `tmp_path`."""
    return lambda topic, **config: local_sink(kafka, tmp_path / "out", topic, **config)


@pytest.fixture
def pair(make_topic: Any, produce: Any, make_local: MakeSink, unique_name: str) -> tuple[LocalSink, str, str]:
    """A connector by `topics.regex` that has copied 5 records of each of two topics."""
    a, b = f"{unique_name}-a", f"{unique_name}-b"
    for topic in (a, b):
        make_topic(name=topic)
        produce(topic, numbered(0, 5)[0])
    sink = make_local(a, topics=None, topics_regex=f"{unique_name}-[ab]")
    assert sink.run(topics=None).records == 10
    return sink, a, b


def test_topic_that_one_run_did_not_see_is_still_known_when_it_was_recreated(
    pair: tuple[LocalSink, str, str], kafka: Any, produce: Any
) -> None:
    sink, a, b = pair
    delete_topic(kafka.bootstrap, b)
    produce(a, numbered(5, 8)[0])
    without = sink.run(topics=None)
    create_topic(kafka.bootstrap, b, 1)
    produce(b, numbered(10, 25)[0])

    refused = sink.try_run(topics=None)
    report = sink.run(topics=None, offsets_out_of_range="earliest", topics_dir="second")

    assert [note for note in without.notes if "no longer has" in note] == [
        f"Kafka no longer has topic {b}. It was copied up to {b}-0@5."
    ]
    assert refused.error["type"] == "OffsetError"
    assert f"Topic {b} was recreated" in refused.error["message"]
    assert report.records == 15
    assert sink.run(topics=None).status == "empty"


def test_a_run_that_finds_nothing_also_keeps_what_is_known_of_a_topic_that_it_did_not_see(
    pair: tuple[LocalSink, str, str], kafka: Any, produce: Any
) -> None:
    sink, _, b = pair
    delete_topic(kafka.bootstrap, b)
    empty = sink.run(topics=None)
    create_topic(kafka.bootstrap, b, 1)
    produce(b, numbered(10, 25)[0])

    assert empty.status == "empty"
    assert any(f"Kafka no longer has topic {b}" in note for note in empty.notes)
    assert not any("no longer has" in note for note in sink.try_run(topics=None).notes)
    assert f"Topic {b} was recreated" in sink.try_run(topics=None).error["message"]


def test_topic_that_is_taken_out_and_put_back_continues_where_it_was(
    pair: tuple[LocalSink, str, str], kafka: Any, produce: Any
) -> None:
    sink, a, b = pair
    produce(a, numbered(5, 8)[0])
    produce(b, numbered(5, 8)[0])
    assert sink.run(topics=a, topics_regex=None).records == 3
    group = f"connect-{sink.name}"
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.delete_consumer_groups([group])[group].result(30)

    back = sink.run(topics=None)

    assert back.records == 3
    assert any(f"no offset for {b}-0 any more; resumed at 5" in note for note in back.notes)


def test_partition_of_a_topic_that_was_recreated_smaller_and_grew_later_is_read_from_its_beginning(
    kafka: Any, make_topic: Any, produce: Any, make_local: MakeSink
) -> None:
    topic = make_topic(partitions=2)
    produce(topic, numbered(0, 20, 2)[0])
    sink = make_local(topic)
    sink.run()
    delete_topic(kafka.bootstrap, topic)
    create_topic(kafka.bootstrap, topic, 1)
    produce(topic, numbered(20, 32)[0])
    sink.run(offsets_out_of_range="earliest", topics_dir="second")
    state = sink.view().state
    add_partitions(kafka.bootstrap, topic, 2)
    produce(topic, [(1, key, value) for _, key, value in numbered(32, 47)[0]])

    report = sink.run(topics_dir="second")

    assert state is not None and dict(state.committed) == {TopicPartition(topic, 0): 12}
    assert report.records == 15
    sink.assert_exactly_once(numbered(0, 47)[1])


def test_latest_reads_a_partition_that_was_added_from_its_beginning(
    kafka: Any, make_topic: Any, produce: Any, make_local: MakeSink
) -> None:
    topic = make_topic()
    produce(topic, numbered(0, 5)[0])
    sink = make_local(topic, consumer_override_auto_offset_reset="latest")
    first = sink.run()
    add_partitions(kafka.bootstrap, topic, 2)
    produce(topic, [(1, key, value) for _, key, value in numbered(5, 105)[0]])

    report = sink.run()

    assert [note for note in first.notes if "the 5 offsets before its end are not copied" in note] == [*first.notes]
    assert report.records == 100
    assert any(note.startswith(f"{topic}-1 has no offset") for note in report.notes)
    sink.assert_exactly_once(numbered(5, 105)[1])


def test_latest_of_a_run_that_failed_is_where_the_next_run_begins(
    make_topic: Any, produce: Any, make_local: MakeSink, steps: Steps, unique_name: str
) -> None:
    old = make_topic(name=f"{unique_name}-old")
    reset = {"consumer_override_auto_offset_reset": "latest"}
    sink = make_local(old, topics_regex=f"{unique_name}-.*", **reset)
    sink.run(topics=None)
    new = make_topic(name=f"{unique_name}-new")
    produce(new, numbered(0, 5)[0])
    produce(old, numbered(5, 8)[0])
    steps.crash("copied")
    with pytest.raises(Crashed):
        sink.try_run(topics=None)
    produce(new, numbered(8, 12)[0])

    report = sink.run(topics=None)

    assert report.records == 7
    sink.assert_exactly_once(numbered(5, 12)[1])


def test_latest_applies_again_after_the_offsets_of_a_topic_were_deleted(
    make_topic: Any, produce: Any, make_local: MakeSink
) -> None:
    topic = make_topic()
    produce(topic, numbered(0, 5)[0])
    sink = make_local(topic, consumer_override_auto_offset_reset="latest")
    sink.run()
    produce(topic, numbered(5, 8)[0])
    reset_offsets(sink.spec())

    report = sink.run()

    assert (report.status, sink.offsets()) == ("empty", {0: 8})
    assert "the 8 offsets before its end are not copied" in report.notes[0]


def test_topic_that_is_recreated_during_its_very_first_run_is_named_by_the_next_one(
    kafka: Any, make_topic: Any, produce: Any, make_local: MakeSink, steps: Steps
) -> None:
    topic = make_topic()
    produce(topic, numbered(0, 5)[0])
    sink = make_local(topic)

    def recreate() -> None:
        delete_topic(kafka.bootstrap, topic)
        create_topic(kafka.bootstrap, topic, 1)

    steps.on("copied", recreate)
    first = sink.try_run()
    produce(topic, numbered(10, 12)[0])
    second = sink.run()
    produce(topic, numbered(12, 13)[0])
    third = sink.run()

    assert "recreated while it was copied" in first.error["message"]
    (note,) = second.notes
    assert note.startswith(f"Topic {topic} was recreated: its id is ")
    assert f"when run {first.run_id} began to copy 5 offsets. No run has committed an offset of it" in note
    assert (second.records, third.records, third.notes) == (2, 1, ())


def test_topic_that_is_deleted_during_its_very_first_run_is_named_by_the_next_one(
    kafka: Any, make_topic: Any, produce: Any, make_local: MakeSink, steps: Steps, unique_name: str
) -> None:
    for topic in ("a", "b"):
        make_topic(name=f"{unique_name}-{topic}")
        produce(f"{unique_name}-{topic}", numbered(0, 5)[0])
    sink = make_local(f"{unique_name}-a", topics=None, topics_regex=f"{unique_name}-[ab]")
    steps.crash("copied")
    with pytest.raises(Crashed):
        sink.try_run(topics=None)
    delete_topic(kafka.bootstrap, f"{unique_name}-b")

    second = sink.run(topics=None)
    third = sink.run(topics=None)

    named = [note for note in second.notes if f"Kafka no longer has topic {unique_name}-b" in note]
    assert len(named) == 1 and "began to copy 5 offsets" in named[0]
    assert (second.records, third.status) == (5, "empty")
    assert not any("no longer has" in note for note in third.notes)
    assert sink.view().state.begun == {}
