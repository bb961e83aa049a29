"""What a table or a database is, apart from its name: whether two runs have read the same."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_connect.databases.identifiers import TableId

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from airflow_connect.databases.urls import DatabaseAddress

VIEW = "view:"
"""Begins the identity of a view, a hash of its definition and of the tables behind it."""
QUERY_OF_FILE = TableId("", "", "")
"""Stands for a query of SQLite, which tells of no table what it is, but of all of them that one was changed."""
_NAMED = re.compile(r"`((?:[^`]|``)*+)(?:`|\Z)(?:\.`((?:[^`]|``)*+)(?:`|\Z))?")
"""A table, or a column, in the definition of a view, as MySQL and MariaDB store it: all names are quoted."""

_TABLES_AT_ONCE = 1_000
_PG_DATABASE = """
SELECT oid::text, has_function_privilege(to_regprocedure('pg_catalog.pg_control_system()'), 'EXECUTE')
FROM pg_catalog.pg_database WHERE datname = current_database()
"""
_PG_SERVER = "SELECT system_identifier::text FROM pg_catalog.pg_control_system()"
PG_SEQUENCES = """
SELECT a.attname, found.seq FROM pg_catalog.pg_attribute a CROSS JOIN LATERAL (SELECT s.oid AS seq FROM (
  SELECT 1, d.refobjid FROM pg_catalog.pg_attrdef f
  CROSS JOIN LATERAL (SELECT refobjid FROM pg_catalog.pg_depend
    WHERE classid = 'pg_catalog.pg_attrdef'::regclass AND objid = f.oid
      AND refclassid = 'pg_catalog.pg_class'::regclass OFFSET 0) d
  WHERE f.adrelid = a.attrelid AND f.adnum = a.attnum
  UNION ALL SELECT 2, d.objid FROM pg_catalog.pg_depend d
  WHERE d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum
    AND d.classid = 'pg_catalog.pg_class'::regclass AND d.deptype IN ('a', 'i')
  UNION ALL SELECT 3, d.objid FROM (
    WITH RECURSIVE parents AS (SELECT inhparent FROM pg_catalog.pg_inherits WHERE inhrelid = a.attrelid UNION
      SELECT i.inhparent FROM pg_catalog.pg_inherits i JOIN parents p ON i.inhrelid = p.inhparent)
    SELECT inhparent FROM parents) p
  JOIN pg_catalog.pg_attribute of_parent ON of_parent.attrelid = p.inhparent AND of_parent.attname = a.attname
  JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = p.inhparent
    AND d.refobjsubid = of_parent.attnum AND d.classid = 'pg_catalog.pg_class'::regclass AND d.deptype = 'i'
  WHERE a.attidentity <> ''
) known (place, seq) JOIN pg_catalog.pg_class s ON s.oid = known.seq AND s.relkind = 'S'
  ORDER BY known.place LIMIT 1) found
WHERE a.attrelid = {table} AND a.attnum > 0 AND (a.atthasdef OR a.attidentity <> '')
"""
"""The sequence that numbers a column: that of its default, or its own, or, in a partition, that of the whole table.

`OFFSET 0` keeps the planner from joining the other way round, which it does where the catalog was not analyzed yet, as
after a restore: it would read all defaults of the database for each table.
"""
_PG_TABLES = f"""
SELECT current_database(), n.nspname, c.relname,
       CASE WHEN c.relkind NOT IN ('v', 'm') THEN c.oid::text ELSE 'view:' || md5(pg_get_viewdef(c.oid) || coalesce(
         (WITH RECURSIVE behind AS (SELECT c.oid AS table_oid UNION
            SELECT d.refobjid FROM behind b JOIN pg_catalog.pg_rewrite r ON r.ev_class = b.table_oid
            JOIN pg_catalog.pg_depend d ON d.objid = r.oid AND d.classid = 'pg_catalog.pg_rewrite'::regclass
              AND d.refclassid = 'pg_catalog.pg_class'::regclass)
          SELECT string_agg(CASE WHEN t.relkind = 'v' THEN md5(pg_get_viewdef(t.oid)) ELSE t.oid::text END, ','
                            ORDER BY t.oid) FROM behind b JOIN pg_catalog.pg_class t
            ON t.oid = b.table_oid AND t.relkind IN ('r', 'p', 'f', 'm', 'v') AND t.oid <> c.oid), '')) END,
       (WITH RECURSIVE whole AS (SELECT c.oid AS table_oid UNION
            SELECT d.refobjid FROM whole w JOIN pg_catalog.pg_rewrite r ON r.ev_class = w.table_oid AND r.ev_type = '1'
            JOIN pg_catalog.pg_depend d ON d.objid = r.oid AND d.classid = 'pg_catalog.pg_rewrite'::regclass
              AND d.refclassid = 'pg_catalog.pg_class'::regclass WHERE c.relkind IN ('v', 'm')),
          parts AS (SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN whole w ON i.inhparent = w.table_oid UNION
          SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN parts p ON i.inhparent = p.inhrelid)
        SELECT array_agg(inhrelid::text) FROM parts),
       (SELECT json_object_agg(numbered.attname, json_build_array(s.seqincrement,
                 CASE WHEN has_sequence_privilege(s.seqrelid, 'SELECT, USAGE')
                 THEN pg_sequence_last_value(s.seqrelid) END, s.seqcache,
                 has_sequence_privilege(s.seqrelid, 'SELECT, USAGE')))::text
        FROM ({PG_SEQUENCES.format(table="c.oid")}) numbered
        JOIN pg_catalog.pg_sequence s ON s.seqrelid = numbered.seq
        JOIN pg_catalog.pg_class q ON q.oid = s.seqrelid AND q.relpersistence = 'p'),
       (SELECT json_object_agg(a.attname, a.attnum)::text FROM pg_catalog.pg_attribute a
        WHERE a.attrelid = c.oid AND c.relkind NOT IN ('v', 'm') AND a.attnum > 0 AND NOT a.attisdropped
          AND (lower(a.attname) = ANY(%(columns)s::text[]) OR a.attidentity <> '' OR a.atthasdef))
