"""One state of a PostgreSQL database for all tasks of a load.

The driver exports the snapshot of a transaction that stays open until its tasks have ended, and the tasks import it.
Ranges are exact without it, because an interrupted load is continued by a run with another state. So a task that cannot
import it (the driver's connection was lost, or the server has restarted) reads without it, and says so.

Source: PostgreSQL, "Snapshot Synchronization Functions", SET TRANSACTION, and "Caveats" of MVCC for the check: a table
that was rewritten or truncated after the snapshot was taken looks empty in it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.databases.connecting import Database, is_of_a_driver
from airflow_connect.databases.failures import Failure, kind_of
from airflow_connect.databases.reasons import reason_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from airflow_connect.databases.arrow_stream import ArrowStream
    from airflow_connect.databases.identifiers import TableId
    from airflow_connect.databases.settings import ConnectionSettings

log = logging.getLogger(__name__)
_BEGIN = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
_LEVEL = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_SMALL_BYTES = 1 << 16
_LEVELS = ("", "READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ")
"""Isolation levels that REPEATABLE READ includes."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What tasks need to import it.

    Attributes:
        name: as PostgreSQL returned it.
        files: the files of each table, by its full name.
    """

    name: str
    files: dict[str, str]

    def to_json(self) -> str:
        """As JSON."""
        return json.dumps([self.name, self.files])

    @classmethod
    def from_json(cls, text: str) -> Snapshot | None:
        """Inverse of `to_json`; "" is None."""
        return cls(*json.loads(text)) if text else None

    @property
    def statement(self) -> str:
        """What imports it at the beginning of a transaction."""
        return "SET TRANSACTION SNAPSHOT '" + self.name.replace("'", "''") + "'"


class ExportedSnapshot:
    """Held by the driver; `close` ends it."""

    def __init__(self, database: Database, connection: Connection, snapshot: Snapshot) -> None:
        """See `export`."""
        self._database, self._connection = database, connection
        self.snapshot = snapshot

    @classmethod
    def export(
        cls, settings: ConnectionSettings, planning: Connection, tables: Iterable[TableId], note: Callable[[str], None]
    ) -> ExportedSnapshot | None:
        """Export a snapshot for reading tables; None if the server or the configuration does not allow it.

        Args:
            settings: how to reach the database.
            planning: a connection that is closed soon.
            tables: what will be read in the snapshot.
            note: adds a sentence to the report.
        """
        if settings.address.database != "postgresql":
            return None
        if settings.isolation not in _LEVELS:
            note(
                "Tasks do not share a snapshot, because that is not possible with the isolation level"
                f" {settings.isolation}: each range of a table is read in its own."
            )
            return None
        # Before the snapshot is taken, so that no rewrite of a table is missed; on another connection, because it
        # locks a partitioned table, and a lock that lasts as long as the tasks would block them behind ALTER TABLE.
        driver_connection: Any = planning.connection.driver_connection
        queries = ((table.full_name, files_query(quoted_name(table))) for table in tables)
        files = {table: driver_connection.execute(query).fetchone()[0] for table, query in queries}
        database = Database(settings)
        connection: Connection | None = None
        try:
            connection = database.connect({"isolation_level": "REPEATABLE READ"})
            # The transaction is idle until the last task has ended.
            connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
            name = connection.exec_driver_sql("SELECT pg_export_snapshot()").scalar_one()
            return cls(database, connection, Snapshot(name, files))
        except Exception as error:
            if connection is not None:
                _drop(connection)
            database.close()
            if not is_of_a_driver(error):
                raise
            reason = settings.address.scrub(reason_of(error)).rstrip(".")
            note(f"Tasks do not share a snapshot, because PostgreSQL did not export one: {reason}.")
            return None

    def close(self) -> None:
        """End the transaction."""
        _drop(self._connection)
        self._database.close()


def _drop(connection: Connection) -> None:
    try:
        connection.invalidate()
        connection.close()
    except Exception as error:
        if not is_of_a_driver(error):
            raise
        log.debug("The connection that held a snapshot was lost before its end: %s", type(error).__name__)


def enter(connection: Connection, snapshot: Snapshot, table: TableId) -> str:
    """Begin a transaction of a task's connection that reads a table in the snapshot, and lock the table for reading.

    Returns:
        Why the connection does not read in the snapshot, as part of a sentence; "" if it does.

    Raises:
        psycopg.Error: the connection was lost, or the table does not exist.
    """
    driver_connection: Any = connection.connection.driver_connection

    def execute(sql: str) -> None:
        driver_connection.execute(sql)

    def value(sql: str) -> Any:
        return driver_connection.execute(sql).fetchone()[0]

    return _entered(snapshot, table, execute, value, begins=False)


def enter_stream(stream: ArrowStream, snapshot: Snapshot, table: TableId) -> str:
    """`enter` for the connection that reads Arrow batches.

    Raises:
        adbc_driver_manager.Error: the connection was lost, or the table does not exist.
    """

    def value(sql: str) -> Any:
        (batch,) = stream.batches(sql, _SMALL_BYTES)
        return batch.column(0)[0].as_py()

    reason = _entered(snapshot, table, stream.execute, value, begins=True)
    stream.is_in_transaction = not reason
    return reason


def _entered(
    snapshot: Snapshot, table: TableId, execute: Callable[[str], None], value: Callable[[str], Any], *, begins: bool
) -> str:
    """`begins`: whether the connection needs a statement that begins the transaction."""
    name = quoted_name(table)
    execute(_BEGIN if begins else _LEVEL)
    try:
        execute(snapshot.statement)
    except Exception as error:
        if not is_of_a_driver(error) or kind_of(error) is Failure.CONNECTION_LOST:
            raise
        execute("ROLLBACK")
        return reason_of(error).rstrip(".")
    execute(f"SELECT 1 FROM {name} LIMIT 0")
    if value(files_query(name)) != snapshot.files[table.full_name]:
        execute("ROLLBACK")
        return "the table was rewritten after the snapshot was taken"
    return ""


def quoted_name(table: TableId) -> str:
    """Schema and name of a table, quoted for PostgreSQL."""
    parts = (part for part in (table.schema, table.table) if part)
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def files_query(name: str) -> str:
    """A query for the files of a table as they are now, whatever a snapshot has; `name`: quoted."""
    literal = "'" + name.replace("'", "''") + "'::regclass"
    return (
        "SELECT coalesce((SELECT string_agg(pg_relation_filenode(relid)::text, ',' ORDER BY relid)"
        f" FROM pg_partition_tree({literal}) WHERE isleaf), pg_relation_filenode({literal})::text)"
    )
