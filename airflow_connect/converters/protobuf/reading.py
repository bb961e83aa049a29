"""Protobuf messages to Connect values: one function per message type and schema, built once.

Source: io.confluent.connect.protobuf.ProtobufData.toConnectData (8.1).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any

from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.unknown_fields import UnknownFieldSet

from airflow_connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type
from airflow_connect.converters.java_text import epoch_day
from airflow_connect.converters.map_entries import map_of_entries
from airflow_connect.converters.protobuf.names import JSON_MESSAGES, ProtobufOptions
from airflow_connect.converters.protobuf.to_connect import (
    has_optional_keyword,
    is_map,
    plain_fields,
    real_oneofs,
    union_name,
)
from airflow_connect.converters.protobuf.unread_fields import naming_unread, unread_finder
from airflow_connect.converters.unread import Unread
from airflow_connect.errors import DataError
from airflow_connect.java.numbers import decimal_of_bytes

ValueReader = Callable[[Any], Any]
MemberReader = Callable[[Any, dict[str, Any]], None]

NS_PER_MS = 1_000_000
UNSIGNED_64 = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)
# 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z, the range of google.protobuf.Timestamp in seconds.
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
_DAYS_IN_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def message_reader(message: Any, schema: Schema, options: ProtobufOptions) -> ValueReader:
    """A function from messages of a type (a Descriptor) to values of its Connect schema."""
    if schema.type is not Type.STRUCT:
        wrapped = single_reader(message.fields_by_name["value"], schema, options)
        return naming_unread(message, lambda read: wrapped(read.value), options.unread)
    as_they_are = [f.name for f in plain_fields(message) if _needs_no_conversion(f, schema, options)]
    members = [
        *(_union_member(oneof, schema, options) for oneof in real_oneofs(message)),
        *(_member(f, schema, options) for f in plain_fields(message) if f.name not in as_they_are),
    ]
    empty: dict[str, Any] = dict.fromkeys(f.name for f in schema.fields)
    # Most fields of most messages: all of them in one call.
    get = attrgetter(*as_they_are) if len(as_they_are) > 1 else lambda found: [getattr(found, n) for n in as_they_are]

    find_unread, is_extendable = unread_finder(message, options.unread), message.is_extendable

    def read(found: Any) -> dict[str, Any]:
        # Here, and not in a function around this one, because every message in a message costs another call.
        if find_unread is not None and (UnknownFieldSet(found) or is_extendable):
            find_unread(found)
        value = empty.copy()
        value.update(zip(as_they_are, get(found), strict=True))
        for member in members:
            member(found, value)
        return value

    return read


def _needs_no_conversion(field: Any, schema: Schema, options: ProtobufOptions) -> bool:
    """Whether the field always has a value, and Protobuf's value is Connect's."""
    own = schema.fields_by_name[field.name].schema
    if field.is_repeated or field.message_type is not None:
        return False
    return not may_be_missing(field, own, options) and single_reader(field, own, options) is _same


def _union_member(oneof: Any, schema: Schema, options: ProtobufOptions) -> MemberReader:
    name, which_oneof = oneof.name, message_factory.GetMessageClass(oneof.containing_type).WhichOneof
    if options.flatten_unions:
        readers = {f.name: single_reader(f, schema.fields_by_name[f.name].schema, options) for f in oneof.fields}

        def read_flat(found: Any, value: dict[str, Any]) -> None:
            which = which_oneof(found, name)
            if which is not None:
                value[which] = readers[which](getattr(found, which))

        return read_flat
    target = union_name(oneof, options)
    union = schema.fields_by_name[target].schema
    readers = {f.name: single_reader(f, union.fields_by_name[f.name].schema, options) for f in oneof.fields}
    empty: dict[str, Any] = dict.fromkeys(readers)

    def read(found: Any, value: dict[str, Any]) -> None:
        which = which_oneof(found, name)
        if which is not None:
            value[target] = {**empty, which: readers[which](getattr(found, which))}

    return read


def _member(field: Any, schema: Schema, options: ProtobufOptions) -> MemberReader:
    name, own = field.name, schema.fields_by_name[field.name].schema
    if is_map(field):
        read = _map_reader(field, own, options)
    elif field.is_repeated:
        assert own.value_schema is not None
        element = single_reader(field, own.value_schema, options)
        read = lambda items: [element(item) for item in items]  # noqa: E731 (a def per case would be longer)
    else:
        read = single_reader(field, own, options)
    if field.is_repeated or not may_be_missing(field, own, options):

        def read_always(found: Any, value: dict[str, Any]) -> None:
            value[name] = read(getattr(found, name))

        return read_always
    # Of the class, because a field may have this name.
    has_field = message_factory.GetMessageClass(field.containing_type).HasField

    def read_present(found: Any, value: dict[str, Any]) -> None:
        if has_field(found, name):
            value[name] = read(getattr(found, name))

    return read_present


def may_be_missing(field: Any, schema: Schema, options: ProtobufOptions) -> bool:
    """Whether a missing field, not repeated, is None; scalars of proto3 are zero instead."""
    if field.message_type is not None:
        return not (options.struct_for_nulls and schema.type is Type.STRUCT)
    if not has_optional_keyword(field):
        return False
    return field.containing_oneof is not None or options.optional_for_proto2


def _map_reader(field: Any, schema: Schema, options: ProtobufOptions) -> ValueReader:
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    key_field, value_field = field.message_type.fields
    key, value = (
        single_reader(key_field, schema.key_schema, options),
        single_reader(value_field, schema.value_schema, options),
    )
    if field.message_type.GetOptions().map_entry:
        name = field.full_name

        def read_map(found: Any) -> dict[Any, Any]:
            try:
                # The order of a map is arbitrary, but a file that is written again must not differ.
                return {key(k): value(v) for k, v in sorted(found.items(), key=itemgetter(0))}
            except UnicodeDecodeError as error:
                raise DataError(
                    f"A key of the map {name} is not valid UTF-8 ({error.reason}).",
                    code="data.utf8",
                    suggestion="Fix the producer, or set errors.tolerance.",
                ) from error

        return read_map
    # Not a map, but a list of the producer's own message type `...Entry`: its keys need not be different.
    what = f"the repeated field {field.full_name}"
    return lambda found: map_of_entries(((key(entry.key), value(entry.value)) for entry in found), what)


def single_reader(field: Any, schema: Schema, options: ProtobufOptions) -> ValueReader:
    """A function from one value of a field, or one item of a repeated field, to that of its Connect schema."""
    if schema.name in _LOGICAL_READERS and field.message_type is not None:
        return naming_unread(field.message_type, _LOGICAL_READERS[schema.name], options.unread)
    if field.message_type is not None:
        return message_reader(field.message_type, schema, options)
    if field.enum_type is not None:
        return _same if schema.type is Type.INT32 else _enum_reader(field.enum_type)
    if field.type == FieldDescriptor.TYPE_STRING and not _is_text_checked(field.file.serialized_pb):
        return _text
    if field.type in UNSIGNED_64:
        return _signed_long(field.full_name, options.unread)
    return _BY_CONNECT_TYPE.get(schema.type, _same)


def _same(value: Any) -> Any:
    return value


@lru_cache(maxsize=64)
def _is_text_checked(file: bytes) -> bool:
    """Whether parsing a message of this file refuses text that is not UTF-8; proto2 does not."""
    return bool(descriptor_pb2.FileDescriptorProto.FromString(file).syntax == "proto3")


def _text(value: Any) -> Any:
    """Text of proto2: what is not UTF-8 comes as bytes, and is read as Java reads it."""
    return value if type(value) is str else value.decode("utf-8", "replace")


def _signed_long(name: str, unread: Unread | None) -> ValueReader:
    """An unsigned long as Java holds it: from 2^63 on it is negative, and `unread` gets the name of the field."""

    def read(value: int) -> int:
        if value < 1 << 63:
            return value
        if unread is not None:
            unread.add_changed(name)
        return value - (1 << 64)

    return read


def _within(bits: int) -> ValueReader:
    """A number of a smaller type. Confluent's converter cuts off the higher bits, as Java's `byteValue`."""
    half = 1 << (bits - 1)

    def read(value: int) -> int:
        if -half <= value < half:
            return value
        raise DataError(
            f"A Protobuf integer is {value}, beyond the {bits} bits of its type.",
            suggestion="Correct the producer, or the connect.type in (confluent.field_meta).",
        )

    return read


_BY_CONNECT_TYPE = {Type.INT8: _within(8), Type.INT16: _within(16)}


def _enum_reader(enum: Any) -> ValueReader:
    symbols: dict[int, str] = {}
    for value in enum.values:
        symbols.setdefault(value.number, value.name)
    name = enum.name
    # What Java calls a number that its version of the enum does not know.
    return lambda number: symbols.get(number) or f"UNKNOWN_ENUM_VALUE_{name}_{number}"


def _decimal(message: Any) -> Decimal:
    # A message without bytes is the number zero, as every field that is not there.
    return decimal_of_bytes(message.value or b"\0", message.scale)


def _date(message: Any) -> int:
    year, month, day = message.year, message.month, message.day
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0 or year < 1582)
    if year >= 1 and 1 <= month <= 12 and 1 <= day <= _DAYS_IN_MONTH[month - 1] and (leap or (month, day) != (2, 29)):
        return epoch_day(year, month, day)
    raise no_such_time("google.type.Date", f"{year}-{month}-{day}")


def _time(message: Any) -> int:
    hours, minutes, seconds, nanos = message.hours, message.minutes, message.seconds, message.nanos
    if 0 <= hours < 24 and 0 <= minutes < 60 and 0 <= seconds < 60 and 0 <= nanos < 1_000_000_000:
        return int(((hours * 60 + minutes) * 60 + seconds) * 1000 + nanos // NS_PER_MS)
    raise no_such_time("google.type.TimeOfDay", f"{hours}:{minutes}:{seconds}, {nanos} ns")


def _timestamp(message: Any) -> int:
    seconds, nanos = message.seconds, message.nanos
    if FIRST_SECOND <= seconds <= LAST_SECOND and 0 <= nanos < 1_000_000_000:
        return int(seconds * 1000 + nanos // NS_PER_MS)
    raise no_such_time("google.protobuf.Timestamp", f"{seconds} s, {nanos} ns")


def _json(message: Any) -> str:
    """The JSON that a Struct, Value or ListValue holds; members are sorted, because the order of a map is arbitrary."""
    from google.protobuf import json_format

    try:
        return str(json_format.MessageToJson(message, indent=None, sort_keys=True, ensure_ascii=False))
    except ValueError as error:
        raise DataError(
            f"A {message.DESCRIPTOR.full_name} cannot be written as JSON: {error}.",
            suggestion="JSON has no NaN and no Infinity: fix the producer, or set errors.tolerance.",
        ) from error


def no_such_time(message: str, found: str) -> DataError:
    """The error for a date or time that does not exist."""
    return DataError(
        f"The message contains a {message} that does not exist: {found}.",
        suggestion="Fix the producer, or set errors.tolerance.",
    )


_LOGICAL_READERS: dict[str | None, ValueReader] = {
    DECIMAL: _decimal,
    DATE: _date,
    TIME: _time,
    TIMESTAMP: _timestamp,
    **dict.fromkeys(JSON_MESSAGES, _json),
}
