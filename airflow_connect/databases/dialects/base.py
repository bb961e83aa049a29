"""The contract of a dialect, with what most databases have in common."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from airflow_connect.databases.urls import DatabaseAddress


class DatabaseDialect:
    """A database, as far as it differs from others.

    Attributes:
        name: SQLAlchemy's name of the database.
        schemas_are_catalogs: whether what SQLAlchemy calls a schema is a catalog in JDBC (MySQL, MariaDB).
        has_schemas: whether tables are in schemas or catalogs at all.
        system_schemas: schemas of the database itself, which discovery skips.
    """

    name: ClassVar[str]
    schemas_are_catalogs: ClassVar[bool] = False
    has_schemas: ClassVar[bool] = True
    system_schemas: ClassVar[frozenset[str]] = frozenset({"information_schema"})

    clock_statement: ClassVar[str] = "SELECT CURRENT_TIMESTAMP"

    def engine_options(self, address: DatabaseAddress) -> dict[str, Any]:
        """Arguments of `create_engine`."""
        return {}

    def connect_arguments(self, address: DatabaseAddress) -> dict[str, Any]:
        """Keyword arguments of the driver's `connect`."""
        return dict(address.arguments)

    def prepare(self, connection: Connection) -> None:
        """Called for each new connection, before its first use."""

    def streaming_cursor(self, connection: Connection) -> Any:
        """A cursor of the driver whose result stays on the server; `fetchmany` fetches that many rows."""
        return connection.connection.cursor()

    def current_time(self, connection: Connection) -> datetime:
        """The database's own clock, in UTC."""
        value = connection.exec_driver_sql(self.clock_statement).scalar_one()
        return self.utc(value)

    def utc(self, value: Any) -> datetime:
        """The value of `clock_statement` as an instant in UTC. Values without a zone are UTC."""
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
