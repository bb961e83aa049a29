"""Functions from Connect values to what a typed format takes; none for schemas that need no change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.api.schema import DECIMAL, TIME, Type
from airflow_connect.converters.time_of_day import written_time
from airflow_connect.converters.union_members import member_of
from airflow_connect.errors import SchemaError

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema

Transform = Callable[[Any], Any]


def has_string_keys(schema: Schema, allow_optional: bool) -> bool:
    """Whether a MAP stays a map; others become arrays of {key, value} as Confluent's AvroData makes them."""
    key = schema.key_schema
    return key is not None and key.type is Type.STRING and (allow_optional or not key.optional)


@dataclass(frozen=True, slots=True)
class ChangeRules:
    """The conversions that a format needs.

    Attributes:
        stays_map: whether a MAP schema is written as a map and not as an array of {key, value}.
        decimal: makes the change of a Decimal; None leaves `decimal.Decimal`.
        union: branch names of a STRUCT that represents a union, by field name; None for other structs. Such a value
            becomes (branch, value of the field that is set).
        field_name: the written name of a field.
        null_is_default: whether null is written as the schema's default, as Java's Struct.get has it.
    """

    stays_map: Callable[[Schema], bool]
    decimal: Callable[[Schema], Transform] | None = None
    union: Callable[[Schema], dict[str, str] | None] = lambda schema: None
    field_name: Callable[[str], str] = lambda name: name
    null_is_default: bool = True


def make_transform(schema: Schema, rules: ChangeRules) -> Transform | None:
    """The change of values of `schema`, or None when there is nothing to change."""
    made = _of_present(schema, rules)
    default = schema.default if rules.null_is_default or not schema.optional else None
    if made is None and default is None:
        return None
    present = made or (lambda value: value)
    missing = None if default is None else _changed_default(present, default)
    return lambda value: missing if value is None else present(value)


def _changed_default(present: Transform, default: Any) -> Any:
    try:
        return present(default)
    except (ArithmeticError, ValueError) as error:
        raise SchemaError(
            f"A default in the schema cannot be written: {error}.",
            code="data.mismatch",
            suggestion="Correct the default in the schema.",
        ) from error


def _of_present(schema: Schema, rules: ChangeRules) -> Transform | None:
    if schema.name == DECIMAL and schema.type is Type.BYTES:
        return rules.decimal(schema) if rules.decimal else None
    if schema.name == TIME and schema.type is Type.INT32:
        return written_time
    if schema.type is Type.STRUCT:
        branches = rules.union(schema)
        return _of_struct(schema, rules) if branches is None else _of_union(schema, branches, rules)
    if schema.type is Type.ARRAY and schema.value_schema:
        item = make_transform(schema.value_schema, rules)
        return None if item is None else _of_array(item)
    if schema.type is Type.MAP and schema.key_schema and schema.value_schema:
        key, item = make_transform(schema.key_schema, rules), make_transform(schema.value_schema, rules)
        return _of_map(key, item, rules.stays_map(schema))
    return None


def _of_struct(schema: Schema, rules: ChangeRules) -> Transform | None:
    renamed = {f.name: rules.field_name(f.name) for f in schema.fields}
    changed = [(f.name, change) for f in schema.fields if (change := make_transform(f.schema, rules)) is not None]
    if all(name == written for name, written in renamed.items()):
        if not changed:
            return None
        return lambda value: {**value, **{name: change(value.get(name)) for name, change in changed}}
    changes = dict(changed)

    def rename(value: dict[str, Any]) -> dict[str, Any]:
        return {
            written: changes[name](value.get(name)) if name in changes else value.get(name)
            for name, written in renamed.items()
        }

    return rename


def _of_union(schema: Schema, branches: dict[str, str], rules: ChangeRules) -> Transform:
    members = {f.name: (branches[f.name], make_transform(f.schema, rules)) for f in schema.fields}

    def choose(value: dict[str, Any]) -> Any:
        name = member_of(value, members)
        if name is None:
            return None
        branch, change = members[name]
        return (branch, value[name] if change is None else change(value[name]))

    return choose


def _of_array(item: Transform) -> Transform:
    return lambda value: [item(v) for v in value]


def _of_map(key: Transform | None, item: Transform | None, stays_map: bool) -> Transform | None:
    if stays_map and key is None and item is None:
        return None
    change, change_key = item or (lambda value: value), key or (lambda value: value)
    if stays_map:
        return lambda value: {change_key(k): change(v) for k, v in value.items()}
    return lambda value: [{"key": change_key(k), "value": change(v)} for k, v in value.items()]
