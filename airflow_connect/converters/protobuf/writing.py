"""Connect values to Protobuf messages, by the names of the fields.

Source: io.confluent.connect.protobuf.ProtobufData.fromConnectData (8.1).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from google.protobuf import message_factory

from airflow_connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type
from airflow_connect.converters.java_text import MS_PER_DAY, calendar_fields
from airflow_connect.converters.protobuf import names
from airflow_connect.converters.protobuf.names import ProtobufOptions
from airflow_connect.converters.protobuf.reading import (
    FIRST_SECOND,
    LAST_SECOND,
    NS_PER_MS,
    UNSIGNED_64,
    no_such_time,
)
from airflow_connect.converters.protobuf.to_connect import is_map
from airflow_connect.converters.union_members import member_of
from airflow_connect.errors import DataError
from airflow_connect.java.numbers import parse_integer, unscaled, unscaled_bytes


def fill_message(target: Any, schema: Schema, value: Any, options: ProtobufOptions) -> None:
    """Put a value into an empty message of the type that was made for its schema.

    Raises:
        DataError: the value does not fit the schema.
    """
    if schema.name in _LOGICAL_WRITERS:
        _LOGICAL_WRITERS[schema.name](target, schema, value)
        _set_in_parent(target)
    elif schema.type is not Type.STRUCT:
        _set(target, "value", schema, value)
        _set_in_parent(target)
    else:
        _fill_struct(target, schema, value, options)


# Attributes of the class, because a field of the message may have the name of one, and hides it.


def _set_in_parent(target: Any) -> None:
    """An empty message inside another one is written only if it is explicitly set."""
    type(target).SetInParent(target)


def _descriptor(target: Any) -> Any:
    return type(target).DESCRIPTOR


def _fill_struct(target: Any, schema: Schema, value: Any, options: ProtobufOptions) -> None:
    if not isinstance(value, dict):
        raise _invalid(schema, value)
    if not value.keys() <= schema.fields_by_name.keys():
        unknown = ", ".join(map(repr, sorted(map(str, value.keys() - schema.fields_by_name.keys()))))
        raise DataError(
            f"Mismatching struct schema: the struct holds {unknown}, the schema does not.",
            suggestion="Add the fields to the schema.",
        )
    _set_in_parent(target)
    for field in schema.fields:
        member = value.get(field.name)
        member = field.schema.default if member is None else member
        if member is not None:
            _fill_field(target, field.name, field.schema, member, options)


def _fill_field(target: Any, name: str, schema: Schema, value: Any, options: ProtobufOptions) -> None:
    if names.is_union(schema):
        if not isinstance(value, dict):
            raise _invalid(schema, value)
        held = member_of(value, schema.fields_by_name)
        if held is None:
            raise DataError(
                f"Cannot find non-null field: the union {name} has no value.",
                suggestion="Set one of its fields, or make the union itself null.",
            )
        _fill_field(target, held, schema.fields_by_name[held].schema, value[held], options)
        return
    name = names.scrubbed(name) if options.scrub_names else name
    field = _descriptor(target).fields_by_name.get(name)
    if field is None:
        raise DataError(
            f"Cannot find field with name {name} in the Protobuf message type {_descriptor(target).full_name}.",
            suggestion="Compare the schema of the value with the registered one.",
        )
    if schema.type is Type.ARRAY:
        _fill_list(target, field, schema, value, options)
    elif schema.type is Type.MAP:
        _fill_map(target, field, schema, value, options)
    elif field.message_type is not None and not field.is_repeated:
        fill_message(getattr(target, name), schema, value, options)
    elif field.is_repeated or schema.type is Type.STRUCT:
        raise _invalid(schema, value)
    else:
        _set(target, name, schema, value)


def _fill_list(target: Any, field: Any, schema: Schema, value: Any, options: ProtobufOptions) -> None:
    element = schema.value_schema
    assert element is not None
    if not isinstance(value, list | tuple) or not field.is_repeated:
        raise _invalid(schema, value)
    repeated = getattr(target, field.name)
    for item in value:
        if item is None:
            raise DataError(
                f"The list {field.name} contains a null, which Protobuf does not support.",
                suggestion="Remove nulls from lists.",
            )
        if field.message_type is not None:
            fill_message(repeated.add(), element, item, options)
        else:
            with _Checked(element, item):
                repeated.append(_scalar(field, element, item))


def _fill_map(target: Any, field: Any, schema: Schema, value: Any, options: ProtobufOptions) -> None:
    if not isinstance(value, dict) or not is_map(field):
        raise _invalid(schema, value)
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    is_native = field.message_type.GetOptions().map_entry
    made = getattr(target, field.name)
    for key, item in value.items():
        # A map of the target's own is filled over a loose entry, which checks both sides alike.
        entry = message_factory.GetMessageClass(field.message_type)() if is_native else made.add()
        for name, own, part in (("key", schema.key_schema, key), ("value", schema.value_schema, item)):
            if part is not None:
                _fill_field(entry, name, own, part, options)
        if is_native and field.message_type.fields_by_name["value"].message_type is not None:
            type(entry.value).CopyFrom(made[entry.key], entry.value)
        elif is_native:
            made[entry.key] = entry.value


def _set(target: Any, name: str, schema: Schema, value: Any) -> None:
    field = _descriptor(target).fields_by_name[name]
    with _Checked(schema, value):
        setattr(target, name, _scalar(field, schema, value))


_PYTHON_TYPES: dict[Type, Any] = {
    Type.BOOLEAN: bool,
    Type.STRING: str,
    Type.BYTES: bytes,
    Type.FLOAT32: float,
    Type.FLOAT64: float,
}


def _scalar(field: Any, schema: Schema, value: Any) -> Any:
    """A value as the Python type that the field takes."""
    kind = schema.type
    if kind is Type.BYTES and isinstance(value, bytearray | memoryview):
        return bytes(value)
    if type(value) is not _PYTHON_TYPES.get(kind, int):
        raise TypeError(type(value).__name__)
    if field.enum_type is not None:
        return _enum_number(field.enum_type, schema, value)
    if field.type in UNSIGNED_64 and value < 0:
        return value + (1 << 64)
    return value


def _enum_number(enum: Any, schema: Schema, value: Any) -> int:
    if schema.type is Type.INT32:
        return int(value)
    number = schema.parameters.get(f"{names.enum_word(schema)}.{value}")
    if number is None and value in enum.values_by_name:
        return int(enum.values_by_name[value].number)
    if number is None:
        raise DataError(
            f"The text is not a symbol of the enum {enum.full_name}.",
            suggestion="Send one of the symbols that the schema lists.",
        )
    return parse_integer(number, 32)


class _Checked:
    """Translates protobuf's errors about wrong values to ours."""

    def __init__(self, schema: Schema, value: Any) -> None:
        self._schema, self._value = schema, value

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, TypeError | ValueError | OverflowError):
            raise _invalid(self._schema, self._value) from error


