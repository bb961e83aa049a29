"""Statements and column types of each database.

Source: PostgreSqlDatabaseDialect, MySqlDatabaseDialect, SqliteDatabaseDialect, SqlServerDatabaseDialect and
OracleDatabaseDialect of kafka-connect-jdbc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from airflow_connect.api.schema import DATE, TIME, TIMESTAMP, Type
from airflow_connect.connectors.jdbc.sink.fields import SinkField
from airflow_connect.connectors.jdbc.sink.statements.standard_sql import (
    Names,
    Statements,
    integer_types,
    logical_types,
    other_types,
)
from airflow_connect.connectors.jdbc.sink.values import literal


class PostgreSqlStatements(Statements):
    """PostgreSQL 9.5 and later."""

    types = integer_types("SMALLINT", "SMALLINT", "INT", "BIGINT") | other_types(
        "REAL", "DOUBLE PRECISION", "BOOLEAN", "TEXT", "BYTEA"
    )
    logical = logical_types("DECIMAL", "DATE", "TIME", "TIMESTAMP")

    def upsert(self, names: Names) -> str:
        """INSERT ... ON CONFLICT."""
        into = f"INSERT INTO {names.table} ({','.join(names.all)}) VALUES ({','.join(self._markers(len(names.all)))})"
        return f"{into} {self.on_conflict(names)}"

    def on_conflict(self, names: Names) -> str:
        """What happens to a row whose key exists."""
        changes = ",".join(f"{name}=EXCLUDED.{name}" for name in names.others)
        action = f"DO UPDATE SET {changes}" if changes else "DO NOTHING"
        return f"ON CONFLICT ({','.join(names.keys)}) {action}"

    def type_of(self, field: SinkField) -> str:
        """Arrays of a primitive have a type, too."""
        schema = field.schema
        if schema.type is Type.ARRAY and schema.value_schema is not None:
            return f"{super().type_of(SinkField(field.name, schema.value_schema, field.is_key, field.get))}[]"
        return super().type_of(field)

    def default(self, field: SinkField, value: Any) -> str:
        """BOOLEAN takes no numbers."""
        return ("TRUE" if value else "FALSE") if isinstance(value, bool) else literal(value)


class MySqlStatements(Statements):
    """MySQL and MariaDB.

    Unlike Confluent's, a string in a primary key is VARCHAR(256), because MySQL refuses TEXT there; other strings and
    bytes have no limit of 64 KiB or 1 KiB; the form with VALUES() is the one that both MySQL and MariaDB understand.
    """

    types = integer_types("TINYINT", "SMALLINT", "INT", "BIGINT") | other_types(
        "FLOAT", "DOUBLE", "TINYINT", "LONGTEXT", "LONGBLOB"
    )
    key_types: ClassVar[dict[Type, str]] = {Type.STRING: "VARCHAR(256)", Type.BYTES: "VARBINARY(1024)"}
    logical = logical_types("DECIMAL(65,{scale})", "DATE", "TIME(3)", "DATETIME(3)")

    def type_of(self, field: SinkField) -> str:
        """A text in a primary key is compared exactly: by default, `a` and `A` would be one row."""
        found = super().type_of(field)
        is_text = found == self.key_types[Type.STRING] and bool(self.key_collation)
        return f"{found} CHARACTER SET utf8mb4 COLLATE {self.key_collation}" if is_text else found

    def upsert(self, names: Names) -> str:
        """INSERT ... ON DUPLICATE KEY UPDATE."""
        return f"{self.into(names)} ({','.join(self._markers(len(names.all)))}) {self.on_duplicate(names)}"

    def into(self, names: Names) -> str:
        """The beginning of an INSERT, up to its rows."""
        return f"insert into {names.table}({','.join(names.all)}) values"

    def on_duplicate(self, names: Names) -> str:
        """What happens to a row whose key exists."""
        changes = [f"{name}=values({name})" for name in names.others or names.keys]
        if names.guarded:
            # The row was found by another unique index, and is not the one of the key: a subquery that fails.
            same = " and ".join(f"{name}<=>values({name})" for name in names.keys)
            changes = [f"{names.keys[0]}=if({same},{names.keys[0]},(select 1 union select 2))", *changes]
        return f"on duplicate key update {','.join(changes)}"

    def skipped(self, names: Names, rows: int, count: int, *, upserts: bool) -> int:
        """A row that is changed counts twice, and one that stays the same not at all; no trigger skips one."""
        return 0 if upserts else super().skipped(names, rows, count, upserts=upserts)

    def default(self, field: SinkField, value: Any) -> str:
        """LONGTEXT takes only expressions as defaults."""
        text = literal(value)
        return f"({text})" if self.type_of(field) == "LONGTEXT" else text


class SqliteStatements(Statements):
    """SQLite 3.24 and later.

    Unlike Confluent's INSERT OR REPLACE, an upsert keeps the columns that the record does not have.
    """

    types = integer_types("INTEGER", "INTEGER", "INTEGER", "INTEGER") | other_types(
        "REAL", "REAL", "INTEGER", "TEXT", "BLOB"
    )
    logical = logical_types("NUMERIC", "NUMERIC", "NUMERIC", "NUMERIC")

    def upsert(self, names: Names) -> str:
        """INSERT ... ON CONFLICT."""
        changes = ",".join(f"{name}=excluded.{name}" for name in names.others)
        action = f"DO UPDATE SET {changes}" if changes else "DO NOTHING"
        return f"{self.insert(names)} ON CONFLICT({','.join(names.keys)}) {action}"

    def alter(
        self, table: str, columns: Sequence[str], fields: Sequence[SinkField], defaults: Sequence[Any]
    ) -> list[str]:
        """One column a statement."""
        return [f"ALTER TABLE {table} ADD {spec}" for spec in self._specs(columns, fields, defaults)]


class SqlServerStatements(Statements):
    """SQL Server. Not tested against a server.

    Unlike Confluent's, INT8 is smallint, because tinyint has no negative numbers.
    """

    types = integer_types("smallint", "smallint", "int", "bigint") | other_types(
        "real", "float", "bit", "varchar(max)", "varbinary(max)"
    )
    key_types: ClassVar[dict[Type, str]] = {Type.STRING: "varchar(900)", Type.BYTES: "varbinary(900)"}
    logical = logical_types("decimal(38,{scale})", "date", "time", "datetime2")

    def upsert(self, names: Names) -> str:
        """MERGE."""
        lock = " with (HOLDLOCK)" if self._holdlock else ""
        selected = ", ".join(f"{m} AS {n}" for n, m in zip(names.all, self._markers(len(names.all)), strict=True))
        matches = " and ".join(f"target.{name}=incoming.{name}" for name in names.keys)
        changes = ",".join(f"{name}=incoming.{name}" for name in names.others)
        update = f" when matched then update set {changes}" if changes else ""
        columns = (*names.others, *names.keys)
        return (
            f"merge into {names.table}{lock} AS target using (select {selected}) AS incoming on ({matches}){update} "
            f"when not matched then insert ({', '.join(columns)}) "
            f"values ({','.join(f'incoming.{name}' for name in columns)});"
        )

    def alter(
        self, table: str, columns: Sequence[str], fields: Sequence[SinkField], defaults: Sequence[Any]
    ) -> list[str]:
        """ADD once for all columns."""
        added = ",\n".join(self._specs(columns, fields, defaults))
        return [f"ALTER TABLE {table} ADD\n{added}"]


class OracleStatements(Statements):
    """Oracle. Not tested against a server."""

    types = integer_types("NUMBER(3,0)", "NUMBER(5,0)", "NUMBER(10,0)", "NUMBER(19,0)") | other_types(
        "BINARY_FLOAT", "BINARY_DOUBLE", "NUMBER(1,0)", "CLOB", "BLOB"
    )
    key_types: ClassVar[dict[Type, str]] = {Type.STRING: "VARCHAR2(4000)"}
    logical = logical_types("NUMBER(*,{scale})", "DATE", "DATE", "TIMESTAMP")

    def upsert(self, names: Names) -> str:
        """MERGE."""
        table, columns = names.table, (*names.others, *names.keys)
        selected = ", ".join(f"{m} {n}" for n, m in zip(names.all, self._markers(len(names.all)), strict=True))
        matches = " and ".join(f"{table}.{name}=incoming.{name}" for name in names.keys)
        changes = ",".join(f"{table}.{name}=incoming.{name}" for name in names.others)
        update = f" when matched then update set {changes}" if changes else ""
        return (
            f"merge into {table} using (select {selected} FROM dual) incoming on({matches}){update} "
            f"when not matched then insert({','.join(f'{table}.{name}' for name in columns)}) "
            f"values({','.join(f'incoming.{name}' for name in columns)})"
        )

    def alter(
        self, table: str, columns: Sequence[str], fields: Sequence[SinkField], defaults: Sequence[Any]
    ) -> list[str]:
        """All columns in one pair of parentheses."""
        added = ",\n".join(self._specs(columns, fields, defaults))
        return [f"ALTER TABLE {table} ADD(\n{added})"]

    def default(self, field: SinkField, value: Any) -> str:
        """Dates need the type's name."""
        names = {DATE: "DATE ", TIME: "", TIMESTAMP: "TIMESTAMP "}
        return names.get(field.schema.name or "", "") + literal(value)


_STATEMENTS: dict[str, type[Statements]] = {
    "postgresql": PostgreSqlStatements,
    "mysql": MySqlStatements,
    "sqlite": SqliteStatements,
    "mssql": SqlServerStatements,
    "oracle": OracleStatements,
}

_MARKERS: dict[str, Callable[[int], str]] = {
    "qmark": lambda n: "?",
    "format": lambda n: "%s",
    "pyformat": lambda n: "%s",
    "numeric": lambda n: f":{n}",
    "numeric_dollar": lambda n: f"${n}",
    "named": lambda n: f":{n}",
}


def statements_of(database: str, paramstyle: str, *, holdlock: bool = True) -> Statements:
    """The statements of a database.

    Args:
        database: SQLAlchemy's name of it.
        paramstyle: of the driver, by PEP 249.
        holdlock: `mssql.use.merge.holdlock`.
    """
    return _STATEMENTS[database](_MARKERS[paramstyle], holdlock=holdlock)
