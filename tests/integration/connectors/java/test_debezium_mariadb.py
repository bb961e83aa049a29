"""Debezium's MariaDB connector as bounded runs, in the soak: two tables into one topic."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.runtime import crash_points
from tests.devstack.mariadb import MariaDbServer
from tests.support.copies.debezium import ROWS_OF_CHANGES, Replicated
from tests.support.copies.java_plugin import JavaConnector, locked_plugin

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.budget(90)]

LOCK = "debezium-mariadb-3.5.0"
BINLOG = ("--log-bin=binlog", "--server-id=7", "--binlog-format=ROW", "--binlog-row-image=FULL")


@pytest.fixture(scope="module")
def server() -> Iterator[MariaDbServer]:
    """A server of its own, which writes a binary log."""
    with MariaDbServer.start(None, *BINLOG) as started:
        yield started


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return locked_plugin(tmp_path_factory.mktemp("plugins"), LOCK)


@pytest.fixture
def replicated(kafka: KafkaBroker, server: MariaDbServer, plugins: Path, unique_name: str) -> Iterator[Replicated]:
    """Two tables of 1,500 rows each, whose rows go to one topic."""
    database = unique_name.replace("-", "_")
    server.create_database(database)
    config = {
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "topic.prefix": unique_name,
        "database.hostname": "127.0.0.1",
        "database.port": str(server.ports[0]),
        "database.user": "root",
        "database.server.id": "4711",
        "database.include.list": database,
        "schema.history.internal.kafka.bootstrap.servers": kafka.bootstrap,
        "schema.history.internal.kafka.topic": f"history-{unique_name}",
        "include.schema.changes": "false",
        **ROWS_OF_CHANGES,
        "transforms": "route,unwrap",
        "transforms.route.type": "io.debezium.transforms.ByLogicalTableRouter",
        "transforms.route.topic.regex": ".*orders_[0-9]",
        "transforms.route.topic.replacement": f"orders-{unique_name}",
    }
    connector = JavaConnector(kafka.bootstrap, f"changes-{unique_name}", plugins, config)
    made = Replicated(connector, server.url_of(database), f"orders-{unique_name}")
    made.execute(
        *(f"create table orders_{n} (id int primary key, name varchar(20))" for n in (1, 2)),
        "insert into orders_1 select seq, concat('n', seq) from seq_1_to_1500",
        "insert into orders_2 select seq, concat('n', seq) from seq_1501_to_3000",
    )
    yield made
    server.drop_database(database)


def test_snapshot_then_changes_then_nothing(replicated: Replicated) -> None:
    first = replicated.connector.run()
    assert first.records == 3000
    assert sorted(key for key, _ in replicated.changes()) == list(range(1, 3001))

    replicated.execute(
        "insert into orders_2 values (3001, 'new'), (3002, 'newer')",
        "update orders_1 set name = 'changed' where id <= 10",
        "delete from orders_1 where id = 5",
    )
    second = replicated.connector.run()
    third = replicated.connector.run()

    assert (second.records, third.status) == (13, "empty")
    wanted = {n: "changed" if n <= 10 else f"n{n}" for n in range(1, 3001) if n != 5}
    assert replicated.rows() == {**wanted, 3001: "new", 3002: "newer"}
    keys: list[dict[str, Any]] = [json.loads(m.key() or b"{}") for m in replicated.connector.messages(replicated.topic)]
    tables = {key["__dbz__physicalTableIdentifier"].rsplit(".")[-1] for key in keys}
    assert tables == {"orders_1", "orders_2"}


def test_runs_that_are_killed_lose_and_double_no_change(replicated: Replicated) -> None:
    connector = replicated.connector
    assert connector.start(crash_points.SOURCE_TASK_SENT).wait() is None
    connector.run()
    replicated.execute("insert into orders_1 select seq, 'late' from seq_3001_to_3100")
    assert connector.start(crash_points.SOURCE_TASK_SENT).wait() is None
    assert connector.start(crash_points.SOURCE_TASK_STORED).wait() is None
    connector.run()

    assert sorted(key for key, _ in replicated.changes()) == list(range(1, 3101))
