"""Camel's file sink; and its source, if it has more tasks than it can divide its input among."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from tests.conftest import MakeTopic, TopicProducer
from tests.support.copies.camel import PACKAGE, STRINGS, contents, file_source, put_files, values_of
from tests.support.copies.java_plugin import JavaConnector

pytestmark = [pytest.mark.integration, pytest.mark.budget(20)]


def test_sink_writes_records_to_a_file(
    kafka: KafkaBroker, camel: Path, make_topic: MakeTopic, produce: TopicProducer, tmp_path: Path, unique_name: str
) -> None:
    topic = make_topic()
    config = {
        "connector.class": f"{PACKAGE}.CamelSinkConnector",
        "topics": topic,
        "camel.sink.url": f"file:{tmp_path}?fileName=out.txt&fileExist=Append&appendChars=;",
    }
    sink = JavaConnector(kafka.bootstrap, f"camel-{unique_name}", camel, config, STRINGS)
    produce(topic, [(0, None, f"line {n}".encode(), n + 1, []) for n in range(20)])
    assert sink.run().records == 20
    produce(topic, [(0, None, b"line 20", 30, [])])
    assert (sink.run().records, sink.run().status) == (1, "empty")
    assert (tmp_path / "out.txt").read_text() == "".join(f"line {n};" for n in range(21))


def test_tasks_of_one_configuration_are_named(
    kafka: KafkaBroker, camel: Path, make_topic: MakeTopic, tmp_path: Path, unique_name: str
) -> None:
    """Each of them reads the whole folder; here, files that are left in it."""
    source = file_source(kafka.bootstrap, camel, tmp_path / "in", make_topic(), f"camel-{unique_name}")
    source.config["camel.source.url"] += "&noop=true"
    put_files(tmp_path / "in", 0, 5)
    report = source.run(tasks_max="2")
    assert sorted(values_of(source)) == sorted(contents(0, 5) * 2)
    assert any("2 tasks with the same configuration" in note for note in report.notes), report.notes
