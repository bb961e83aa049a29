"""The dialect of a database."""

from __future__ import annotations

from airflow_connect.databases.dialects.dialect import DatabaseDialect
from airflow_connect.databases.dialects.mysql import MySqlDialect
from airflow_connect.databases.dialects.others import OracleDialect, SqlServerDialect
from airflow_connect.databases.dialects.postgresql import PostgreSqlDialect
from airflow_connect.databases.dialects.sqlite import SqliteDialect

_DIALECTS: dict[str, type[DatabaseDialect]] = {
    dialect.name: dialect
    for dialect in (PostgreSqlDialect, MySqlDialect, SqliteDialect, SqlServerDialect, OracleDialect)
}


def dialect_of(database: str) -> DatabaseDialect:
    """The dialect of `postgresql`, `mysql`, `sqlite`, `mssql` or `oracle`."""
    return _DIALECTS[database]()
