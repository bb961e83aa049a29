"""Converts columns (`airflow_connect.api.columns`) to those of a Parquet file; most only change their type.

The reference is `ParquetFormat.open(...).append`, value by value. The result is None for what is not supported here
(Decimals beyond 128 bits, a default in place of a null); the reference path then handles it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_connect.api.schema import DECIMAL, DECIMAL_SCALE, TIME, Schema, Type
from airflow_connect.converters.map_columns import entries_of
from airflow_connect.converters.time_of_day import LAST_MS, is_beyond
from airflow_connect.java.numbers import integer_parameter

_DECIMAL_BYTES = 16


def file_columns(
    values: Any, schema: Schema, columns: pa.Schema, find_refused: Callable[[Any], object] | None = None
) -> pa.RecordBatch | None:
    """Columns of a file, or None if a value needs the reference path.

    Args:
        values: structs of `schema`, none of them null.
        schema: of the values.
        columns: of the file: `ParquetFormat.arrow_schema(schema)`.
        find_refused: finds a value in a column that the format refuses.
    """
    try:
        parts = zip(values.flatten(), schema.fields, columns, strict=True)
        arrays = [_file_column(column, field.schema, wanted.type, 0) for column, field, wanted in parts]
        if find_refused is not None and any(find_refused(array) for array in arrays):
            return None
        return pa.RecordBatch.from_arrays(arrays, schema=columns)
    except pa.ArrowInvalid:
        return None


def _file_column(column: Any, schema: Schema, wanted: Any, nulls_above: int) -> Any:
    """A column with the type of the file.

    Args:
        column: the values; null wherever a struct around them is.
        schema: of the values.
        wanted: type in the file.
        nulls_above: how many of the nulls come from structs around the values.

    Raises:
        pa.ArrowInvalid: a value needs the reference.
    """
    # Null is an error for a required field, and is replaced in a field with a default.
    if column.null_count > nulls_above and (not schema.optional or schema.default is not None):
        raise pa.ArrowInvalid("a null that is replaced or refused")
    if schema.type is Type.STRUCT:
        return _struct(column, schema, wanted)
    if schema.type is Type.ARRAY:
        return _list(column, schema, wanted)
    if schema.type is Type.MAP:
        return _map(column, schema, wanted)
    if schema.name == DECIMAL:
        return decimals(column, schema, wanted)
    if schema.name == TIME and is_beyond(column, LAST_MS):
        raise pa.ArrowInvalid("a Time outside of the day")
    if pa.types.is_timestamp(wanted) and pa.types.is_int32(column.type):
        column = column.cast(pa.int64())  # Time in ORC; Arrow has timestamps of 64 bits only.
    return column if column.type.equals(wanted) else column.cast(wanted)


def _struct(column: Any, schema: Schema, wanted: Any) -> Any:
    nulls = column.null_count
    members = zip(column.flatten(), schema.fields, wanted, strict=True)
    parts = [_member(_file_column(part, f.schema, field.type, nulls), field) for part, f, field in members]
    return pa.StructArray.from_arrays(parts, fields=list(wanted), mask=column.is_null() if nulls else None)


def _member(column: Any, field: pa.Field[Any]) -> Any:
    """A required member of structs, some of which are null: Parquet needs any value there, and does not write it."""
    if not column.null_count or field.nullable:
        return column
    if pa.types.is_nested(field.type):
        raise pa.ArrowInvalid("a required member of a null struct is nested")
    return column.fill_null(_any_value(field.type))


def _any_value(kind: Any) -> Any:
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.scalar("").cast(kind)
    # Arrow casts to dates and times only from integers of the same width.
    is_short = pa.types.is_date32(kind) or pa.types.is_time32(kind)
    return pa.scalar(0, pa.int32() if is_short else pa.int64()).cast(kind)


def _list(column: Any, schema: Schema, wanted: Any) -> Any:
    assert schema.value_schema is not None
    values = _file_column(column.flatten(), schema.value_schema, wanted.value_type, 0)
    made: Any = pa.ListArray
    return made.from_arrays(list_offsets(column), values, wanted, mask=column.is_null() if column.null_count else None)


def _map(column: Any, schema: Schema, wanted: Any) -> Any:
    """Maps, or lists of their entries if their keys are not texts."""
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    offsets, keys, values = entries_of(column)
    mask = column.is_null() if column.null_count else None
    if pa.types.is_map(wanted):
        made: Any = pa.MapArray
        keys = _file_column(keys, schema.key_schema, wanted.key_type, 0)
        return made.from_arrays(
            offsets, keys, _file_column(values, schema.value_schema, wanted.item_type, 0), wanted, mask=mask
        )
    made, entry = pa.ListArray, wanted.value_type
    keys = _file_column(keys, schema.key_schema, entry.field(0).type, 0)
    values = _file_column(values, schema.value_schema, entry.field(1).type, 0)
    entries = pa.StructArray.from_arrays([keys, values], fields=list(entry))
    return made.from_arrays(offsets, entries, wanted, mask=mask)


def list_offsets(column: Any) -> Any:
    """Offsets of the lists of a column in its `flatten()`: int32[n + 1]."""
    offsets = np.zeros(len(column) + 1, dtype=np.int32)
    np.cumsum(column.value_lengths().fill_null(0).to_numpy(), out=offsets[1:])
    return pa.array(offsets)


def decimals(column: Any, schema: Schema, wanted: Any) -> Any:
    """Connect's bytes, highest first, to Arrow's 16 bytes, lowest first.

    Raises:
        pa.ArrowInvalid: a number is longer, or has more digits than the type, or the type is not decimal128 with the
            scale of the schema.
    """
    scale = integer_parameter(schema.parameters.get(DECIMAL_SCALE, "0"))
    if not pa.types.is_decimal128(wanted) or wanted.scale != scale:
        raise pa.ArrowInvalid("a wide Decimal, or one with a negative scale")
    present = column.is_valid()
    filled = column.fill_null(b"\0") if column.null_count else column
    bounds = np.frombuffer(filled.buffers()[1], dtype=np.int32)[filled.offset : filled.offset + len(filled) + 1]
    lengths = np.diff(bounds)
    if not len(filled):
        return pa.array([], wanted)
    if int(lengths.min()) < 1 or int(lengths.max()) > _DECIMAL_BYTES:
        raise pa.ArrowInvalid("a Decimal without bytes, or with more than 16")
    data = np.frombuffer(filled.buffers()[2], dtype=np.uint8)
    place = np.arange(_DECIMAL_BYTES)
    digits = data[np.maximum(bounds[1:, None] - 1 - place, 0)]
    signs = np.where(data[bounds[:-1]] & 0x80, np.uint8(0xFF), np.uint8(0))
    numbers: Any = np.ascontiguousarray(np.where(place < lengths[:, None], digits, signs[:, None]))
    buffers: Any = [None, pa.py_buffer(numbers)]
    made: Any = pa.Array.from_buffers(wanted, len(filled), buffers)
    made.validate(full=True)
    return pc.if_else(present, made, pa.scalar(None, wanted)) if column.null_count else made
