"""When runs of Debezium end, in the soak: slow is not empty, and a heartbeat is nothing to wait for."""

from __future__ import annotations

import pytest

from tests.support.copies.debezium import Replicated
from tests.support.processes.busy import busy_cores

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.budget(180)]

RUNS = 3


def check_runs(changes: Replicated, table: str) -> None:
    """No run is empty while there are rows that the last one has not read."""
    with busy_cores(2):
        assert changes.connector.run().records == 3000
        for number in range(1, RUNS + 1):
            first = 10_000 * number
            rows = ", ".join(f"({n}, 'late')" for n in range(first, first + 200))
            changes.execute(f"insert into {table} values {rows}")
            assert changes.connector.run().records == 200, f"run {number}"
    assert len(changes.rows()) == 3000 + 200 * RUNS


def test_postgresql(postgresql_changes: Replicated) -> None:
    check_runs(postgresql_changes, "orders")


def test_mariadb(mariadb_changes: Replicated) -> None:
    check_runs(mariadb_changes, "orders_1")


def test_heartbeats(postgresql_changes: Replicated) -> None:
    connector = postgresql_changes.connector
    connector.run()
    beating = connector.run(heartbeat_interval_ms="200", run_max_seconds="60")
    assert beating.source is not None
    assert beating.source.ended_by == {"end": 1}
    assert beating.records > 0


def test_change_behind_much_log_of_other_tables_is_found(postgresql_changes: Replicated) -> None:
    """The server skips it, and Debezium is idle meanwhile."""
    connector = postgresql_changes.connector
    connector.config |= {"table.include.list": "public.orders", "publication.autocreate.mode": "filtered"}
    connector.run()
    postgresql_changes.execute("create table other (n int, filler text)")
    for _ in range(4):
        postgresql_changes.execute(
            "insert into other select n, repeat('x', 1000) from generate_series(1, 100000) n", "truncate other"
        )
    postgresql_changes.execute("insert into orders values (9999, 'behind')")
    report = connector.run(airflow_java_idle_ms="100")

    assert report.records == 1
    assert not [note for note in report.notes if "not known whether" in note]
