"""The Arrow types of the fields that the JDBC source makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.api.schema import Schema, Type

if TYPE_CHECKING:
    import pyarrow as pa

_NAMES = {
    Type.INT8: "int8",
    Type.INT16: "int16",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.FLOAT32: "float32",
    Type.FLOAT64: "float64",
    Type.BOOLEAN: "bool_",
    Type.STRING: "string",
    Type.BYTES: "binary",
}
"""The functions of pyarrow that make the types."""


def arrow_type(schema: Schema) -> pa.DataType:
    """The Arrow type of a field, as airflow_connect.api.columns defines it."""
    import pyarrow as pa

    found: pa.DataType = getattr(pa, _NAMES[schema.type])()
    return found
