"""Sends chunks of columns to the database, inside a transaction that a caller has begun."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.jdbc.sink.columns import mysql_values, pgcopy
from airflow_connect.connectors.jdbc.sink.columns.chunk import RowsNeededError, last_of_each
from airflow_connect.connectors.jdbc.sink.statements.dialects import MySqlStatements, PostgreSqlStatements
from airflow_connect.databases.connecting import is_of_a_driver
from airflow_connect.databases.failures import Failure, kind_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Engine

    from airflow_connect.connectors.jdbc.sink.statements.standard_sql import Names, Statements

STAGE = "airflow_connect_stage_of_columns"
STATEMENT_BYTES = 1 << 20
"""Of the rows of an INSERT; MariaDB takes no more than its `max_allowed_packet` at once, 16 MiB by default."""
_PACKET_RESERVE = 64 << 10
_COPY_BYTES = 1 << 20
_NO_BACKSLASH_ESCAPES = 512
"""SERVER_STATUS_NO_BACKSLASH_ESCAPES."""


class ColumnLoader(ABC):
    """Writes bound columns into a table."""

    @abstractmethod
    def load(self, connection: Connection, names: Names, columns: Sequence[Any], *, replaces: bool) -> int:
        """Insert rows, or replace those with the same keys: of equal keys, the last one counts.

        Args:
            connection: in a transaction.
            names: of table and columns.
            columns: bound columns in the order of `names.all`.
            replaces: whether rows with the same key are replaced.

        Returns:
            How many rows the database left out without an error.

        Raises:
            RowsNeededError: the columns cannot be sent.
            Exception: of the driver.
        """


class PgCopyLoader(ColumnLoader):
    """Binary COPY, for upserts into a temporary table and from there."""

    def __init__(self, statements: PostgreSqlStatements) -> None:
        """Nothing is looked up yet."""
        self._statements = statements
        self._may_look = True

    def load(self, connection: Connection, names: Names, columns: Sequence[Any], *, replaces: bool) -> int:
        """See `ColumnLoader`."""
        driver: Any = connection.connection.driver_connection
        if driver.info.encoding != "utf-8" or not self._may_look:
            raise RowsNeededError
        with driver.cursor() as cursor:
            if not replaces:
                # INSERT refuses values for an identity column, COPY takes them. EXPLAIN executes nothing.
                nulls = ",".join(["NULL"] * len(names.all))
                _execute(cursor, f"EXPLAIN INSERT INTO {names.table} ({','.join(names.all)}) VALUES ({nulls})")
                return self._copy(cursor, names.table, names, columns) - int(cursor.rowcount)
            listed = ",".join(names.all)
            _execute(
                cursor,
                f"CREATE TEMPORARY TABLE {STAGE} ON COMMIT DROP AS SELECT {listed} FROM {names.table} WITH NO DATA",
            )
            sent = self._copy(cursor, STAGE, names, columns, distinct=len(names.keys))
            _execute(
                cursor,
                f"INSERT INTO {names.table} ({listed}) SELECT {listed} FROM {STAGE}"
                f" {self._statements.on_conflict(names)}",
            )
            skipped = self._statements.skipped(names, sent, cursor.rowcount, upserts=True)
            _execute(cursor, f"DROP TABLE {STAGE}")
            return skipped

    def _copy(self, cursor: Any, table: str, names: Names, columns: Sequence[Any], distinct: int = 0) -> int:
        """COPY into a table; returns how many rows were sent.

        Args:
            cursor: of the driver.
            table: where to; has the columns in `names`.
            names: of columns.
            columns: bound columns.
            distinct: number of columns at the beginning that are a key; only the last row of each key is written.
        """
        types = self._types(cursor, table, names)
        if distinct:
            keys = pgcopy.copy_rows(columns[:distinct], types[:distinct])
            if keys is None:
                raise RowsNeededError
            columns = last_of_each(columns, keys)
        rows = pgcopy.copy_rows(columns, types)
        if rows is None:
            raise RowsNeededError
        data = pgcopy.data_of(rows, 0, len(rows))
        statement = f"COPY {table} ({','.join(names.all)}) FROM STDIN (FORMAT BINARY)"
        with cursor.copy(_unescaped(statement)) as copy:
            copy.write(pgcopy.HEADER)
            for start in range(0, len(data), _COPY_BYTES):
                copy.write(data[start : start + _COPY_BYTES])
            copy.write(pgcopy.TRAILER)
        return len(rows)

    def _types(self, cursor: Any, table: str, names: Names) -> list[int]:
        """Numbers of the types of columns.

        A binary value of another type of the same length would be taken for one of the column's. So types are looked
        up in the transaction that writes; this also locks the table, so that no one changes a column until its end.
        """
        try:
            _execute(cursor, f"SELECT {','.join(names.all)} FROM {table} LIMIT 0")
        except Exception as error:
            if is_of_a_driver(error) and kind_of(error) is Failure.PERMISSION:
                self._may_look = False  # The user may insert, but not select. Rows need no types.
                raise RowsNeededError from error
            raise
        return [column.type_code for column in cursor.description]


class MySqlLoader(ColumnLoader):
    """INSERT statements with many rows."""

    def __init__(self, statements: MySqlStatements, most_rows: int) -> None:
        """`most_rows`: of a statement."""
        self._statements = statements
        self._most_rows = most_rows

    def load(self, connection: Connection, names: Names, columns: Sequence[Any], *, replaces: bool) -> int:
        """See `ColumnLoader`."""
        driver: Any = connection.connection.driver_connection
        if driver.charset != "utf8mb4":
            raise RowsNeededError
        escapes = not driver.server_status & _NO_BACKSLASH_ESCAPES
        rows = mysql_values.insert_rows(columns, backslash_escapes=escapes)
        if rows is None:
            raise RowsNeededError
        head = _unescaped(self._statements.into(names)).encode()
        tail = b" " + _unescaped(self._statements.on_duplicate(names)).encode() if replaces else b""
        packet_bytes = most_bytes_of(connection) - len(head) - len(tail)
        most_bytes = min(STATEMENT_BYTES, max(1, packet_bytes - _PACKET_RESERVE))
        with driver.cursor() as cursor:
            for part in mysql_values.statements_of(rows, self._most_rows, most_bytes):
                if len(part) > packet_bytes:
                    raise RowsNeededError  # The server would close the connection, which names no row.
                cursor.execute(b"".join((head, part, tail)))
        return 0  # No trigger of MySQL leaves a row out.


def most_bytes_of(connection: Connection) -> int:
    """The size of the largest statement that MySQL or MariaDB takes."""
    return int(connection.exec_driver_sql("SELECT @@max_allowed_packet").scalar_one()) - 2


def _execute(cursor: Any, statement: str) -> None:
    cursor.execute(_unescaped(statement))


def _unescaped(statement: str) -> str:
    """SQLAlchemy doubles % in names for statements with parameters; these go to the driver without any."""
    return statement.replace("%%", "%")


def loader_of(engine: Engine, statements: Statements, most_rows: int) -> ColumnLoader | None:
    """How columns are written into a database; None if only rows are.

    Args:
        engine: of the database.
        statements: of its dialect.
        most_rows: `batch.size`.
    """
    if isinstance(statements, PostgreSqlStatements) and engine.driver == "psycopg":
        return PgCopyLoader(statements)
    if isinstance(statements, MySqlStatements) and engine.driver == "pymysql":
        return MySqlLoader(statements, most_rows)
    return None
