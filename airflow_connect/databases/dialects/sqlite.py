"""SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_connect.databases.dialects.dialect import AHEAD, DatabaseDialect, days_of_the_year

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from airflow_connect.databases.urls import DatabaseAddress

BUSY_TIMEOUT_S = 60.0
"""How long a statement waits for another process's write. sqlite-jdbc waits 3 s, which a checkpoint can exceed."""


class SqliteDialect(DatabaseDialect):
    """SQLite, through Python's sqlite3."""

    name = "sqlite"
    clock_statement = "SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')"

    def connect_arguments(self, address: DatabaseAddress) -> dict[str, Any]:
        """Wait for locks; return dates and times as they are stored."""
        return {"timeout": BUSY_TIMEOUT_S, "detect_types": 0, **address.arguments}

    def note_zone(self, connection: Connection) -> None:
        """CURRENT_TIMESTAMP and `datetime('now')` are UTC, whatever the zone of the machine is."""
        connection.info[AHEAD] = dict.fromkeys((None, *days_of_the_year()), 0)

    def prepare(self, connection: Connection) -> None:
        """Nothing to set."""
        self.note_zone(connection)
