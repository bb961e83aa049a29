"""Finds the tables to copy, and warns about those that are gone.

Source: io.confluent.connect.jdbc.source.TableMonitorThread and GenericDatabaseDialect.tableIds for the rules;
DatabaseMetaData.getTables of pgjdbc, Connector/J and sqlite-jdbc for names of catalogs, schemas and types.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_connect.connectors.jdbc.source.settings.config import JdbcSourceConfig
from airflow_connect.databases.identifiers import TableId
from airflow_connect.databases.keys import DEFAULT_OFFSETS_TABLE
from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from sqlalchemy import Connection

_SHOWN = 5
_TYPES = ("TABLE", "VIEW", "MATERIALIZED VIEW", "PARTITIONED TABLE", "FOREIGN TABLE", "SYSTEM TABLE", "SYSTEM VIEW")
_NO_SCHEMAS = {"mysql": "MySQL and MariaDB have databases, which catalog.pattern selects", "sqlite": "SQLite has none"}
_PG_TABLES = """
SELECT current_database(), n.nspname, c.relname, CASE
         WHEN c.relkind = 'r' AND (n.nspname LIKE 'pg\\_%%' OR n.nspname = 'information_schema') THEN 'SYSTEM TABLE'
         WHEN c.relkind = 'r' THEN 'TABLE' WHEN c.relkind = 'p' THEN 'PARTITIONED TABLE'
         WHEN c.relkind = 'm' THEN 'MATERIALIZED VIEW' WHEN c.relkind = 'f' THEN 'FOREIGN TABLE'
         WHEN n.nspname LIKE 'pg\\_%%' OR n.nspname = 'information_schema' THEN 'SYSTEM VIEW' ELSE 'VIEW' END
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname LIKE %(schema)s
"""
_PG_POLICIES = """
SELECT n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relrowsecurity AND row_security_active(c.oid)
"""
_PG_INHERITED = """
WITH RECURSIVE inherited (child, parent) AS (SELECT inhrelid, inhparent FROM pg_catalog.pg_inherits
  UNION SELECT i.child, p.inhparent FROM inherited i JOIN pg_catalog.pg_inherits p ON p.inhrelid = i.parent)
SELECT cn.nspname, c.relname, pn.nspname, p.relname FROM inherited i
JOIN pg_catalog.pg_class c ON c.oid = i.child JOIN pg_catalog.pg_namespace cn ON cn.oid = c.relnamespace
JOIN pg_catalog.pg_class p ON p.oid = i.parent JOIN pg_catalog.pg_namespace pn ON pn.oid = p.relnamespace
"""
_MYSQL_MERGED = """
SELECT table_schema, table_name FROM information_schema.tables
WHERE engine = 'MRG_MyISAM' AND table_schema NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')
"""
_UNION = re.compile(r"^\) ENGINE=MRG_MyISAM\b[^'\n]*? UNION=\(((?:`(?:[^`]|``)*`[.,]?)*)\)", re.MULTILINE)
"""Options are on the last line, and the comment is after UNION."""
_MEMBER = re.compile(r"(?:`((?:[^`]|``)*)`\.)?`((?:[^`]|``)*)`")
_MYSQL_TABLES = """
SELECT table_schema, '', table_name,
       CASE WHEN table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') THEN 'TABLE' ELSE table_type END,
       coalesce(%(catalog)s, database())
FROM information_schema.tables
WHERE table_schema = coalesce(%(catalog)s, database(), table_schema)
  AND table_schema NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')
