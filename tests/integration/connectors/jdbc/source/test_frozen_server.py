"""A server that keeps its connections and never answers again, while the JDBC source reads from it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from airflow_connect.errors import UnavailableError
from tests.devstack.mariadb import MariaDbServer
from tests.devstack.postgresql import PostgresServer
from tests.support.copies import jdbc_source
from tests.support.copies.jdbc_source import Copies
from tests.support.processes.proc import freeze
from tests.support.servers.databases import Database, database_on

pytestmark = pytest.mark.integration

ROWS, LIMIT_MS = 30_000, 3_000
"""57 MB of rows: more than both sockets can hold, 32 MB and 4 MB where Linux lets them grow. No statement here takes
longer than the limit."""


@pytest.fixture(params=["postgresql", "mariadb"])
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer | MariaDbServer]:
    """A server of the test's own; it is never left frozen."""
    kind = PostgresServer if request.param == "postgresql" else MariaDbServer
    with kind.start() as started:
        yield started
        thaw(started)


def processes(server: PostgresServer | MariaDbServer) -> list[int]:
    """The server and its children, which serve connections."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    return [server.pid, *map(int, children)]


def thaw(server: PostgresServer | MariaDbServer) -> None:
    for pid in processes(server):
        with suppress(ProcessLookupError):  # a child that has just ended
            os.kill(pid, signal.SIGCONT)


@pytest.mark.budget(25)  # A server of its own, and the limit twice.
@pytest.mark.parametrize("columnar", [False, True])
def test_server_that_is_frozen_during_a_fetch_ends_the_read_with_a_retriable_error(
    server: PostgresServer | MariaDbServer, columnar: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jdbc_source, "TRIES", 1)  # A run tries again, for a minute.
    with database_on(server, "frozen") as database:
        orders(database)
        config = {
            "connection.url": database.jdbc_url, "mode": "incrementing", "incrementing.column.name": "id",
            "table.whitelist": "orders", "batch.max.rows": "2000", "read.timeout.ms": str(LIMIT_MS),
        }  # fmt: skip
        copies = Copies(config, columnar=columnar)

        def stop(done: int) -> None:
            if done == 2:
                for pid in processes(server):
                    freeze(pid)

        try:
            with pytest.raises(UnavailableError) as caught:
                copies.run(meanwhile=stop)
        finally:
            thaw(server)

        error = caught.value
        assert (error.code, error.config_path, error.retriable) == ("database.read_timeout", "read.timeout.ms", True)
        assert "could not be used to read the table frozen." in error.message
        assert "has sent nothing for 3 s" in error.message
        ((_, offset),) = copies.committed()
        assert 0 < offset["incrementing"] < ROWS
        copies.config["read.timeout.ms"] = "60000"  # A server that was frozen may be slow for a moment.
        rest = copies.run().ids()
        assert rest == list(range(offset["incrementing"] + 1, ROWS + 1))


def orders(database: Database) -> None:
    numbers = "generate_series(1, {}) i" if database.dialect == "postgresql" else "(SELECT seq AS i FROM seq_1_to_{}) n"
    database.execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY, text text NOT NULL)",
        f"INSERT INTO orders SELECT i, repeat('x', 1900) FROM {numbers.format(ROWS)}",
    )
