"""Databases of tests: an empty one for each test, on servers that all tests share, or in a file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tests.devstack.mariadb import MariaDbServer
    from tests.devstack.postgresql import PostgresServer

_WAITING = {
    "postgresql": "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    " AND clock_timestamp() - query_start > make_interval(secs => {seconds})",
    # Not InnoDB's `innodb_trx`: it shows a wait only if it is asked at the right moment.
    "mysql": "SELECT id FROM information_schema.processlist WHERE command = 'Query' AND id <> CONNECTION_ID()"
    " AND db = DATABASE() AND time_ms > {seconds} * 1000",
}
_OTHERS = {
    "postgresql": "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND backend_type = 'client backend'",
    "mysql": "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()",
}
_END = {"postgresql": "SELECT pg_terminate_backend({})", "mysql": "KILL {}"}


@dataclass(frozen=True)
class Database:
    """A database of one test.

    Attributes:
        dialect: `postgresql`, `mysql` or `sqlite`.
        url: SQLAlchemy URL.
        jdbc_url: as in `connection.url`.
    """

    dialect: str
    url: str
    jdbc_url: str

    @contextlib.contextmanager
    def connected(self) -> Iterator[Any]:
        """A connection in a transaction that is committed at the end."""
        with self.engine().begin() as connection:
            yield connection

    def engine(self) -> Engine:
        """An engine without a pool: nothing stays open."""
        return _engine(self.url)

    def execute(self, *statements: str) -> None:
        """Execute statements in one transaction."""
        with self.connected() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def rows(self, query: str, **parameters: Any) -> Sequence[tuple[Any, ...]]:
        """The rows of a query."""
        with self.connected() as connection:
            return [tuple(row) for row in connection.execute(text(query), parameters)]

    def has_statement_waiting_for(self, seconds: float) -> bool:
        """Whether a statement of another session of this database has been waiting for a lock for so long."""
        return bool(self.rows(_WAITING[self.dialect].format(seconds=seconds)))

    def end_session(self, number: int) -> None:
        """End a session, and return when the server knows of it no more: it answers before it has ended one."""
        with contextlib.suppress(DBAPIError):  # It may have just ended by itself: what counts is what follows.
            self.execute(_END[self.dialect].format(number))
        wait_until(lambda: number not in self._other_sessions(), f"the end of session {number}")

    def end_other_sessions(self) -> list[int]:
        """End all sessions of this database, and return their numbers when they have ended."""
        numbers = self._other_sessions()
        for number in numbers:
            self.end_session(number)
        return numbers

    def _other_sessions(self) -> list[int]:
        return [int(number) for (number,) in self.rows(_OTHERS[self.dialect])]


@lru_cache(maxsize=4)
def _engine(url: str) -> Engine:
    """One for all queries of a test: SQLAlchemy asks the server of each new one for its settings.

    What tests ask their server is not encrypted, which takes longer than most queries.
    """
    arguments = {"ssl_disabled": True} if url.startswith("mysql") else {}
    return create_engine(url, poolclass=NullPool, connect_args=arguments)


@contextlib.contextmanager
def database_on(server: PostgresServer | MariaDbServer, name: str) -> Iterator[Database]:
    """A new database on a server; dropped at the end, if the server still runs."""
    name = name.replace("-", "_")
    server.create_database(name)
    url = server.url_of(name)
    yield Database("mysql" if url.startswith("mysql") else "postgresql", url, server.jdbc_url_of(name))
    if server.is_running:
        server.drop_database(name)


def sqlite_in(folder: Path) -> Database:
    """A database in a new file."""
    path = folder / "database.sqlite"
    return Database("sqlite", f"sqlite:///{path}", f"jdbc:sqlite:{path}")
