"""Debezium's PostgreSQL connector as bounded runs: its snapshot, then what has changed since the last run."""

from __future__ import annotations

import pytest

from airflow_connect.runtime import crash_points
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
