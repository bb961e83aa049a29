"""PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_connect.databases.dialects.dialect import DatabaseDialect

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from airflow_connect.databases.urls import DatabaseAddress


class PostgreSqlDialect(DatabaseDialect):
    """PostgreSQL, through psycopg."""

    name = "postgresql"
    # Inside a transaction, current_timestamp is the transaction's beginning, which may be long ago.
    clock_statement = "SELECT clock_timestamp()"
    offset_statement = "SELECT extract(timezone FROM clock_timestamp())::int"

    def connect_arguments(self, address: DatabaseAddress) -> dict[str, Any]:
        """Texts arrive in UTF-8. Otherwise those of a database with the encoding SQL_ASCII would arrive as bytes."""
        return {"client_encoding": "utf8", **super().connect_arguments(address)}

    def streaming_cursor(self, connection: Connection) -> Any:
        """A named cursor, inside the transaction."""
        return _driver_connection(connection).cursor(name="airflow_connect")

    def prepare(self, connection: Connection) -> None:
        """Times with a zone arrive in UTC, whatever the server's setting."""
        self.note_zone(connection)
        connection.exec_driver_sql("SET TIME ZONE 'UTC'")
        connection.commit()

    def prepare_reading(self, connection: Connection) -> None:
        """The transaction may be idle between two fetches for as long as the other side needs."""
        connection.exec_driver_sql("SET idle_in_transaction_session_timeout = 0")
        connection.commit()


def _driver_connection(connection: Connection) -> Any:
    return connection.connection.driver_connection