FROM unnest(%(schemas)s::text[], %(tables)s::text[]) AS chosen (s, t)
JOIN pg_catalog.pg_namespace n ON n.nspname = chosen.s
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = chosen.t
"""
_PG_BLOCKS = """
SELECT n.nspname, c.relname, s.seqincrement FROM pg_catalog.pg_sequence s
JOIN pg_catalog.pg_class c ON c.oid = s.seqrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE s.seqincrement > 1
"""
_PG_PARTS = """
SELECT current_database(), n.nspname, c.relname,
       has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid::text = ANY(%(oids)s::text[]) AND (c.relkind = 'f' OR c.relkind = 'r' AND pg_relation_size(c.oid) > 0)
ORDER BY 2, 3
"""
_PG_RELATIVES = """
WITH RECURSIVE above AS (SELECT c.oid FROM pg_catalog.pg_class c WHERE c.oid::text = ANY(%(oids)s::text[]) UNION
    SELECT i.inhparent FROM pg_catalog.pg_inherits i JOIN above a ON i.inhrelid = a.oid),
  below AS (SELECT oid FROM above UNION
    SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN below b ON i.inhparent = b.oid)
SELECT oid::text FROM below
"""
_MYSQL_TABLES = """
SELECT table_schema, '', table_name, date_format(create_time, '%%Y-%%m-%%dT%%H:%%i:%%s')
FROM information_schema.tables WHERE table_schema IN %(schemas)s AND create_time IS NOT NULL
"""
_MYSQL_VIEWS = """
SELECT table_schema, '', table_name, view_definition
FROM information_schema.views WHERE table_schema IN %(schemas)s
"""
_SQLITE_TABLES = "SELECT name, type, coalesce(sql, '') FROM sqlite_master WHERE type IN ('table', 'view')"


class Counter(NamedTuple):
    """A sequence of PostgreSQL that gives a column its numbers.

    Attributes:
        increment: from one number to the next; negative: it counts down.
        last: the last number that it gave; None: none, or the user may not see it.
        cache: how many numbers a session takes at once.
        is_readable: whether the user may see its last number.
    """

    increment: int
    last: int | None
    cache: int = 1
    is_readable: bool = True


class Identities(NamedTuple):
    """What the database says.

    Attributes:
        server: the system identifier of PostgreSQL; "": unknown.
        database: oid of a database of PostgreSQL, the inode of a file of SQLite; "": unknown.
        tables: of PostgreSQL the oid, of MySQL and MariaDB the time when a table was made, of SQLite the number of
            changes of the schema. Tables of which nothing is known are missing.
        parts: of PostgreSQL, the oids of the partitions of a table, and of the tables that inherit from it; of a view
            those of the tables behind it.
        counters: of PostgreSQL, the sequences of the columns of a table.
        numbers: of PostgreSQL, the numbers of the tracked columns of a table (`pg_attribute.attnum`), which a column
            keeps when it gets another name or type, and no other column of the table ever gets.
        blocks: of PostgreSQL, schema and name of sequences whose numbers are not consecutive -> their increment.
    """

    server: str
    database: str
    tables: Mapping[TableId, str]
    parts: Mapping[TableId, Sequence[str]] = MappingProxyType({})
    counters: Mapping[TableId, Mapping[str, Counter]] = MappingProxyType({})
    blocks: Mapping[tuple[str, str], int] = MappingProxyType({})
    numbers: Mapping[TableId, Mapping[str, int]] = MappingProxyType({})


def identities(name: str, connection: Connection, tables: Sequence[TableId], columns: Iterable[str]) -> Identities:
    """Ask a database.

    Args:
        name: SQLAlchemy's name of the database.
        connection: to it.
        tables: that are read.
        columns: names of tracked columns of any of them.
    """
    if name == "postgresql":
        return _of_postgresql(connection, tables, columns)
    if name == "mysql":
        return Identities("", "", _of_mysql(connection, tables))
    return _of_sqlite(connection)


def place(address: DatabaseAddress) -> str:
    """Host, port and database, or the file, without credentials."""
    hosts = address.arguments.get("host")  # of several: the URL has only the first one
    return f"{address.display} ({hosts})" if hosts else address.display


def _of_postgresql(connection: Connection, tables: Sequence[TableId], columns: Iterable[str]) -> Identities:
    database, may_ask = connection.exec_driver_sql(_PG_DATABASE).one()
    server = connection.exec_driver_sql(_PG_SERVER).scalar_one() if may_ask else ""
    tracked = sorted({name.lower() for name in columns})
    found: list[Any] = []
    for start in range(0, len(tables), _TABLES_AT_ONCE):
        part = tables[start : start + _TABLES_AT_ONCE]
        chosen = {"schemas": [table.schema for table in part], "tables": [table.table for table in part]}
        found += connection.exec_driver_sql(_PG_TABLES, {**chosen, "columns": tracked})
        if len(part) < len(tables):
            connection.rollback()  # Each sequence whose last number is read is locked until then.
    # Each database has oids of its own.
    of_tables = {TableId(*row[:3]): row[3] if row[3].startswith(VIEW) else f"{database}.{row[3]}" for row in found}
    parts = {TableId(*row[:3]): sorted(row[4]) for row in found if row[4]}
    counters = {TableId(*row[:3]): _counters(row[5]) for row in found if row[5]}
    blocks = {(row[0], row[1]): row[2] for row in connection.exec_driver_sql(_PG_BLOCKS)}
    numbers = {TableId(*row[:3]): json.loads(row[6]) for row in found if row[6]}
    return Identities(str(server), str(database), of_tables, parts, counters, blocks, numbers)


def _counters(text: str) -> dict[str, Counter]:
    return {name: Counter(*found) for name, found in json.loads(text).items()}


def relatives(connection: Connection, oids: Iterable[str]) -> list[str]:
    """The oids of tables of PostgreSQL, and of all that have a table at their root in common with one of them."""
    return [str(oid) for (oid,) in connection.exec_driver_sql(_PG_RELATIVES, {"oids": list(oids)})]


def parts_named(connection: Connection, oids: Sequence[str]) -> list[tuple[TableId, bool]]:
    """The partitions of PostgreSQL with these oids that may have rows, and whether the user may read each by itself.

    Who may read a table may read its partitions as parts of it only.
    """
    found = connection.exec_driver_sql(_PG_PARTS, {"oids": list(oids)})
    return [(TableId(*row[:3]), bool(row[3])) for row in found]


def _of_mysql(connection: Connection, tables: Sequence[TableId]) -> dict[TableId, str]:
    schemas = {"schemas": sorted({table.catalog for table in tables})}
    if not tables:
        return {}
    found = {TableId(*row[:3]): str(row[3]) for row in connection.exec_driver_sql(_MYSQL_TABLES, schemas)}
    views = {TableId(*row[:3]): str(row[3]) for row in connection.exec_driver_sql(_MYSQL_VIEWS, schemas)}
    return found | {view: VIEW + hashed(_with_times(view, views, found)) for view in views}


def _with_times(view: TableId, views: Mapping[TableId, str], made: Mapping[TableId, str]) -> str:
    """The definition of a view, with the times when the tables behind it were made, also of those in other views."""
    seen, waiting = {view}, [view]
    while waiting:
        for names in _NAMED.findall(views.get(waiting.pop(), "")):
            table = TableId(names[0].replace("``", "`"), "", names[1].replace("``", "`"))
            if table not in seen and (table in views or table in made):
                seen.add(table)
                waiting.append(table)
    return "\n".join([views[view], *(f"{table} {made.get(table) or views.get(table)}" for table in sorted(seen))])


def _of_sqlite(connection: Connection) -> Identities:
    file = next(str(row[2]) for row in connection.exec_driver_sql("PRAGMA database_list") if row[1] == "main")
    # Without opening it: closing another descriptor of the file would drop this process's locks.
    inode = str(os.stat(file).st_ino)
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    changes = f"{inode}.{version}"
    tables = {QUERY_OF_FILE: changes}
    for table, kind, sql in connection.exec_driver_sql(_SQLITE_TABLES):
        is_view = kind == "view"
        tables[TableId("", "", table)] = VIEW + hashed(f"{changes} {sql}") if is_view else changes
    return Identities("", inode, tables)


def hashed(text: str) -> str:
    """A short hash: a text may be long, or must not be shown."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
