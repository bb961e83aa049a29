"""Java connectors with Python classes in their chain: what they copy is what they copy with a chain of Java classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_connect.testing.topics import Topics
from tests.conftest import MakeTopic, TopicProducer
from tests.integration.connectors.java.conftest import MakeConnector
from tests.integration.connectors.java.test_sinks import written
from tests.support.copies.java_plugin import JavaConnector

pytestmark = [pytest.mark.integration, pytest.mark.budget(20)]

JAVA = "org.apache.kafka.connect.json.JsonConverter"
PYTHON = "airflow_connect.converters.json.converter:JsonConverter"
"""The same rules, but no name that Java knows."""


def content(source: JavaConnector, prefix: str) -> dict[str, list[Any]]:
    """Partition, time, key, value and headers of all records, by topic."""
    return {
        topic: [
            (m.partition(), m.timestamp()[1], m.key(), m.value(), m.headers()) for m in source.messages(prefix + topic)
        ]
        for topic in ("typed", "other", "loose")
    }


def json_converters(converter: str) -> dict[str, str]:
    return {"key.converter": converter, "value.converter": converter}


@pytest.fixture
def typed(make_connector: MakeConnector, unique_name: str) -> JavaConnector:
    made = make_connector("TypedSource", prefix=f"{unique_name}-java-")
    made.config |= {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}
    return made


def test_source_writes_the_same_bytes_by_a_python_converter(typed: JavaConnector, unique_name: str) -> None:
    in_java = typed.run(name=f"{typed.name}-a", **json_converters(JAVA))
    in_python = typed.run(name=f"{typed.name}-b", prefix=f"{unique_name}-python-", **json_converters(PYTHON))

    found = content(typed, f"{unique_name}-python-")
    expected = content(typed, f"{unique_name}-java-")
    assert len(found["typed"]) == 4
    # A record without a time has that of its run.
    stamped = [{t: [(r[0], *r[2:]) for r in rows] for t, rows in side.items()} for side in (found, expected)]
    assert stamped[0] == stamped[1]
    assert (in_python.records, in_java.records) == (6, 6)
    note = "Python runs the converters and transformations of this connector, because key.converter"
    assert [note in each for each in in_python.notes].count(True) == 1
    assert not any(note in each for each in in_java.notes)


def test_record_that_python_cannot_hold_fails_the_run_or_is_counted(typed: JavaConnector) -> None:
    report = typed.try_run(bad="true", **json_converters(PYTHON))
    assert report.error is not None
    assert "half of a character" in report.error["message"]
    assert "typed" in report.error["message"]

    tolerant = typed.run(bad="true", errors_tolerance="all", **json_converters(PYTHON))
    assert tolerant.source is not None
    assert (tolerant.records, tolerant.source.failed) == (6, 1)


@pytest.fixture
def sink(make_connector: MakeConnector, make_topic: MakeTopic, tmp_path: Path) -> JavaConnector:
    return make_connector("Sinks$Records", topics=make_topic(2), file=str(tmp_path / "out"))


STRUCTURED = (
    b'{"schema":{"type":"struct","fields":[{"type":"int32","optional":false,"field":"id"},'
    b'{"type":"bytes","optional":true,"name":"org.apache.kafka.connect.data.Decimal","version":1,'
    b'"parameters":{"scale":"2"},"field":"price"},{"type":"string","optional":true,"default":"d","field":"s"}],'
    b'"optional":false,"name":"row"},"payload":{"id":1,"price":"AfQ=","s":"x"}}'
)


def test_sink_gets_the_same_records_by_a_python_converter(
    sink: JavaConnector, produce: TopicProducer, tmp_path: Path
) -> None:
    rows = [
        (0, None, STRUCTURED, 5, [("h", b"1"), ("h", None)]),
        (0, b'{"schema":{"type":"int64"},"payload":3}', None, 6, []),
        (0, None, b'{"schema":null,"payload":{"a":[1,2.5,null]}}', 7, []),
        (1, None, STRUCTURED.replace(b'"id":1', b'"id":2'), 8, []),
    ]
    produce(sink.config["topics"], rows)
    sink.run(name=f"{sink.name}-a", **json_converters(JAVA))
    report = sink.run(name=f"{sink.name}-b", file=str(tmp_path / "python"), **json_converters(PYTHON))

    assert report.records == 4
    assert sorted(written(tmp_path / "python")) == sorted(written(tmp_path / "out"))
    assert len(written(tmp_path / "out")) == 4


def test_python_transformations_drop_move_and_fail_and_letters_have_the_bytes_of_the_message(
    sink: JavaConnector, produce: TopicProducer, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic, letters = sink.config["topics"], make_topic(1)
    produce(topic, [(0, None, value, 5 + n, []) for n, value in enumerate([b"1", None, b"x", b"4"])])
    config = {
        "value.converter": PYTHON,
        "value.converter.schemas.enable": "false",
        "transforms": "gone,cast,route",
        "transforms.gone.type": "Filter",
        "transforms.gone.predicate": "empty",
        "predicates": "empty",
        "predicates.empty.type": "RecordIsTombstone",
        "transforms.cast.type": "Cast$Value",
        "transforms.cast.spec": "int32",
        "transforms.route.type": "RegexRouter",
        "transforms.route.regex": "(.*)",
        "transforms.route.replacement": "moved-$1",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.topic.replication.factor": "1",
    }
    sink.config |= config

    report = sink.run()

    assert (report.records, report.filtered) == (2, 1)
    assert [line.split()[0] + " " + line.split()[3] for line in written(tmp_path / "out")] == [
        f"{topic}-0@0 null=1",
        f"{topic}-0@3 null=4",
    ]
    assert [message.value() for message in Topics(sink.bootstrap).read(letters)] == [b"x"]
    assert sink.run().status == "empty"
