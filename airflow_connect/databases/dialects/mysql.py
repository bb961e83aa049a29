"""MySQL and MariaDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_connect.databases.dialects.base import DatabaseDialect

if TYPE_CHECKING:
    from sqlalchemy import Connection


class MySqlDialect(DatabaseDialect):
    """MySQL and MariaDB, through PyMySQL."""

    name = "mysql"
    schemas_are_catalogs = True
    system_schemas = frozenset({"information_schema", "mysql", "performance_schema", "sys"})
    clock_statement = "SELECT UTC_TIMESTAMP(6)"

    def streaming_cursor(self, connection: Connection) -> Any:
        """PyMySQL's unbuffered cursor: no other statement can run on the connection until it is closed."""
        from pymysql.cursors import SSCursor

        driver_connection: Any = connection.connection.driver_connection
        return driver_connection.cursor(SSCursor)

    def prepare(self, connection: Connection) -> None:
        """TIMESTAMP columns, which are instants, arrive in UTC whatever the server's setting."""
        connection.exec_driver_sql("SET time_zone = '+00:00'")
        connection.commit()
