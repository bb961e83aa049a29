"""Debezium's PostgreSQL connector as bounded runs: its snapshot, then what has changed since the last run."""

from __future__ import annotations

from decimal import Decimal

import pytest

from airflow_connect.registry.converters.avro_converter import AvroConverter
from airflow_connect.runtime import crash_points
from tests.devstack.schema_registry import SchemaRegistry
from tests.support.copies.debezium import Replicated

pytestmark = [pytest.mark.integration, pytest.mark.budget(60)]


def test_snapshot_then_changes_then_nothing(postgresql_changes: Replicated) -> None:
    first = postgresql_changes.connector.run()
    assert first.records == 3000
    assert [key for key, _ in postgresql_changes.changes()] == list(range(1, 3001))

    postgresql_changes.execute("insert into orders values (3001, 'new'), (3002, 'newer')")
    postgresql_changes.execute("update orders set name = 'changed' where id <= 10", "delete from orders where id = 5")
    second = postgresql_changes.connector.run()
    third = postgresql_changes.connector.run()

    assert (second.records, third.status) == (13, "empty")
    wanted = {n: "changed" if n <= 10 else f"n{n}" for n in range(1, 3001) if n != 5}
    assert postgresql_changes.rows() == {**wanted, 3001: "new", 3002: "newer"}


def test_runs_that_are_killed_lose_and_double_no_change(postgresql_changes: Replicated) -> None:
    connector = postgresql_changes.connector
    assert connector.start(crash_points.SOURCE_TASK_SENT).wait() is None
    # Debezium makes a snapshot again if the first one was not finished: nothing of it was committed.
    connector.run()
    postgresql_changes.execute("insert into orders select n, 'late' from generate_series(3001, 3100) n")
    assert connector.start(crash_points.SOURCE_TASK_SENT).wait() is None
    assert connector.start(crash_points.SOURCE_TASK_STORED).wait() is None
    connector.run()

    assert [key for key, _ in postgresql_changes.changes()] == list(range(1, 3101))


def test_changes_in_avro_by_the_converter_in_python(
    postgresql_changes: Replicated, registry_server: SchemaRegistry
) -> None:
    """Debezium's own transformation runs in Java, Confluent's converter in Python."""
    avro = {"schema.registry.url": registry_server.url}
    connector = postgresql_changes.connector
    connector.config["schema.name.adjustment.mode"] = "avro"
    connector.config |= {
        f"{side}.converter{name}": value
        for side in ("key", "value")
        for name, value in {
            "": "io.confluent.connect.avro.AvroConverter",
            ".schema.registry.url": registry_server.url,
        }.items()
    }
    postgresql_changes.execute(
        "alter table orders add price numeric(12, 2) default 0.5, add at timestamptz default '2026-01-02T03:04:05Z'",
        "insert into orders values (3001, null, -12.30)",
    )
    first = connector.run()
    postgresql_changes.execute("delete from orders where id = 7", "update orders set price = 9 where id = 8")
    second = connector.run()

    reader = AvroConverter()
    reader.configure(avro, False)
    topic = postgresql_changes.topic
    rows = [reader.to_connect(topic, message.value()) for message in connector.messages(topic)]
    assert (first.records, second.records, len(rows)) == (3001, 2, 3003)
    found = {row["id"]: row for _, row in rows}
    assert found[3001] == {
        "id": 3001,
        "name": None,
        "price": Decimal("-12.30"),
        "at": "2026-01-02T03:04:05.000000Z",
        "__deleted": "false",
    }
    assert (found[7]["__deleted"], found[8]["price"]) == ("true", Decimal("9.00"))
    assert rows[0].schema.field("price").schema.default == Decimal("0.50")
    assert connector.run().status == "empty"
