"""Which partitions a run copies, and how they are spread over tasks."""

import json

import pytest

from tests.support.copies.s3 import numbered
from tests.support.kafka_data import add_partitions, create_topic


def test_topics_list_every_one_is_copied(make_topic, produce, make_sink):
    first, second = make_topic(), make_topic(partitions=2)
    rows, values = numbered(0, 6)
    produce(first, rows[:3])
    produce(second, [(n % 2, None, v) for n, (_, _, v) in enumerate(rows[3:])])
    sink = make_sink(f"{first},{second}")

    report = sink.run()

    assert report.records == 6
    assert sink.offsets(first) == {0: 3}
    assert sink.offsets(second) == {0: 2, 1: 1}
    sink.assert_exactly_once(values)


def test_topics_regex_takes_topics_that_match_in_full_and_later_ones_too(
    kafka, make_topic, produce, make_sink, unique_name
):
    matching = make_topic(name=f"{unique_name}-a1")
    stranger = make_topic(name=f"{unique_name}-a1-other")
    produce(matching, numbered(0, 3)[0])
    produce(stranger, numbered(100, 103)[0])
    sink = make_sink("", topics_regex=f"{unique_name}-a\\d", topics=None)
    sink.run()
    create_topic(kafka.bootstrap, f"{unique_name}-a2", 1)
    produce(f"{unique_name}-a2", numbered(3, 5)[0])

    report = sink.run()

    assert report.records == 2
    sink.assert_exactly_once(numbered(0, 5)[1])


def test_topics_regex_that_matches_nothing_is_an_empty_run(make_sink, unique_name):
    sink = make_sink("", topics_regex=f"{unique_name}-nothing", topics=None)

    assert sink.run().status == "empty"
    assert sink.keys() == []


def test_topic_that_does_not_exist_is_a_configuration_error(make_sink, unique_name):
    report = make_sink(f"{unique_name}-absent").try_run()

    assert report.status == "failed"
    assert report.error["type"] == "ConfigError"
    assert f"{unique_name}-absent" in report.error["message"]


def test_partitions_added_between_runs_are_copied_from_their_beginning(kafka, make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, numbered(0, 4)[0])
    sink = make_sink(topic, consumer_override_auto_offset_reset="earliest")
    sink.run()
    add_partitions(kafka.bootstrap, topic, 3)
    produce(topic, [(1, None, '{"n": 4}'), (2, None, '{"n": 5}')])

    report = sink.run()

    assert report.records == 2
    assert sink.offsets() == {0: 4, 1: 1, 2: 1}
    sink.assert_exactly_once(numbered(0, 6)[1])


@pytest.mark.parametrize(("partitions", "tasks"), [(7, 2), (2, 7)])
def test_partitions_and_tasks_in_any_proportion_copy_everything(make_topic, produce, make_sink, partitions, tasks):
    topic = make_topic(partitions=partitions)
    rows, values = numbered(0, 50, partitions)
    produce(topic, rows)
    sink = make_sink(topic, tasks_max=str(tasks))

    report = sink.run()

    assert report.tasks == min(partitions, tasks)
    sink.assert_exactly_once(values)


def test_empty_topics_start_no_job_and_commit_their_first_offsets(make_topic, make_sink):
    topic = make_topic(partitions=2)
    sink = make_sink(topic)

    report = sink.run()

    assert report.status == "empty"
    assert sink.engine.jobs == 0
    assert sink.offsets() == {0: 0, 1: 0}
    assert sink.keys() == []


def test_empty_partitions_beside_full_ones_get_an_offset_and_no_file(make_topic, produce, make_sink):
    topic = make_topic(partitions=3)
    produce(topic, [(1, None, '{"n": 0}')])
    sink = make_sink(topic)

    sink.run()

    assert sink.offsets() == {0: 0, 1: 1, 2: 0}
    assert len(sink.keys()) == 1


def test_records_of_one_megabyte_are_copied_whole(make_topic, produce, make_sink):
    topic = make_topic(config={"max.message.bytes": "4000000"})
    values = [{"n": n, "text": chr(97 + n) * 1_000_000} for n in range(4)]
    produce(topic, [(0, None, json.dumps(v)) for v in values], {"message.max.bytes": 4_000_000})
    sink = make_sink(topic, flush_size="2")

    sink.run()

    assert len(sink.keys()) == 2
    sink.assert_exactly_once(values)
