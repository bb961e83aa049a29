"""Values between Protobuf messages and Connect: one function per message type and schema, built once.

Source: io.confluent.connect.protobuf.ProtobufData.toConnectData and fromConnectData (8.1).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any

from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor import FieldDescriptor

from airflow_connect.api.errors import DataError
from airflow_connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type
from airflow_connect.converters.java_text import MS_PER_DAY, calendar_fields, epoch_day
from airflow_connect.converters.protobuf import names
from airflow_connect.converters.protobuf.names import ProtobufOptions
from airflow_connect.converters.protobuf.to_connect import (
    has_optional_keyword,
    is_map,
    plain_fields,
    real_oneofs,
    union_name,
)

ValueReader = Callable[[Any], Any]
MemberReader = Callable[[Any, dict[str, Any]], None]

_NS_PER_MS = 1_000_000
# 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z, the range of google.protobuf.Timestamp in seconds.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
_DAYS_IN_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def message_reader(message: Any, schema: Schema, options: ProtobufOptions) -> ValueReader:
    """A function from messages of a type (a Descriptor) to values of its Connect schema."""
    if schema.type is not Type.STRUCT:
        wrapped = _single(message.fields_by_name["value"], schema, options)
        return lambda read: wrapped(read.value)
    as_they_are = [f.name for f in plain_fields(message) if _is_taken_as_it_is(f, schema, options)]
    members = [
        *(_union_member(oneof, schema, options) for oneof in real_oneofs(message)),
        *(_member(f, schema, options) for f in plain_fields(message) if f.name not in as_they_are),
    ]
    empty: dict[str, Any] = dict.fromkeys(f.name for f in schema.fields)
    # Most fields of most messages: all of them in one call.
    get = attrgetter(*as_they_are) if len(as_they_are) > 1 else lambda found: [getattr(found, n) for n in as_they_are]

    def read(found: Any) -> dict[str, Any]:
        value = empty.copy()
        value.update(zip(as_they_are, get(found), strict=True))
        for member in members:
            member(found, value)
        return value

    return read


def _is_taken_as_it_is(field: Any, schema: Schema, options: ProtobufOptions) -> bool:
    """Whether the field is always there, and Protobuf's value is Connect's."""
    own = schema.fields_by_name[field.name].schema
    if field.is_repeated or field.message_type is not None:
        return False
    return not _may_be_missing(field, own, options) and _single(field, own, options) is _same


def _union_member(oneof: Any, schema: Schema, options: ProtobufOptions) -> MemberReader:
    name = oneof.name
    if options.flatten_unions:
        readers = {f.name: _single(f, schema.fields_by_name[f.name].schema, options) for f in oneof.fields}

        def read_flat(found: Any, value: dict[str, Any]) -> None:
            which = found.WhichOneof(name)
            if which is not None:
                value[which] = readers[which](getattr(found, which))

        return read_flat
    target = union_name(oneof, options)
    union = schema.fields_by_name[target].schema
    readers = {f.name: _single(f, union.fields_by_name[f.name].schema, options) for f in oneof.fields}
    empty: dict[str, Any] = dict.fromkeys(readers)

    def read(found: Any, value: dict[str, Any]) -> None:
        which = found.WhichOneof(name)
        if which is not None:
            value[target] = {**empty, which: readers[which](getattr(found, which))}

    return read


def _member(field: Any, schema: Schema, options: ProtobufOptions) -> MemberReader:
    name, own = field.name, schema.fields_by_name[field.name].schema
    if is_map(field):
        read = _map_reader(field, own, options)
    elif field.is_repeated:
        assert own.value_schema is not None
        element = _single(field, own.value_schema, options)
        read = lambda items: [element(item) for item in items]  # noqa: E731 (a def per case would be longer)
    else:
        read = _single(field, own, options)
    if field.is_repeated or not _may_be_missing(field, own, options):

        def read_always(found: Any, value: dict[str, Any]) -> None:
            value[name] = read(getattr(found, name))

        return read_always

    def read_present(found: Any, value: dict[str, Any]) -> None:
        if found.HasField(name):
            value[name] = read(getattr(found, name))

    return read_present


def _may_be_missing(field: Any, schema: Schema, options: ProtobufOptions) -> bool:
    """Whether a field that is not there is None; scalars of proto3 have their zero then."""
    if field.message_type is not None:
        return not (options.struct_for_nulls and schema.type is Type.STRUCT)
    if not has_optional_keyword(field):
        return False
    return field.containing_oneof is not None or options.optional_for_proto2


def _map_reader(field: Any, schema: Schema, options: ProtobufOptions) -> ValueReader:
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    key_field, value_field = field.message_type.fields
    key, value = _single(key_field, schema.key_schema, options), _single(value_field, schema.value_schema, options)
    if field.message_type.GetOptions().map_entry:
        name = field.full_name

        def read_map(found: Any) -> dict[Any, Any]:
            try:
                # The order of a map is by chance; a file written again must not differ.
                return {key(k): value(v) for k, v in sorted(found.items(), key=itemgetter(0))}
            except UnicodeDecodeError as error:
                raise DataError(
                    f"A key of the map {name} is text that is not valid UTF-8 ({error.reason}).",
                    code="data.utf8",
                    suggestion="Mend the producer, or set errors.tolerance.",
                ) from error

        return read_map
    return lambda found: {_hashable(key(entry.key)): value(entry.value) for entry in found}


def _hashable(key: Any) -> Any:
    if isinstance(key, dict | list):
        raise DataError(
            "A map with arrays, maps or structs as keys cannot be held in memory.",
            suggestion="Use a primitive type for the keys of the map.",
        )
    return key


def _single(field: Any, schema: Schema, options: ProtobufOptions) -> ValueReader:
    """One value of a field."""
    if schema.name in _LOGICAL_READERS and field.message_type is not None:
        return _LOGICAL_READERS[schema.name]
    if field.message_type is not None:
        return message_reader(field.message_type, schema, options)
    if field.enum_type is not None:
        return _same if schema.type is Type.INT32 else _enum_reader(field.enum_type)
    if field.type == FieldDescriptor.TYPE_STRING and not _is_text_checked(field.file.serialized_pb):
        return _text
    return _READERS.get(field.type, _BY_CONNECT_TYPE.get(schema.type, _same))


def _same(value: Any) -> Any:
    return value


@lru_cache(maxsize=64)
def _is_text_checked(file: bytes) -> bool:
    """Whether parsing a message of this file refuses text that is not UTF-8; proto2 does not."""
    return bool(descriptor_pb2.FileDescriptorProto.FromString(file).syntax == "proto3")


def _text(value: Any) -> Any:
    """Text of proto2: what is not UTF-8 comes as bytes, and is read as Java reads it."""
    return value if type(value) is str else value.decode("utf-8", "replace")


def _signed(bits: int) -> ValueReader:
    """The low bits as a signed number, as Java holds an unsigned long and casts to byte and short."""
    half, full = 1 << (bits - 1), 1 << bits
    return lambda value: ((value + half) & (full - 1)) - half


_READERS: dict[int, ValueReader] = dict.fromkeys(
    (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64), _signed(64)
)
_BY_CONNECT_TYPE = {Type.INT8: _signed(8), Type.INT16: _signed(16)}


def _enum_reader(enum: Any) -> ValueReader:
    symbols: dict[int, str] = {}
    for value in enum.values:
        symbols.setdefault(value.number, value.name)
    name = enum.name
    # What Java calls a number that its version of the enum does not know.
    return lambda number: symbols.get(number) or f"UNKNOWN_ENUM_VALUE_{name}_{number}"


def _decimal(message: Any) -> Decimal:
    number: int = int.from_bytes(message.value, "big", signed=True)
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -message.scale))


def _date(message: Any) -> int:
    year, month, day = message.year, message.month, message.day
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0 or year < 1582)
    if year >= 1 and 1 <= month <= 12 and 1 <= day <= _DAYS_IN_MONTH[month - 1] and (leap or (month, day) != (2, 29)):
        return epoch_day(year, month, day)
    raise _no_time("google.type.Date", f"{year}-{month}-{day}")


def _time(message: Any) -> int:
    hours, minutes, seconds, nanos = message.hours, message.minutes, message.seconds, message.nanos
    if 0 <= hours < 24 and 0 <= minutes < 60 and 0 <= seconds < 60 and 0 <= nanos < 1_000_000_000:
        return int(((hours * 60 + minutes) * 60 + seconds) * 1000 + nanos // _NS_PER_MS)
    raise _no_time("google.type.TimeOfDay", f"{hours}:{minutes}:{seconds}, {nanos} ns")


def _timestamp(message: Any) -> int:
    seconds, nanos = message.seconds, message.nanos
    if _FIRST_SECOND <= seconds <= _LAST_SECOND and 0 <= nanos < 1_000_000_000:
        return int(seconds * 1000 + nanos // _NS_PER_MS)
    raise _no_time("google.protobuf.Timestamp", f"{seconds} s, {nanos} ns")


def _no_time(message: str, found: str) -> DataError:
    return DataError(
        f"The message holds a {message} that does not exist: {found}.",
        suggestion="Mend the producer, or set errors.tolerance.",
    )


_LOGICAL_READERS: dict[str | None, ValueReader] = {
    DECIMAL: _decimal,
    DATE: _date,
    TIME: _time,
    TIMESTAMP: _timestamp,
}


# Writing


def fill_message(target: Any, schema: Schema, value: Any, options: ProtobufOptions) -> None:
    """Put a value into an empty message of the type that was made for its schema.

    Raises:
        DataError: the value does not fit the schema.
    """
    if schema.name in _LOGICAL_WRITERS:
        _LOGICAL_WRITERS[schema.name](target, schema, value)
        # An empty message inside another one is there only if it is said so.
        target.SetInParent()
    elif schema.type is not Type.STRUCT:
        _set(target, "value", schema, value)
        target.SetInParent()
    else:
        _fill_struct(target, schema, value, options)


def _fill_struct(target: Any, schema: Schema, value: Any, options: ProtobufOptions) -> None:
    if not isinstance(value, dict):
        raise _invalid(schema, value)
    if not value.keys() <= schema.fields_by_name.keys():
        unknown = ", ".join(map(repr, sorted(map(str, value.keys() - schema.fields_by_name.keys()))))
        raise DataError(
            f"Mismatching struct schema: the struct holds {unknown}, the schema does not.",
            suggestion="Add the fields to the schema.",
        )
    target.SetInParent()
    for field in schema.fields:
        member = value.get(field.name)
        member = field.schema.default if member is None else member
        if member is not None:
            _fill_field(target, field.name, field.schema, member, options)


def _fill_field(target: Any, name: str, schema: Schema, value: Any, options: ProtobufOptions) -> None:
    if names.is_union(schema):
        if not isinstance(value, dict):
            raise _invalid(schema, value)
        held = [f for f in schema.fields if value.get(f.name) is not None]
        if not held:
            raise DataError(
                f"Cannot find non-null field: the union {name} holds no value.",
                suggestion="Set one of its fields, or make the union itself null.",
            )
        _fill_field(target, held[0].name, held[0].schema, value[held[0].name], options)
        return
    name = names.scrubbed(name) if options.scrub_names else name
    field = target.DESCRIPTOR.fields_by_name.get(name)
    if field is None:
        raise DataError(
            f"Cannot find field with name {name} in the Protobuf message type {target.DESCRIPTOR.full_name}.",
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
                f"The list {field.name} holds a null, which Protobuf cannot.", suggestion="Leave nulls out of lists."
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
            made[entry.key].CopyFrom(entry.value)
        elif is_native:
            made[entry.key] = entry.value


def _set(target: Any, name: str, schema: Schema, value: Any) -> None:
    field = target.DESCRIPTOR.fields_by_name[name]
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
    if field.type in _READERS and value < 0:
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
            f"The text is none of the symbols of the enum {enum.full_name}.",
            suggestion="Send one of the symbols that the schema lists.",
        )
    return int(number)


class _Checked:
    """Turns what protobuf says about a wrong value into an error of ours."""

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
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    unscaled: int = int("".join(map(str, digits))) * (-1 if sign else 1)
    # BigInteger.toByteArray: the fewest bytes of two's complement.
    size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    target.value = unscaled.to_bytes(size, "big", signed=True)
    target.scale, target.precision = -exponent, len(digits)


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
    target.nanos = found.ms * _NS_PER_MS


def _write_timestamp(target: Any, schema: Schema, value: Any) -> None:
    if type(value) is not int:
        raise _invalid(schema, value)
    seconds, ms = divmod(value, 1000)
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        raise _no_time("google.protobuf.Timestamp", f"{seconds} s")
    target.seconds, target.nanos = seconds, ms * _NS_PER_MS


_LOGICAL_WRITERS: dict[str | None, Callable[[Any, Schema, Any], None]] = {
    DECIMAL: _write_decimal,
    DATE: _write_date,
    TIME: _write_time,
    TIMESTAMP: _write_timestamp,
}