"""
_SQLITE_TABLES = """
SELECT '', '', name, upper(type) FROM sqlite_master
WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
"""


def all_tables(database: str, connection: Connection, config: JdbcSourceConfig) -> dict[TableId, str]:
    """Every table and view in the configured catalog and schemas with its type, sorted."""
    if database == "postgresql":
        rows = connection.exec_driver_sql(_PG_TABLES, {"schema": "%" if config.schema is None else config.schema})
        found = [row for row in rows if config.catalog in (None, row[0])]
    elif database == "mysql":
        found = list(connection.exec_driver_sql(_MYSQL_TABLES, {"catalog": config.catalog}))
        # The catalog takes names of databases for equal that differ in capitals only, also where both may exist.
        found = [row for row in found if row[0] == row[4]] or found
    else:
        found = list(connection.exec_driver_sql(_SQLITE_TABLES))
    return dict(sorted((TableId(row[0], row[1], row[2]), str(row[3])) for row in found))


def note_patterns(
    database: str, everything: Mapping[TableId, str], config: JdbcSourceConfig, note: Callable[[str], None]
) -> None:
    """Name types and patterns that select nothing, or have no effect: tables that were meant are not copied.

    Args:
        database: `postgresql`, `mysql` or `sqlite`.
        everything: of `all_tables`.
        config: of the source.
        note: adds a sentence to the report.
    """
    unknown = sorted(set(config.table_types).difference(_TYPES))
    if unknown:
        note(
            f"table.types has types that no table has, so they select none: {_listed(unknown)}. Those that tables have"
            f" are {', '.join(_TYPES)}."
        )
    catalogs = {table.catalog for table in everything}
    if config.schema not in (None, "", "%") and database in _NO_SCHEMAS and catalogs != {config.schema}:
        note(f"schema.pattern has no effect, because there are no schemas: {_NO_SCHEMAS[database]}.")
    if config.catalog and database == "sqlite":
        note("catalog.pattern has no effect, because SQLite has no catalogs.")


def selected(
    everything: Mapping[TableId, str],
    config: JdbcSourceConfig,
    parse: Callable[[str], TableId],
    note: Callable[[str], None],
) -> list[TableId]:
    """The tables that the types and lists of the configuration select.

    Args:
        everything: of `all_tables`.
        config: of the source.
        parse: reads a name as users write it.
        note: adds a sentence to the report.

    Raises:
        ConfigError: two tables would share a topic.
    """
    tables = [table for table, kind in everything.items() if kind in config.table_types]
    chosen = list(tables)
    if config.whitelist:
        chosen = [table for table in tables if any(_is_named(table, name, parse) for name in config.whitelist)]
        _note_missing(everything, chosen, config, parse, note)
    elif config.blacklist:
        chosen = [table for table in tables if not any(_is_named(table, name, parse) for name in config.blacklist)]
        unused = [name for name in config.blacklist if not any(_is_named(table, name, parse) for table in everything)]
        _note_unused("Names of table.blacklist are those of no table", unused, note)
    elif config.include:
        chosen = [
            table
            for table in tables
            if any(pattern.fullmatch(table.full_name) for pattern in config.include)
            and not any(pattern.fullmatch(table.full_name) for pattern in config.exclude)
        ]
        _note_unmatched(everything, tables, config, note)
        patterns = [p.text for p in config.exclude if not any(p.fullmatch(table.full_name) for table in everything)]
        _note_unused("Patterns of table.exclude.list match no table", patterns, note)
    if not (config.whitelist or config.include):
        chosen = _without_offsets(chosen, note)
    _refuse_doubled(chosen)
    return chosen


def _without_offsets(tables: Sequence[TableId], note: Callable[[str], None]) -> list[TableId]:
    """The tables without those in which JDBC sinks keep their offsets: who selects all tables does not mean them."""
    own = [table.full_name for table in tables if table.table == DEFAULT_OFFSETS_TABLE]
    if own:
        note(
            f"{_listed(own)} is skipped, because it has the offsets of JDBC sinks. To copy it, name it in"
            " table.whitelist."
        )
    return [table for table in tables if table.table != DEFAULT_OFFSETS_TABLE]


def _note_unused(what: str, unused: Sequence[str], note: Callable[[str], None]) -> None:
    """Name what leaves out no table: with a misspelt name, the table that was meant is copied."""
    if unused:
        note(f"{what}, so they leave out none: {_listed(unused)}. Are they right?")


def _note_missing(
    everything: Mapping[TableId, str], chosen: Sequence[TableId], config: JdbcSourceConfig,
    parse: Callable[[str], TableId], note: Callable[[str], None],
) -> None:  # fmt: skip
    """Name the tables of table.whitelist that are not copied."""
    missing, others = [], []
    for name in config.whitelist:
        if any(_is_named(table, name, parse) for table in chosen):
            continue
        found = {kind for table, kind in everything.items() if _is_named(table, name, parse)}
        kinds = sorted(kind for kind in found if not kind.startswith("SYSTEM "))
        if kinds:
            others.append(f"{name} ({', '.join(kinds)})")
        else:
            missing.append(name)
    if missing:
        note(f"Tables of table.whitelist do not exist in the database and are skipped: {_listed(missing)}.")
    if others:
        note(
            f"Tables of table.whitelist are of no type in table.types ({','.join(sorted(config.table_types))}) and are"
            f" skipped: {_listed(others)}. To copy them, add their type to table.types."
        )


def _note_unmatched(
    everything: Mapping[TableId, str], tables: Sequence[TableId], config: JdbcSourceConfig, note: Callable[[str], None]
) -> None:
    """Name the patterns of table.include.list that match no table, or only those of other types."""
    unmatched, others = [], []
    for pattern in config.include:
        if any(pattern.fullmatch(table.full_name) for table in tables):
            continue
        kinds = {kind for table, kind in everything.items() if pattern.fullmatch(table.full_name)}
        kinds = {kind for kind in kinds if not kind.startswith("SYSTEM ")}
        if kinds:
            others.append(f"{pattern.text} ({', '.join(sorted(kinds))})")
        else:
            unmatched.append(pattern.text)
    if unmatched:
        note(
            f"Patterns of table.include.list match no table: {_listed(unmatched)}. They must match the full name, such"
            " as that of database, schema and table in PostgreSQL."
        )
    if others:
        note(
            f"Patterns of table.include.list match only tables of no type in table.types"
            f" ({','.join(sorted(config.table_types))}), which are skipped: {_listed(others)}. To copy them, add their"
            " type to table.types."
        )


def note_vanished(
    known: Iterable[str], everything: Mapping[TableId, str], config: JdbcSourceConfig, note: Callable[[str], None]
) -> list[str]:
    """Warn about tables that have an offset but do not exist any more, or are now of another type.

    Args:
        known: full names with an offset.
        everything: of `all_tables`.
        config: of the source.
        note: adds a sentence to the report.

    Returns:
        The names of those that do not exist any more.
    """
    kinds = {TableId("", t.schema, t.table).full_name: kind for t, kind in everything.items()}
    kinds |= {table.full_name: kind for table, kind in everything.items()}
    gone = sorted(name for name in set(known) if name not in kinds)
    if gone:
        note(f"Tables that were copied before do not exist any more and are skipped: {_listed(gone)}.")
    others = sorted(
        f"{name} ({kinds[name]})" for name in set(known) & kinds.keys() if kinds[name] not in config.table_types
    )
    if others:
        note(
            f"Tables that were copied before are now of no type in table.types ({','.join(sorted(config.table_types))})"
            f" and are skipped: {_listed(others)}."
        )
    return gone


def note_renamed(new: Iterable[TableId], gone: Sequence[str], note: Callable[[str], None]) -> None:
    """Name the tables that begin, although one that has vanished was copied into their topic, whose name is the same.

    Args:
        new: tables without an offset, in a mode that continues at offsets.
        gone: of `note_vanished`.
        note: adds a sentence to the report.
    """
    found = [(table.full_name, name) for table in new for name in gone if name.endswith(f".{table.table}")]
    if found:
        pairs = [f"{table} (before: {name})" for table, name in found]
        note(
            "Tables without an offset are copied from their beginning into topics that have the rows of tables which do"
            f" not exist any more: {_listed(pairs)}. If only a database or schema has another name, their rows are in"
            " the topics twice after this run. To continue instead, set their offsets to those of the former names,"
            " before the run."
        )


def note_row_security(connection: Connection, tables: Iterable[TableId], note: Callable[[str], None]) -> None:
    """Name the tables of PostgreSQL of which policies hide rows from the user (row level security)."""
    limited = {(row[0], row[1]) for row in connection.exec_driver_sql(_PG_POLICIES)}
    found = [table.full_name for table in tables if (table.schema, table.table) in limited]
    if found:
        note(
            f"Row level security is active for the user in connection.user: of {_listed(found)}, only rows are copied"
            " that its policies show. To copy all rows, use a user with BYPASSRLS."
        )


def note_inherited(connection: Connection, tables: Iterable[TableId], note: Callable[[str], None]) -> None:
    """Name the tables of PostgreSQL whose rows are also read with another one: a partition, or one that inherits."""
    named = {(table.schema, table.table): table.full_name for table in tables}
    pairs = [
        (named[child_schema, child], named[parent_schema, parent])
        for child_schema, child, parent_schema, parent in connection.exec_driver_sql(_PG_INHERITED)
        if (child_schema, child) in named and (parent_schema, parent) in named
    ]
    _note_shown_twice("partitions, and of tables that inherit,", pairs, note)


def note_merged(connection: Connection, tables: Iterable[TableId], note: Callable[[str], None]) -> None:
    """Name the tables of MySQL and MariaDB whose rows are also read with a MERGE table, of which they are members."""
    named = {(table.catalog, table.table): table.full_name for table in tables}
    pairs = []
    for catalog, merged in connection.exec_driver_sql(_MYSQL_MERGED).all():
        if (catalog, merged) not in named:
            continue
        quoted = ".".join("`{}`".format(str(name).replace("`", "``")) for name in (catalog, merged))
        created = str(connection.exec_driver_sql(f"SHOW CREATE TABLE {quoted.replace('%', '%%')}").one()[1])
        for own, member in _members(created):
            if (own or catalog, member) in named:
                pairs.append((named[own or catalog, member], named[catalog, merged]))
    _note_shown_twice("members of MERGE tables", pairs, note)


def _members(created: str) -> Iterator[tuple[str, str]]:
    """Database, or "", and name of the members of a MERGE table, from its CREATE TABLE."""
    union = _UNION.search(created)
    for own, member in _MEMBER.findall(union[1]) if union else ():
        yield own.replace("``", "`"), member.replace("``", "`")


def _note_shown_twice(what: str, pairs: Iterable[tuple[str, str]], note: Callable[[str], None]) -> None:
    """`pairs`: a table whose rows another one shows, and that one."""
    parents: dict[str, set[str]] = {}
    for child, parent in pairs:
        parents.setdefault(child, set()).add(parent)
    if not parents:
        return
    listed = [f"{child} ({', '.join(sorted(found))})" for child, found in sorted(parents.items())]
    note(
        f"Rows of {what} are copied twice, to a topic of their own and to that of the"
        f" table in parentheses, which shows them, too: {_listed(listed)}. If each row is wanted once, take one of the"
        " two out of the selection: table.blacklist, table.exclude.list or table.types."
    )


def _is_named(table: TableId, name: str, parse: Callable[[str], TableId]) -> bool:
    """Whether a name of a list means a table: its name alone, or its full name with or without quotes."""
    if name in (table.table, table.full_name):
        return True
    try:
        wanted = parse(name)
    except ConfigError:
        return False
    return all(given in ("", actual) for given, actual in zip(wanted, table, strict=True))


def _refuse_doubled(tables: Sequence[TableId]) -> None:
    counts = Counter(table.table for table in tables)
    doubled = sorted(name for name, count in counts.items() if count > 1)
    if doubled:
        examples = [table.full_name for table in tables if table.table == doubled[0]]
        raise ConfigError(
            "The connector uses the unqualified table name as the topic name and has detected duplicate"
            " unqualified table"
            f" names: {', '.join(examples[:_SHOWN])}. Their rows would be mixed in one topic.",
            code="database.duplicate_table",
            suggestion="Select one of them with schema.pattern, catalog.pattern, or table.include.list, and use a"
            " connector with another topic.prefix for the others.",
            config_path="schema.pattern",
        )
    names = Counter(table.full_name for table in tables)
    shared = sorted(name for name, count in names.items() if count > 1)
    if shared:
        examples = [".".join(f'"{part}"' for part in table if part) for table in tables if table.full_name == shared[0]]
        raise ConfigError(
            f"The tables {' and '.join(examples[:_SHOWN])} have the same full name {shared[0]}, because their names"
            " have dots. They would share an offset, and rows of one of them would be missed.",
            code="database.duplicate_table",
            suggestion="Select one of them with schema.pattern or table.whitelist, and use another connector for the"
            " others.",
            config_path="schema.pattern",
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
