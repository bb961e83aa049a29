"""Connect's types as Iceberg's, and Iceberg's as columns of a data file.

Source of the rules: org.apache.iceberg.connect.data.SchemaUtils; the Iceberg specification, "Primitive types" and
"Parquet". The original writes numbers that do not fit as others; here they are errors (`columns.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from airflow_connect.api.schema import DATE, DECIMAL, DECIMAL_SCALE, TIME, TIMESTAMP, Type
from airflow_connect.connectors.iceberg.inferred import MOST_LEVELS, UNKNOWN, known_part, too_deep
from airflow_connect.connectors.iceberg.library import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergSchema,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from airflow_connect.converters.value_transform import ChangeRules, Transform, make_transform
from airflow_connect.errors import SchemaError
from airflow_connect.formats.columnar.arrow_schema import ArrowMapping
from airflow_connect.java.numbers import integer_parameter

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema

MOST_DIGITS = 38
UUID_NAMES = ("uuid", "io.debezium.data.Uuid")
"""Names of schemas of strings that hold a UUID."""

_PRIMITIVES: dict[Type, IcebergType] = {
    Type.INT8: IntegerType(),
    Type.INT16: IntegerType(),
    Type.INT32: IntegerType(),
    Type.INT64: LongType(),
    Type.FLOAT32: FloatType(),
    Type.FLOAT64: DoubleType(),
    Type.BOOLEAN: BooleanType(),
    Type.STRING: StringType(),
    Type.BYTES: BinaryType(),
}
_LOGICAL: dict[str, IcebergType] = {DATE: DateType(), TIME: TimeType(), TIMESTAMP: TimestamptzType()}
_ARROW: dict[type[IcebergType], pa.DataType] = {
    BooleanType: pa.bool_(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    DateType: pa.date32(),
    TimeType: pa.time64("us"),
    TimestampType: pa.timestamp("us"),
    TimestamptzType: pa.timestamp("us", "UTC"),
    StringType: pa.string(),
    UUIDType: pa.uuid(),
    BinaryType: pa.binary(),
}
_FIELD_ID = b"PARQUET:field_id"


class ValueMapping(ArrowMapping):
    """Connect schemas as Arrow, on the way to a table: as for Parquet files, but every map is a map."""

    def transform(self, schema: Schema) -> Transform | None:
        """The function from a Connect value to what Arrow accepts, or None if they are equal."""
        return make_transform(schema, ChangeRules(lambda _: True))

    def arrow_schema(self, schema: Schema) -> pa.Schema:
        """Columns for values of `schema`.

        Raises:
            SchemaError: not a STRUCT, or with a part that has no type in a table.
            DataError: it has too many levels.
        """
        _refuse_deep(schema, "", 0)
        try:
            return super().arrow_schema(schema)
        except UnicodeEncodeError:
            raise SchemaError(
                "The name of a field contains half of a surrogate pair, which UTF-8 cannot represent.",
                code="iceberg.schema",
                suggestion="Rename or drop the field with a transformation (ReplaceField).",
            ) from None

    def _fields(self, schema: Schema, path: str) -> list[pa.Field[Any]]:
        return [] if schema.name == UNKNOWN else super()._fields(schema, path)

    def _type(self, schema: Schema, path: str) -> pa.DataType:
        if schema.name == UNKNOWN and schema.type is not Type.STRUCT:
            return pa.null()
        if schema.type is not Type.MAP or not schema.key_schema or not schema.value_schema:
            return super()._type(schema, path)
        key: Any = pa.field("key", self._type(schema.key_schema, f"{path} (a map key)"), nullable=False)
        value: Any = self._field("value", schema.value_schema, f"{path}{{}}")
        return pa.map_(key, value)


def _refuse_deep(schema: Schema, path: str, depth: int) -> None:
    if depth > MOST_LEVELS:
        raise too_deep(path)
    inner = [(field.schema, f"{path}.{field.name}") for field in schema.fields]
    inner += [(part, f"{path}[]") for part in (schema.key_schema, schema.value_schema) if part is not None]
    for part, where in inner:
        _refuse_deep(part, where, depth + 1)


def iceberg_type(schema: Schema, path: str, *, all_optional: bool) -> IcebergType:
    """The type of a column for values of `schema`. Its field ids have no meaning: the table gives them.

    Args:
        schema: of the values.
        path: of the field, for messages.
        all_optional: whether every part of it is optional.

    Raises:
        SchemaError: Iceberg has no such type.
    """
    return _type(schema, path, count(1), all_optional=all_optional)


def iceberg_fields(schema: Schema, *, all_optional: bool) -> tuple[NestedField, ...]:
    """The columns of a table for values of `schema`, a STRUCT; none for parts whose type is unknown.

    Raises:
        SchemaError: Iceberg has no such type.
    """
    known = known_part(schema)
    if known is None:
        return ()
    struct = iceberg_type(known, "", all_optional=all_optional)
    assert isinstance(struct, StructType)
    return struct.fields


def _type(schema: Schema, path: str, ids: Any, *, all_optional: bool) -> IcebergType:
    if schema.type is Type.STRUCT:
        if not schema.fields:
            raise SchemaError(
                f"An Iceberg table cannot have {path or 'a table'} without fields.",
                code="data.empty_struct",
                suggestion="Add a field, or drop the empty one with a transformation (ReplaceField).",
            )
        fields = []
        for field in schema.fields:
            inner = f"{path}.{field.name}".lstrip(".")
            number, is_required = next(ids), not (field.schema.optional or all_optional)
            made = _type(field.schema, inner, ids, all_optional=all_optional)
            fields.append(NestedField(number, field.name, made, required=is_required, doc=field.schema.doc))
        return StructType(*fields)
    if schema.type is Type.ARRAY and schema.value_schema:
        number, is_required = next(ids), not (schema.value_schema.optional or all_optional)
        return ListType(number, _type(schema.value_schema, f"{path}[]", ids, all_optional=all_optional), is_required)
    if schema.type is Type.MAP and schema.key_schema and schema.value_schema:
        of_key, of_value = next(ids), next(ids)
        key = _type(schema.key_schema, f"{path} (a map key)", ids, all_optional=all_optional)
        value = _type(schema.value_schema, f"{path}{{}}", ids, all_optional=all_optional)
        return MapType(of_key, key, of_value, value, not (schema.value_schema.optional or all_optional))
    if schema.name == DECIMAL and schema.type is Type.BYTES:
        return _decimal(schema, path)
    if schema.type is Type.STRING and schema.name in UUID_NAMES:
        return UUIDType()
    return _LOGICAL.get(schema.name or "", _PRIMITIVES[schema.type])


def all_optional(kind: IcebergType) -> IcebergType:
    """The same type with optional parts."""
    if isinstance(kind, StructType):
        return StructType(
            *(
                NestedField(f.field_id, f.name, all_optional(f.field_type), required=False, doc=f.doc)
                for f in kind.fields
            )
        )
    if isinstance(kind, ListType):
        return ListType(kind.element_id, all_optional(kind.element_type), False)
    if isinstance(kind, MapType):
        return MapType(kind.key_id, kind.key_type, kind.value_id, all_optional(kind.value_type), False)
    return kind


def _decimal(schema: Schema, path: str) -> DecimalType:
    scale = max(0, integer_parameter(schema.parameters.get(DECIMAL_SCALE, "0")))
    given = schema.parameters.get("connect.decimal.precision")
    precision = integer_parameter(given, "connect.decimal.precision") if given else MOST_DIGITS
    if not 1 <= precision <= MOST_DIGITS or scale > precision:
        raise SchemaError(
            f"An Iceberg table cannot have {path}, a Decimal of precision {precision} and scale {scale}: it has at most"
            f" {MOST_DIGITS} digits.",
            code="data.decimal",
            suggestion="Convert it to a string or a double with a transformation (Cast).",
        )
    return DecimalType(precision, scale)


def file_schema(schema: IcebergSchema) -> pa.Schema:
    """The columns of a data file of a table, with the ids of their fields.

    Raises:
        SchemaError: the table has a type that cannot be written.
    """
    return pa.schema([_field(field.name, field, field.field_type) for field in schema.fields])


def _field(name: str, field: NestedField, kind: IcebergType) -> Any:
    return pa.field(name, arrow_type(kind, name), not field.required, {_FIELD_ID: str(field.field_id)})


def field_id_of(field: Any) -> int:
    """The id of a column, of its field in Arrow; 0 if it has none."""
    return int((field.metadata or {}).get(_FIELD_ID, 0))


def arrow_type(kind: IcebergType, path: str = "") -> pa.DataType:
    """The Arrow type of a column.

    Raises:
        SchemaError: values of this type cannot be written.
    """
    if isinstance(kind, StructType):
        return pa.struct([_field(field.name, field, field.field_type) for field in kind.fields])
    if isinstance(kind, ListType):
        return pa.list_(_field("element", kind.element_field, kind.element_type))
    if isinstance(kind, MapType):
        key: Any = _field("key", kind.key_field, kind.key_type)
        return pa.map_(key, _field("value", kind.value_field, kind.value_type))
    if isinstance(kind, DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, FixedType):
        return pa.binary(len(kind))
    found = _ARROW.get(type(kind))
    if found is None:
        raise SchemaError(
            f"The column {path} has the type {kind}, which this sink does not write.",
            code="iceberg.type",
            suggestion="Write to a table without this column, or drop it.",
        )
    return found


def names_that_collide(names: Sequence[str]) -> tuple[str, str] | None:
    """Two names that differ only in case: Spark and Hive cannot read such a table."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            return other, name
    return None
