"""MongoDB's sink, behind a transformation of another plugin, in the soak."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.runtime import crash_points
from tests.conftest import MakeTopic, TopicProducer
from tests.devstack.mongodb import MongoDbServer
from tests.support.copies.java_plugin import JavaConnector, locked_plugin

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.budget(60)]

CONNECTOR, TRANSFORMATION = "mongo-kafka-2.0.1", "kafka-connect-transform-common-0.1.0.14"
STRATEGIES = "com.mongodb.kafka.connect.sink"


@pytest.fixture(scope="module")
def server() -> Iterator[MongoDbServer]:
    with MongoDbServer.start() as started:
        yield started


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plugins")
    locked_plugin(path, TRANSFORMATION)
    return locked_plugin(path, CONNECTOR)


@pytest.fixture
def sink(
    kafka: KafkaBroker, server: MongoDbServer, plugins: Path, make_topic: MakeTopic, unique_name: str
) -> JavaConnector:
    """Documents by their key, with the field `old_name` renamed to `name`."""
    config = {
        "connector.class": "com.mongodb.kafka.connect.MongoSinkConnector",
        "topics": make_topic(2),
        "connection.uri": server.uri,
        "database": unique_name,
        "collection": "orders",
        "document.id.strategy": f"{STRATEGIES}.processor.id.strategy.ProvidedInKeyStrategy",
        "writemodel.strategy": f"{STRATEGIES}.writemodel.strategy.ReplaceOneDefaultStrategy",
        "delete.on.null.values": "true",
        "transforms": "rename",
        "transforms.rename.type": "com.github.jcustenborder.kafka.connect.transform.common.PatternRename$Value",
        "transforms.rename.field.pattern": "^old_",
        "transforms.rename.field.replacement": "",
        "airflow.java.delivery": "idempotent",
    }
    return JavaConnector(kafka.bootstrap, f"orders-{unique_name}", plugins, config)


def upserts(numbers: Iterable[int], name: str = "n") -> list[Any]:
    values = ((n, {"old_name": f"{name}{n}"}) for n in numbers)
    return [(n % 2, json.dumps({"_id": n}).encode(), json.dumps(value).encode(), 1000, []) for n, value in values]


def names(server: MongoDbServer, sink: JavaConnector) -> dict[int, str]:
    found = server.documents(sink.config["database"], "orders")
    return {document["_id"]: document["name"] for document in found}


def test_upserts_and_deletes_by_several_runs(
    sink: JavaConnector, server: MongoDbServer, produce: TopicProducer
) -> None:
    topic = sink.config["topics"]
    produce(topic, upserts(range(500)))
    assert sink.run().records == 500
    assert names(server, sink) == {n: f"n{n}" for n in range(500)}

    produce(topic, [*upserts(range(10), "changed"), *upserts([500]), (0, b'{"_id": 20}', None, 2000, [])])
    second = sink.run()
    third = sink.run()
    assert (second.records, third.status) == (12, "empty")
    assert names(server, sink) == {n: f"changed{n}" if n < 10 else f"n{n}" for n in range(501) if n != 20}


def test_killed_run_is_repeated_without_a_difference(
    sink: JavaConnector, server: MongoDbServer, produce: TopicProducer
) -> None:
    produce(sink.config["topics"], upserts(range(100)))
    assert sink.start(crash_points.AUDITED).wait() is None
    assert len(names(server, sink)) == 100
    assert sink.run().records == 100
    assert names(server, sink) == {n: f"n{n}" for n in range(100)}


def test_key_that_is_missing_fails_the_run_and_commits_nothing(sink: JavaConnector, produce: TopicProducer) -> None:
    produce(sink.config["topics"], [(0, None, b'{"old_name": "n"}', 1, [])])
    report = sink.try_run()
    assert report.error is not None
    assert report.error["code"] == "java.plugin_failed"
    assert sink.try_run().status == "failed"


def test_record_that_it_leaves_out_is_counted(
    sink: JavaConnector, server: MongoDbServer, produce: TopicProducer
) -> None:
    """Without a dead letter queue, a worker would not count it."""
    produce(sink.config["topics"], [*upserts(range(3)), (0, None, b'{"old_name": "n"}', 1, [])])
    report = sink.run(errors_tolerance="all")
    assert (report.records, report.filtered) == (3, 1)
    assert names(server, sink) == {n: f"n{n}" for n in range(3)}


def test_setting_that_the_transformation_needs_is_named(sink: JavaConnector) -> None:
    report = sink.try_run(transforms_rename_field_pattern=None)
    assert report.error is not None
    assert "transforms.rename.field.pattern" in report.error["message"]
