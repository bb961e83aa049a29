"""Connect values as Arrow columns, as `airflow_connect.api.columns` says how they lie there."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from airflow_connect.api import schema as s
from airflow_connect.api.schema import Schema, Type
from tests.support.values.columns import ARROW_TYPES


def column_type(schema: Schema) -> pa.DataType:
    """The Arrow type of values of `schema`."""
    if schema.type is Type.STRUCT:
        return pa.struct([pa.field(f.name, column_type(f.schema)) for f in schema.fields])
    if schema.type is Type.ARRAY:
        assert schema.value_schema is not None
        return pa.list_(column_type(schema.value_schema))
    if schema.type is Type.MAP:
        assert schema.key_schema is not None and schema.value_schema is not None
        return pa.map_(column_type(schema.key_schema), column_type(schema.value_schema))
    return ARROW_TYPES[schema.type]


def column(schema: Schema, values: list[Any]) -> Any:
    """Values of `schema` as a column, behind others that a slice leaves out: offsets are not 0."""
    kind = column_type(schema)
    raw = [_raw(schema, value) for value in values]
    return pa.array(raw[:1] + raw, kind).slice(len(raw[:1]))


def _raw(schema: Schema, value: Any) -> Any:
    if value is None:
        return None
    if schema.name == s.DECIMAL:
        sign, digits, _ = value.as_tuple()
        number = int("".join(map(str, digits))) * (-1 if sign else 1)
        # Java writes the fewest bytes; more are the same number.
        size = (number if number >= 0 else ~number).bit_length() // 8 + 1
        return number.to_bytes(min(16, size + number % 2), "big", signed=True)
    if schema.type is Type.STRUCT:
        return {f.name: _raw(f.schema, value[f.name]) for f in schema.fields}
    if schema.type is Type.ARRAY:
        assert schema.value_schema is not None
        return [_raw(schema.value_schema, item) for item in value]
    if schema.type is Type.MAP:
        assert schema.key_schema is not None and schema.value_schema is not None
        return [(_raw(schema.key_schema, k), _raw(schema.value_schema, v)) for k, v in value.items()]
    return value
