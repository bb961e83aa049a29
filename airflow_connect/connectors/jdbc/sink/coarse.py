"""Columns that do not hold the values of their fields as they are. The database reports no error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from typing import TYPE_CHECKING, Any

from airflow_connect.api.schema import DATE, DECIMAL, DECIMAL_SCALE, TIME, TIMESTAMP, Type
from airflow_connect.counting import counted

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from airflow_connect.api.schema import Schema
    from airflow_connect.databases.identifiers import Quoting, TableId

_DECLARED = re.compile(r"([a-z]+(?: precision)?)[^(]*(?:\((\d+)(?:,(-?\d+))?\))?")
_WHOLE = frozenset({"tinyint", "smallint", "mediumint", "integer", "int", "bigint"})
_EXACT = frozenset({"numeric", "decimal"})
_TIMES = frozenset({"timestamp", "datetime", "time"})
_BITS = {"real": 24, "float": 24, "double": 53, "double precision": 53}
_DIGITS = {24: 7, 52: 15, 53: 15}
"""Decimal digits that a binary fraction always keeps (IEEE 754)."""
_CAST_BITS = 52
"""PostgreSQL casts a floating-point number to a numeric of 15 digits; 17 are needed to tell two of them apart."""
_BITS_OF = {Type.INT32: 31, Type.INT64: 63, Type.FLOAT32: 24, Type.FLOAT64: 53}
_TEXT = "and the field is a text"
_SHORT = {"name": "63 bytes of a text", '"char"': "1 byte of a text"}
_FILLED = {
    "auto_increment": "the next number where the field is null: the database replaces null there",
    "now": "the current time where the field is null: MariaDB, and MySQL without explicit_defaults_for_timestamp,"
    " replace null there",
}
_READ_AS = {
    "enum": "the position of a value in its list",
    "set": "bits, one for each value of its list",
    "year": "a year of two digits, if it is below 100",
    **dict.fromkeys(("date", "time", "datetime", "timestamp"), "the digits of a date or time, such as 20260131"),
}
"""What MySQL and MariaDB take a whole number for."""
_DATES = frozenset({"date", "datetime", "timestamp"})
_TEXT_READ_AS = {
    "enum": "a number in a text, such as `1`, for the position of a value in its list, unless it is one of them",
    "set": "a number in a text, such as `1`, for bits, one for each value of its list, unless it is one of them",
    "year": "a text such as `1` for a year of two digits",
    "bit": "the bytes of a text for bits, so that `1` becomes 49",
    "time": "digits in a text, such as `1012`, for minutes and seconds (00:10:12)",
    **dict.fromkeys(_DATES, "digits in a text, such as `10:11:12` or `101112`, for the date 2010-11-12"),
}
_MYSQL_NUMBERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double"})
_FLOATS = frozenset({Type.FLOAT32, Type.FLOAT64})
_NUMBERS = _FLOATS | {Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.BOOLEAN}
_LOGICAL = frozenset({DATE, DECIMAL, TIME, TIMESTAMP})
_MYSQL_SHORT = re.compile(r"(?:var)?(?:char|binary)\((\d+)\)")
_YEARS, _NONE = range(1900, 2040, 5), timedelta()
_LONGEST_NUMBER = 24
"""Characters of a floating-point number of 64 bits, such as -2.2250738585072014e-308."""
_PG_WITH_NONDETERMINISTIC = (12,)
_MARIADB_WITH_NO_PAD, _MYSQL_WITH_NO_PAD = (10, 2), (8, 0, 17)
_OF_A_SECOND = 3
"""Digits of Connect's times and timestamps, which are milliseconds."""
_OF_A_TEXT = 9
"""Digits of a second that programs write into texts."""
_CENTS = 2
"""Digits of PostgreSQL's `money` in most locales."""
_PG_INTERVAL = re.compile(r"interval(?: (?:[a-z]+ to )?([a-z]+))?(?:\(\d\))?")
_PG_TEXTS = re.compile(r"(text|character varying|character|name)\b")
_PG_NUMBERS = re.compile(r"(smallint|integer|bigint|numeric|real|double precision|oid)\b")


