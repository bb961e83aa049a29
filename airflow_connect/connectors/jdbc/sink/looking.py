"""What a database says about a table: its columns, its kind, its storage engine, its unique indexes."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from airflow_connect.connectors.jdbc.sink.keys import JdbcSinkKeys as Keys
from airflow_connect.databases.identifiers import TableId
from airflow_connect.errors import DatabaseError

if TYPE_CHECKING:
    from sqlalchemy import Connection


INSTANT = "instant"
REAL, NUMERIC, TEXT = "real", "numeric", "text"
_TRANSACTIONAL_ENGINES = frozenset({"innodb", "rocksdb", "tokudb", "ndbcluster", "ndb"})
_SELECTED = re.compile(r"\b(?:from|join)\s*\(*`((?:[^`]|``)+)`\.`((?:[^`]|``)+)`", re.IGNORECASE)
"""A table in the definition of a view, as MySQL and MariaDB store it: with all names quoted, and its database."""
UNKNOWN_ENGINE = (
    "is a view whose definition the user may not read (SHOW VIEW), so the run cannot see whether the table behind it"
    " has transactions. If it has none (MyISAM, Aria), rows are not written exactly once."
)

_NOT_OF_A_PERIOD = (
    " AND NOT EXISTS (SELECT 1 FROM information_schema.columns c WHERE c.table_schema = s.table_schema"
    " AND c.table_name = s.table_name AND c.column_name = s.column_name AND c.generation_expression = 'ROW END')"
)
_UNLOGGED = (
    "is UNLOGGED, or a partition of it is: PostgreSQL empties it after a crash of the server, but keeps the offsets, so"
    " its records are not written again. ALTER TABLE ... SET LOGGED prevents that."
)
_FOREIGN = (
    "is a foreign table, or a partition of it is: another server commits its rows, and this one the offsets. If one of"
    " them fails in between, records are missing or there twice."
)
_PG_WITH_PARTITIONS = (10,)
_PG_PROPERTIES = """
WITH RECURSIVE parts AS (SELECT to_regclass(%(name)s)::oid AS part UNION
  SELECT c.oid FROM parts JOIN pg_inherits i ON i.inhparent = parts.part
  JOIN pg_class c ON c.oid = i.inhrelid AND c.relispartition)
SELECT relkind IN ('r', 'p') AND NOT row_security_active(oid)
    AND NOT EXISTS (SELECT 1 FROM pg_rewrite WHERE ev_class = pg_class.oid AND ev_type = '3'),
  EXISTS (SELECT 1 FROM parts JOIN pg_class p ON p.oid = part WHERE p.relpersistence = 'u'),
  EXISTS (SELECT 1 FROM parts JOIN pg_class p ON p.oid = part WHERE p.relkind = 'f')
