"""Runs of Java sinks: what they get, refuse, ask for and confirm."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.runtime import crash_points
from airflow_connect.testing.topics import Topics
from tests.conftest import MakeTopic, TopicProducer
from tests.integration.connectors.java.conftest import MakeConnector, in_java
from tests.support.copies.java_plugin import JavaConnector

pytestmark = [pytest.mark.integration, pytest.mark.budget(20)]

RECORDS = "Sinks$Records"
CAST = {
    "transforms": "number",
    "transforms.number.type": "org.apache.kafka.connect.transforms.Cast$Value",
    "transforms.number.spec": "int32",
}


def written(file: Path) -> list[str]:
    """Lines of the records that the plugin has written."""
    lines = file.read_text().splitlines() if file.exists() else []
    return [line for line in lines if "@" in line]


def numbers(first: int, last: int, partitions: int = 1) -> Sequence[Any]:
    return [(n % partitions, None, str(n).encode(), 1000 + n, []) for n in range(first, last)]


@pytest.fixture
def sink(make_connector: MakeConnector, make_topic: MakeTopic, tmp_path: Path) -> JavaConnector:
    """A sink that writes a line for each record and each call."""
    return make_connector(RECORDS, topics=make_topic(2), file=str(tmp_path / "out"), tasks_max="2")


def topic_of(sink: JavaConnector) -> str:
    return sink.config["topics"]


def test_records_are_as_in_a_worker_with_nulls_headers_and_times(
    sink: JavaConnector, produce: TopicProducer, tmp_path: Path
) -> None:
    rows = [
        (0, b"k", b"v", 5, [("h", b"1"), ("h", None)]),
        (0, b"k", None, 6, []),
        (0, None, b"", 7, [("\u00e9", "\u0436".encode())]),
    ]
    produce(topic_of(sink), rows)
    report = sink.run()

    assert (report.records, report.delivery_guarantee) == (3, "at_least_once")
    assert any("delivers at least once" in note for note in report.notes)
    topic = topic_of(sink)
    assert written(tmp_path / "out") == [
        f"{topic}-0@0 5 CreateTime k=v h:1 h:null InternalSinkRecord",
        f"{topic}-0@1 6 CreateTime k=null InternalSinkRecord",
        f"{topic}-0@2 7 CreateTime null= \u00e9:\u0436 InternalSinkRecord",
    ]
    assert sink.run().status == "empty"


def test_transactions_of_producers_leave_gaps_that_no_plugin_confirms(
    sink: JavaConnector, produce: TopicProducer
) -> None:
    """The planned end lies behind a marker; the plugin only knows records."""
    produce.transaction(topic_of(sink), numbers(0, 3))
    assert sink.run().records == 3
    assert sink.run().status == "empty"


def test_dropped_and_failed_records_are_counted_and_letters_have_their_bytes(
    sink: JavaConnector, produce: TopicProducer, make_topic: MakeTopic, tmp_path: Path
) -> None:
    letters = make_topic()
    produce(
        topic_of(sink),
        [(0, b"a", b"1", 1, []), (0, b"b", b"no", 2, []), (0, None, b"3", 3, []), (1, b"d", b"4", 4, [])],
    )
    sink.config |= {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.context.headers.enable": "true",
        "transforms": "number,drop",
        **{key: value for key, value in CAST.items() if key != "transforms"},
        "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
        "transforms.drop.predicate": "old",
        "predicates": "old",
        "predicates.old.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
    }
    produce(topic_of(sink), [(0, b"e", None, 5, [])])
    report = sink.run()

    assert (report.records, report.filtered, report.dead_lettered) == (3, 1, 1)
    (letter,) = Topics(sink.bootstrap).read(letters)
    headers: dict[str, Any] = dict(letter.headers() or [])
    assert (letter.key(), letter.value()) == (b"b", b"no")
    assert headers["__connect.errors.stage"] == b"TRANSFORMATION"
    java, python = b"org.apache.kafka.connect.errors.DataException", b"airflow_connect.errors.DataError"
    assert headers["__connect.errors.exception.class.name"] == (java if in_java(sink) else python)
    assert len(written(tmp_path / "out")) == 3


def test_record_that_fails_ends_the_run_and_is_named(sink: JavaConnector, produce: TopicProducer) -> None:
    produce(topic_of(sink), [(0, None, b"1", 1, []), (0, None, b"no", 2, [])])
    sink.config |= CAST
    report = sink.try_run()
    assert report.error is not None
    assert report.error["code"] == ("java.record" if in_java(sink) else "data.invalid")
    assert f"The record at {topic_of(sink)}-0@1 failed in TRANSFORMATION" in report.error["message"]


def test_put_that_asks_to_be_repeated_gets_its_records_again(
    make_connector: MakeConnector, make_topic: MakeTopic, produce: TopicProducer
) -> None:
    topic = make_topic()
    produce(topic, numbers(0, 2000))
    sink = make_connector("Sinks$Retries", topics=topic)
    assert sink.run().records == 2000


@pytest.mark.parametrize(
    ("plugin", "code", "words"),
    [
        ("Sinks$ThrowsInPut", "java.plugin_failed", "Sinks$ThrowsInPut"),
        ("Sinks$ExitsInPut", "java.jvm_gone", "exit code"),
        ("Sinks$HangsInPut", "java.blocked", "HangTask.put"),
    ],
)
def test_failing_sink_commits_nothing(
    make_connector: MakeConnector, make_topic: MakeTopic, produce: TopicProducer, plugin: str, code: str, words: str
) -> None:
    topic = make_topic()
    produce(topic, numbers(0, 10))
    sink = make_connector(plugin, topics=topic)
    report = sink.try_run(airflow_java_block_timeout_ms="2000")
    assert report.error is not None
    assert report.error["code"] == code, report.error
    assert words in report.error["message"]
    again = sink.try_run(airflow_java_block_timeout_ms="2000")
    assert again.status == "failed"


def test_system_that_is_not_there_is_no_wrong_configuration(
    make_connector: MakeConnector, make_topic: MakeTopic, produce: TopicProducer
) -> None:
    """Another attempt may succeed, if only the class itself refuses what its definition allows."""
    topic = make_topic()
    produce(topic, numbers(0, 1))
    for mode, code, retriable in (("ok", "java.refused", True), ("wrong", "java.config", False)):
        error = make_connector("Sinks$Refuses", topics=topic, mode=mode).try_run().error
        assert error is not None
        assert (error["code"], error["retriable"]) == (code, retriable), error
        assert "Connection refused" in error["message"]


def test_errant_records_are_dead_letters_also_late_ones(
    make_connector: MakeConnector, make_topic: MakeTopic, produce: TopicProducer
) -> None:
    topic, letters = make_topic(), make_topic()
    produce(topic, numbers(0, 10))
    sink = make_connector("Sinks$ReportsErrors", topics=topic, errors_tolerance="all")
    sink.config["errors.deadletterqueue.topic.name"] = letters
    report = sink.try_run()

    # The third report comes with `stop`, when the records count as written already.
    assert report.error is not None
    assert report.error["code"] == "java.late_report"
    assert Topics(sink.bootstrap).read(letters) == []


def test_record_that_a_plugin_leaves_out_is_counted_or_fails_the_run(
    make_connector: MakeConnector, make_topic: MakeTopic, produce: TopicProducer
) -> None:
    """A worker has nobody to report to without a dead letter queue, and some plugins leave records out then."""
    topic = make_topic()
    produce(topic, numbers(0, 10))
    sink = make_connector("Sinks$LeavesOut", topics=topic)
    error = sink.try_run().error
    assert error is not None
    assert f"{topic}-0@1" in error["message"]
    tolerant = sink.run(errors_tolerance="all")
    assert (tolerant.records, tolerant.filtered) == (5, 5)


def test_plugin_that_keeps_its_own_offsets_must_be_known_as_one(
    make_connector: MakeConnector, make_topic: MakeTopic, produce: TopicProducer
) -> None:
    topic = make_topic()
    produce(topic, numbers(0, 3))
    sink = make_connector("Sinks$Asks", topics=topic, airflow_java_flush_timeout_ms="0")
    refused = sink.try_run()
    assert refused.error is not None
    assert refused.error["code"] in ("java.own_offsets", "offsets.backwards", "offset.invalid"), refused.error


def test_killed_sink_writes_again_what_was_not_committed(
    sink: JavaConnector, produce: TopicProducer, tmp_path: Path
) -> None:
    produce(topic_of(sink), numbers(0, 100, 2))
    assert sink.start(crash_points.AUDITED).wait() is None
    produce(topic_of(sink), numbers(100, 110, 2))
    assert sink.run().records == 110
    found = written(tmp_path / "out")
    assert len(found) == 210
    assert len(set(found)) == 110
