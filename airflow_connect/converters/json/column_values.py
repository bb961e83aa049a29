"""What Arrow reads from JSON, as the columns of a Connect schema: bytes of Base64, 32 bit floats, Decimals.

The reference is `reader.py`. A column with a value that it reads in another way is not vectorizable: None.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_connect.api.schema import DECIMAL, DECIMAL_SCALE, Schema, Type
from airflow_connect.converters.decimal_columns import LONGEST_DECIMAL_BYTES, is_shortest
from airflow_connect.converters.json.base64_columns import bytes_column
from airflow_connect.errors import DataError
from airflow_connect.java.numbers import integer_parameter

_DEFAULTS: dict[Type, type] = {
    **dict.fromkeys((Type.INT8, Type.INT16, Type.INT32, Type.INT64), int),
    Type.FLOAT64: float,
    Type.BOOLEAN: bool,
    Type.STRING: str,
}
_HALF, _LOST_BITS = 0x10000000, 0x1FFFFFFF
"""A double with these of its last bits lies halfway between two 32 bit floats: its own digits decide."""


def has_columns(schema: Schema) -> bool:
    """Whether `values_of` can make columns of a schema of BYTES."""
    if schema.name != DECIMAL:
        return True
    try:
        integer_parameter(schema.parameters.get(DECIMAL_SCALE), DECIMAL_SCALE)
    except DataError:
        return False  # Each record has this error.
    return True


def is_changed(schema: Schema) -> bool:
    """Whether a part of the schema has another type in JSON than in columns."""
    inner = (*(field.schema for field in schema.fields), *([schema.value_schema] if schema.value_schema else ()))
    return schema.type in (Type.BYTES, Type.FLOAT32) or any(map(is_changed, inner))


def has_defaults(schema: Schema) -> bool:
    """Whether a part of the schema has a default with which `with_defaults` can replace nulls."""
    inner = (*(field.schema for field in schema.fields), *([schema.value_schema] if schema.value_schema else ()))
    return _has_plain_default(schema) or any(map(has_defaults, inner))


def _has_plain_default(schema: Schema) -> bool:
    """Whether the default is a value that Arrow's JSON reader could have read."""
    return _DEFAULTS.get(schema.type) is type(schema.default)


def with_defaults(column: Any, schema: Schema) -> Any:
    """A column as Arrow reads it from JSON, with the default of its schema in place of null or of nothing.

    Nulls whose schema has another default, or none, stay.
    """
    if not has_defaults(schema):
        return column
    nulls = column.is_null() if column.null_count else None
    if schema.type is Type.STRUCT:
        parts = [with_defaults(column.field(n), field.schema) for n, field in enumerate(schema.fields)]
        return pa.StructArray.from_arrays(parts, fields=list(column.type), mask=nulls)
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        elements = with_defaults(column.values, schema.value_schema)
        return pa.ListArray.from_arrays(column.offsets, elements, type=column.type, mask=nulls)
    return column if nulls is None else column.fill_null(pa.scalar(schema.default, column.type))


def values_of(column: Any, schema: Schema) -> Any | None:
    """The column as `airflow_connect.api.columns` defines it, or None if a value is not vectorizable.

    Args:
        column: of values that are null only where the schema allows it; BYTES are text, FLOAT32 are doubles.
        schema: of the column.
    """
    if not is_changed(schema):
        return column
    if schema.type is Type.FLOAT32:
        return _floats(column)
    if schema.type is Type.BYTES:
        return _bytes(column, schema)
    nulls = column.is_null() if column.null_count else None
    if schema.type is Type.STRUCT:
        parts: list[Any] = []
        for index, field in enumerate(schema.fields):
            part = values_of(column.field(index), field.schema)
            if part is None:
                return None
            parts.append(part)
        kinds = [pa.field(f.name, part.type) for f, part in zip(schema.fields, parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=kinds, mask=nulls)
    assert schema.value_schema is not None
    elements = values_of(column.values, schema.value_schema)
    if elements is None:
        return None
    kind: Any = pa.list_(pa.field("element", elements.type))
    return pa.ListArray.from_arrays(column.offsets, elements, type=kind, mask=nulls)


def _bytes(column: Any, schema: Schema) -> Any | None:
    found = bytes_column(column)
    if found is None or schema.name != DECIMAL:
        return found
    longest: Any = pc.max(pc.binary_length(found))
    return found if (longest.as_py() or 0) <= LONGEST_DECIMAL_BYTES and is_shortest(found) else None


def _floats(column: Any) -> Any | None:
    numbers = column.drop_null().to_numpy()
    with np.errstate(over="ignore", under="ignore"):
        is_infinite = np.isinf(numbers.astype(np.float32))
    is_near_zero = (numbers != 0) & (np.abs(numbers) < np.finfo(np.float32).tiny)
    is_halfway = numbers.view(np.int64) & _LOST_BITS == _HALF
    if (is_infinite | is_near_zero | is_halfway).any():
        return None
    return column.cast(pa.float32(), safe=False)
