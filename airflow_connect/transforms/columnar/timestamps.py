"""Points in time, whole columns at once; the meaning is that of `timestamp_converter`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_connect.api import schema as schemas
from airflow_connect.api.schema import Schema, Type
from airflow_connect.converters.java_text import MS_PER_DAY

if TYPE_CHECKING:
    import pyarrow as pa


def to_instants(schema: Schema, column: pa.Array[Any], units_per_second: int) -> pa.Array[Any] | None:
    """Milliseconds since 1970-01-01T00:00:00Z as int64; None if records must be processed one by one.

    Args:
        schema: of the column's values: Date, Time, Timestamp or INT64.
        column: any length, nulls allowed.
        units_per_second: what an INT64 without a name counts.
    """
    import pyarrow as pa

    if schema.type not in (Type.INT32, Type.INT64):
        return None
    wide = column.cast(pa.int64())
    if schema.name == schemas.DATE:
        return _scaled(wide, MS_PER_DAY, 1)
    if schema.name in (schemas.TIME, schemas.TIMESTAMP):
        return wide
    return _scaled(wide, 1000, units_per_second) if schema.type is Type.INT64 else None


def from_instants(instants: pa.Array[Any], target: str, units_per_second: int) -> pa.Array[Any] | None:
    """Column of the type `target` (a value of `target.type`); None if records must be processed one by one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if target == "Timestamp":
        return instants
    if target == "unix":
        return _scaled(instants, units_per_second, 1000)
    if target not in ("Date", "Time"):
        return None
    day = pa.scalar(MS_PER_DAY, pa.int64())
    days = pc.divide(instants, day)
    ms_of_day = pc.subtract(instants, pc.multiply(days, day))
    # Arrow divides towards zero; the day of an instant before 1970 is the one below.
    is_before = pc.less(ms_of_day, pa.scalar(0, pa.int64()))
    if target == "Time":
        return _as_int32(pc.if_else(is_before, pc.add(ms_of_day, day), ms_of_day))
    return _as_int32(pc.if_else(is_before, pc.subtract(days, pa.scalar(1, pa.int64())), days))


def _as_int32(column: Any) -> pa.Array[Any] | None:
    import pyarrow as pa

    try:
        narrow: pa.Array[Any] = column.cast(pa.int32())
    except pa.ArrowInvalid:  # a day beyond 32 bits: what writes the value says so, record by record
        return None
    return narrow


def _scaled(column: pa.Array[Any], multiplier: int, divisor: int) -> pa.Array[Any] | None:
    """`column * multiplier / divisor`, rounded towards zero; None when that needs more than 64 bits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # One divides the other: all of them are powers of ten, or the divisor is 1.
    if multiplier < divisor:
        divided: pa.Array[Any] = pc.divide(column, pa.scalar(divisor // multiplier, pa.int64()))
        return divided
    try:
        factor = pa.scalar(multiplier // divisor, pa.int64())
        multiplied: pa.Array[Any] = pc.multiply_checked(column, factor)
    except pa.ArrowInvalid:  # the record form ends at the largest number
        return None
    return multiplied
