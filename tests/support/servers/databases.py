"""Databases of tests: an empty one for each test, on servers that all tests share, or in a file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from airflow_connect.devstack.mariadb import MariaDbServer
    from airflow_connect.devstack.postgresql import PostgresServer

TRX_S = 0.3
"""How often to look into InnoDB's `innodb_trx`: what is asked for within 0.1 s of the last question gets its answer."""


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
        engine = self.engine()
        with engine.begin() as connection:
            yield connection
        engine.dispose()

    def engine(self) -> Engine:
        """An engine without a pool: nothing stays open."""
        return create_engine(self.url, poolclass=NullPool)

    def execute(self, *statements: str) -> None:
        """Execute statements in one transaction."""
        with self.connected() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def rows(self, query: str, **parameters: Any) -> Sequence[tuple[Any, ...]]:
        """The rows of a query."""
        with self.connected() as connection:
            return [tuple(row) for row in connection.execute(text(query), parameters)]


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
