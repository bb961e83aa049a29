"""How updates and deletes find the row that an insert of the same key has made, and no other.

A database stores a value as its column holds it, but compares it in another way: MySQL compares a text with a number as
numbers, `abc` as 0, and takes the first part of a text for a time; PostgreSQL compares a `real` with a number of 64
bits, and a text with no number at all. Source: "Type Conversion in Expression Evaluation" of MySQL and MariaDB; chapter
"Type Conversion" of PostgreSQL.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from airflow_connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP, Type
from airflow_connect.connectors.jdbc.sink.mysql_times import is_date, is_time
from airflow_connect.connectors.jdbc.sink.outcome import RowRefusedError
from airflow_connect.databases.failures import Failure

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema
    from airflow_connect.connectors.jdbc.sink.fields import SinkField

_LOGICAL = frozenset({DECIMAL, DATE, TIME, TIMESTAMP})
_WHOLE = frozenset({Type.INT8, Type.INT16, Type.INT32, Type.INT64})
_FLOATS = frozenset({Type.FLOAT32, Type.FLOAT64})
_NUMBER, _TEXT, _BYTES = "number", "text", "bytes"

_MYSQL_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_MYSQL_BYTES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_MYSQL_EXACT = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal"})
_MYSQL_NUMBERS = _MYSQL_EXACT | {"float", "double", "year", "bit"}
_MYSQL_TIMES = frozenset({"time", "date", "datetime", "timestamp"})
_NUMBER_TEXT = re.compile(r"\s*[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d+)?\s*")
_WHOLE_FLOAT = 1e15

_PG_WHOLE = ("smallint", "integer", "bigint")
_PG_NUMBERS = re.compile(r"(?:smallint|integer|bigint|real|double precision|numeric|money)\b(?!.*\[)")
_PG_TEXTS = re.compile(r"(?:text|name|character varying|character)\b(?!.*\[)")
_PG_MOMENTS = re.compile(r"(?:date|time|timestamp)\b(?!.*\[)")

Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the value of a key is compared with its column.

    Attributes:
        convert: gives the value that is bound; raises RowRefusedError if the column cannot hold it. None: it stays.
        cast: for a statement, with `{}` for the value, such as `CAST({} AS real)`.
    """

    convert: Convert | None = None
    cast: str = "{}"


def comparisons(
    table: str, fields: Sequence[SinkField], columns: Mapping[str, str], declared: Mapping[str, str], dialect: str
) -> dict[str, Comparison]:
    """The columns of a key that are not compared as an insert would store the value.

    Args:
        table: for messages.
        fields: of the record.
        columns: field -> column.
        declared: column -> declared type; see `declared_types`.
        dialect: SQLAlchemy's name of the database.
    """
    found = {}
    for field in fields:
        column = columns.get(field.name, "")
        if not field.is_key or not (kind := declared.get(column)):
            continue
        if dialect == "postgresql" and (cast := _cast(kind, field.schema)):
            found[column] = Comparison(cast=cast)
        elif dialect == "mysql" and (convert := _conversion(kind, field.schema)):
            what = (
                f"the field {field.name} of its key is {field.schema.name or field.schema.type.name}, and the column"
                f" {column} of {table} is {kind}, which cannot hold this value: a condition of MySQL would find the row"
                " of another key"
            )
            found[column] = Comparison(convert=_Refusing(convert, what, field.name))
    return found


def _kind_of(schema: Schema) -> str:
    """Number, text or bytes, or the name of a date or time: other names, such as Debezium's, do not change a type."""
    if schema.name in _LOGICAL:
        return _NUMBER if schema.name == DECIMAL else str(schema.name)
    if schema.type in (Type.STRING, Type.BYTES):
        return _TEXT if schema.type is Type.STRING else _BYTES
    return _NUMBER if schema.type in _WHOLE | _FLOATS or schema.type is Type.BOOLEAN else ""


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


