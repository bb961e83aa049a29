"""The columns of a result: name, kind and nullability, from the driver's description of it.

The result itself is described, not the table, so tables and queries are treated alike, and a column that was added,
dropped or retyped since the last run is seen at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from airflow_connect.databases.identifiers import TableId


class Kind(Enum):
    """Kinds of columns: the types of JDBC that Confluent tells apart."""

    BOOLEAN = "BOOLEAN"
    BIT_TEXT = "bits as text"
    BIT_BYTES = "bits as bytes"
    INT8 = "TINYINT"
    INT16 = "SMALLINT"
    INT32 = "INTEGER"
    INT64 = "BIGINT"
    FLOAT32 = "REAL"
    FLOAT64 = "DOUBLE"
    DECIMAL = "DECIMAL"
    NUMERIC = "NUMERIC"
    STRING = "VARCHAR"
    BYTES = "VARBINARY"
    DATE = "DATE"
    YEAR = "YEAR"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    """A date and a time without a zone."""
    INSTANT = "TIMESTAMP WITH TIME ZONE"
    UNKNOWN = "OTHER"
    """No Connect type: the column is left out, and the report says so."""


INTEGERS = frozenset({Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64})
TIMES = frozenset({Kind.TIMESTAMP, Kind.INSTANT, Kind.DATE})


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a result.

    Attributes:
        name: as the database reports it.
        kind: its type.
        type_name: the database's own name of the type.
        optional: whether it may be null; true if that is unknown.
        precision: number of digits, of a YEAR too, or of bits; 0: unlimited or unknown.
        scale: digits after the point; None: a NUMERIC without a declared scale.
        numbers_itself: serial, identity or AUTO_INCREMENT.
        key_position: position in the primary key, from 1; 0: not in it.
        oid: of the type, in PostgreSQL; otherwise 0.
    """

    name: str
    kind: Kind
    type_name: str = ""
    optional: bool = True
    precision: int = 0
    scale: int | None = 0
    numbers_itself: bool = False
    key_position: int = 0
    oid: int = 0


Describe = Callable[["Connection", Any, "tuple[str, str] | None"], "list[Column]"]


def columns_of(database: str, connection: Connection, cursor: Any, table: tuple[str, str] | None) -> list[Column]:
    """The columns of an executed statement.

    Args:
        database: `postgresql`, `mysql` or `sqlite`.
        connection: for looking up types.
        cursor: of the driver, with a description.
        table: schema and name if the statement reads one table, else None.
    """
    return _DESCRIBERS[database](connection, cursor, table)


def find_column(columns: Sequence[Column], name: str, what: str, table: str) -> Column:
    """The column `name`: by its exact name, else by the only one that differs in letter case.

    Raises:
        ConfigError: there is none, or several differ in letter case only.
    """
    exact = [column for column in columns if column.name == name]
    folded = [column for column in columns if column.name.lower() == name.lower()]
    found = exact or folded
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError(
            f"{what} {name} of table {table} matches several columns that differ in letter case only:"
            f" {', '.join(column.name for column in found)}.",
            code="database.column",
            suggestion="Write the name exactly as the database has it.",
        )
    raise ConfigError(
        f"{what}: {name} does not exist in table {table}, which has {', '.join(c.name for c in columns)[:500]}.",
        code="database.column",
        suggestion="Correct the name of the column.",
    )


# --- PostgreSQL -----------------------------------------------------------------------------------------------------

_PG = {
    16: Kind.BOOLEAN, 20: Kind.INT64, 21: Kind.INT16, 23: Kind.INT32, 26: Kind.INT64, 700: Kind.FLOAT32,
    701: Kind.FLOAT64, 790: Kind.FLOAT64, 1700: Kind.NUMERIC, 18: Kind.STRING, 19: Kind.STRING, 25: Kind.STRING,
    1042: Kind.STRING, 1043: Kind.STRING, 142: Kind.STRING, 114: Kind.STRING, 3802: Kind.STRING, 2950: Kind.STRING,
    17: Kind.BYTES, 1082: Kind.DATE, 1083: Kind.TIME, 1266: Kind.TIME, 1114: Kind.TIMESTAMP, 1184: Kind.INSTANT,
    1560: Kind.BIT_TEXT,
}  # fmt: skip
"""Object ids of pg_type, which are the same in every PostgreSQL."""

