"""Runs that read from a replica: its clock goes on while transactions of the primary are still to come."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_connect.databases.dialects import postgresql
from tests.devstack.mariadb import INITIAL_DATABASE, MariaDbServer
from tests.devstack.postgresql import PostgresServer
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration
MODES = {
    "timestamp": {"timestamp.column.name": "changed"},
    "timestamp+incrementing": {"timestamp.column.name": "changed", "incrementing.column.name": "id"},
}


@pytest.fixture(scope="module")
def replica() -> Iterator[Database]:
    """PostgreSQL in recovery, with two rows: one before, and one after the last transaction that it has replayed."""
    with PostgresServer.start(None, wal_level="replica") as server:
        found = Database("postgresql", server.url, server.jdbc_url_of("postgres"))
        found.execute(
            "CREATE TABLE a (id int PRIMARY KEY, changed timestamptz NOT NULL)",
            "INSERT INTO a VALUES (1, clock_timestamp() - interval '1 hour'), (2, clock_timestamp())",
        )
        # Its transactions are replayed after a crash, and no primary sends more.
        (server.data_dir / "data" / "standby.signal").touch(mode=0o666)
        server.kill()
        server.restart()
        yield found


@pytest.mark.parametrize("mode", MODES)
def test_rows_that_may_have_older_ones_behind_them_wait(replica: Database, mode: str) -> None:
    assert replica.rows("SELECT pg_is_in_recovery()") == [(True,)]
    later = "SELECT 1 FROM a HAVING clock_timestamp() > date_trunc('second', max(changed)) + interval '1 s'"
    wait_until(lambda: bool(replica.rows(later)), "a later second")
    runs = Copies({"connection.url": replica.jdbc_url, "mode": mode, **MODES[mode]})
    run = runs.run()
    assert run.ids() == [1]
    assert any(note.startswith("The database is a replica that has the transactions") for note in run.notes)
    assert runs.run().ids() == []


def test_replica_that_does_not_say_what_it_has_is_named(replica: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those that share the storage of their primary may not."""
    monkeypatch.setattr(postgresql, "_REPLAYED", "SELECT not_supported_here()")
    runs = Copies({"connection.url": replica.jdbc_url, "mode": "timestamp", **MODES["timestamp"]})
    assert any("does not say up to when it has the transactions" in note for note in runs.run().notes)


def test_read_only_server_of_mariadb_may_be_a_replica() -> None:
    with MariaDbServer.start(None) as server:
        database = Database("mysql", server.url, server.jdbc_url_of(INITIAL_DATABASE))
        database.execute(
            "CREATE TABLE a (id int PRIMARY KEY, changed timestamp NOT NULL)",
            "INSERT INTO a VALUES (1, CURRENT_TIMESTAMP - INTERVAL 1 HOUR)",
        )
        runs = Copies({"connection.url": database.jdbc_url, "mode": "timestamp", **MODES["timestamp"]})
        first = runs.run()
        database.execute("SET GLOBAL read_only = 1")
        told = "The database is set to read only, so it may be a replica."
        assert first.ids() == [1] and not any(note.startswith(told) for note in first.notes)
        assert any(note.startswith(told) for note in runs.run().notes)
