"""What is bound to a statement: Connect's values as Python values that the drivers take.

Source: GenericDatabaseDialect.bindField and its overrides for PostgreSQL and SQLite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from functools import partial
from math import isfinite, isnan
from typing import Any

from airflow_connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type
from airflow_connect.connectors.jdbc.sink.fields import SinkField
from airflow_connect.errors import DataError, SchemaError
from airflow_connect.java.numbers import parse_integer

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MS = 86_400_000
_REAL_DIGITS, _INT64_END = 15, 2**63
_REAL_SMALLEST, _REAL_LARGEST = -307, 307
"""Powers of ten within which REAL keeps that many digits (IEEE 754, binary64)."""
Bind = Callable[[Any], Any]
_REFUSED: dict[str, Callable[[float], bool]] = {"mysql": lambda value: not isfinite(value), "sqlite": isnan}
"""Floating-point numbers that a database does not have: SQLite would store NULL for NaN."""


@dataclass(frozen=True, slots=True)
class Binding:
    """How values are bound.

    Attributes:
        database: SQLAlchemy's name of the database.
        zone: of columns that have a date and a time without a zone.
        date_zone: in which the date of a Date is taken.
        replaces_null: whether a null is replaced by the schema's default.
        timestamp_fields: fields that hold timestamps as numbers.
        per_second: units of those in a second.
    """

    database: str
    zone: tzinfo
    date_zone: tzinfo
    replaces_null: bool
    timestamp_fields: frozenset[str]
    per_second: int

    def of(self, field: SinkField) -> Bind | None:
        """The function that turns a value into what is bound; None if it is bound as it is.

        Raises:
            SchemaError: there is no column type for the schema.
        """
        bind = self._plain(field)
        default = field.schema.default
        if default is not None and self.replaces_null:
            chosen = bind or _same
            return lambda value: chosen(default if value is None else value)
        if bind is None:
            return None
        present = bind
        return lambda value: None if value is None else present(value)

    def _plain(self, field: SinkField) -> Bind | None:
        schema = field.schema
        if field.name in self.timestamp_fields and not field.is_key:
            return self._unit_timestamp(schema, field.name)
        logical = self._logical(schema)
        if logical is not None:
            return logical
        if schema.type is Type.ARRAY:
            return self._array(field.name, schema)
        if schema.type in (Type.MAP, Type.STRUCT):
            raise no_column_type(field.name, schema)
        if schema.type in (Type.FLOAT32, Type.FLOAT64) and self.database in _REFUSED:
            return partial(_known_number, refused=_REFUSED[self.database])
        if schema.type is Type.BOOLEAN and self.database in ("mysql", "oracle", "mssql"):
            return int
        return None

    def _logical(self, schema: Schema) -> Bind | None:
        is_sqlite = self.database == "sqlite"  # It has no such types; sqlite-jdbc stores milliseconds.
        if schema.name == DECIMAL:
            return _plain_text if is_sqlite else None
        if schema.name == DATE:
            return self._date_as_ms if is_sqlite else self._date
        if schema.name == TIME:
            return None if is_sqlite else _time
        if schema.name == TIMESTAMP:
            return None if is_sqlite else self._timestamp
        return None

    def _array(self, name: str, schema: Schema) -> Bind | None:
        element = schema.value_schema
        if self.database != "postgresql" or element is None or element.type in (Type.ARRAY, Type.MAP, Type.STRUCT):
            raise no_column_type(name, schema)
        bind = self._logical(element)
        if bind is None:
            return list
        each = bind
        return lambda value: [None if item is None else each(item) for item in value]

    def _unit_timestamp(self, schema: Schema, name: str) -> Bind:
        if schema.name is not None or schema.type not in (Type.INT64, Type.STRING):
            raise SchemaError(
                f"The field {name} in timestamp.fields.list is {schema.name or schema.type.name}, but must be INT64 or"
                " STRING.",
                code="jdbc.timestamp_field",
                suggestion="Remove it from timestamp.fields.list.",
                config_path="timestamp.fields.list",
            )

        def bind(value: Any) -> Any:
            try:
                units = parse_integer(value, 64) if isinstance(value, str) else int(value)
            except ValueError:
                raise DataError(
                    f"The field {name} in timestamp.fields.list does not hold a whole number.",
                    code="jdbc.timestamp_field",
                    suggestion="Correct the record, or remove the field from timestamp.fields.list.",
                ) from None
            microseconds = units * 1_000_000 // self.per_second
            return microseconds // 1000 if self.database == "sqlite" else self._moment(microseconds)

        return bind

    def _timestamp(self, value: int) -> datetime:
        return self._moment(value * 1000)

    def is_moment(self, field: SinkField) -> bool:
        """Whether a field holds points in time, so that its column decides what is written; see `for_column`."""
        is_listed = field.name in self.timestamp_fields and not field.is_key
        element = field.schema.value_schema if field.schema.type is Type.ARRAY else field.schema
        return self.database != "sqlite" and (is_listed or (element is not None and element.name == TIMESTAMP))

    def for_column(self, value: Any, *, is_instant: bool) -> Any:
        """What is written of a point in time.

        Args:
            value: as bound: without a zone if `zone` is UTC, else in that zone; or None; or a list of such.
            is_instant: whether the column holds points in time, not the time of a local clock.
        """
        if isinstance(value, list):
            return [self.for_column(item, is_instant=is_instant) for item in value]
        if not isinstance(value, datetime):
            return value
        if not is_instant:
            return value.replace(tzinfo=None)
        # In UTC, because Python takes the two points of the hour that clocks show twice for equal in another zone.
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        # The offset is part of the value for PostgreSQL, so the zone of the session does not matter, which a pooler may
        # change. MySQL knows no offsets; the zone of its session is UTC (databases/dialects/mysql.py).
        return moment if self.database == "postgresql" else moment.replace(tzinfo=None)

    def _moment(self, microseconds: int) -> datetime:
        """In the zone of the database, with it unless that is UTC; `for_column` follows."""
        try:
            moment = EPOCH + timedelta(microseconds=microseconds)
            return moment.replace(tzinfo=None) if self.zone is UTC else moment.astimezone(self.zone)
        except OverflowError:
            raise _out_of_range("timestamp") from None

    def _date(self, days: int) -> date:
        try:
            midnight = EPOCH + timedelta(days=days)
            return (midnight if self.date_zone is UTC else midnight.astimezone(self.date_zone)).date()
        except OverflowError:
            raise _out_of_range("date") from None

    def _date_as_ms(self, days: int) -> int:
        return days * _DAY_MS


def exact_number(text: str, *, is_real: bool) -> int | str | None:
    """A Decimal for a column of SQLite that turns texts into numbers; None if it would become another number.

    SQLite has integers of 64 bits, and REAL, which holds 15 digits ("Type Affinity").

    Args:
        text: the Decimal, without an exponent.
        is_real: whether the column turns integers into REAL, too.
    """
    value = Decimal(text)
    if not is_real and value == value.to_integral_value() and abs(value) < _INT64_END:
        return int(value)
    if value and not _REAL_SMALLEST <= value.adjusted() <= _REAL_LARGEST:
        return None
    digits = value.as_tuple().digits
    return text if len("".join(map(str, digits)).strip("0")) <= _REAL_DIGITS else None


def no_column_type(name: str, schema: Schema) -> SchemaError:
    """The error for a field that no column can hold."""
    return SchemaError(
        f"The field {name} has the type {schema.type.name}, for which this database has no column type.",
        code="jdbc.nested",
        suggestion="Use the transformation Flatten, or ReplaceField to drop it.",
    )


def _plain_text(value: Decimal) -> str:
    return format(value, "f")


def _same(value: Any) -> Any:
    return value


def _known_number(value: float, *, refused: Callable[[float], bool]) -> float:
    if refused(value):
        raise DataError(
            f"the number is {value}, which no column of this database can hold.",
            code="database.value",
            suggestion="Correct the record.",
        )
    return value


def _time(value: int) -> time:
    if not 0 <= value < _DAY_MS:
        raise _out_of_range("time")
    return (EPOCH + timedelta(milliseconds=value)).time()


def _out_of_range(kind: str) -> DataError:
    return DataError(
        f"the {kind} is outside the range of the database.",
        code="database.value",
        suggestion="Correct the record.",
    )


def literal(value: Any) -> str:
    """A default of a schema in a DDL statement, which takes no parameters: a number, or a text in quotes.

    Raises:
        SchemaError: there is no form that every database reads, such as for bytes.
    """
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, (int, float, Decimal)) and value == value and abs(value) != float("inf"):
        return str(value)
    if isinstance(value, (datetime, date, time)):
        local = value.replace(tzinfo=None).isoformat(" ") if isinstance(value, datetime) else value.isoformat()
        return f"'{local}'"
    if isinstance(value, str) and "\\" not in value and "\0" not in value:
        return "'" + value.replace("'", "''") + "'"
    raise SchemaError(
        "it cannot be written into a statement, because it is neither a number, a date, nor a plain text.",
        code="jdbc.default",
        suggestion="Create the column yourself, or remove the default from the schema.",
    )
