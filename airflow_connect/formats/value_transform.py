"""Functions from Connect values to what a typed format takes; none for schemas that need no change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow_connect.api.schema import DECIMAL, Type

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema

Transform = Callable[[Any], Any]


def has_string_keys(schema: Schema, allow_optional: bool) -> bool:
    """Whether a MAP stays a map; others become arrays of {key, value} as Confluent's AvroData makes them."""
    key = schema.key_schema
    return key is not None and key.type is Type.STRING and (allow_optional or not key.optional)


def make_transform(
    schema: Schema,
    stays_map: Callable[[Schema], bool],
    decimal_transform: Callable[[Schema], Transform] | None = None,
) -> Transform | None:
    """The change of values of `schema`, or None when there is nothing to change.

    Args:
        schema: of the values.
        stays_map: whether a MAP schema is written as a map and not as an array of {key, value}.
        decimal_transform: makes the change of a Decimal; None leaves `decimal.Decimal`.
    """
    made = _of_present(schema, stays_map, decimal_transform)
    default = schema.default
    if made is None and default is None:
        return None
    present = made or (lambda value: value)
    # As in Java, where Struct.get gives the default for null (ignore.default.for.nullables=false).
    missing = present(default) if default is not None else None
    return lambda value: missing if value is None else present(value)


def _of_present(
    schema: Schema,
    stays_map: Callable[[Schema], bool],
    decimal_transform: Callable[[Schema], Transform] | None,
) -> Transform | None:
    def inner(part: Schema) -> Transform | None:
        return make_transform(part, stays_map, decimal_transform)

    if schema.name == DECIMAL:
        return decimal_transform(schema) if decimal_transform else None
    if schema.type is Type.STRUCT:
        changed = [(f.name, change) for f in schema.fields if (change := inner(f.schema)) is not None]
        if not changed:
            return None
        return lambda value: {**value, **{name: change(value.get(name)) for name, change in changed}}
    if schema.type is Type.ARRAY and schema.value_schema:
        item = inner(schema.value_schema)
        return None if item is None else lambda value: [item(v) for v in value]
    if schema.type is Type.MAP and schema.key_schema and schema.value_schema:
        return _of_map(inner(schema.key_schema), inner(schema.value_schema), stays_map(schema))
    return None


def _of_map(key: Transform | None, item: Transform | None, stays_map: bool) -> Transform | None:
    if stays_map and item is None:
        return None
    change = item or (lambda value: value)
    if stays_map:
        return lambda value: {k: change(v) for k, v in value.items()}
    change_key = key or (lambda value: value)
    return lambda value: [{"key": change_key(k), "value": change(v)} for k, v in value.items()]
