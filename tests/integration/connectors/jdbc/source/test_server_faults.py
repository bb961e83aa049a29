"""A PostgreSQL server that restarts, is killed, or has no connection left, while the JDBC source reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import psycopg
import pytest

from airflow_connect.errors import UnavailableError
from tests.devstack.postgresql import PostgresServer
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

CONNECTIONS, ROWS = 6, 30_000


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of the module's own, with few connections, none of them reserved."""
    reserved = {"superuser_reserved_connections": "0", "reserved_connections": "0", "max_wal_senders": "0"}
    with PostgresServer.start(None, max_connections=str(CONNECTIONS), **reserved) as started:
        database = Database("postgresql", started.url, started.jdbc_url_of("postgres"))
        # 57 MB: several batches, and more than both sockets can hold (32 MB and 4 MB where Linux lets them grow):
        # otherwise a client may find all rows in its buffer after the server has ended.
        database.execute(
            "CREATE TABLE orders (id bigint PRIMARY KEY, text text NOT NULL)",
            f"INSERT INTO orders SELECT i, repeat('x', 1900) FROM generate_series(1, {ROWS}) i",
        )
        yield started


def copies(server: PostgresServer, columnar: bool, **more: str) -> Copies:
    config = {
        "connection.url": server.jdbc_url_of("postgres"), "mode": "incrementing", "incrementing.column.name": "id",
        "connection.backoff.ms": "50", "batch.max.rows": "5000", **more,
    }  # fmt: skip
    return Copies(config, columnar=columnar)


@pytest.mark.parametrize("columnar", [False, True])
@pytest.mark.parametrize("end", [PostgresServer.restart, PostgresServer.kill])
def test_server_that_ends_during_a_fetch_is_read_on_after_its_restart(
    server: PostgresServer, columnar: bool, end: Callable[[PostgresServer], None]
) -> None:
    def fail(done: int) -> None:
        if done == 2:
            end(server)
            if not server.is_running:
                server.restart()

    run = copies(server, columnar).run(meanwhile=fail)

    assert run.ids() == list(range(1, ROWS + 1))


def held(server: PostgresServer, stack: ExitStack, count: int) -> None:
    """Connect so many times. A connection that was closed is free for others only when its process has ended."""

    def connect() -> bool:
        try:
            stack.enter_context(psycopg.connect(server.url.replace("+psycopg", ""), autocommit=True))
        except psycopg.OperationalError as error:
            if "too many clients" not in str(error):
                raise
            return False
        return True

    for number in range(count):
        wait_until(connect, f"connection {number + 1} of {count}")


def test_no_connection_left_is_a_retriable_error_that_names_the_key(server: PostgresServer) -> None:
    with ExitStack() as stack:
        held(server, stack, CONNECTIONS)
        with pytest.raises(UnavailableError) as caught:
            copies(server, columnar=True).run()
    error = caught.value
    assert (error.code, error.config_path, error.retriable) == ("database.too_many_connections", "tasks.max", True)
    assert "postgresql://127.0.0.1" in error.message and "lower tasks.max" in error.suggestion


def test_one_connection_left_is_enough_to_read_rows(server: PostgresServer) -> None:
    with ExitStack() as stack:
        held(server, stack, CONNECTIONS - 1)
        run = copies(server, columnar=True).run()
    assert run.ids() == list(range(1, ROWS + 1))
    assert any("one by one, which is slower" in note and "too many clients" in note for note in run.notes), run.notes


def test_task_that_finds_no_connection_continues_when_there_is_one(server: PostgresServer) -> None:
    """The connection is lost after the second batch, and others have taken all of them by then."""
    with ExitStack() as stack:

        def take(done: int) -> None:
            if done == 2:
                with psycopg.connect(server.url.replace("+psycopg", ""), autocommit=True) as connection:
                    connection.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                        " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
                    )
                held(server, stack, CONNECTIONS)

        runs = copies(server, columnar=True, **{"connection.attempts": "1"})
        with pytest.raises(UnavailableError) as caught:
            runs.run(meanwhile=take)
    assert caught.value.code == "database.too_many_connections"
    ((_, offset),) = runs.committed()
    assert 0 < offset["incrementing"] < ROWS
    assert runs.run().ids() == list(range(offset["incrementing"] + 1, ROWS + 1))
