"""What is written into a column of a table, for many records at once: the columnar form of `values.py`.

A bound column has one of Arrow's types that say what the value is: integers, floats, bool, string, binary,
decimal128, date32, time64[us] or timestamp[us].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_connect.api.schema import DATE, DECIMAL, DECIMAL_SCALE, TIME, TIMESTAMP, Schema, Type
from airflow_connect.connectors.jdbc.sink.fields import SinkField
from airflow_connect.connectors.jdbc.sink.values import Binding
from airflow_connect.formats.columnar.arrow_columns import decimals
from airflow_connect.java.numbers import integer_parameter
from airflow_connect.layout.time.time_zones import Zone

BindColumn = Callable[[Any], Any]
"""A column of Connect's values to the bound column; None if the values must be bound one by one."""

_DAY_MS = 86_400_000
# datetime.min and datetime.max, which the row path cannot leave.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_DAY_US = _DAY_MS * 1000
_FIRST_US, _LAST_US = _FIRST_DAY * _DAY_MS * 1000, (_LAST_DAY + 1) * _DAY_MS * 1000 - 1
_DECIMAL_DIGITS = 38
_PRIMITIVE = frozenset(
    {
        Type.INT8,
        Type.INT16,
        Type.INT32,
        Type.INT64,
        Type.FLOAT32,
        Type.FLOAT64,
        Type.BOOLEAN,
        Type.STRING,
        Type.BYTES,
    }
)


def column_binding(binding: Binding, field: SinkField) -> BindColumn | None:
    """How the column of a field is bound; None if its values must be bound one by one."""
    if field.schema.type not in _PRIMITIVE or field.column is None:
        return None
    bind = _bind(binding, field)
    if bind is None:
        return None
    default = field.schema.default

    def bound(column: Any) -> Any:
        if default is not None and column.null_count:
            if not binding.replaces_null or field.schema.name == DECIMAL:
                return None
            column = column.fill_null(pa.scalar(default, column.type))
        return bind(column)

    return bound


def _bind(binding: Binding, field: SinkField) -> BindColumn | None:
    schema = field.schema
    if field.name in binding.timestamp_fields and not field.is_key:
        if schema.type is not Type.INT64 or schema.name is not None:
            return None
        return lambda column: _moments(_microseconds(column, binding.per_second))
    if schema.name == DECIMAL:
        return lambda column: _decimals(column, schema)
    if schema.name == DATE:
        return lambda column: _dates(column, binding)
    if schema.name == TIME:
        return _times
    if schema.name == TIMESTAMP:
        return lambda column: _moments(_scaled(column, 1000))
    if schema.type is Type.BOOLEAN and binding.database == "mysql":
        return lambda column: column.cast(pa.int8())
    return lambda column: column


def _decimals(column: Any, schema: Schema) -> Any:
    scale = integer_parameter(schema.parameters.get(DECIMAL_SCALE, "0"))
    if not 0 <= scale <= _DECIMAL_DIGITS:
        return None
    try:
        return decimals(column, schema, pa.decimal128(_DECIMAL_DIGITS, scale))
    except pa.ArrowInvalid:
        return None


def _dates(column: Any, binding: Binding) -> Any:
    days = _numbers(column)
    if not _lie_in(days, _FIRST_DAY, _LAST_DAY):
        return None
    if str(binding.date_zone) != "UTC":
        midnights = days * _DAY_MS
        days = (midnights + Zone("", binding.date_zone).offsets_of(midnights)) // _DAY_MS
        if not _lie_in(days, _FIRST_DAY, _LAST_DAY):
            return None
    return _typed(days.astype(np.int32), pa.date32(), column)


def _times(column: Any) -> Any:
    milliseconds = _numbers(column)
    return _typed(milliseconds * 1000, pa.time64("us"), column) if _lie_in(milliseconds, 0, _DAY_MS - 1) else None


def _scaled(column: Any, factor: int) -> Any:
    """The integers times `factor`; None if one would not fit."""
    numbers = _numbers(column)
    if not _lie_in(numbers, _FIRST_US // factor, _LAST_US // factor):
        return None
    return _typed(numbers * factor, pa.int64(), column)


def _microseconds(column: Any, per_second: int) -> Any:
    return _typed(_numbers(column) // (per_second // 1_000_000), pa.int64(), column)


def _moments(microseconds: Any) -> Any:
    """Points in time, in UTC; `moments_for_column` follows."""
    if microseconds is None or not _lie_in(_numbers(microseconds), _FIRST_US, _LAST_US):
        return None
    return _typed(_numbers(microseconds), pa.timestamp("us"), microseconds)


def moments_for_column(column: Any, binding: Binding, *, is_instant: bool) -> Any:
    """What is written of points in time; None if they must be written one by one. See `Binding.for_column`.

    Args:
        column: timestamp[us], in UTC.
        binding: of the record.
        is_instant: whether the column of the table holds points in time, not the time of a local clock.
    """
    if str(binding.zone) == "UTC":
        return column
    numbers = _numbers(column.view(pa.int64()))
    if is_instant and _lie_in(numbers, _FIRST_US + _DAY_US, _LAST_US - _DAY_US):
        return column
    local = numbers + Zone("", binding.zone).offsets_of(numbers // 1000) * 1000
    if not _lie_in(local, _FIRST_US, _LAST_US):
        return None
    # A row needs an instant in the zone, too, where the last hours of the year 9999 may be those of the year 10000.
    return column if is_instant else _typed(local, pa.timestamp("us"), column)


def _numbers(column: Any) -> Any:
    """int64[n]; 0 in the place of nulls."""
    filled = pc.fill_null(column, 0) if column.null_count else column
    return filled.to_numpy(zero_copy_only=False).astype(np.int64)


def _lie_in(numbers: Any, first: int, last: int) -> bool:
    return not len(numbers) or bool(numbers.min() >= first and numbers.max() <= last)


def _typed(numbers: Any, kind: pa.DataType, like: Any) -> Any:
    """An array of `kind` with these numbers and the nulls of another array."""
    made: Any = pa.array(numbers).view(kind)
    return pc.if_else(like.is_valid(), made, pa.scalar(None, kind)) if like.null_count else made
