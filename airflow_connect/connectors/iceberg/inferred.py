"""A schema for values that have none: from all values of a batch.

The rule: texts, true and false are what they are; whole numbers have 64 bits, all others are doubles, and so are whole
numbers beside doubles; objects are structs, with every field that one of them has; lists have the type of all their
elements. What is null everywhere, a list without elements and an object without fields have no type (`UNKNOWN`): no
column is made for them, but a column that the table has gets them. A field is required if every value has it; tables
that are created or changed have optional columns all the same.

Source: org.apache.iceberg.connect.data.SchemaUtils.inferIcebergType, which looks at the first element of a list only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_connect.api.schema import Schema, Type, array, struct
from airflow_connect.errors import DataError

MOST_LEVELS = 32
"""Of nested structs, lists and maps. With about 100, pyiceberg cannot load the metadata of the table any more."""
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_PLAIN: dict[type, Type] = {
    bool: Type.BOOLEAN,
    int: Type.INT64,
    float: Type.FLOAT64,
    str: Type.STRING,
    bytes: Type.BYTES,
}
UNKNOWN = "airflow_connect.Unknown"
"""Name of the schema of values that say nothing about their type: nulls, as STRING, and empty objects, as STRUCT."""
_NULLS, _EMPTY = Schema(Type.STRING, optional=True, name=UNKNOWN), Schema(Type.STRUCT, optional=True, name=UNKNOWN)


def inferred_schema(values: Sequence[Any]) -> Schema:
    """A struct for values without a schema.

    Raises:
        DataError: a value is no object, or values of one field have types that do not go together.
    """
    for value in values:
        if not isinstance(value, Mapping):
            raise DataError(
                f"A table needs objects with fields, but a value is of the type {type(value).__name__}.",
                code="data.not_struct",
                suggestion="Wrap the value with a transformation (HoistField).",
            )
    found = _of(values, "", 0)
    # A batch without columns would have no rows.
    return struct((UNKNOWN, _NULLS)) if found is _EMPTY else found


def known_part(schema: Schema) -> Schema | None:
    """The schema without parts of an unknown type; None if nothing is left."""
    if schema.name == UNKNOWN:
        return None
    if schema.type is Type.ARRAY and schema.value_schema:
        element = known_part(schema.value_schema)
        return None if element is None else array(element, optional=schema.optional)
    if schema.type is not Type.STRUCT:
        return schema
    fields = [(field.name, found) for field in schema.fields if (found := known_part(field.schema)) is not None]
    return struct(*fields, optional=schema.optional) if fields else None


def too_deep(path: str) -> DataError:
    """The error for a value or a schema with more levels than a table can have."""
    return DataError(
        f"The field {path.lstrip('.')[:200]} has more than {MOST_LEVELS} structs, lists and maps in one another.",
        code="iceberg.too_deep",
        suggestion="Make it flat with a transformation (Flatten), or drop the field (ReplaceField).",
    )


def _of(values: Sequence[Any], path: str, depth: int) -> Schema:
    """The schema of all values, nulls among them; `depth`: how many objects and lists are around them."""
    if depth > MOST_LEVELS:
        raise too_deep(path)
    present = [value for value in values if value is not None]
    is_optional = len(present) < len(values)
    kinds = {_kind(value) for value in present}
    if not kinds:
        return _NULLS
    if kinds == {dict}:
        return _of_objects(present, path, depth, is_optional=is_optional)
    if kinds == {list}:
        items = [item for value in present for item in value]
        return array(_of(items, f"{path}[]", depth + 1), optional=is_optional)
    if kinds == {int, float}:
        kinds = {float}
    if len(kinds) > 1 or not kinds <= _PLAIN.keys():
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise DataError(
            f"The field {path or 'value'} has values of the types {names}, which have no column in common.",
            code="iceberg.inferred",
            suggestion="Give the records a schema: value.converter.schema.content, or a Schema Registry.",
        )
    (kind,) = kinds
    if kind is int and not all(_LEAST <= value <= _MOST for value in present):
        raise DataError(f"The number in field {path or 'value'} has more than 64 bits.", code="iceberg.inferred")
    return Schema(_PLAIN[kind], optional=is_optional)


def _of_objects(values: Sequence[Mapping[str, Any]], path: str, depth: int, *, is_optional: bool) -> Schema:
    names = dict.fromkeys(name for value in values for name in value)
    for name in names:
        if not isinstance(name, str):
            raise DataError(
                f"The field {path or 'value'} has a key of the type {type(name).__name__}, and columns have names.",
                code="iceberg.inferred",
                suggestion="Give the records a schema: value.converter.schema.content, or a Schema Registry.",
            )
    fields = [
        (name, _of([value.get(name) for value in values], f"{path}.{name}".lstrip("."), depth + 1)) for name in names
    ]
    return struct(*fields, optional=is_optional) if fields else _EMPTY


def _kind(value: Any) -> type:
    if isinstance(value, Mapping):
        return dict
    if isinstance(value, list | tuple):
        return list
    return bytes if isinstance(value, bytearray | memoryview) else type(value)
