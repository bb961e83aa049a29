"""Protobuf message types as Connect schemas.

Source: io.confluent.connect.protobuf.ProtobufData.toConnectSchema (8.1). One intended difference: a message type that
is recursive is refused, because Connect schemas here are trees.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor

from airflow_connect.api.schema import Field, Schema, Type, date, decimal, time, timestamp
from airflow_connect.converters.protobuf import meta, names
from airflow_connect.converters.protobuf.names import ProtobufOptions
from airflow_connect.converters.schema_size import SchemaSize
from airflow_connect.errors import SchemaError
from airflow_connect.java.numbers import parse_integer

_FD = FieldDescriptor
_PLAIN = {
    _FD.TYPE_FLOAT: Type.FLOAT32,
    _FD.TYPE_DOUBLE: Type.FLOAT64,
    _FD.TYPE_BOOL: Type.BOOLEAN,
    _FD.TYPE_STRING: Type.STRING,
    _FD.TYPE_BYTES: Type.BYTES,
}
# Unsigned 32 bits do not fit into INT32; the parameter tells which of the types it was.
_INT32 = {_FD.TYPE_INT32: "", _FD.TYPE_SINT32: "sint32", _FD.TYPE_SFIXED32: "sfixed32"}
_INT64 = {
    _FD.TYPE_INT64: "",
    _FD.TYPE_UINT32: "uint32",
    _FD.TYPE_FIXED32: "fixed32",
    _FD.TYPE_UINT64: "uint64",
    _FD.TYPE_SINT64: "sint64",
    _FD.TYPE_FIXED64: "fixed64",
    _FD.TYPE_SFIXED64: "sfixed64",
}
_SHORT_INTEGERS = {"int8": Type.INT8, "int16": Type.INT16}


class _Outer(NamedTuple):
    """The message types that a field lies in, and how much of the schema is read."""

    types: tuple[str, ...]
    size: SchemaSize


def schema_to_connect(message: Any, options: ProtobufOptions, version: int | None = None) -> Schema:
    """The Connect schema of a message type (a Descriptor).

    Args:
        message: the type.
        options: of the converter.
        version: of the schema in its subject.

    Raises:
        SchemaError: the type is recursive, or too large.
    """
    wrapped = names.WRAPPERS.get(message.full_name)
    if wrapped is not None and options.wrapper_for_raw_primitives:
        return Schema(wrapped, version=version)
    return replace(_message(message, options, _Outer((), SchemaSize())), version=version)


def real_oneofs(message: Any) -> list[Any]:
    """The oneofs of a message type without those that stand for an `optional` of proto3."""
    return [oneof for oneof in message.oneofs if not is_synthetic(oneof)]


def is_synthetic(oneof: Any) -> bool:
    """Whether a oneof represents one `optional` field of proto3."""
    if len(oneof.fields) != 1 or not oneof.name.startswith(("_", "X")):
        return False
    described = descriptor_pb2.DescriptorProto()
    oneof.containing_type.CopyToProto(described)
    return any(field.proto3_optional for field in described.field if field.name == oneof.fields[0].name)


def plain_fields(message: Any) -> list[Any]:
    """The fields of a message type that are in no real oneof, in their order."""
    return [f for f in message.fields if f.containing_oneof is None or is_synthetic(f.containing_oneof)]


def union_name(oneof: Any, options: ProtobufOptions) -> str:
    """Name of the field that holds a oneof."""
    return f"{oneof.name}_{oneof.index}" if options.index_for_unions else str(oneof.name)


def has_optional_keyword(field: Any) -> bool:
    """Whether the field says `optional`: in proto3, or in proto2 outside of a oneof."""
    if field.containing_oneof is not None:
        return is_synthetic(field.containing_oneof)
    return bool(field.has_presence) and field.message_type is None and not field.is_required


def is_map(field: Any) -> bool:
    """Whether a repeated field holds entries of a map: told by the name of its type and the names inside."""
    entry = field.message_type
    if entry is None or not field.is_repeated or not entry.name.endswith(names.ENTRY):
        return False
    parts = entry.fields
    return [part.name for part in parts] == ["key", "value"] and not any(part.is_repeated for part in parts)


def _message(message: Any, options: ProtobufOptions, outer: _Outer) -> Schema:
    if message.full_name in outer.types:
        raise SchemaError(
            f"The Protobuf message type {message.full_name} is recursive, which is not supported.",
            code="data.schema_recursive",
            suggestion="Pass the topic through with ByteArrayConverter.",
        )
    with outer.size.part():
        fields = _fields(message, options, outer._replace(types=(*outer.types, message.full_name)))
    return Schema(Type.STRUCT, name=_name(message, options), fields=fields)


def _fields(message: Any, options: ProtobufOptions, outer: _Outer) -> tuple[Field, ...]:
    members: list[tuple[str, Schema]] = []
    for oneof in real_oneofs(message):
        if options.flatten_unions:
            members += [(f.name, replace(_field(f, options, outer), optional=True)) for f in oneof.fields]
        else:
            members.append((union_name(oneof, options), _oneof(oneof, options, outer)))
    members += [(f.name, _field(f, options, outer)) for f in plain_fields(message)]
    _check_distinct(message, [name for name, _ in members])
    return tuple(Field(name, index, schema) for index, (name, schema) in enumerate(members))


def _check_distinct(message: Any, names_of_members: list[str]) -> None:
    """A oneof `paid` becomes the field `paid_0`; another field of this name would take its place."""
    if len(set(names_of_members)) < len(names_of_members):
        twice = next(name for name in names_of_members if names_of_members.count(name) > 1)
        raise SchemaError(
            f"The Protobuf message type {message.full_name} has a oneof and a field that both become the field "
            f"{twice}, and one of them would be lost.",
            code="data.schema_invalid",
            suggestion="Set value.converter.flatten.unions=true (key.converter. for keys), or "
            "generate.index.for.unions=false with the same prefix.",
        )


def _name(described: Any, options: ProtobufOptions) -> str:
    return str(described.full_name if options.full_names else described.name)


def _oneof(oneof: Any, options: ProtobufOptions, outer: _Outer) -> Schema:
    fields = tuple(Field(f.name, index, _field(f, options, outer)) for index, f in enumerate(oneof.fields))
    if options.generalized_sum_types:
        name, parameters = oneof.name, {names.GENERAL_UNION: oneof.name}
    else:
        name, parameters = names.UNION_PREFIX + _name(oneof, options), {}
    return Schema(Type.STRUCT, True, name, parameters=parameters, fields=fields)


def _field(field: Any, options: ProtobufOptions, outer: _Outer) -> Schema:
    made = _single(field, options, outer)
    if field.is_repeated and made.type is not Type.MAP:
        made = Schema(Type.ARRAY, optional=True, value_schema=replace(made, optional=True))
    if options.optional_for_nullables:
        optional = made.optional or has_optional_keyword(field)
    else:
        optional = made.optional or not options.wrapper_for_nullables
    return replace(made, optional=optional, parameters={**made.parameters, names.TAG: str(field.number)})


def _single(field: Any, options: ProtobufOptions, outer: _Outer) -> Schema:
    """One value of a field: messages and enums are optional."""
    if field.type in _PLAIN:
        return Schema(_PLAIN[field.type])
    if field.type in _INT32:
        short = _SHORT_INTEGERS.get(meta.params_of(field.GetOptions()).get(names.CONNECT_TYPE, ""))
        return Schema(short) if short is not None else _integer(Type.INT32, _INT32[field.type])
    if field.type in _INT64:
        return _integer(Type.INT64, _INT64[field.type])
    if field.enum_type is not None:
        return _enum(field.enum_type, options)
    if is_map(field):
        key, value = field.message_type.fields
        name = names.map_field(_name(field.message_type, options))
        key_schema, value_schema = _field(key, options, outer), _field(value, options, outer)
        return Schema(Type.MAP, True, name, key_schema=key_schema, value_schema=value_schema)
    return replace(_of_message(field, options, outer), optional=True)


def _integer(kind: Type, protobuf_type: str) -> Schema:
    return Schema(kind, parameters={names.TYPE: protobuf_type} if protobuf_type else {})


def _enum(enum: Any, options: ProtobufOptions) -> Schema:
    word = names.GENERAL_ENUM if options.generalized_sum_types else names.ENUM
    symbols = {f"{word}.{value.name}": str(value.number) for value in enum.values}
    kind = Type.INT32 if options.int_for_enums else Type.STRING
    return Schema(kind, True, _name(enum, options), parameters={word: enum.name, **symbols})


def _of_message(field: Any, options: ProtobufOptions, outer: _Outer) -> Schema:
    full_name = field.message_type.full_name
    if full_name == names.DECIMAL_MESSAGE:
        return _decimal(meta.params_of(field.GetOptions()))
    if full_name in names.JSON_MESSAGES:
        return Schema(Type.STRING, name=full_name)
    if full_name in _LOGICAL:
        return _LOGICAL[full_name]
    if options.wrapper_for_nullables and full_name in names.WRAPPERS:
        return Schema(names.WRAPPERS[full_name])
    return _message(field.message_type, options, outer)


_LOGICAL = {names.DATE_MESSAGE: date(), names.TIME_MESSAGE: time(), names.TIMESTAMP_MESSAGE: timestamp()}


def _decimal(params: dict[str, str]) -> Schema:
    scale, precision = params.get(names.SCALE, "0"), params.get(names.PRECISION, "")
    made = decimal(_number(scale) or 0)
    if _number(precision) is not None:
        made = replace(made, parameters={**made.parameters, names.CONNECT_PRECISION: precision})
    return made


def _number(text: str) -> int | None:
    try:
        return parse_integer(text, 32)
    except ValueError:
        return None