_KNOWN_TYPES = "airflow_connect.types"
_PG_TYPES = """
SELECT t.oid, t.typname, t.typtype = 'e' OR t.typcategory = 'S' FROM pg_catalog.pg_type t WHERE t.oid = ANY(%(oids)s)
"""
_PG_COLUMNS = """
SELECT a.attrelid, a.attnum, a.attnotnull AND NOT EXISTS (
         WITH RECURSIVE shown (part) AS (SELECT a.attrelid UNION SELECT c.oid FROM shown
           JOIN pg_catalog.pg_inherits h ON h.inhparent = shown.part
           JOIN pg_catalog.pg_class c ON c.oid = h.inhrelid AND NOT c.relispartition)
         SELECT 1 FROM shown JOIN pg_catalog.pg_attribute b ON b.attrelid = shown.part AND b.attname = a.attname
         WHERE NOT b.attnotnull OR EXISTS (SELECT 1 FROM pg_catalog.pg_constraint k WHERE k.conrelid = shown.part
           AND k.contype = 'n' AND b.attnum = ANY(k.conkey) AND NOT k.convalidated)),
       a.attidentity <> '' OR coalesce(pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%%', false),
       coalesce(array_position(i.indkey::int[], a.attnum::int), -1) + 1
FROM pg_catalog.pg_attribute a
LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN pg_catalog.pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
WHERE a.attrelid = ANY(%(tables)s) AND a.attnum > 0
"""
"""NOT NULL does not mean that there is no null: it may be NOT VALID, or not hold for tables that inherit."""
_PG_NAMED = """ANY(ARRAY(
  SELECT c.oid FROM unnest(%(schemas)s::text[], %(names)s::text[]) AS named (schema, name)
  JOIN pg_catalog.pg_namespace n ON n.nspname = named.schema
  JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = named.name))"""
_PG_COLUMNS_OF_NAMED = _PG_COLUMNS.replace("ANY(%(tables)s)", _PG_NAMED)
_CATALOG = "airflow_connect.catalog"


def know_columns(database: str, connection: Connection, tables: Sequence[TableId]) -> None:
    """Ask the catalog about many tables at once, for the next calls of `columns_of`; none: forget what it said.

    One statement for each table would be a third of the time of a plan that finds nothing. MySQL and SQLite need none.
    """
    if database != "postgresql":
        return
    connection.info[_CATALOG] = {}
    if tables:
        schemas, names = [table.schema for table in tables], [table.table for table in tables]
        rows = connection.exec_driver_sql(_PG_COLUMNS_OF_NAMED, {"schemas": schemas, "names": names})
        connection.info[_CATALOG] = {(row[0], row[1]): (row[2], row[3], row[4]) for row in rows}


def _postgresql(connection: Connection, cursor: Any, table: tuple[str, str] | None) -> list[Column]:
    result = cursor.pgresult
    described = cursor.description or ()  # None for a table without columns
    places = [(result.ftable(i), result.ftablecol(i)) for i in range(len(described))]
    known: Mapping[tuple[int, int], tuple[bool, bool, int]] = connection.info.get(_CATALOG, {})
    tables = sorted({place[0] for place in places if place[0] and place not in known})
    if tables:
        rows = connection.exec_driver_sql(_PG_COLUMNS, {"tables": tables})
        known = {**known, **{(row[0], row[1]): (row[2], row[3], row[4]) for row in rows}}
    types = _pg_types(connection, {column.type_code for column in described})
    found: list[Column] = []
    for column, place in zip(described, places, strict=True):
        name, is_text = types.get(column.type_code, ("unknown", False))
        kind = _PG.get(column.type_code, Kind.STRING if is_text else Kind.UNKNOWN)
        not_null, numbers_itself, position = known.get(place, (False, False, 0))
        found.append(
            Column(
                column.name,
                kind,
                name,
                optional=not not_null,
                precision=(column.precision or 0) if kind is Kind.NUMERIC else _pg_bits(result, column, kind, found),
                scale=column.scale,
                numbers_itself=numbers_itself,
                # pg_index.indkey counts from 0, array_position of an int2vector's array follows it.
                key_position=position,
                oid=column.type_code,
            )
        )
    return found


