"""Columns that keep less of a value than its field may have. The database rounds it there, and reports no error."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_connect.api.schema import DATE, DECIMAL, DECIMAL_SCALE, TIME, TIMESTAMP, Type
from airflow_connect.counting import counted

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from airflow_connect.api.schema import Schema
    from airflow_connect.databases.identifiers import Quoting, TableId

_DECLARED = re.compile(r"([a-z]+(?: precision)?)[^(]*(?:\((\d+)(?:,(\d+))?\))?")
_WHOLE = frozenset({"tinyint", "smallint", "mediumint", "integer", "int", "bigint"})
_EXACT = frozenset({"numeric", "decimal"})
_TIMES = frozenset({"timestamp", "datetime", "time"})
_BITS = {"real": 24, "float": 24, "double": 53, "double precision": 53}
_DIGITS = {24: 7, 53: 15}
"""Decimal digits that a binary fraction always keeps (IEEE 754)."""
_BITS_OF = {Type.INT32: 31, Type.INT64: 63, Type.FLOAT32: 24, Type.FLOAT64: 53}
_OF_A_SECOND = 3
"""Digits of Connect's times and timestamps, which are milliseconds."""


def declared_types(connection: Connection, dialect: str, quoting: Quoting, table: TableId) -> dict[str, str]:
    """The declared type of each column, as PostgreSQL, MySQL and MariaDB write it; {} for other databases."""
    from sqlalchemy import text

    if dialect == "postgresql":
        asked = (
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
            " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
        )
        found = connection.exec_driver_sql(asked, (quoting.table(table).replace("%%", "%"),))
    elif dialect == "mysql":
        mysql = (
            "SELECT column_name, column_type FROM information_schema.columns"
            " WHERE table_schema = COALESCE(:schema, DATABASE()) AND table_name = :name"
        )
        found = connection.execute(text(mysql), {"schema": table.catalog or None, "name": table.table})
    else:
        return {}
    return {str(name): str(declared).lower() for name, declared in found}


def kept_by(declared: str, schema: Schema, dialect: str) -> str:
    """How much a column keeps of the values of a field, if that may be less than they have; otherwise "".

    Args:
        declared: type of the column; see `declared_types`.
        schema: of the field.
        dialect: the same words mean other things in PostgreSQL and in MySQL.
    """
    found = _DECLARED.match(declared)
    if found is None:
        return ""
    word, first, second = found[1], found[2], found[3]
    if schema.name in (TIME, TIMESTAMP):
        return _kept_of_time(word, first, schema, dialect)
    if schema.name == DATE:
        return ""
    if word in _BITS:
        return _kept_of_number(_BITS[word], schema)
    if word in _WHOLE:
        places = 0
    elif word in _EXACT and first is not None:
        places = int(second or 0)
    else:
        return ""
    kept = counted(places, "digit") + " after the point"
    if schema.name == DECIMAL:
        scale = int(schema.parameters.get(DECIMAL_SCALE, "0"))
        return f"{kept}, and the field has {scale}" if scale > places else ""
    return f"{kept}, and the field is a floating-point number" if schema.type in (Type.FLOAT32, Type.FLOAT64) else ""


def _kept_of_time(word: str, precision: str | None, schema: Schema, dialect: str) -> str:
    if word == "date" and schema.name == TIMESTAMP:
        return "no time of day, and the field has one"
    if word not in _TIMES:
        return ""
    digits = int(precision) if precision is not None else (0 if dialect == "mysql" else 6)
    if digits >= _OF_A_SECOND:
        return ""
    return f"{counted(digits, 'digit')} of a second after the point, and the field has {_OF_A_SECOND}"


def _kept_of_number(bits: int, schema: Schema) -> str:
    has_more = schema.name == DECIMAL or _BITS_OF.get(schema.type, 0) > bits
    return f"about {_DIGITS[bits]} digits of a number, and the field may have more" if has_more else ""