def _invalid(schema: Schema, value: Any) -> DataError:
    return DataError(
        f"Invalid type for {schema.type.name}: {type(value).__name__}.",
        suggestion="The value does not fit its schema: check the source and the transformations.",
    )


def _write_decimal(target: Any, schema: Schema, value: Any) -> None:
    if type(value) is not Decimal or not value.is_finite():
        raise _invalid(schema, value)
    number, scale = unscaled(value)
    with _Checked(schema, value):
        target.value, target.scale = unscaled_bytes(number), scale
        target.precision = len(value.as_tuple().digits)


def _write_date(target: Any, schema: Schema, value: Any) -> None:
    if type(value) is not int:
        raise _invalid(schema, value)
    found = calendar_fields(value * MS_PER_DAY)
    with _Checked(schema, value):
        target.year, target.month, target.day = found.year, found.month, found.day


def _write_time(target: Any, schema: Schema, value: Any) -> None:
    if type(value) is not int:
        raise _invalid(schema, value)
    if not 0 <= value <= MS_PER_DAY:
        raise DataError(
            "Time values must use number of milliseconds greater than 0 and less than 86400000.",
            suggestion="Use Timestamp for instants.",
        )
    found = calendar_fields(value)
    target.hours, target.minutes, target.seconds = found.hour, found.minute, found.second
    target.nanos = found.ms * NS_PER_MS


def _write_timestamp(target: Any, schema: Schema, value: Any) -> None:
    if type(value) is not int:
        raise _invalid(schema, value)
    seconds, ms = divmod(value, 1000)
    if not FIRST_SECOND <= seconds <= LAST_SECOND:
        raise no_such_time("google.protobuf.Timestamp", f"{seconds} s")
    target.seconds, target.nanos = seconds, ms * NS_PER_MS


_LOGICAL_WRITERS: dict[str | None, Callable[[Any, Schema, Any], None]] = {
    DECIMAL: _write_decimal,
    DATE: _write_date,
    TIME: _write_time,
    TIMESTAMP: _write_timestamp,
}
