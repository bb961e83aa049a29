"""Camel's file source and sink as bounded runs. A source without offsets: Camel marks files as read itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.runtime import crash_points
from tests.conftest import MakeTopic, TopicProducer
from tests.support.copies.java_plugin import JavaConnector, locked_plugin

pytestmark = [pytest.mark.integration, pytest.mark.budget(60)]

LOCK = "camel-kafka-0.11.0"
STRING = "org.apache.kafka.connect.storage.StringConverter"
STRINGS = {"key.converter": STRING, "value.converter": STRING}
PACKAGE = "org.apache.camel.kafkaconnector"


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return locked_plugin(tmp_path_factory.mktemp("plugins"), LOCK)


@pytest.fixture
def source(
    kafka: KafkaBroker, plugins: Path, make_topic: MakeTopic, tmp_path: Path, unique_name: str
) -> JavaConnector:
    """Files of the folder `in`, each as a record."""
    (tmp_path / "in").mkdir()
    config = {
        "connector.class": f"{PACKAGE}.CamelSourceConnector",
        "topics": make_topic(),
        "camel.source.url": f"file:{tmp_path / 'in'}?delay=100&initialDelay=0",
        "transforms": "text",
        "transforms.text.type": f"{PACKAGE}.transforms.CamelTypeConverterTransform$Value",
        "transforms.text.target.type": "java.lang.String",
        "airflow.java.start.grace.ms": "2000",
        "airflow.java.idle.ms": "1000",
    }
    return JavaConnector(kafka.bootstrap, f"camel-{unique_name}", plugins, config, STRINGS)


def values_of(source: JavaConnector) -> list[str]:
    return [(message.value() or b"").decode() for message in source.messages(source.config["topics"])]


def contents(first: int, last: int) -> list[str]:
    return [f"file {number}\n" for number in range(first, last)]


def put_files(tmp_path: Path, first: int, last: int) -> None:
    for number, text in zip(range(first, last), contents(first, last), strict=True):
        (tmp_path / "in" / f"{number}.txt").write_text(text)


def test_source_reads_each_file_once(source: JavaConnector, tmp_path: Path) -> None:
    put_files(tmp_path, 0, 5)
    first = source.run()
    assert first.records == 5
    put_files(tmp_path, 5, 6)
    second = source.run()
    third = source.run()
    assert (second.records, third.status) == (1, "empty")
    assert sorted(values_of(source)) == contents(0, 6)


@pytest.mark.parametrize(("step", "times"), [(crash_points.SOURCE_TASK_SENT, 1), (crash_points.SOURCE_TASK_STORED, 2)])
def test_killed_source_loses_no_file_and_may_read_one_again(
    source: JavaConnector, tmp_path: Path, step: str, times: int
) -> None:
    """Camel moves a file away when it is told that it is stored; it does not look at offsets."""
    put_files(tmp_path, 0, 5)
    assert source.start(step).wait() is None
    source.run()
    assert sorted(values_of(source)) == sorted(contents(0, 5) * times)


def test_run_with_a_limit_leaves_files_for_the_next(source: JavaConnector, tmp_path: Path) -> None:
    put_files(tmp_path, 0, 9)
    first = source.run(run_max_records="2", camel_source_maxBatchPollSize="1")
    print("LIMIT", first.records, sorted(p.name for p in (tmp_path / "in").iterdir()))
    source.run()
    assert sorted(values_of(source)) == contents(0, 9)


def test_failed_run_leaves_every_file(source: JavaConnector, tmp_path: Path) -> None:
    put_files(tmp_path, 0, 5)
    (tmp_path / "in" / "5.txt").write_text("not a number\n")
    failing = {
        "transforms": "text,number",
        "transforms.number.type": "org.apache.kafka.connect.transforms.Cast$Value",
        "transforms.number.spec": "int32",
    }
    report = source.try_run(**failing)
    assert report.status == "failed"
    print("FAILED", report.error, sorted(p.name for p in (tmp_path / "in").iterdir()))
    source.run()
    assert sorted(values_of(source)) == [*contents(0, 5), "not a number\n"]


def test_tasks_of_one_configuration_are_named(source: JavaConnector, tmp_path: Path) -> None:
    """Each of them reads the whole folder; here, files that are left in it."""
    put_files(tmp_path, 0, 5)
    source.config["camel.source.url"] += "&noop=true"
    report = source.run(tasks_max="2")
    assert sorted(values_of(source)) == sorted(contents(0, 5) * 2)
    assert any("2 tasks with the same configuration" in note for note in report.notes), report.notes


def test_sink_writes_records_to_a_file(
    kafka: KafkaBroker, plugins: Path, make_topic: MakeTopic, produce: TopicProducer, tmp_path: Path, unique_name: str
) -> None:
    topic = make_topic()
    config = {
        "connector.class": f"{PACKAGE}.CamelSinkConnector",
        "topics": topic,
        "camel.sink.url": f"file:{tmp_path}?fileName=out.txt&fileExist=Append&appendChars=;",
    }
    sink = JavaConnector(kafka.bootstrap, f"camel-{unique_name}", plugins, config, STRINGS)
    produce(topic, [(0, None, f"line {n}".encode(), n + 1, []) for n in range(20)])
    assert sink.run().records == 20
    produce(topic, [(0, None, b"line 20", 30, [])])
    assert (sink.run().records, sink.run().status) == (1, "empty")
    assert (tmp_path / "out.txt").read_text() == "".join(f"line {n};" for n in range(21))
