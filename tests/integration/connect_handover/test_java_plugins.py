"""A Java plugin in a plugin host and in a real worker: the same records, offsets and dead letters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Message

from airflow_connect.control.client.over_kafka import KafkaConnectors
from airflow_connect.control.client.rest import ConnectRest
from airflow_connect.control.migration.judging import judge
from airflow_connect.control.migration.moving import move
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.state import compacted_topics
from airflow_connect.runtime.config_files import read_worker_file
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.runs import run_here
from airflow_connect.testing.topics import Topics
from tests.conftest import MakeTopic, TopicProducer
from tests.devstack.jars import fetch_jars
from tests.integration.connect_handover.conftest import HANDOVER_S, Shared
from tests.integration.jvm.hosting import chain_jar
from tests.support.copies.java_plugin import plugin_folder
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.budget(30)]

KAFKA = "org.apache.kafka.connect"
CHAIN = {
    "value.converter": f"{KAFKA}.json.JsonConverter",
    "transforms": "hoist,when,mark,short",
    "transforms.hoist.type": f"{KAFKA}.transforms.HoistField$Value",
    "transforms.hoist.field": "line",
    "transforms.when.type": f"{KAFKA}.transforms.InsertField$Value",
    "transforms.when.static.field": "by",
    "transforms.when.static.value": "connect",
    "transforms.mark.type": f"{KAFKA}.transforms.InsertHeader",
    "transforms.mark.header": "number",
    "transforms.mark.value.literal": "7",
    "transforms.short.type": f"{KAFKA}.transforms.Filter",
    "transforms.short.predicate": "none",
    "predicates": "none",
    "predicates.none.type": f"{KAFKA}.transforms.predicates.TopicNameMatches",
    "predicates.none.pattern": "nothing",
}
LEFT_OUT = "__connect.errors.exception.stacktrace"
"""Of different runs, and of different versions of what calls a converter."""


@pytest.fixture(scope="session")
def file_plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plugin path with Kafka's own file connectors."""
    jars = [jar for jar in fetch_jars("kafka-connect-4.3.1") if "connect-file" in jar.name]
    return plugin_folder(tmp_path_factory.mktemp("plugins"), "connect-file", jars)


@pytest.fixture
def java_source(shared_source: Shared, file_plugin: Path) -> Shared:
    """A file source whose runs of ours use Java."""
    shared_source.ours = {**shared_source.ours, "plugin.path": str(file_plugin)}
    shared_source.config["airflow.java.prefer"] = "true"
    return shared_source


def offset_records(shared: Shared) -> dict[bytes | None, bytes | None]:
    """The offsets of the connector, as they are stored."""
    found: dict[bytes | None, bytes | None] = {}
    client = {"bootstrap.servers": shared.bootstrap}
    compacted_topics.read(admin_client(client), client, shared.ours["offset.storage.topic"], found.__setitem__)
    return {key: value for key, value in found.items() if shared.name.encode() in (key or b"")}


def test_source_goes_to_a_worker_and_back(java_source: Shared) -> None:
    java_source.append("a", "b")
    report = java_source.run_ours()
    assert any("is the Java class" in note for note in report.notes)
    of_ours = offset_records(java_source)
    java_source.append("c")
    java_source.let_worker_copy(["a", "b", "c"])
    of_worker = offset_records(java_source)
    java_source.append("d")
    assert java_source.run_ours().records == 1

    assert java_source.lines() == ["a", "b", "c", "d"]
    assert len(of_ours) == 1
    assert [*of_ours] == [*of_worker]
    assert list(of_worker.values()) == [b'{"position":6}']


def content(message: Message) -> tuple[Any, ...]:
    """Everything that a plugin decides."""
    return message.partition(), message.key(), message.value(), message.headers()


def test_chain_makes_the_same_records_as_in_a_worker(java_source: Shared, make_topic: MakeTopic) -> None:
    java_source.append("one", "", "é😀", '{"a": 1}')
    java_source.config |= CHAIN
    java_source.let_worker_run()
    topics, other = Topics(java_source.bootstrap), make_topic()
    wait_until(lambda: len(topics.read(java_source.topic)) == 4, "the worker's records", HANDOVER_S, every_s=0.1)
    java_source.worker.rest.stop(java_source.name)
    ours = {**java_source.config, "name": f"{java_source.name}-ours", "topic": other}
    report, _ = run_here(RunSpec(ours, java_source.ours))

    assert report.records == 4, report.error
    wanted = [content(message) for message in topics.read(java_source.topic)]
    assert [content(message) for message in topics.read(other)] == wanted
    assert wanted[0][3] == [("number", b"7")]


