"""Connect schemas as Arrow schemas, for Parquet.

The Parquet types are those of Confluent's sink, which converts through Avro: INT8 and INT16 are 32 bits wide, maps
with keys that are not strings are lists of {key, value}. One difference: a Decimal without `connect.decimal.precision`
gets precision 38, not 64, because Spark, Hive, Trino and Athena read at most 38 digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from airflow_connect.api.schema import DATE, DECIMAL, DECIMAL_SCALE, TIME, TIMESTAMP, Schema, Type
from airflow_connect.converters.value_transform import ChangeRules, Transform, has_string_keys, make_transform
from airflow_connect.errors import SchemaError
from airflow_connect.java.numbers import integer_parameter

DEFAULT_PRECISION = 38
MAX_PRECISION = 76
_PRECISION_PARAMETER = "connect.decimal.precision"

_PRIMITIVES: dict[Type, pa.DataType] = {
    Type.INT8: pa.int32(),
    Type.INT16: pa.int32(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(),
    Type.FLOAT64: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.STRING: pa.string(),
    Type.BYTES: pa.binary(),
}
_LOGICAL: dict[str, pa.DataType] = {
    DATE: pa.date32(),
    TIME: pa.time32("ms"),
    TIMESTAMP: pa.timestamp("ms", "UTC"),
}


@dataclass(frozen=True, slots=True)
class ArrowMapping:
    """How Connect schemas become Arrow.

    Attributes:
        allow_optional_map_keys: the configuration key of that name.
        format_name: for messages.
    """

    allow_optional_map_keys: bool = False
    format_name: str = "ParquetFormat"

    def arrow_schema(self, schema: Schema) -> pa.Schema:
        """Columns of a file with values of `schema`.

        Raises:
            SchemaError: not a STRUCT, or with a part that Parquet cannot express.
        """
        if schema.type is not Type.STRUCT:
            raise SchemaError(
                f"{self.format_name} needs a STRUCT at the top, whose fields become the columns, "
                f"but the values have the schema {schema.name or schema.type.name}.",
                code="data.not_struct",
                suggestion="Wrap the value with a transformation (HoistField), or use AvroFormat.",
            )
        return pa.schema(self._fields(schema, ""))

    def transform(self, schema: Schema) -> Transform | None:
        """The function from a Connect value to what Arrow accepts, or None if they are equal."""
        return make_transform(schema, ChangeRules(self._stays_map))

    def _stays_map(self, schema: Schema) -> bool:
        return has_string_keys(schema, self.allow_optional_map_keys)

    def _fields(self, schema: Schema, path: str) -> list[pa.Field[Any]]:
        if not schema.fields:
            raise SchemaError(
                f"{self.format_name} cannot write {path or 'the value'}: it is a STRUCT without fields, "
                f"and {self.format_name.removesuffix('Format')} has no empty groups.",
                code="data.empty_struct",
                suggestion="Add a field, or drop the empty one with a transformation (ReplaceField).",
            )
        return [self._field(f.name, f.schema, f"{path}.{f.name}".lstrip(".")) for f in schema.fields]

    def _field(self, name: str, schema: Schema, path: str) -> pa.Field[Any]:
        return pa.field(name, self._type(schema, path), nullable=schema.optional)

    def _type(self, schema: Schema, path: str) -> pa.DataType:
        if schema.type is Type.STRUCT:
            return pa.struct(self._fields(schema, path))
        if schema.type is Type.ARRAY and schema.value_schema:
            return pa.list_(self._field("element", schema.value_schema, f"{path}[]"))
        if schema.type is Type.MAP and schema.key_schema and schema.value_schema:
            item: Any = self._field("value", schema.value_schema, f"{path}{{}}")
            if self._stays_map(schema):
                string_key: Any = pa.field("key", pa.string(), nullable=False)
                return pa.map_(string_key, item)
            key = self._field("key", schema.key_schema, f"{path} (a map key)")
            return pa.list_(pa.field("element", pa.struct([key, item]), nullable=False))
        if schema.name == DECIMAL:
            return _decimal(schema, path, self.format_name)
        return _LOGICAL.get(schema.name or "", _PRIMITIVES[schema.type])


def _decimal(schema: Schema, path: str, format_name: str) -> pa.DataType:
    # A negative scale means zeros before the point: exact with scale 0.
    scale = max(0, integer_parameter(schema.parameters.get(DECIMAL_SCALE, "0")))
    given = schema.parameters.get(_PRECISION_PARAMETER)
    precision = DEFAULT_PRECISION if scale <= DEFAULT_PRECISION else MAX_PRECISION
    if given:
        precision = integer_parameter(given, _PRECISION_PARAMETER)
    if not 1 <= precision <= MAX_PRECISION or scale > precision:
        raise SchemaError(
            f"{format_name} cannot write {path}, a Decimal of precision {precision} and scale {scale}: "
            f"precision must be 1 to {MAX_PRECISION}, and scale not above precision.",
            code="data.decimal",
            suggestion="Convert it to a string or a double with a transformation (Cast).",
        )
    return pa.decimal128(precision, scale) if precision <= DEFAULT_PRECISION else pa.decimal256(precision, scale)