FROM pg_class WHERE oid = to_regclass(%(name)s)
"""


def unknown_key(key: Collection[str]) -> str:
    """What an upsert into a view of MySQL may do, as a sentence without its subject."""
    return (
        f"is a view, and the table behind it has no unique index over {', '.join(sorted(key))}, as far as the run can"
        " see. Without one, each upsert inserts a row instead of changing it."
    )


def check_engine(table: TableId, engine: str) -> None:
    """Refuse a table of MySQL without transactions. `engine`: "" for other databases, and for views.

    Raises:
        DatabaseError: the offsets table cannot tell what was written.
    """
    if not engine or engine.lower() in _TRANSACTIONAL_ENGINES:
        return
    raise DatabaseError(
        f"The table {table} has the storage engine {engine}, which has no transactions, so its rows cannot be"
        " written exactly once.",
        code="jdbc.storage_engine",
        suggestion="Convert it: ALTER TABLE ... ENGINE=InnoDB. Or remove the offsets table"
        f" ({Keys.offsets_table}=), which delivers at least once.",
        config_path=Keys.offsets_table.name,
    )


def check_offsets_table(
    connection: Connection, table: TableId, quoted: str, columns: Collection[str], found: Collection[str]
) -> None:
    """Refuse an offsets table that does not keep what a transaction has written, or keeps what it has rolled back.

    Args:
        connection: of the database.
        table: that exists.
        quoted: its name for a statement.
        columns, found: what an offsets table has, and what this table has.

    Raises:
        DatabaseError: it is another table, has no transactions (MySQL, MariaDB), or is emptied after a crash
            (PostgreSQL).
    """
    if lacking := sorted(set(columns) - {name.lower() for name in found}):
        raise DatabaseError(
            f"The table {table} cannot be the offsets table, because it lacks its columns: {', '.join(lacking)}.",
            code="jdbc.offsets_table",
            suggestion=f"Name a table that does not exist, which the run then creates, or leave {Keys.offsets_table}"
            " out.",
            config_path=Keys.offsets_table.name,
        )
    if connection.dialect.name in ("mysql", "mariadb"):
        check_engine(table, found_in_mysql(connection, table)[2])
    elif connection.dialect.name == "postgresql":
        asked = "SELECT relpersistence = 'u' FROM pg_class WHERE oid = to_regclass(%s)"
        if connection.exec_driver_sql(asked, (quoted.replace("%%", "%"),)).scalar():
            raise DatabaseError(
                f"The offsets table {table} is UNLOGGED: PostgreSQL empties it after a crash of the server, and rows"
                " would be written again.",
                code="jdbc.offsets_table",
                suggestion=f"ALTER TABLE {quoted} SET LOGGED.",
                config_path=Keys.offsets_table.name,
            )


def pg_properties(connection: Connection, quoted: str) -> tuple[bool, list[str]]:
    """What a table of PostgreSQL is, its partitions included.

    Args:
        connection: of the database.
        quoted: name of the table for a statement.

    Returns:
        Whether COPY does what INSERT does: it ignores rules, and fails where policies are in force. And why its rows
        may not last as long as the offsets do, as sentences without their subject.
    """
    name = quoted.replace("%%", "%")
    has_partitions = (connection.dialect.server_version_info or ()) >= _PG_WITH_PARTITIONS
    asked = _PG_PROPERTIES if has_partitions else _PG_PROPERTIES.replace("c.relispartition", "false")
    row = connection.exec_driver_sql(asked, {"name": name}).one_or_none()
    if row is None:
        return False, []
    return bool(row[0]), [sentence for sentence, is_so in zip((_UNLOGGED, _FOREIGN), row[1:], strict=True) if is_so]


def tables_behind(connection: Connection, view: TableId) -> list[tuple[TableId, str]] | None:
    """The tables that a view of MySQL selects from, also by other views, with their engines; None: not known."""
    from sqlalchemy import text

    asked = text(
        "SELECT view_definition FROM information_schema.views"
        " WHERE table_schema = COALESCE(:schema, DATABASE()) AND table_name = :name"
    )
    found: dict[TableId, str] = {}
    views, seen = [view], {view}
    while views:
        looked = views.pop()
        definition = connection.execute(asked, {"schema": looked.catalog or None, "name": looked.table}).scalar()
        if not definition:
            return None
        for database, name in _SELECTED.findall(str(definition)):
            table = TableId(database.replace("``", "`"), "", name.replace("``", "`"))
            _, kind, engine = found_in_mysql(connection, table)
            if kind == "VIEW" and table not in seen:
                seen.add(table)
                views.append(table)
            elif kind == "TABLE":
                found[table] = engine
    return list(found.items()) or None


def found_by_sqlalchemy(connection: Connection, table: TableId) -> tuple[dict[str, str], str, str]:
    """Columns with their types, type and storage engine of a table; no columns: there is no such table."""
    from sqlalchemy import inspect
    from sqlalchemy.exc import NoSuchTableError

    schema = (table.schema or table.catalog) or None
    inspector = inspect(connection)
    try:
        types = {
            str(column["name"]): INSTANT if getattr(column["type"], "timezone", False) else ""
            for column in inspector.get_columns(table.table, schema=schema)
        }
    except NoSuchTableError:
        return {}, "", ""
    return types, "VIEW" if table.table in inspector.get_view_names(schema=schema) else "TABLE", ""


def found_in_sqlite(connection: Connection, table: TableId) -> tuple[dict[str, str], str, str]:
    """The same for SQLite, with what a declared type does to values ("Determination Of Column Affinity")."""
    asked = "SELECT name, type FROM pragma_table_xinfo(?)"
    types = {
        str(name): _affinity(str(declared).upper())
        for name, declared in connection.exec_driver_sql(asked, (table.table,))
    }
    views = "SELECT 1 FROM sqlite_master WHERE type = 'view' AND lower(name) = lower(?)"
    is_view = connection.exec_driver_sql(views, (table.table,)).first() is not None
    return types, "VIEW" if is_view else "TABLE", ""


def _affinity(declared: str) -> str:
    if "INT" in declared:
        return NUMERIC
    if any(part in declared for part in ("CHAR", "CLOB", "TEXT")):
        return TEXT
    if not declared or "BLOB" in declared:
        return ""
    return REAL if any(part in declared for part in ("REAL", "FLOA", "DOUB")) else NUMERIC


def found_in_mysql(connection: Connection, table: TableId) -> tuple[dict[str, str], str, str]:
    """The same for MySQL and MariaDB, where SQLAlchemy reads SHOW CREATE TABLE and does not unquote all names."""
    from sqlalchemy import text

    where = " WHERE table_schema = COALESCE(:schema, DATABASE()) AND table_name = :name"
    of_table = {"schema": table.catalog or None, "name": table.table}
    described = connection.execute(
        text("SELECT table_type, engine FROM information_schema.tables" + where), of_table
    ).one_or_none()
    if described is None:
        return {}, "", ""
    rows = connection.execute(
        text("SELECT column_name, data_type FROM information_schema.columns" + where + " ORDER BY ordinal_position"),
        of_table,
    )
    types = {str(name): INSTANT if str(kind).lower() == "timestamp" else "" for name, kind in rows}
    return types, "VIEW" if "VIEW" in described[0] else "TABLE", described[1] or ""


def unique_in_mysql(connection: Connection, table: TableId) -> dict[frozenset[str], bool]:
    """The columns of each unique index, and whether they are whole: an index may hold their beginnings only.

    MariaDB adds the end of a row's validity to each index of a system-versioned table that names this column. Of the
    rows that are valid now it is the same, and an upsert finds no other ones.
    """
    from sqlalchemy import text

    asked = (
        "SELECT index_name, column_name, sub_part FROM information_schema.statistics s WHERE non_unique = 0"
        " AND table_schema = COALESCE(:schema, DATABASE()) AND table_name = :name"
    )
    if getattr(connection.dialect, "is_mariadb", False) and (connection.dialect.server_version_info or ()) >= (10, 3):
        asked += _NOT_OF_A_PERIOD
    columns: dict[str, set[str]] = {}
    parts: set[str] = set()
    for index, column, part in connection.execute(text(asked), {"schema": table.catalog or None, "name": table.table}):
        columns.setdefault(index, set()).add(str(column))
        if part is not None or column is None:
            parts.add(index)
    found: dict[frozenset[str], bool] = {}
    for index, names in columns.items():
        found[frozenset(names)] = found.get(frozenset(names), True) and index not in parts
    return found
