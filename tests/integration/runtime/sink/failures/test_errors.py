"""Records that cannot be written: null values, `errors.tolerance`, the dead letter queue."""

import pytest
from confluent_kafka import Consumer, TopicPartition

from airflow_connect.api.offsets import TopicPartition as Place
from airflow_connect.kafka.admin import watermarks
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.runtime import crash_points
from tests.support.copies.s3 import numbered
from tests.support.kafka_data import partition_count
from tests.support.steps import Crashed
from tests.support.waiting import wait_until

TOLERANT = {
    "errors_tolerance": "all",
    "errors_deadletterqueue_topic_replication_factor": "1",
    "errors_deadletterqueue_context_headers_enable": "true",
}


def is_settled(bootstrap, topic):
    """Whether no transaction is open: the markers of a committed one take a moment to reach the log."""
    admin = admin_client({"bootstrap.servers": bootstrap})
    tps = [Place(topic, p) for p in range(partition_count(bootstrap, topic))]
    ends = [watermarks.latest_offsets(admin, tps, level) for level in ("read_committed", "read_uncommitted")]
    return ends[0] == ends[1]


def read_all(bootstrap, topic):
    """Every committed record of a topic."""
    wait_until(lambda: is_settled(bootstrap, topic), f"no transaction is open in {topic}")
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
    messages, ended = [], 0
    while ended < len(partitions):
        message = consumer.poll(10)
        assert message is not None, f"no end of {topic} within 10 s"
        if message.error():
            ended += 1
        else:
            messages.append(message)
    consumer.close()
    return messages


def queue_of(sink):
    """Dead letters: (key, value) in order."""
    topic = sink.connector()["errors.deadletterqueue.topic.name"]
    return [(m.key(), m.value()) for m in read_all(sink.kafka.bootstrap, topic)]


@pytest.fixture
def mixed(make_topic, produce, make_sink, unique_name):
    """A connector on 10 records of which every third is no JSON; dead letters go to a topic not made yet."""
    topic = make_topic()
    rows = [(0, f"k{n}", f"broken {n}" if n % 3 == 1 else f'{{"n": {n}}}', 1_700_000_000_000 + n) for n in range(10)]
    produce(topic, rows)
    return make_sink(topic, errors_deadletterqueue_topic_name=f"{unique_name}-dlq", **TOLERANT)


GOOD = [{"n": n} for n in range(10) if n % 3 != 1]
BAD = [(f"k{n}".encode(), f"broken {n}".encode()) for n in (1, 4, 7)]


def test_record_that_fails_stops_the_run_and_is_named(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, [(0, None, '{"n": 0}'), (0, None, "{broken")])
    sink = make_sink(topic)

    report = sink.try_run()

    assert report.status == "failed"
    assert f"{topic}-0@1" in report.error["message"]
    assert "VALUE_CONVERTER" in report.error["message"]
    assert sink.keys() == []
    assert sink.offsets() == {}


def test_tolerated_errors_without_a_queue_are_skipped_and_counted(mixed):
    report = mixed.run(errors_deadletterqueue_topic_name="")

    assert (report.records, report.filtered, report.dead_lettered) == (7, 3, 0)
    mixed.assert_exactly_once(GOOD)


def test_dead_letters_keep_bytes_and_time_and_tell_what_happened(mixed, kafka):
    report = mixed.run()

    assert (report.records, report.dead_lettered) == (7, 3)
    mixed.assert_exactly_once(GOOD)
    assert queue_of(mixed) == BAD
    letter = read_all(kafka.bootstrap, mixed.connector()["errors.deadletterqueue.topic.name"])[1]
    headers = {name: value.decode() for name, value in letter.headers()}
    assert letter.timestamp()[1] == 1_700_000_000_004
    assert headers["__connect.errors.topic"] == mixed.topic
    assert headers["__connect.errors.partition"] == "0"
    assert headers["__connect.errors.offset"] == "4"
    assert headers["__connect.errors.connector.name"] == mixed.name
    assert headers["__connect.errors.task.id"] == "0"
    assert headers["__connect.errors.stage"] == "VALUE_CONVERTER"
    assert headers["__connect.errors.class.name"] == "org.apache.kafka.connect.json.JsonConverter"
    assert headers["__connect.errors.exception.message"] != ""
    assert "Traceback" in headers["__connect.errors.exception.stacktrace"]


@pytest.mark.parametrize("point", [crash_points.COPIED, crash_points.MANIFEST_WRITTEN, crash_points.PUBLISHED])
def test_dead_letters_arrive_once_after_a_crash(mixed, steps, point):
    steps.crash(point)
    with pytest.raises(Crashed):
        mixed.try_run()

    mixed.run()

    assert queue_of(mixed) == BAD
    mixed.assert_exactly_once(GOOD)


