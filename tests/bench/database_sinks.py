"""Rows of the JDBC sink: Avro records into a table of a real server, each row counted back there. Also the servers.

The peer of PostgreSQL's rows is the server alone: a binary COPY of the same rows, from memory, by one connection.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from tests.bench.database_sources import TableRows
from tests.bench.processes import cpu_seconds
from tests.devstack.mariadb import MariaDbServer
from tests.devstack.postgresql import PostgresServer

STORES = ("postgresql", "mariadb")
INSERT = {"insert.mode": "insert", "pk.mode": "none", "auto.create": "true"}
UPSERT = {"insert.mode": "upsert", "pk.mode": "record_value", "pk.fields": "id", "auto.create": "true"}
AGAIN = {**UPSERT, "auto.create": "false"}
"""Every key is in the table."""
_FILLED = (
    (
        'CREATE TABLE {} (id BIGINT PRIMARY KEY, "user" TEXT, event TEXT, amount FLOAT8, at TIMESTAMP, session TEXT,'
        " paid BOOLEAN, note TEXT)"
    ),
    "INSERT INTO {} (id) SELECT generate_series(0, {} - 1)",
    "VACUUM ANALYZE {}",
)
_PEER_RECORDS = 1_000_000


class Databases:
    """The servers, started when they are needed first."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        """`stack` stops them; their data lies in `folder`."""
        self._stack = stack
        self._folder = folder
        self._servers: dict[str, Any] = {}
        self._filled: set[TableRows] = set()

    def connector(self, store: str, table: str, config: dict[str, str], records: int) -> dict[str, str]:
        """Keys of a connector that writes into a table, which is filled first if every key is to be there."""
        if config == AGAIN:
            with psycopg.connect(self._psycopg_url(store), autocommit=True) as connection:
                for statement in _FILLED:
                    connection.execute(statement.format(table, records))  # type: ignore[arg-type]
        return {
            "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
            "connection.url": self._server(store).jdbc_url_of("bench"),
            "table.name.format": table,
        }

    def check(self, store: str, table: str, records: int) -> tuple[int, str]:
        """Bytes of the table, and what is wrong: ids 0 to `records - 1` must be there exactly once. Drops it."""
        size_of = {
            "postgresql": "SELECT pg_total_relation_size('{}')",
            "mariadb": "SELECT data_length + index_length FROM information_schema.tables WHERE table_name = '{}'",
        }
        engine = create_engine(self._server(store).url_of("bench"), poolclass=NullPool)
        with engine.begin() as connection:
            counted = f"SELECT COUNT(*), COUNT(DISTINCT id), MIN(id), MAX(id), COUNT(session) FROM {table}"
            found = tuple(connection.execute(text(counted)).one())
            size = int(connection.execute(text(size_of[store].format(table))).scalar_one())
            if store == "postgresql":
                self._say_peer(table, records)
            connection.execute(text(f"DROP TABLE {table}"))
        expected = (records, records, 0, records - 1, records)
        return size, "" if found == expected else f"rows, ids, first, last and sessions are {found}, not {expected}"

    def cpu_s(self, store: str) -> float:
        """CPU time of a server."""
        return cpu_seconds(self._server(store).pid)

    def _say_peer(self, table: str, records: int) -> None:
        """Print how fast the server takes the same rows when there is nothing but COPY."""
        count = min(records, _PEER_RECORDS)
        with closing(psycopg.connect(self._psycopg_url("postgresql"))) as connection, connection.cursor() as cursor:
            chosen: Any = f"COPY (SELECT * FROM {table} LIMIT {count}) TO STDOUT (FORMAT BINARY)"
            with cursor.copy(chosen) as copy:
                data = b"".join(copy)
            made: Any = f"CREATE TEMPORARY TABLE peer (LIKE {table} INCLUDING INDEXES)"
            cursor.execute(made)
            started = time.monotonic()
            with cursor.copy("COPY peer FROM STDIN (FORMAT BINARY)") as copy:
                copy.write(data)
            rate = count / (time.monotonic() - started)
            connection.rollback()
        print(f"  peer: COPY of {count:,} of these rows from memory, one connection: {rate:,.0f} rows/s", flush=True)

    def database_of(self, rows: TableRows, show: Callable[[int], None]) -> str:
        """JDBC URL of the database with the rows that a source copies; filled when it is needed first."""
        server = self._server("postgresql")
        if rows not in self._filled:
            server.create_database(rows.database)
            rows.write(server.url_of(rows.database), show)
            self._filled.add(rows)
        return str(server.jdbc_url_of(rows.database))

    def _psycopg_url(self, store: str) -> str:
        return str(self._server(store).url_of("bench")).replace("+psycopg", "")

    def _server(self, store: str) -> Any:
        if store not in self._servers:
            data = self._folder / store
            self._folder.chmod(0o711)  # PostgreSQL does not run as root, and must reach its data.
            # Enough memory that the disk is not measured; commits are not forced to it, as everywhere in the stack.
            started: Any = (
                PostgresServer.start(data, shared_buffers="512MB", max_wal_size="4GB")
                if store == "postgresql"
                else MariaDbServer.start(data, "--innodb-buffer-pool-size=512M", "--innodb-log-file-size=512M")
            )
            self._servers[store] = self._stack.enter_context(started)
            started.create_database("bench")
        return self._servers[store]
