"""Debezium's MariaDB connector as bounded runs, in the soak: two tables into one topic."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_connect.runtime import crash_points
from tests.devstack.mariadb import MariaDbServer
from tests.support.copies.debezium import Replicated

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.budget(90)]


def test_snapshot_then_changes_then_nothing(mariadb_changes: Replicated) -> None:
    first = mariadb_changes.connector.run()
    assert first.records == 3000
    assert sorted(key for key, _ in mariadb_changes.changes()) == list(range(1, 3001))

    mariadb_changes.execute(
        "insert into orders_2 values (3001, 'new'), (3002, 'newer')",
        "update orders_1 set name = 'changed' where id <= 10",
        "delete from orders_1 where id = 5",
    )
    second = mariadb_changes.connector.run()
    third = mariadb_changes.connector.run()

    assert (second.records, third.status) == (13, "empty")
    wanted = {n: "changed" if n <= 10 else f"n{n}" for n in range(1, 3001) if n != 5}
    assert mariadb_changes.rows() == {**wanted, 3001: "new", 3002: "newer"}
    keys: list[dict[str, Any]] = [
        json.loads(m.key() or b"{}") for m in mariadb_changes.connector.messages(mariadb_changes.topic)
    ]
    tables = {key["__dbz__physicalTableIdentifier"].rsplit(".")[-1] for key in keys}
    assert tables == {"orders_1", "orders_2"}


def test_runs_that_are_killed_lose_and_double_no_change(mariadb_changes: Replicated) -> None:
    connector = mariadb_changes.connector
    assert connector.start(crash_points.SOURCE_TASK_SENT).wait() is None
    connector.run()
    mariadb_changes.execute("insert into orders_1 select seq, 'late' from seq_3001_to_3100")
    assert connector.start(crash_points.SOURCE_TASK_SENT).wait() is None
    assert connector.start(crash_points.SOURCE_TASK_STORED).wait() is None
    connector.run()

    assert sorted(key for key, _ in mariadb_changes.changes()) == list(range(1, 3101))


def test_change_behind_many_of_other_tables_is_found(
    mariadb_changes: Replicated, binlog_server: MariaDbServer, unique_name: str
) -> None:
    """Debezium returns nothing while it reads 320 MB of a binary log that has no change of the captured tables."""
    mariadb_changes.connector.run()
    other = f"other_{unique_name}".replace("-", "_")
    binlog_server.create_database(other)
    mariadb_changes.execute(f"create table {other}.big (t longtext)")
    for _ in range(100):
        mariadb_changes.execute(f"insert into {other}.big select repeat(md5(seq), 200) from seq_1_to_500")
    mariadb_changes.execute("insert into orders_2 values (3001, 'new')")
    # As little patience as possible, so that less data is enough.
    found = mariadb_changes.connector.run(poll_interval_ms="20", airflow_java_idle_ms="200")
    assert found.records == 1
    binlog_server.drop_database(other)
