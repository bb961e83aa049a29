"""Debezium's PostgreSQL connector as bounded runs: its snapshot, then what has changed since the last run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.runtime import crash_points
from tests.devstack.postgresql import USER, PostgresServer
from tests.support.copies.debezium import ROWS_OF_CHANGES, Replicated
from tests.support.copies.java_plugin import JavaConnector, locked_plugin
from tests.support.servers.databases import Database

pytestmark = [pytest.mark.integration, pytest.mark.budget(60)]

LOCK = "debezium-postgres-3.6.3"


@pytest.fixture(scope="session")
def debezium(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plugin path with the connector."""
    return locked_plugin(tmp_path_factory.mktemp("plugins"), LOCK)


@pytest.fixture
def replicated(
    kafka: KafkaBroker, postgresql: PostgresServer, postgresql_database: Database, debezium: Path, unique_name: str
) -> Iterator[Replicated]:
    """A table of 3,000 rows."""
    slot = unique_name.replace("-", "_")
    config = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "topic.prefix": unique_name,
        "database.hostname": "127.0.0.1",
        "database.port": str(postgresql.ports[0]),
        "database.user": USER,
        "database.password": "unused",
        "database.dbname": slot,
        "plugin.name": "pgoutput",
        "slot.name": slot,
        "publication.name": slot,
        **ROWS_OF_CHANGES,
    }
    connector = JavaConnector(kafka.bootstrap, f"changes-{unique_name}", debezium, config)
    made = Replicated(connector, postgresql_database.url, f"{unique_name}.public.orders")
    made.execute(
        "create table orders (id int primary key, name text)",
        "insert into orders select n, 'n' || n from generate_series(1, 3000) n",
    )
    yield made
    made.execute(f"select pg_drop_replication_slot('{slot}') from pg_replication_slots where slot_name = '{slot}'")


def test_snapshot_then_changes_then_nothing(replicated: Replicated) -> None:
    first = replicated.connector.run()
    assert first.records == 3000
    assert [key for key, _ in replicated.changes()] == list(range(1, 3001))

    replicated.execute("insert into orders values (3001, 'new'), (3002, 'newer')")
    replicated.execute("update orders set name = 'changed' where id <= 10", "delete from orders where id = 5")
    second = replicated.connector.run()
    third = replicated.connector.run()

    assert (second.records, third.status) == (13, "empty")
    wanted = {n: "changed" if n <= 10 else f"n{n}" for n in range(1, 3001) if n != 5}
    assert replicated.rows() == {**wanted, 3001: "new", 3002: "newer"}


def test_runs_that_are_killed_lose_and_double_no_change(replicated: Replicated) -> None:
    connector = replicated.connector
    assert connector.start(crash_points.SOURCE_TASK_SENT).wait() is None
    # Debezium makes a snapshot again if the first one was not finished: nothing of it was committed.
    connector.run()
    replicated.execute("insert into orders select n, 'late' from generate_series(3001, 3100) n")
    assert connector.start(crash_points.SOURCE_TASK_SENT).wait() is None
    assert connector.start(crash_points.SOURCE_TASK_STORED).wait() is None
    connector.run()

    assert [key for key, _ in replicated.changes()] == list(range(1, 3101))