@pytest.mark.parametrize("flush_size", ["2", "3", "5", "100"])
def test_dead_letters_of_records_left_for_the_next_run_arrive_once(mixed, produce, flush_size):
    for last in range(10, 16):
        mixed.run(flush_on_end="false", flush_size=flush_size)
        produce(mixed.topic, [(0, f"k{last}", f"broken {last}")])
    mixed.run()

    letters = [key.decode() for key, _ in queue_of(mixed)]
    assert letters == ["k1", "k4", "k7", *(f"k{n}" for n in range(10, 16))]
    mixed.assert_exactly_once(GOOD)


def test_dead_letter_queue_that_cannot_be_made_fails_before_anything_is_copied(mixed):
    report = mixed.try_run(errors_deadletterqueue_topic_replication_factor="3")

    assert report.error["type"] == "ConfigError"
    assert report.error["configPath"] == "errors.deadletterqueue.topic.replication.factor"
    assert mixed.engine.jobs == 0
    assert mixed.view().manifest is None


def test_many_dead_letters_of_one_run_are_all_written(make_topic, produce, make_sink, unique_name):
    topic = make_topic(partitions=2)
    produce(topic, [(n % 2, None, f"broken {n}" + "x" * 500) for n in range(3000)])
    sink = make_sink(topic, errors_deadletterqueue_topic_name=f"{unique_name}-dlq", **TOLERANT)

    report = sink.run()

    assert (report.records, report.dead_lettered, report.files) == (0, 3000, 0)
    assert len({value for _, value in queue_of(sink)}) == len(queue_of(sink)) == 3000


def test_dead_letter_that_is_too_large_for_the_producer_names_the_setting_before_anything_is_published(
    make_topic, produce, make_sink, unique_name
):
    topic = make_topic()
    broken = "broken" + "x" * 1_000_000
    produce(topic, [(0, "k", broken), (0, "k", '{"n": 0}')], {"message.max.bytes": 2_000_000})
    sink = make_sink(topic, errors_deadletterqueue_topic_name=f"{unique_name}-dlq", **TOLERANT)

    refused = sink.try_run(producer_override_max_request_size="900000")
    published = sink.keys()
    sink.run()

    assert refused.error["code"] == "dead_letter.refused"
    assert "900000 bytes (max.request.size of the producer)" in refused.error["message"]
    assert f"{topic}-0@0" in refused.error["message"]
    assert "producer.override.max.request.size" in refused.error["suggestion"]
    assert published == []
    assert queue_of(sink) == [(b"k", broken.encode())]
    sink.assert_exactly_once(numbered(0, 1)[1])


@pytest.fixture
def with_nulls(make_topic, produce, make_sink):
    """A connector on records of which some have no key and some no value."""
    topic = make_topic()
    produce(topic, [(0, "a", '{"n": 0}'), (0, "b", None), (0, None, '{"n": 1}'), (0, None, None)])
    return make_sink(topic)


def test_null_values_fail_by_default_and_the_record_is_named(with_nulls):
    report = with_nulls.try_run()

    assert report.error["code"] == "data.null_value"
    assert f"{with_nulls.topic}-0@1" in report.error["message"]
    assert with_nulls.keys() == []


def test_null_values_are_ignored_and_counted(with_nulls):
    report = with_nulls.run(behavior_on_null_values="ignore")

    assert (report.records, report.filtered) == (2, 2)
    assert with_nulls.offsets() == {0: 4}
    with_nulls.assert_exactly_once(numbered(0, 2)[1])


def test_ignored_null_values_go_to_the_dead_letter_queue_when_there_is_one(with_nulls, unique_name):
    with_nulls.config["errors.deadletterqueue.topic.name"] = f"{unique_name}-dlq"

    report = with_nulls.run(
        behavior_on_null_values="ignore",
        errors_tolerance="all",
        errors_deadletterqueue_topic_replication_factor="1",
    )

    assert (report.records, report.filtered, report.dead_lettered) == (2, 0, 2)
    assert queue_of(with_nulls) == [(b"b", None), (None, None)]


def test_null_values_are_written_as_tombstones_with_their_keys(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, [(0, "a", '{"n": 0}'), (0, "b", None), (0, "c", None)])
    sink = make_sink(
        topic,
        behavior_on_null_values="write",
        store_kafka_keys="true",
        keys_format_class="io.confluent.connect.s3.format.json.JsonFormat",
    )

    report = sink.run()

    assert report.records == 3
    tombstones = [key for key in list(sink.keys()) if "tombstone" in key]
    assert len(tombstones) == 1
    assert sink.body(tombstones[0]).splitlines() == [b'"b"', b'"c"']
    assert sink.uploads() == []