_PG_DECLARED = """
WITH RECURSIVE declared (name, type, modifier) AS (SELECT attname, atttypid, atttypmod FROM pg_attribute
  WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped UNION ALL
  SELECT d.name, t.typbasetype, t.typtypmod FROM declared d JOIN pg_type t ON t.oid = d.type WHERE t.typtype = 'd')
SELECT d.name, format_type(d.type, d.modifier) FROM declared d JOIN pg_type t ON t.oid = d.type WHERE t.typtype <> 'd'
"""
"""The type of a column, and behind a domain the type that it is made of."""


def declared_types(connection: Connection, dialect: str, quoting: Quoting, table: TableId) -> dict[str, str]:
    """The declared type of each column, as PostgreSQL, MySQL and MariaDB write it; {} for other databases.

    That of a domain is the type that it is made of.

    `auto_increment` and `now` at its end say by what MySQL or MariaDB replaces null there.
    """
    from sqlalchemy import text

    if dialect == "postgresql":
        found = connection.exec_driver_sql(_PG_DECLARED, (quoting.table(table).replace("%%", "%"),))
    elif dialect == "mysql":
        mysql = (
            "SELECT column_name, CONCAT(column_type, IF(extra LIKE '%auto_increment%', ' auto_increment', ''),"
            " IF(data_type = 'timestamp' AND is_nullable = 'NO' AND column_default LIKE 'current_timestamp%',"
            " ' now', ''))"
            " FROM information_schema.columns"
            " WHERE table_schema = COALESCE(:schema, DATABASE()) AND table_name = :name"
        )
        found = connection.execute(text(mysql), {"schema": table.catalog or None, "name": table.table})
    else:
        return {}
    return {str(name): str(declared).lower() for name, declared in found}


_PG_INSTANT = re.compile(r"timestamp(\(\d\))? with time zone(\[\])?")
_PG_COLLATIONS = """
SELECT a.attname, coalesce(c.collname, 'citext') FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_collation c ON c.oid = a.attcollation AND NOT c.collisdeterministic
WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped
AND (c.oid IS NOT NULL OR 'citext' IN (t.typname, (SELECT b.typname FROM pg_type b WHERE b.oid = t.typbasetype)))
"""
_MYSQL_COLLATIONS = """
SELECT column_name, collation_name FROM information_schema.columns
WHERE table_schema = COALESCE(:schema, DATABASE()) AND table_name = :name AND collation_name IS NOT NULL
"""
_SQLITE_COLLATIONS = """
SELECT x.name, x.coll FROM pragma_index_list(?) AS l, pragma_index_xinfo(l.name) AS x
WHERE x.key AND x.name IS NOT NULL AND x.coll <> 'BINARY'
"""
_SQLITE_NUMBERS, _SQLITE_TEXT = ("real", "numeric"), "text"
_SQLITE_TEXTS = (
    "holds numbers, and the field is a text: SQLite makes a number of a text that looks like one, so `007` becomes 7,"
    " and of more than 15 digits the last ones may be lost. Give the column the type TEXT to keep texts as they are."
)
_SQLITE_QUOTED = re.compile(
    r"""'[^']*(?:'|\Z)|"[^"]*(?:"|\Z)|`[^`]*(?:`|\Z)|\[[^\]]*(?:\]|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)""", re.DOTALL
)
_SQLITE_REPLACES = re.compile(r"\bON\s+CONFLICT\s+REPLACE\b", re.IGNORECASE)
_EXACT_COLLATIONS = ("_nopad_bin", "_0900_bin")


def collations(connection: Connection, dialect: str, quoting: Quoting, table: TableId) -> dict[str, str]:
    """Columns that take different texts for equal, with their collations. For SQLite: those of an index."""
    from sqlalchemy import text

    if dialect == "postgresql":
        if (connection.dialect.server_version_info or ()) < _PG_WITH_NONDETERMINISTIC:
            return {}
        found: Any = connection.exec_driver_sql(_PG_COLLATIONS, (quoting.table(table).replace("%%", "%"),))
    elif dialect == "mysql":
        of_table = {"schema": table.catalog or None, "name": table.table}
        rows = connection.execute(text(_MYSQL_COLLATIONS), of_table)
        found = [(name, collation) for name, collation in rows if not str(collation).endswith(_EXACT_COLLATIONS)]
    elif dialect == "sqlite":
        found = connection.exec_driver_sql(_SQLITE_COLLATIONS, (table.table,))
    else:
        return {}
    return {str(name): str(collation) for name, collation in found}


