"""What PostgreSQL does not show to a run, and what is behind a query: tables, policies, transactions that are open."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.jdbc.source.read.criteria import Statement
from airflow_connect.connectors.jdbc.source.settings import names
from airflow_connect.connectors.jdbc.source.values.local_times import SECOND_US
from airflow_connect.counting import names as list_of
from airflow_connect.counting import plural
from airflow_connect.databases.connecting import is_of_a_driver
from airflow_connect.databases.identifiers import TableId

if TYPE_CHECKING:
    from airflow_connect.connectors.jdbc.source.read.reading import Reading

_OIDS = """
SELECT current_database(), n.nspname, c.relname, (SELECT oid FROM pg_database WHERE datname = current_database()), c.oid
FROM unnest(%(schemas)s::text[], %(tables)s::text[]) AS chosen (s, t)
JOIN pg_catalog.pg_namespace n ON n.nspname = chosen.s
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = chosen.t
"""
_WITH_CHILDREN = """
WITH RECURSIVE shown (oid, root) AS (SELECT oid, oid FROM pg_catalog.pg_class WHERE oid::text = ANY(%(oids)s::text[])
  UNION SELECT i.inhrelid, s.root FROM shown s JOIN pg_catalog.pg_inherits i ON i.inhparent = s.oid)
SELECT oid::text, root::text FROM shown ORDER BY oid <> root
"""
"""Partitions, and tables that inherit: their rows are shown by the table at the root."""
_WRITERS = """
SELECT l.relation, l.pid, extract(epoch FROM a.xact_start) * 1000000, l.mode
FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'relation' AND l.granted AND l.mode = ANY(%(modes)s::text[])
  AND l.relation::text = ANY(%(oids)s::text[]) AND l.pid IS DISTINCT FROM pg_backend_pid()
  AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
"""
"""Whoever has written to a table keeps its lock until the transaction ends. The start of those of others is hidden
from users who may not see it; a prepared transaction has no process."""
_WRITES, _WILL_WRITE = "RowExclusiveLock", "RowShareLock"
"""The latter is that of SELECT FOR UPDATE: a row that is written afterwards takes its number then, but its time is that
when its transaction began."""
_SUBSCRIBED = "SELECT srrelid::text FROM pg_catalog.pg_subscription_rel WHERE srrelid::text = ANY(%(oids)s::text[])"
_WITH_SUBSCRIPTIONS = (10,)
_SHOWN = 5


def tables_behind(reading: Reading, table: TableId | None) -> dict[TableId, str]:
    """The tables that a query, or a view, reads, each with its oid; `table`: None for the query.

    Partitions that the planner leaves out are missing, and so is what functions read.
    """
    statement = reading.source(table).everything()
    explain = Statement(f"EXPLAIN (VERBOSE, FORMAT JSON) {statement.sql}", statement.parameters)
    plans = json.loads(reading.execute(explain).scalar_one())  # A text: see `load_leniently`.
    return _with_oids(reading, sorted({found for plan in plans for found in _scanned(plan.get("Plan", {}))}))


def _scanned(plan: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "Relation Name" in plan and "Schema" in plan:
        yield plan["Schema"], plan["Relation Name"]
    for part in plan.get("Plans", ()):
        yield from _scanned(part)


def _with_oids(reading: Reading, names: Sequence[tuple[str, str]]) -> dict[TableId, str]:
    chosen = {"schemas": [schema for schema, _ in names], "tables": [table for _, table in names]}
    return {TableId(*row[:3]): f"{row[3]}.{row[4]}" for row in reading.connection.exec_driver_sql(_OIDS, chosen)}


def note_policies(reading: Reading, table: TableId | None) -> None:
    """Name a query, or a view, of whose rows policies hide some from the user (row level security)."""
    connection, nothing = reading.connection, reading.source(table).nothing()

    def is_refused() -> bool:
        try:
            reading.execute(nothing).close()
        except Exception as error:
            if not is_of_a_driver(error) or connection.invalidated:
                raise
            return True  # Whoever reads it next gets the same error, and names it.
        finally:
            connection.rollback()
        return False

    connection.rollback()
    connection.exec_driver_sql("SET LOCAL row_security = off")  # A statement that policies concern is refused then.
    if is_refused() and not is_refused():
        what = "the query" if table is None else table.full_name
        reading.note(
            f"Row level security is active for the user in connection.user: of {what}, only rows are copied that"
            " policies of its tables show. To copy all rows, use a user with BYPASSRLS."
        )


def note_late_rows(reading: Reading, tables: Sequence[TableId | None], views: Sequence[TableId | None]) -> None:
    """Name tables whose rows may come too late to be found: by open transactions, and by logical replication.

    Args:
        reading: connected.
        tables: that the run is going to read; None for the query.
        views: those of them that are views.
    """
    config = reading.config
    if config.mode == names.BULK or config.lookback_ms:
        return
    behind: dict[TableId, str] = {}
    for table in tables:
        if table is None or table in views:
            behind |= tables_behind(reading, table)
    plain = [(table.schema, table.table) for table in tables if table is not None and table not in views]
    behind |= _with_oids(reading, plain)
    named = {oid.partition(".")[2]: reading.behind(table.full_name) for table, oid in behind.items()}
    for oid, root in reading.connection.exec_driver_sql(_WITH_CHILDREN, {"oids": list(named)}):
        named.setdefault(oid, named[root])
    _note_writers(reading, named)
    if config.uses_timestamps and not config.delay_ms and _version(reading) >= _WITH_SUBSCRIPTIONS:
        _note_subscribed(reading, named)


def _note_writers(reading: Reading, named: Mapping[str, str]) -> None:
    """Tables to which open transactions have written, or will; `named`: oid -> name."""
    config = reading.config
    writers: dict[str, set[Any]] = {}
    modes = [_WRITES, _WILL_WRITE] if config.uses_timestamps else [_WRITES]
    asked = {"oids": list(named), "modes": modes}
    for oid, process, began_us, mode in reading.connection.exec_driver_sql(_WRITERS, asked):
        # A timestamp of a later transaction is after the upper bound of the run; a number may be a lower one.
        end_us = reading.end_us if mode == _WRITES else reading.end_us // SECOND_US * SECOND_US
        if not config.uses_timestamps or began_us is None or began_us < end_us:
            writers.setdefault(named[str(oid)], set()).add(process)
    if not writers:
        return
    shown = [f"{name} ({plural(len(found), 'transaction')})" for name, found in sorted(writers.items())]
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    wait = (
        "Set timestamp.delay.interval.ms to more than transactions last, or timestamp.lookback.ms"
        if config.uses_timestamps
        else "Use a mode with a timestamp, and timestamp.lookback.ms"
    )
    reading.note(
        f"When the run began, open transactions had {'locked rows of, or ' if config.uses_timestamps else ''}written to"
        f" {', '.join(shown[:_SHOWN])}{more}. A row that they"
        f" commit later at or below the offset of this run is not found. {wait}."
    )


def _note_subscribed(reading: Reading, named: Mapping[str, str]) -> None:
    found = {named[oid] for (oid,) in reading.connection.exec_driver_sql(_SUBSCRIBED, {"oids": list(named)})}
    if found:
        reading.note(
            f"Logical replication (a subscription) fills {list_of(sorted(found), _SHOWN)}: rows come later than their"
            " timestamps say. A row that comes after this run, with a time at or before its offset, is not found. Set"
            " timestamp.delay.interval.ms to more than the replication may be behind, or timestamp.lookback.ms."
        )


def _version(reading: Reading) -> tuple[Any, ...]:
    return reading.connection.dialect.server_version_info or ()
