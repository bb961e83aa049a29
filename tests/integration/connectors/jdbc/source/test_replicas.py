"""Runs that read from a replica: its clock goes on while transactions of the primary are still to come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import make_url

from airflow_connect.connectors.jdbc.source import task
from airflow_connect.connectors.jdbc.source.offsets.positions import Position
from airflow_connect.connectors.jdbc.source.offsets.ranges import TableRange
from airflow_connect.connectors.jdbc.source.read.bounds import check_range
from airflow_connect.connectors.jdbc.source.task import JdbcSourceTask
from airflow_connect.databases.dialects import postgresql
from airflow_connect.errors import UnavailableError
from tests.devstack.mariadb import INITIAL_DATABASE, MariaDbServer
from tests.devstack.postgresql import PostgresServer
from tests.support.copies.jdbc_source import Copies, Run
from tests.support.servers.balancer import balancer
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


@pytest.fixture(scope="module")
def primary() -> Iterator[Database]:
    """Another server, which is no replica, with a table of the same name."""
    with PostgresServer.start(None) as server:
        found = Database("postgresql", server.url, server.jdbc_url_of("postgres"))
        found.execute(
            "CREATE TABLE a (id int PRIMARY KEY, changed timestamptz NOT NULL)",
            "INSERT INTO a SELECT n, clock_timestamp() - interval '1 hour' FROM generate_series(1, 4) n",
        )
        yield found


class SwitchingCopies(Copies):
    """Runs whose tasks reach other servers than their driver by one address.

    Args:
        of_driver: the server that the driver reaches.
        of_task: the servers that a task reaches, by connection; the last one is for all others.
    """

    def __init__(self, of_driver: Database, of_task: Sequence[Database], mode: str, *, columnar: bool) -> None:
        super().__init__({"mode": mode, **MODES.get(mode, {})}, columnar=columnar)
        self._of_driver, self._of_task = of_driver, of_task
        self._reached: int | None = None

    def run(self, **more: Any) -> Run:
        self._reached = None
        with balancer(self._port) as port:
            own = str(make_url(self._of_driver.url).port)
            self.config["connection.url"] = self._of_driver.jdbc_url.replace(f":{own}", f":{port}")
            return super().run(**more)

    def _port(self) -> int:
        found = self._of_driver
        if self._reached is not None:
            found = self._of_task[min(self._reached, len(self._of_task) - 1)]
            self._reached += 1
        port = make_url(found.url).port
        assert port is not None
        return port

    def _task(self, *arguments: Any) -> None:
        self._reached = 0
        super()._task(*arguments)


COLUMNAR = pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])


@COLUMNAR
@pytest.mark.parametrize("mode", MODES)
def test_newest_rows_of_a_replica_that_only_a_task_has_reached_wait(
    primary: Database, replica: Database, mode: str, columnar: bool
) -> None:
    """An address may lead to several servers, by a balancer or an endpoint for all replicas.

    More rows of the replica's last second were still to come, and never copied: the run had another server's bound.
    """
    run = SwitchingCopies(primary, [replica], mode, columnar=columnar).run()
    assert run.ids() == [1]
    (note,) = [note for note in run.notes if note.startswith("connection.url leads to several servers")]
    assert "Rows with a timestamp after that are copied by a later run" in note


@pytest.mark.parametrize("mode", ["bulk", *MODES])
def test_second_connection_that_reaches_another_server_is_not_used(
    primary: Database, replica: Database, mode: str
) -> None:
    """The table was described by one server, and its rows came from the other one, which lacked some."""
    run = SwitchingCopies(primary, [primary, replica], mode, columnar=True).run()
    assert run.ids() == [1, 2, 3, 4]
    assert any("a second connection has reached another one" in note for note in run.notes)
    run = SwitchingCopies(primary, [primary], mode, columnar=True).run()
    assert run.ids() == [1, 2, 3, 4] and not any("several servers" in note for note in run.notes)


def test_range_that_a_replica_does_not_have_whole_is_not_read() -> None:
    """It would count as complete, and the rows that were still to come would never be copied."""
    part = TableRange("a", "timestamp:changed", None, Position(timestamp_us=50))
    check_range(part, 51, 60, "a")
    check_range(part, 60, 60, "a")
    check_range(None, 1, 60, "a")
    with pytest.raises(UnavailableError, match="A range of a cannot be read from the server") as caught:
        check_range(part, 50, 60, "a")
    assert caught.value.code == "database.behind"


@pytest.mark.parametrize(
    ("kind", "expression", "bound"),
    [
        ("timestamptz", "timestamptz '2026-01-01 00:00:00Z' + n * interval '10 ms'", "2026-01-01T00:00:01.995Z"),
        ("timestamp", "timestamp '2026-01-01 00:00:00' + n * interval '10 ms'", "2026-01-01T00:00:01.995Z"),
        ("date", "date '2026-01-01' + n / 100", "2026-01-02T12:00:00Z"),
    ],
)
def test_range_that_ends_in_the_second_or_day_of_the_bound_of_its_server_is_not_read_there(
    postgresql_database: Database, monkeypatch: pytest.MonkeyPatch, kind: str, expression: str, bound: str
) -> None:
    """Nothing of that second, or day, is read there, and another range is read on a server that has all."""
    postgresql_database.execute(
        f"CREATE TABLE a (id int PRIMARY KEY, changed {kind} NOT NULL)",
        f"INSERT INTO a SELECT n, {expression} FROM generate_series(0, 299) n",
    )
    config = {"connection.url": postgresql_database.jdbc_url, "mode": "timestamp", "table.split.min.rows": "100"}
    runs = Copies({**config, **MODES["timestamp"]})
    behind_us = round(datetime.fromisoformat(bound).timestamp() * 1_000_000)
    started: list[JdbcSourceTask] = []
    start = JdbcSourceTask.start

    def noted(self: JdbcSourceTask, config: Mapping[str, str]) -> None:
        started.append(self)
        start(self, config)

    def bound_of_task(*arguments: Any) -> int:
        return behind_us if len(started) == 2 else int(arguments[3])

    monkeypatch.setattr(JdbcSourceTask, "start", noted)
    monkeypatch.setattr(task, "bound_of_task", bound_of_task)
    with pytest.raises(UnavailableError, match="cannot be read from the server") as caught:
        runs.run(tasks=3)
    assert caught.value.code == "database.behind"
    monkeypatch.undo()
    assert sorted(runs.run(tasks=3).ids()) == list(range(100, 300))


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


def filled(database: Database, count: int, *, behind: int = 0) -> None:
    """A table with numbers and times; `behind`: rows of the middle that are still to come."""
    rows = [n for n in range(1, count + 1) if not 200 < n <= 200 + behind]
    with database.connected() as connection:
        connection.exec_driver_sql("CREATE TABLE a (id int PRIMARY KEY, changed timestamp NOT NULL, INDEX (changed))")
        times = ", ".join(f"({n}, TIMESTAMP '2026-01-01 00:00:00' + INTERVAL {n} SECOND)" for n in rows)
        connection.exec_driver_sql(f"INSERT INTO a VALUES {times}")
    database.rows("ANALYZE TABLE a")


@pytest.mark.parametrize("mode", ["incrementing", *MODES])
def test_range_of_a_first_load_is_not_read_from_another_server_of_mariadb(mode: str) -> None:
    """It counted as complete, and rows that this server did not have yet were never copied."""
    with MariaDbServer.start(None) as one, MariaDbServer.start(None) as two:
        servers = [Database("mysql", each.url, each.jdbc_url_of(INITIAL_DATABASE)) for each in (one, two)]
        filled(servers[0], 1000)
        filled(servers[1], 1000, behind=100)
        runs = SwitchingCopies(servers[0], [servers[1]], mode, columnar=False)
        runs.config |= {"table.split.min.rows": "100", "incrementing.column.name": "id"}
        with pytest.raises(UnavailableError, match=r"A range of the table test\.a cannot be read") as caught:
            runs.run(tasks=4)
        assert caught.value.code == "database.behind"
        runs = SwitchingCopies(servers[0], [servers[0]], mode, columnar=False)
        runs.config |= {"table.split.min.rows": "100", "incrementing.column.name": "id"}
        run = runs.run(tasks=4)
        assert sorted(run.ids()) == list(range(1, 1001)) and not any("several servers" in note for note in run.notes)
        if mode == "incrementing":  # Later rows are read as far as a server has them.
            return
        servers[0].execute("INSERT INTO a VALUES (1001, TIMESTAMP '2026-01-02 00:00:00')")
        other = SwitchingCopies(servers[0], [servers[1]], mode, columnar=False)
        other.config |= {"incrementing.column.name": "id"}
        other.stored = runs.stored
        assert any("a task has reached another one than the run began on" in note for note in other.run().notes)


def test_range_that_a_replica_of_postgresql_has_not_replayed_is_not_read(primary: Database, replica: Database) -> None:
    """The log of transactions tells it, also where rows have no times."""
    dialect = postgresql.PostgreSqlDialect()
    with primary.connected() as connection:
        state = dialect.state(connection)
        assert dialect.has_state(connection, state) and dialect.has_state(connection, "FFFF/0")
    with replica.connected() as connection:
        own = dialect.state(connection)
        assert dialect.has_state(connection, own) and not dialect.has_state(connection, "FFFF/0")
    assert state != own
    part = TableRange("a", "incrementing:id", None, Position(5))
    check_range(part, 60, 60, "a")
    check_range(TableRange("a", "bulk:id", None, Position(5)), 60, 60, "a", has_state=False)
    with pytest.raises(UnavailableError, match="it may not yet have all rows"):
        check_range(part, 60, 60, "a", has_state=False)