def _cast(declared: str, schema: Schema) -> str:
    """A cast to the type of the column, where it does what an insert does; "" if none is needed."""
    kind = _kind_of(schema)
    if _PG_TEXTS.match(declared) and kind not in (_TEXT, ""):
        is_padded = re.match(r"character\b(?! varying)", declared) is not None
        return "CAST(CAST({} AS text) AS bpchar)" if is_padded else "CAST({} AS text)"
    if _PG_NUMBERS.match(declared) and kind == _NUMBER and schema.type is not Type.BOOLEAN:
        return "" if declared in _PG_WHOLE and schema.type in _WHOLE else f"CAST({{}} AS {declared})"
    is_moment = kind in (TIME, TIMESTAMP) and _PG_MOMENTS.match(declared) is not None
    is_known = kind == TIMESTAMP or declared.startswith("time")
    return f"CAST({{}} AS {declared})" if is_moment and is_known and not _has_zone_of_day(declared) else ""


def _has_zone_of_day(declared: str) -> bool:
    return declared.startswith("time") and not declared.startswith("timestamp") and declared.endswith("with time zone")


# --- MySQL and MariaDB ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Refusing:
    """A conversion of values that are not null, with the reason that it gives for those that no column holds."""

    convert: Convert
    reason: str
    field: str

    def __call__(self, value: Any) -> Any:
        if value is None:
            return None
        try:
            return self.convert(value)
        except ValueError:
            raise RowRefusedError(self.reason, Failure.VALUE) from None
        except (TypeError, AttributeError, ArithmeticError):  # A transformation has changed it, and not its schema.
            kind = type(value).__name__
            what = f"the field {self.field} of its key has a value of the type {kind}, and not that of its schema"
            raise RowRefusedError(what, Failure.VALUE) from None


def _conversion(declared: str, schema: Schema) -> Convert | None:
    column, kind = re.split(r"[ (]", declared)[0], _kind_of(schema)
    if kind in (DATE, TIME, TIMESTAMP):
        return _refused if column in _MYSQL_NUMBERS or (column == "time" and kind == DATE) else None
    if column in _MYSQL_TEXTS:
        return _as_text if kind == _NUMBER else None
    if column in _MYSQL_BYTES and kind:
        return _padded(declared) or (_as_text if kind == _NUMBER else None)
    if column in _MYSQL_TIMES:
        return _checked(is_time if column == "time" else is_date) if kind else None
    if column == "bit":
        return _as_bits if kind in (_TEXT, _BYTES) else None
    if column not in _MYSQL_NUMBERS or not kind or (kind == _NUMBER and schema.type in _WHOLE and column != "float"):
        return None
    plain = _as_exact if column in _MYSQL_EXACT else _as_single if column == "float" else None
    return plain if kind == _NUMBER else _checked(_is_number, plain)


def _refused(value: Any) -> Any:
    raise ValueError


def _checked(is_one: Callable[[Any], bool], then: Convert | None = None) -> Convert:
    def convert(value: Any) -> Any:
        if not is_one(value):
            raise ValueError
        return value if then is None else then(value)

    return convert


def _is_number(value: str | bytes) -> bool:
    return _NUMBER_TEXT.fullmatch(value if isinstance(value, str) else bytes(value).decode("latin-1")) is not None


def _as_text(value: Any) -> str:
    """A number as MySQL writes it into a text."""
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < _WHOLE_FLOAT else repr(value)
    return str(int(value)) if isinstance(value, bool) else f"{value:f}" if isinstance(value, Decimal) else str(value)


def _padded(declared: str) -> Convert | None:
    """For `binary(n)`, which fills values with zero bytes; None for other types."""
    found = re.match(r"binary\((\d+)\)", declared)
    if found is None:
        return None
    count = int(found[1])

    def convert(value: Any) -> bytes:
        text = value if isinstance(value, str | bytes | bytearray | memoryview) else _as_text(value)
        return (text.encode() if isinstance(text, str) else bytes(text)).ljust(count, b"\0")

    return convert


def _as_bits(value: Any) -> int:
    """The bytes of a value, as a column of bits takes them."""
    return int.from_bytes(value.encode() if isinstance(value, str) else value, "big")


def _as_exact(value: Any) -> Any:
    """A number that is not compared as one of 64 bits with about 15 digits."""
    value = bytes(value).decode() if isinstance(value, bytes | bytearray | memoryview) else value
    text = value.strip() if isinstance(value, str) else repr(value) if isinstance(value, float) else ""
    return Decimal(text) if text and "e" not in text.lower() else value


def _as_single(value: Any) -> Any:
    """A number as a FLOAT holds it; one that is too large for it finds no row."""
    try:
        return struct.unpack("f", struct.pack("f", float(value)))[0]
    except OverflowError:
        return value
