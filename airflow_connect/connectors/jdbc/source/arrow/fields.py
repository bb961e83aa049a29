"""How columns of PostgreSQL are read as Arrow: the expression in the SELECT, and the conversion of the result.

A conversion gives what `mapping.py` makes of the driver's values; tests/integration/connectors/jdbc/source compare both
for every type. Numerics are cast to text, which is exact and fast, and types that ADBC does not know in
the form of the row path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_connect.api import schema as schemas
from airflow_connect.api.schema import Type
from airflow_connect.connectors.jdbc.source.values.arrow_types import arrow_type
from airflow_connect.connectors.jdbc.source.values.columns import Column, Kind
from airflow_connect.connectors.jdbc.source.values.local_times import DAY_US, LocalTimes
from airflow_connect.connectors.jdbc.source.values.mapping import FieldMapping, TableMapping
from airflow_connect.connectors.jdbc.source.values.out_of_range import Beyond
from airflow_connect.converters.decimal_columns import unscaled_column

_LEAST_DAY, _MOST_DAY = (d.toordinal() - date(1970, 1, 1).toordinal() for d in (date.min, date.max))
_LEAST_US, _MOST_US = _LEAST_DAY * DAY_US, (_MOST_DAY + 1) * DAY_US - 1
_MOST_DIGITS = 38
"""Of Arrow's decimal128."""
_NO_DIGIT = r"^-?0?|\."
"""What a text of a number has beside its digits."""
_NANOS = 1000
_DAYS_TO_2000 = date(2000, 1, 1).toordinal() - date(1970, 1, 1).toordinal()
_PLAIN_TEXTS = frozenset({"text", "varchar", "bpchar"})

Decode = Callable[[Any], Any]
"""From the array of a batch to the field's; raises ValueError or ArrowInvalid if it must go value by value."""


class ChangedError(Exception):
    """The table's columns have changed since they were described."""


@dataclass(frozen=True, slots=True)
class ArrowField:
    """One field of a table.

    Attributes:
        field: as the row path has it.
        casts: the types to which the column is cast in the SELECT, one after the other.
        arrived: Arrow type of the result.
        decode: fast conversion; None: value by value.
        python: from a value of the result to one that psycopg returns; None: they are equal.
    """

    field: FieldMapping
    casts: tuple[str, ...]
    arrived: pa.DataType
    decode: Decode | None
    python: Callable[[Any], Any] | None = None

    def values(self, mapping: TableMapping, array: Any) -> Any:
        """The field's array.

        Raises:
            DataError: a value does not fit.
        """
        if self.decode is not None and (self.field.schema.optional or not array.null_count):
            try:
                return self.decode(array)
            except (ValueError, pa.ArrowInvalid):
                pass  # Value by value, the error names the reason.
        return mapping.field_array(self.field, self.driver_values(array))

    def expression(self, name: str) -> str:
        """What is selected of the column with a quoted name."""
        for kind in self.casts:
            name = f"CAST({name} AS {kind})"
        return name

    def check_type(self, found: pa.DataType) -> None:
        """Compare the type of a result with that of the described column.

        Raises:
            ChangedError: it is another one.
        """
        if found != self.arrived:
            raise ChangedError(self.field.column.name)

    def driver_values(self, array: Any) -> list[Any]:
        """The values as psycopg returns them; those that it refuses stay integers."""
        if pa.types.is_temporal(array.type):
            return [_moment(value) for value in array]
        values: list[Any] = array.to_pylist()
        python = self.python
        return values if python is None else [None if value is None else python(value) for value in values]


def arrow_field(field: FieldMapping, granularity: str, times: LocalTimes) -> ArrowField:
    """How a field is read."""
    kind, name = field.column.kind, field.column.type_name
    if kind in _DIRECT and name != "money":
        arrived = _DIRECT[kind]
        is_alias = kind is Kind.INT64 and name != "int8"
        return ArrowField(field, ("int8",) if is_alias else (), arrived, lambda array: array)
    if kind is Kind.STRING:
        return ArrowField(field, () if name in _PLAIN_TEXTS else ("text",), pa.string(), lambda array: array)
    if kind is Kind.NUMERIC:
        return ArrowField(field, ("text",), pa.string(), _numeric(field), Decimal)
    if kind is Kind.DATE:
        return ArrowField(field, (), pa.date32(), _days)
    if kind is Kind.TIME:
        if name == "time":
            return ArrowField(field, (), pa.time64("us"), _times)
        return ArrowField(field, ("text",), pa.string(), None, _time_of_text)
    if kind in (Kind.TIMESTAMP, Kind.INSTANT):
        zone = "UTC" if kind is Kind.INSTANT else None
        return ArrowField(field, (), pa.timestamp("us", zone), _timestamps(field.column, granularity, times))
    if name == "money":  # Its text is as the server's locale wants it.
        return ArrowField(field, ("numeric", "text"), pa.string(), None, Decimal)
    return ArrowField(field, ("text",), pa.string(), None)


_DIRECT: dict[Kind, Any] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INT16: pa.int16(),
    Kind.INT32: pa.int32(),
    Kind.INT64: pa.int64(),
    Kind.FLOAT32: pa.float32(),
    Kind.FLOAT64: pa.float64(),
    Kind.BYTES: pa.binary(),
}