def replaced_rows(connection: Connection, table: TableId) -> str:
    """What SQLite does with rows that a constraint of a table refuses, as a sentence without its subject; or "" .

    No pragma tells the conflict clause of a constraint: it is in the statement that made the table.
    """
    asked = "SELECT sql FROM sqlite_master WHERE type = 'table' AND lower(name) = lower(?)"
    made = str(connection.exec_driver_sql(asked, (table.table,)).scalar() or "")
    if not _SQLITE_REPLACES.search(_SQLITE_QUOTED.sub(" ", made)):
        return ""
    return (
        "has a constraint that is declared with ON CONFLICT REPLACE: a record with a unique value that another row has"
        " deletes that row, and null in a column that is NOT NULL becomes its default, without an error. Declare it"
        " without this clause if no row may be lost."
    )


def exact_collation(connection: Connection) -> str:
    """The collation of MySQL or MariaDB that takes no two texts for equal; "" for other databases."""
    dialect = connection.dialect
    if dialect.name not in ("mysql", "mariadb"):
        return ""
    version = dialect.server_version_info or ()
    if getattr(dialect, "is_mariadb", False):
        return "utf8mb4_nopad_bin" if version >= _MARIADB_WITH_NO_PAD else "utf8mb4_bin"
    return "utf8mb4_0900_bin" if version >= _MYSQL_WITH_NO_PAD else "utf8mb4_bin"


def instants(declared: Mapping[str, str]) -> frozenset[str]:
    """The columns of PostgreSQL that hold points in time, or lists of them, those of a domain included.

    Args:
        declared: column -> type; see `declared_types`.
    """
    return frozenset(name for name, kind in declared.items() if _PG_INSTANT.fullmatch(kind))


def equal_keys(collation: str) -> str:
    """What a key of texts in a column with such a collation does to records, as a sentence without its subject."""
    examples = "`a` and `a ` (with a space)" if collation.endswith("_bin") else "`a` and `A`"
    return (
        f"has the collation {collation}, which takes different texts for equal, such as {examples}: records with such"
        " keys change and delete the same row. Give the column an exact collation if their keys are different."
    )


def equal_or_padded(collation: str, declared: str) -> list[str]:
    """Which keys of texts are one row in a column, as sentences without their subject.

    Args:
        collation: if it takes different texts for equal, else "".
        declared: type of the column.
    """
    return [text for text in (equal_keys(collation) if collation else "", _padded_keys(declared)) if text]


def _padded_keys(declared: str) -> str:
    if re.match(r"(character|char)\b(?! varying)", declared) is None:
        return ""
    return (
        f"has the type {declared}, which does not keep spaces at the end, so `a` and `a ` (with a space) are one key:"
        " records with such keys change and delete the same row. Give the column a type without padding if their keys"
        " are different."
    )


def changes(declared: str, schema: Schema, dialect: str) -> list[str]:
    """What a column does to values of a field without an error, as sentences without their subject.

    Args:
        declared, schema, dialect: see `kept_by`; for SQLite, `declared` is its affinity in small letters.
    """
    if dialect == "sqlite":
        return _changes_of_sqlite(declared, schema)
    if schema.type is Type.ARRAY and schema.value_schema is not None and declared.endswith("[]"):
        return changes(declared.removesuffix("[]"), schema.value_schema, dialect)
    kept = kept_by(declared, schema, dialect)
    of_dialect = _changes_of_mysql if dialect == "mysql" else _changes_of_postgresql
    return [*([_rounds(kept)] if kept else []), *of_dialect(declared, schema)]


