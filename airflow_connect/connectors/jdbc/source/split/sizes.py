"""Estimates of how many rows tables have, without reading them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from airflow_connect.connectors.jdbc.source.read.reading import Reading

if TYPE_CHECKING:
    from airflow_connect.databases.identifiers import TableId

_PAGE_BYTES, _ROW_BYTES = 8192, 100
"""PostgreSQL's page, and a guess for tables without statistics."""
_PG_SIZES = """
SELECT n.nspname, c.relname, coalesce(sum(
         CASE WHEN l.reltuples > 0 AND l.relpages > 0
              THEN l.reltuples / l.relpages * (pg_relation_size(l.oid) / %(page)s)
              ELSE pg_relation_size(l.oid) / %(row)s END), 0)::bigint
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL (
  SELECT c.oid WHERE c.relkind <> 'p'
  UNION ALL SELECT relid FROM pg_partition_tree(c.oid) WHERE c.relkind = 'p' AND isleaf) part
JOIN pg_catalog.pg_class l ON l.oid = part.oid
WHERE c.relkind IN ('r', 'p', 'm') AND n.nspname = ANY(%(schemas)s)
GROUP BY n.nspname, c.relname
"""
_MYSQL_SIZES = """
SELECT table_schema, table_name, coalesce(table_rows, 0) FROM information_schema.tables
WHERE table_schema IN %(catalogs)s AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')
"""


def estimated_rows(reading: Reading, tables: Iterable[TableId], least: int) -> dict[TableId, int]:
    """How many rows each table has, about. Views, and small tables of SQLite, are left out.

    Args:
        reading: connected.
        tables: of interest.
        least: number of rows from which a table is of interest.
    """
    wanted = list(tables)
    if not wanted:
        return {}
    if reading.name == "postgresql":
        schemas = sorted({table.schema for table in wanted})
        parameters = {"schemas": schemas, "page": _PAGE_BYTES, "row": _ROW_BYTES}
        rows = reading.connection.exec_driver_sql(_PG_SIZES, parameters)
        sizes = {(row[0], row[1]): int(row[2]) for row in rows}
        found = {table: sizes.get((table.schema, table.table)) for table in wanted}
    elif reading.name == "mysql":
        catalogs = tuple(sorted({table.catalog for table in wanted}))
        rows = reading.connection.exec_driver_sql(_MYSQL_SIZES, {"catalogs": catalogs})
        sizes = {(row[0], row[1]): int(row[2]) for row in rows}
        found = {table: sizes.get((table.catalog, table.table)) for table in wanted}
    else:
        found = {table: _counted(reading, table, least) for table in wanted}
    return {table: rows for table, rows in found.items() if rows is not None}


def _counted(reading: Reading, table: TableId, least: int) -> int | None:
    """SQLite has no statistics, but counts quickly; tables that are too small are not counted to their end."""
    kind = "SELECT type FROM sqlite_master WHERE name = ?"
    if reading.connection.exec_driver_sql(kind, (table.table,)).scalar() != "table":
        return None
    name = reading.database.quoting.table(table)
    begin = f"SELECT COUNT(*) FROM (SELECT 1 FROM {name} LIMIT ?)"
    if reading.connection.exec_driver_sql(begin, (least,)).scalar_one() < least:
        return None
    return int(reading.connection.exec_driver_sql(f"SELECT COUNT(*) FROM {name}").scalar_one())
