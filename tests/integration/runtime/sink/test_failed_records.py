"""Failures that pass, failures of third-party classes, and how many records may fail."""

import json

import pytest

from airflow_connect.api.record import SinkRecord
from airflow_connect.api.transform import Transformation
from airflow_connect.converters.json.converter import JsonConverter
from airflow_connect.layout.partitioners import DefaultPartitioner
from tests.integration.runtime.sink.failures.test_errors import TOLERANT, queue_of
from tests.support.copies.s3 import numbered
from tests.support.faulty_converter import Faults


@pytest.fixture
def faults(tmp_path):
    return Faults(tmp_path)


@pytest.fixture
def faulty_sink(make_topic, produce, make_sink, faults, unique_name):
    """`(fault, times) -> sink`: 20 records, the converter fails `times` times at the one with offset 5."""

    def make(fault, times):
        topic = make_topic()
        values = [{"n": n} | ({"do": fault, "times": times} if n == 5 else {}) for n in range(20)]
        produce(topic, [(0, None, json.dumps(value)) for value in values])
        sink = make_sink(topic, errors_deadletterqueue_topic_name=f"{unique_name}-dlq", **TOLERANT, **faults.config())
        return sink, values

    return make


def test_passing_failure_is_repeated_and_the_record_arrives(faulty_sink, faults):
    sink, values = faulty_sink("unavailable", 3)

    report = sink.run(errors_retry_timeout="60000", errors_retry_delay_max_ms="1")

    assert (report.records, report.dead_lettered, faults.taken()) == (20, 0, 3)
    sink.assert_exactly_once(values)


@pytest.mark.parametrize("timeout_ms", ["0", "1000"])
def test_failure_that_does_not_pass_in_time_fails_the_run_and_is_no_bad_record(faulty_sink, faults, timeout_ms):
    sink, _ = faulty_sink("unavailable", 10_000)

    report = sink.try_run(errors_retry_timeout=timeout_ms, errors_retry_delay_max_ms="5")

    assert report.error["type"] == "UnavailableError"
    assert report.error["retriable"]
    assert f"The record at {sink.topic}-0@5 failed in VALUE_CONVERTER" in report.error["message"]
    assert (faults.taken() > 1) == (timeout_ms != "0")
    assert (sink.keys(), sink.offsets()) == ([], {})


@pytest.mark.parametrize(("fault", "times"), [("bad", 9), ("bug", 9)])
def test_every_exception_of_a_converter_is_a_bad_record_and_is_not_repeated(faulty_sink, faults, fault, times):
    sink, values = faulty_sink(fault, times)

    report = sink.run(errors_retry_timeout="-1")

    assert (report.records, report.dead_lettered, faults.taken()) == (19, 1, 1)
    assert queue_of(sink) == [(None, json.dumps(values[5]).encode())]


def test_refused_access_is_no_bad_record(faulty_sink):
    sink, _ = faulty_sink("refused", 9)

    report = sink.try_run()

    assert (report.error["type"], report.error["configPath"]) == ("AccessError", "test.key")
    assert sink.offsets() == {}


class DefectivePartitioner(DefaultPartitioner):
    """Cannot lay out the record with offset 7."""

    def directory(self, record, now_ms):
        if record.offset == 7:
            raise KeyError("region")
        return super().directory(record, now_ms)


def test_defect_of_a_partitioner_fails_the_run_and_names_the_record(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, numbered(0, 20)[0])
    sink = make_sink(topic, partitioner_class="tests.integration.runtime.sink.test_failed_records:DefectivePartitioner")

    report = sink.try_run(errors_tolerance="all")

    assert report.error["code"] == "task.put_failed"
    assert report.error["message"] == f"Writing the record at {topic}-0@7 failed with KeyError: 'region'."
    assert (sink.keys(), sink.offsets()) == ([], {})


class DefectiveJsonConverter(JsonConverter):
    """Meets a defect of its own in a third of the records."""

    def to_connect(self, topic, data):
        found = super().to_connect(topic, data)
        return found if found.value["n"] % 3 else {}["defect"]


@pytest.mark.parametrize(("limit", "fails"), [("6", True), ("7", False)])
def test_limit_of_failed_records_counts_over_all_tasks(make_topic, produce, make_sink, unique_name, limit, fails):
    """7 records fail, no more than 4 of them in one task."""
    topic = make_topic(partitions=2)
    produce(topic, numbered(0, 20, partitions=2)[0])
    sink = make_sink(
        topic,
        tasks_max="2",
        flush_size="2",
        errors_max_records=limit,
        errors_deadletterqueue_topic_name=f"{unique_name}-dlq",
        value_converter="tests.integration.runtime.sink.test_failed_records:DefectiveJsonConverter",
        value_converter_schemas_enable="false",
        **TOLERANT,
    )

    report = sink.try_run()

    if fails:
        assert (report.error["code"], report.error["configPath"]) == ("data.too_many_errors", "errors.max.records")
        assert "The run had 7 failed records, more than errors.max.records=6 allows" in report.error["message"]
        assert f"{topic}-0@0 (VALUE_CONVERTER: " in report.error["message"]
        assert (sink.keys(), sink.offsets(), queue_of(sink)) == ([], {}, [])
        sink.run(errors_max_records=None)
    assert (len(sink.values()), len(queue_of(sink))) == (13, 7)
    assert sink.uploads() == []


def test_task_beyond_the_limit_stops_at_once(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, [(0, None, "broken")] * 5000)
    sink = make_sink(topic, errors_tolerance="all", errors_max_records="10")

    report = sink.try_run()

    assert report.error["message"].startswith("Task 0 had 11 failed records, more than errors.max.records=10")


def test_run_that_leaves_everything_for_ever_says_so(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, numbered(0, 50)[0])
    sink = make_sink(topic, flush_on_end="false", flush_size="40")

    sink.run(run_max_records="30")
    limited = sink.warnings()
    sink.run(flush_size="100")
    unlimited = sink.warnings()
    sink.run()

    assert ["commits nothing" in w and "raise" in w.lower() and "all 30 records" in w for w in limited] == [True]
    assert ["commits nothing" in w and "all 50 records" in w for w in unlimited] == [True]
    assert sink.warnings() == []
    assert sink.offsets() == {0: 40}


class RebuildingTransformation(Transformation):
    """Makes new records instead of changed ones, and refuses every fifth."""

    def apply(self, record):
        if record.value["n"] % 5 == 0:
            raise LookupError("fifth")
        return SinkRecord(
            topic=record.topic,
            partition=7,
            offset=record.offset,
            original_topic=record.original_topic,
            original_partition=record.original_partition,
            value={"m": record.value["n"]},
        )


def test_record_that_a_transformation_builds_anew_keeps_its_place_and_its_message(
    make_topic, produce, make_sink, unique_name
):
    topic = make_topic()
    rows, values = numbered(0, 20)
    produce(topic, rows)
    sink = make_sink(topic, errors_deadletterqueue_topic_name=f"{unique_name}-dlq", transforms="again", **TOLERANT)
    sink.config["transforms.again.type"] = "tests.integration.runtime.sink.test_failed_records:RebuildingTransformation"

    report = sink.run()

    assert (report.records, report.dead_lettered) == (16, 4)
    assert queue_of(sink) == [(row[1].encode(), row[2].encode()) for row in rows[::5]]
    sink.assert_exactly_once([{"m": value["n"]} for value in values if value["n"] % 5])