def moved_dates(schema: Schema, zone: tzinfo, dialect: str) -> list[str]:
    """A sentence if dates become the day before, because `date.timezone` is that of the database; `zone`: of dates.

    SQLite gets milliseconds.
    """
    if schema.name != DATE or dialect == "sqlite" or not _is_ever_behind(zone):
        return []
    sentence = (
        f"gets dates as they are at midnight UTC in {zone} (db.timezone): while clocks there are behind UTC, each date"
        " becomes the day before, as with Confluent's sink. Set date.timezone=UTC to keep them."
    )
    return [sentence]


@cache
def _is_ever_behind(zone: tzinfo) -> bool:
    """Whether clocks are behind UTC at the beginning or in the middle of a year from 1900 on."""
    days = (datetime(year, month, 1, tzinfo=UTC) for year in _YEARS for month in (1, 7))
    return any((day.astimezone(zone).utcoffset() or _NONE) < _NONE for day in days)


def _rounds(kept: str) -> str:
    return (
        f"keeps {kept}: the database rounds, or drops, what has more, without an error. Change the type of the column"
        " if nothing may be lost."
    )


def _is_number(schema: Schema) -> bool:
    """Other names than Connect's own, such as Debezium's, do not change a type."""
    return schema.name == DECIMAL or (schema.type in _NUMBERS and schema.name not in _LOGICAL)


def _changes_of_sqlite(declared: str, schema: Schema) -> list[str]:
    if schema.type is Type.FLOAT64 and declared == _SQLITE_TEXT:
        return [_rounds(_kept_of_number(_CAST_BITS, schema))]
    return [_SQLITE_TEXTS] if schema.type is Type.STRING and declared in _SQLITE_NUMBERS else []


def _changes_of_mysql(declared: str, schema: Schema) -> list[str]:
    first, *_, last = re.split(r"[ (]", declared) * 2
    is_text, is_bytes = schema.type is Type.STRING, schema.type is Type.BYTES and schema.name != DECIMAL
    found = []
    if first in _READ_AS and _is_number(schema):
        found.append(
            f"has the type {first}, and the field is a number, which the database takes for {_READ_AS[first]}. Change"
            " the type of the column, or that of the field, if its number is meant."
        )
    if first in _DATES and schema.name == TIME:
        found.append(
            f"has the type {first}, and the field is a time of day, which the database takes for a date, without an"
            " error: 10:11:12 becomes 2010-11-12. Change the type of the column."
        )
    if first == "binary":
        found.append(f"has the type {declared}, which fills shorter values with zero bytes.")
    if first in _TEXT_READ_AS and (is_text or (is_bytes and first != "bit")):
        found.append(f"has the type {first}, in which the database takes {_TEXT_READ_AS[first]}, without an error.")
    if first in _MYSQL_NUMBERS and is_bytes:
        found.append(
            f"has the type {first}, and the field is bytes: a server of MySQL takes `12` for 12594, the number of its"
            " bits, and one of MariaDB for 12, without an error. Write a number, or change the type of the column."
        )
    if last in _FILLED and schema.optional:
        found.append(f"has {_FILLED[last]}.")
    return found


def _changes_of_postgresql(declared: str, schema: Schema) -> list[str]:
    is_text = schema.type is Type.STRING
    if declared == "bytea" and is_text:
        return [
            (
                "has the type bytea, and the field is a text, in which the database takes \\x41 or \\101 for one byte."
                " Write bytes, or change the type of the column."
            )
        ]
    if declared == "oid" and _is_number(schema):
        return [
            (
                "has the type oid, in which the database takes a negative number for one that is 4294967296 larger."
                " Change the type of the column if there are negative numbers."
            )
        ]
    if declared == "money" and is_text:
        return [
            (
                "has the type money, and the field is a text, in which a comma or a point means what the locale of the"
                " server says: 12,00 may become 1200.00. The database also rounds it. Write a number."
            )
        ]
    if is_text and _PG_NUMBERS.match(declared):
        return [
            (
                f"has the type {declared}, and the field is a text, of which the database keeps the number: `00743`"
                " becomes 743, without an error. Change the type of the column if these are no numbers, such as codes."
            )
        ]
    if _PG_TEXTS.match(declared) and schema.type is Type.BYTES and schema.name != DECIMAL:
        return ["is a text, and the field is bytes, which the database writes as digits, such as \\x61."]
    return []