def test_dead_letters_are_those_of_a_worker(
    shared_sink: Shared, file_plugin: Path, make_topic: MakeTopic, produce: TopicProducer, tmp_path: Path
) -> None:
    letters = [make_topic(), make_topic()]
    shared_sink.ours = {**shared_sink.ours, "plugin.path": str(file_plugin)}
    produce(shared_sink.topic, [(0, b"k", b'{"n": 1}', 1000, [("h", b"x")]), (0, b"k", b"{no", 2000, [("h", None)])])
    shared_sink.config |= {
        "value.converter": f"{KAFKA}.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters[0],
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
        "airflow.java.prefer": "true",
    }
    topics = Topics(shared_sink.bootstrap)
    shared_sink.let_worker_run()
    wait_until(lambda: len(topics.read(letters[0])) == 1, "the worker's dead letter", HANDOVER_S, every_s=0.1)
    shared_sink.worker.rest.stop(shared_sink.name)
    ours = {**shared_sink.config, "errors.deadletterqueue.topic.name": letters[1], "file": str(tmp_path / "ours.txt")}
    report, _ = run_here(
        RunSpec(
            {**ours, "consumer.override.group.id": f"{shared_sink.name}-ours", "name": shared_sink.name},
            shared_sink.ours,
        )
    )

    assert (report.records, report.dead_lettered) == (1, 1), report.error
    assert (tmp_path / "ours.txt").read_text() == shared_sink.file.read_text() == "{n=1}\n"
    (of_worker,), (of_ours,) = topics.read(letters[0]), topics.read(letters[1])
    assert (of_ours.key(), of_ours.value(), of_ours.timestamp()) == (
        of_worker.key(),
        of_worker.value(),
        of_worker.timestamp(),
    )
    assert headers_of(of_ours) == headers_of(of_worker)


def test_java_classes_in_a_python_chain_make_the_dead_letters_of_a_worker(
    shared_sink: Shared, make_topic: MakeTopic, produce: TopicProducer, tmp_path: Path
) -> None:
    letters = [make_topic(), make_topic()]
    path = plugin_folder(tmp_path / "plugins", "chain-stages", [chain_jar()])
    shared_sink.ours = {**shared_sink.ours, "plugin.path": str(path)}
    says = [(b"k", b"a"), (b"k", b"fail-count"), (b"fail-key", b"c"), (b"k", b"fail-p"), (b"k", b"e")]
    produce(shared_sink.topic, [(0, key, value, 1000, [("h", b"x")]) for key, value in says])
    shared_sink.config |= {
        "key.converter": "plugins.ChainStages$Reverses",
        "key.converter.name": "key",
        "value.converter": f"{KAFKA}.storage.StringConverter",
        "transforms": "count,guarded",
        "transforms.count.type": "plugins.ChainStages$Counts",
        "transforms.count.name": "count",
        "transforms.guarded.type": f"{KAFKA}.transforms.InsertHeader",
        "transforms.guarded.header": "number",
        "transforms.guarded.value.literal": "7",
        "transforms.guarded.predicate": "p",
        "predicates": "p",
        "predicates.p.type": "plugins.ChainStages$Matches",
        "predicates.p.name": "p",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters[0],
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    topics = Topics(shared_sink.bootstrap)
    shared_sink.let_worker_run()
    wait_until(lambda: len(topics.read(letters[0])) == 3, "the worker's dead letters", HANDOVER_S, every_s=0.1)
    shared_sink.worker.rest.stop(shared_sink.name)
    ours = {
        **shared_sink.config,
        "name": shared_sink.name,
        "file": str(tmp_path / "ours.txt"),
        "errors.deadletterqueue.topic.name": letters[1],
        "consumer.override.group.id": f"{shared_sink.name}-ours",
    }
    report, _ = run_here(RunSpec(ours, shared_sink.ours))

    assert (report.records, report.dead_lettered) == (2, 3), report.error
    assert (tmp_path / "ours.txt").read_text() == shared_sink.file.read_text() == "a\ne\n"
    of_worker, of_ours = topics.read(letters[0]), topics.read(letters[1])
    assert [(m.key(), m.value(), headers_of(m)) for m in of_ours] == [
        (m.key(), m.value(), headers_of(m)) for m in of_worker
    ]
    first_lines = [
        [dict(m.headers() or [])[LEFT_OUT].splitlines()[:2] for m in found] for found in (of_ours, of_worker)
    ]
    assert first_lines[0] == first_lines[1]


def headers_of(message: Message) -> list[tuple[str, Any]]:
    return [header for header in message.headers() or [] if header[0] != LEFT_OUT]


def test_migrated_connector_goes_on_with_the_same_java_class(java_source: Shared, tmp_path: Path) -> None:
    java_source.append("one")
    java_source.config.pop("airflow.java.prefer")
    java_source.let_worker_copy(["one"])
    file = tmp_path / "worker.properties"
    own = {f"{kind}.storage.topic": f"{java_source.topic}-{kind}" for kind in ("config", "status")}
    own |= {"status.storage.replication.factor": "1", "group.id": f"{java_source.topic}-ours"}
    settings = {**java_source.ours, **own}
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    ours = KafkaConnectors(read_worker_file(file))
    with httpx.Client() as client:
        cluster = ConnectRest([java_source.worker.url], client)
        (judged,) = judge(cluster, ours, [java_source.name], {"airflow.java.prefer": "true"})
        assert judged.can_move, judged.findings
        ours.open()
        move(cluster, ours, judged, str)
    java_source.append("two")
    report, _ = run_here(ours.spec(java_source.name))

    assert (report.status, report.records) == ("done", 1), report.error
    assert java_source.lines() == ["one", "two"]
    assert any("is the Java class" in note for note in report.notes)
