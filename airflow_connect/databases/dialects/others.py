"""SQL Server and Oracle: written after their documentation, not tested against their servers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow_connect.databases.dialects.dialect import DatabaseDialect


class SqlServerDialect(DatabaseDialect):
    """SQL Server, through pymssql."""

    name = "mssql"
    clock_statement = "SELECT SYSUTCDATETIME()"


class OracleDialect(DatabaseDialect):
    """Oracle, through python-oracledb."""

    name = "oracle"
    clock_statement = "SELECT SYS_EXTRACT_UTC(SYSTIMESTAMP) FROM DUAL"

    def utc(self, value: Any) -> datetime:
        """SYS_EXTRACT_UTC has no zone: it is UTC."""
        return value.replace(tzinfo=UTC) if isinstance(value, datetime) else super().utc(value)