def kept_by(declared: str, schema: Schema, dialect: str) -> str:
    """How much a column keeps of the values of a field, if that may be less than they have; otherwise "".

    Args:
        declared: type of the column; see `declared_types`.
        schema: of the field.
        dialect: the same words mean other things in PostgreSQL and in MySQL.
    """
    is_text = schema.type is Type.STRING
    if is_text and declared in _SHORT and dialect == "postgresql":
        return f"{_SHORT[declared]}, {_TEXT}"
    found = _DECLARED.match(declared)
    if found is None:
        return ""
    word, first, second = found[1], found[2], found[3]
    if schema.name in (TIME, TIMESTAMP) or (is_text and word in (*_TIMES, "date", "interval")):
        return _kept_of_time(declared, first, schema, dialect)
    if schema.name == DATE:
        return ""
    if dialect == "mysql" and schema.type in _FLOATS and (short := _MYSQL_SHORT.match(declared)):
        characters = int(short[1])
        return f"{characters} characters of a number" if characters < _LONGEST_NUMBER else ""
    if word in _BITS:
        return _kept_of_places(int(second), schema) if second else _kept_of_number(_BITS[word], schema)
    if word == "bit" or (word == "money" and schema.name == DECIMAL):
        return "" if is_text else _kept_of_places(0 if word == "bit" else _CENTS, schema)
    if word in _WHOLE and is_text and dialect != "mysql":
        return ""  # It refuses a fraction in a text, and a sentence of its own says what it drops.
    if word in _WHOLE:
        places = 0
    elif word in _EXACT and first is not None:
        places = int(second or 0)
    elif word in _EXACT and schema.type is Type.FLOAT64:
        return _kept_of_number(_CAST_BITS, schema)
    else:
        return ""
    return _kept_of_places(places, schema)


def _kept_of_places(places: int, schema: Schema) -> str:
    if places < 0:
        return f"multiples of {10**-places} only"
    kept = counted(places, "digit") + " after the point"
    if schema.name == DECIMAL:
        scale = int(schema.parameters.get(DECIMAL_SCALE, "0"))
        return f"{kept}, and the field has {scale}" if scale > places else ""
    if schema.type is Type.STRING:
        return f"{kept}, {_TEXT}"
    return f"{kept}, and the field is a floating-point number" if schema.type in (Type.FLOAT32, Type.FLOAT64) else ""


def _kept_of_time(declared: str, precision: str | None, schema: Schema, dialect: str) -> str:
    is_text, word = schema.type is Type.STRING, re.split(r"[ (]", declared)[0]
    if word == "date" and (is_text or schema.name == TIMESTAMP):
        return f"no time of day, {_TEXT if is_text else 'and the field has one'}"
    if fields := _PG_INTERVAL.fullmatch(declared):
        if fields[1] and fields[1] != "second":
            return f"nothing below a {fields[1]}, {_TEXT if is_text else 'and the field has a part of it'}"
    elif word not in _TIMES:
        return ""
    kept = ["no date"] if word == "time" and (is_text or schema.name == TIMESTAMP) else []
    if is_text and declared.endswith("without time zone"):
        kept.append("no zone")  # PostgreSQL drops it; MariaDB refuses a text that has one.
    digits = int(precision) if precision is not None else (0 if dialect == "mysql" else 6)
    if digits < (_OF_A_TEXT if is_text else _OF_A_SECOND):
        kept.append(f"{counted(digits, 'digit')} of a second after the point")
    if not kept:
        return ""
    has = _TEXT if is_text else "and the field has one" if kept[0] == "no date" else f"and the field has {_OF_A_SECOND}"
    listed = " and ".join(part for part in (", ".join(kept[:-1]), kept[-1]) if part)
    return f"{listed}, {has}"


def _kept_of_number(bits: int, schema: Schema) -> str:
    has_more = schema.name == DECIMAL or schema.type is Type.STRING or _BITS_OF.get(schema.type, 0) > bits
    return f"about {_DIGITS[bits]} digits of a number, and the field may have more" if has_more else ""