def _pg_types(connection: Connection, oids: set[int]) -> Mapping[int, tuple[str, bool]]:
    """Names of types, and whether they are texts; each is looked up once for a connection."""
    known: dict[int, tuple[str, bool]] = connection.info.setdefault(_KNOWN_TYPES, {})
    unknown = sorted(oids - known.keys())
    if unknown:
        rows = connection.exec_driver_sql(_PG_TYPES, {"oids": unknown})
        known.update({row[0]: (row[1], row[2]) for row in rows})
    return known


def _pg_bits(result: Any, column: Any, kind: Kind, before: Sequence[Column]) -> int:
    return max(0, result.fmod(len(before))) if kind is Kind.BIT_TEXT else 0


# --- MySQL and MariaDB ------------------------------------------------------------------------------------------------

_NOT_NULL, _PRIMARY, _UNSIGNED, _AUTO_INCREMENT = 1, 2, 32, 512
_BINARY_CHARSET = 63
_MYSQL = {
    0: Kind.DECIMAL, 1: Kind.INT8, 2: Kind.INT16, 3: Kind.INT32, 4: Kind.FLOAT32, 5: Kind.FLOAT64, 7: Kind.INSTANT,
    8: Kind.INT64, 9: Kind.INT32, 10: Kind.DATE, 11: Kind.TIME, 12: Kind.TIMESTAMP, 13: Kind.YEAR, 14: Kind.DATE,
    16: Kind.BIT_BYTES, 245: Kind.STRING, 246: Kind.DECIMAL, 255: Kind.BYTES,
}  # fmt: skip
_MYSQL_NAMES = {
    0: "decimal", 1: "tinyint", 2: "smallint", 3: "int", 4: "float", 5: "double", 7: "timestamp", 8: "bigint",
    9: "mediumint", 10: "date", 11: "time", 12: "datetime", 13: "year", 16: "bit", 245: "json", 246: "decimal",
    255: "geometry",
}  # fmt: skip
_WIDER = {Kind.INT8: Kind.INT16, Kind.INT16: Kind.INT32, Kind.INT32: Kind.INT64}
"""Kinds of unsigned columns; BIGINT UNSIGNED stays INT64, as in JDBC."""


def _mysql(connection: Connection, cursor: Any, table: tuple[str, str] | None) -> list[Column]:
    found: list[Column] = []
    keys = 0
    for field in cursor._result.fields:
        code, flags = field.type_code, field.flags
        kind = _MYSQL.get(code)
        if kind is None:
            kind = Kind.BYTES if field.charsetnr == _BINARY_CHARSET else Kind.STRING
        unsigned = bool(flags & _UNSIGNED)
        if unsigned and code != 9:  # an unsigned MEDIUMINT fits INT32
            kind = _WIDER.get(kind, kind)
        precision = 0
        if kind is Kind.DECIMAL:
            precision = field.length - (1 if field.scale else 0) - (0 if unsigned else 1)
        elif kind in (Kind.BIT_BYTES, Kind.YEAR):
            precision = field.length
        keys += 1 if flags & _PRIMARY else 0
        found.append(
            Column(
                field.name,
                kind,
                _MYSQL_NAMES.get(code, "binary" if kind is Kind.BYTES else "text"),
                optional=not flags & _NOT_NULL,
                precision=precision,
                scale=field.scale if kind is Kind.DECIMAL else 0,
                numbers_itself=bool(flags & _AUTO_INCREMENT),
                key_position=keys if flags & _PRIMARY else 0,
            )
        )
    return found


# --- SQLite -----------------------------------------------------------------------------------------------------------