def _numeric(field: FieldMapping) -> Decode:
    """Of texts such as `-12.50`."""
    schema = field.schema
    if schema.name != schemas.DECIMAL:
        kind = arrow_type(schema)
        return _doubles if schema.type is Type.FLOAT64 else lambda texts: texts.cast(kind)
    precision = field.column.precision or _MOST_DIGITS
    scale = int(schema.parameters[schemas.DECIMAL_SCALE])
    if not 0 <= scale <= precision <= _MOST_DIGITS:
        return _value_by_value
    exact = pa.decimal128(precision, scale)

    def decode(texts: Any) -> Any:
        _check_digits(texts)
        return unscaled_column(texts.cast(exact))

    return decode


def _doubles(texts: Any) -> Any:
    found = texts.cast(pa.float64())
    if pc.any(pc.is_inf(found)).as_py():
        raise ValueError  # Infinity, or a number that is larger than any double.
    return found


def _check_digits(texts: Any) -> None:
    """Refuse numbers that Arrow's cast turns into others without an error: those with more digits than it has."""
    longest = pc.max(pc.binary_length(texts)).as_py()
    if longest is None or longest <= _MOST_DIGITS:
        return
    digits = pc.replace_substring_regex(texts, pattern=_NO_DIGIT, replacement="")
    if pc.max(pc.binary_length(digits)).as_py() > _MOST_DIGITS:
        raise ValueError


def _value_by_value(array: Any) -> Any:
    raise ValueError


def _days(array: Any) -> Any:
    days = array.cast(pa.int32())
    _check_range(days, _LEAST_DAY, _MOST_DAY)
    return days


def _times(array: Any) -> Any:
    micros = array.cast(pa.int64())
    _check_range(micros, 0, DAY_US - 1)
    return pc.divide(micros, 1000).cast(pa.int32())


def _timestamps(column: Column, granularity: str, times: LocalTimes) -> Decode | None:
    unit, _, form = granularity.partition("_")
    if form == "iso_datetime_string" or granularity == "nanos_string":
        return None

    def decode(array: Any) -> Any:
        instants = instants_us(array, column.kind, times)
        if unit == "connect":
            instants = instants // 1000
        elif unit == "nanos":
            if len(instants) and max(-int(instants.min()), int(instants.max())) >= (1 << 63) // _NANOS:
                raise ValueError
            instants = instants * _NANOS
        found = pa.array(instants, pa.int64(), mask=_nulls(array))
        return found.cast(pa.string()) if form == "string" else found

    return decode


def instants_us(array: Any, kind: Kind, times: LocalTimes) -> Any:
    """Microseconds since the epoch of a column with times, int64[n]; any number for null.

    Raises:
        ValueError: a time is not one of the years 1 to 9999.
    """
    found = column_us(array, kind)
    return found if kind is Kind.INSTANT else times.instants_us(found)


def column_us(array: Any, kind: Kind) -> Any:
    """Microseconds of a column with times, int64[n]; any number for null.

    They count from the epoch, or for a column without a zone from 1970-01-01T00:00 on the local clock.

    Raises:
        ValueError: a time is not one of the years 1 to 9999.
    """
    micros = array.cast(pa.int32()).cast(pa.int64()) if kind is Kind.DATE else array.cast(pa.int64())
    _check_range(micros, *limits_of(kind))
    found = (micros.fill_null(0) if micros.null_count else micros).to_numpy()
    if kind is Kind.DATE:
        found = found * DAY_US
    return found


def limits_of(kind: Kind) -> tuple[int, int]:
    """The first and the last day, or microsecond, that Python has, inclusive."""
    return (_LEAST_DAY, _MOST_DAY) if kind is Kind.DATE else (_LEAST_US, _MOST_US)


def _nulls(array: Any) -> Any:
    return array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None


def _check_range(numbers: Any, least: int, most: int) -> None:
    bounds = pc.min_max(numbers)
    if bounds["min"].as_py() is not None and not least <= bounds["min"].as_py() <= bounds["max"].as_py() <= most:
        raise ValueError


def _moment(value: Any) -> Any:
    """A temporal scalar of Arrow as a Python object."""
    if not value.is_valid:
        return None
    if pa.types.is_time(value.type) and value.value >= DAY_US:
        return Beyond(is_above=True)  # 24:00, of which Arrow would make 00:00
    try:
        found: date | time | datetime = value.as_py()
    except (ValueError, OverflowError):
        return Beyond(is_above=_is_above(value))
    return found


def _is_above(value: Any) -> bool:
    """Whether a date or time that Python has not is a late one.

    ADBC adds the days, or microseconds, from 1970 to 2000 to the number of PostgreSQL, whose infinities are the largest
    and the smallest number. So late dates become the smallest numbers, and -infinity the next one after them.
    """
    bits, since_1970 = (32, _DAYS_TO_2000) if pa.types.is_date32(value.type) else (64, _DAYS_TO_2000 * DAY_US)
    negative_infinity = -(1 << (bits - 1)) + since_1970
    number: int = value.value
    return number > 0 or number < negative_infinity


def _time_of_text(text: str) -> time | Beyond:
    return Beyond(is_above=True, text=text) if text.startswith("24") else time.fromisoformat(text)
