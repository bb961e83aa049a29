"""Debezium's JDBC sink into PostgreSQL, in the soak: upserts and deletes by the key, which may be repeated."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.runtime import crash_points
from tests.conftest import MakeTopic, TopicProducer
from tests.devstack.postgresql import USER, PostgresServer
from tests.support.copies.java_plugin import JavaConnector, locked_plugin
from tests.support.servers.databases import Database

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.budget(60)]

LOCK = "debezium-jdbc-3.5.0"
JSON_WITH_SCHEMAS = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
}
KEY = {"type": "struct", "fields": [{"field": "id", "type": "int32"}]}
ROW = {"type": "struct", "fields": [*KEY["fields"], {"field": "name", "type": "string", "optional": True}]}


def key_of(number: int) -> bytes:
    return json.dumps({"schema": KEY, "payload": {"id": number}}).encode()


def upserts(numbers: Iterable[int], name: str = "n") -> list[Any]:
    values = ((n, {"schema": ROW, "payload": {"id": n, "name": f"{name}{n}"}}) for n in numbers)
    return [(n % 2, key_of(n), json.dumps(value).encode(), 1000 + n, []) for n, value in values]


def deletes(numbers: Iterable[int]) -> list[Any]:
    return [(n % 2, key_of(n), None, 2000 + n, []) for n in numbers]


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return locked_plugin(tmp_path_factory.mktemp("plugins"), LOCK)


@pytest.fixture
def sink(
    kafka: KafkaBroker,
    postgresql: PostgresServer,
    postgresql_database: Database,
    plugins: Path,
    make_topic: MakeTopic,
    unique_name: str,
) -> JavaConnector:
    """Two partitions into the table `orders`, which the plugin creates."""
    config = {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "topics": make_topic(2),
        "connection.url": postgresql.jdbc_url_of(postgresql_database.url.rsplit("/", 1)[1]).split("?")[0],
        "connection.username": USER,
        "connection.password": "unused",
        "insert.mode": "upsert",
        "delete.enabled": "true",
        "primary.key.mode": "record_key",
        "schema.evolution": "basic",
        "collection.name.format": "orders",
        "airflow.java.delivery": "idempotent",
    }
    return JavaConnector(kafka.bootstrap, f"orders-{unique_name}", plugins, config, JSON_WITH_SCHEMAS)


def rows_of(database: Database) -> dict[int, str]:
    return {int(row[0]): str(row[1]) for row in database.rows("select id, name from orders")}


def test_upserts_and_deletes_by_several_runs(
    sink: JavaConnector, postgresql_database: Database, produce: TopicProducer
) -> None:
    topic = sink.config["topics"]
    produce(topic, upserts(range(500)))
    first = sink.run()
    assert (first.records, first.delivery_guarantee) == (500, "exactly_once")
    assert rows_of(postgresql_database) == {n: f"n{n}" for n in range(500)}

    produce(topic, [*upserts(range(10), "changed"), *upserts([500]), *deletes([20, 21])])
    second = sink.run()
    third = sink.run()
    assert (second.records, third.status) == (13, "empty")
    wanted = {n: f"changed{n}" if n < 10 else f"n{n}" for n in range(501) if n not in (20, 21)}
    assert rows_of(postgresql_database) == wanted


def test_killed_run_is_repeated_without_a_difference(
    sink: JavaConnector, postgresql_database: Database, produce: TopicProducer
) -> None:
    topic = sink.config["topics"]
    produce(topic, [*upserts(range(100)), *deletes(range(50, 60)), *upserts([55], "again")])
    assert sink.start(crash_points.AUDITED).wait() is None
    assert len(rows_of(postgresql_database)) == 91
    assert sink.run().records == 111
    wanted = {n: f"n{n}" for n in range(100) if not 50 <= n < 60}
    assert rows_of(postgresql_database) == {**wanted, 55: "again55"}


def test_table_that_refuses_a_row_fails_the_run_with_the_reason(
    sink: JavaConnector, postgresql_database: Database, produce: TopicProducer
) -> None:
    postgresql_database.execute("create table orders (id int primary key, name varchar(5))")
    produce(sink.config["topics"], [*upserts(range(3)), *upserts([3], "too long")])
    report = sink.try_run()
    assert report.error is not None
    assert report.error["code"] == "java.plugin_failed"
    assert "value too long" in report.error["message"], report.error
    assert sink.try_run().status == "failed", "nothing was committed"


def test_values_without_schemas_are_refused_and_not_left_out(sink: JavaConnector, produce: TopicProducer) -> None:
    sink.worker_config = {f"{kind}.schemas.enable": "false" for kind in ("key.converter", "value.converter")} | (
        JSON_WITH_SCHEMAS
    )
    produce(sink.config["topics"], [(0, b'{"id": 1}', b'{"id": 1, "name": "n"}', 1, [])])
    report = sink.try_run()
    assert report.error is not None
    assert report.error["code"] == "java.plugin_failed"