_DECLARED = re.compile(r"\s*(?P<name>[^()]*?)\s*(?:\(\s*(?P<precision>\d+)\s*(?:,\s*(?P<scale>\d+)\s*)?\))?\s*")
_SQLITE = {
    "BOOLEAN": Kind.BOOLEAN, "BOOL": Kind.BOOLEAN, "TINYINT": Kind.INT8, "SMALLINT": Kind.INT16, "INT2": Kind.INT16,
    "INT": Kind.INT64, "INTEGER": Kind.INT64, "MEDIUMINT": Kind.INT64, "BIGINT": Kind.INT64, "INT8": Kind.INT64,
    "UNSIGNED BIG INT": Kind.INT64, "DECIMAL": Kind.DECIMAL, "NUMERIC": Kind.NUMERIC, "DOUBLE": Kind.FLOAT64,
    "DOUBLE PRECISION": Kind.FLOAT64, "REAL": Kind.FLOAT64, "FLOAT": Kind.FLOAT64, "DATE": Kind.DATE, "TIME": Kind.TIME,
    "DATETIME": Kind.TIMESTAMP, "TIMESTAMP": Kind.TIMESTAMP, "BLOB": Kind.BYTES, "BINARY": Kind.BYTES,
    "VARBINARY": Kind.BYTES,
}  # fmt: skip
_SQLITE_AFFINITIES = (
    ("INT", Kind.INT64), ("CHAR", Kind.STRING), ("CLOB", Kind.STRING), ("TEXT", Kind.STRING), ("BLOB", Kind.BYTES),
    ("REAL", Kind.FLOAT64), ("FLOA", Kind.FLOAT64), ("DOUB", Kind.FLOAT64),
)  # fmt: skip
"""SQLite's own rules for other names of types ("Determination Of Column Affinity")."""


def sqlite_column(name: str, declared: str) -> Column:
    """A column by its declared type; one without a type has texts."""
    found = _DECLARED.fullmatch(declared)
    word = " ".join((found["name"] if found else declared).upper().split())
    kind = _SQLITE.get(word) or next((k for part, k in _SQLITE_AFFINITIES if part in word), Kind.STRING)
    precision, scale = (int(found["precision"] or 0), found["scale"]) if found else (0, None)
    has_scale = scale is not None or precision
    return Column(name, kind, declared, precision=precision, scale=int(scale or 0) if has_scale else None)


SQLITE_KEY_INDEX = "SELECT 1 FROM pragma_index_list(?) WHERE origin = 'pk'"
"""Whether the primary key has an index of its own: it is not the row id then."""
_SQLITE_COLUMNS = f"""
SELECT name, type, "notnull", pk, EXISTS ({SQLITE_KEY_INDEX}) FROM pragma_table_xinfo(?)
"""


def _sqlite(connection: Connection, cursor: Any, table: tuple[str, str] | None) -> list[Column]:
    names = [item[0] for item in cursor.description]
    if table is None:
        # The driver does not tell the types of a query's columns: any value that is not null tells its own.
        return [Column(name, Kind.UNKNOWN, "") for name in names]
    rows = list(connection.exec_driver_sql(_SQLITE_COLUMNS, (table[1], table[1])))
    key = [row for row in rows if row[3]]
    # INTEGER PRIMARY KEY DESC is no row id: it has an index like other keys, and may be null.
    has_index = bool(rows and rows[0][4])
    known: Mapping[str, Column] = {
        row[0]: replace(
            sqlite_column(row[0], row[1]),
            # INTEGER PRIMARY KEY is the row id: never null, and numbered by the database.
            optional=not (row[2] or (_is_row_id(row, key) and not has_index)),
            numbers_itself=_is_row_id(row, key),
            key_position=row[3],
        )
        for row in rows
    }
    return [known.get(name, Column(name, Kind.STRING)) for name in names]


def _is_row_id(row: Any, key: Iterable[Any]) -> bool:
    key = list(key)
    return len(key) == 1 and bool(row[3]) and str(row[1]).upper() == "INTEGER"


def by_values(
    columns: Sequence[Column], rows: Sequence[Sequence[Any]], any_value: Callable[[Column], Any]
) -> list[Column]:
    """Columns of a query on SQLite, whose kinds only the values tell: that of the first value that is not null.

    Args:
        columns: of the query.
        rows: the first ones.
        any_value: finds a value, not null, of a column that has none in `rows`; None: there is none.
    """
    kinds = {int: Kind.INT64, float: Kind.FLOAT64, str: Kind.STRING, bytes: Kind.BYTES, type(None): Kind.STRING}
    known = []
    for index, column in enumerate(columns):
        value = next((row[index] for row in rows if row[index] is not None), None)
        if value is None and rows:
            value = any_value(column)
        known.append(replace(column, kind=kinds[type(value)]))
    return known


_DESCRIBERS: dict[str, Describe] = {"postgresql": _postgresql, "mysql": _mysql, "sqlite": _sqlite}
