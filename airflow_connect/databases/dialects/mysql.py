"""MySQL and MariaDB."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from airflow_connect.databases.dialects.dialect import DatabaseDialect

if TYPE_CHECKING:
    from sqlalchemy import Connection

_FETCH_TIMEOUT_S = 3600
_EVERY_ROW = (1 << 64) - 1


class MySqlDialect(DatabaseDialect):
    """MySQL and MariaDB, through PyMySQL."""

    name = "mysql"
    clock_statement = "SELECT UTC_TIMESTAMP(6)"
    offset_statement = "SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), NOW())"

    def streaming_cursor(self, connection: Connection) -> Any:
        """PyMySQL's unbuffered cursor: no other statement can run on the connection until it is closed."""
        driver_connection: Any = connection.connection.driver_connection
        return driver_connection.cursor(_streaming_cursor())

    def prepare(self, connection: Connection) -> None:
        """TIMESTAMP columns, which are instants, arrive in UTC, and results whole, whatever the server's settings."""
        self.note_zone(connection)
        connection.exec_driver_sql(f"SET time_zone = '+00:00', sql_select_limit = {_EVERY_ROW}")
        connection.commit()

    def prepare_reading(self, connection: Connection) -> None:
        """The server waits longer than a minute for rows to be fetched, as Connector/J asks it to."""
        connection.exec_driver_sql(f"SET SESSION net_write_timeout = {_FETCH_TIMEOUT_S}")
        connection.commit()


@cache
def _streaming_cursor() -> type:
    """PyMySQL's unbuffered cursor, which can also be closed after its connection was lost.

    The original would read the rest of its result, from a connection that has no socket any more: AttributeError.
    """
    from pymysql.cursors import SSCursor

    class StreamingCursor(SSCursor):  # type: ignore[misc]
        connection: Any
        _result: Any

        def close(self) -> None:
            lost = self.connection
            if lost is not None and not lost.open and self._result is not None:
                self._result.unbuffered_active = False  # Or its finalizer would read, too.
                self._result = self.connection = None
            super().close()

        __del__ = close

    return StreamingCursor
