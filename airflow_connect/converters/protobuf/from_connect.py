"""Connect schemas as Protobuf files.

Source: io.confluent.connect.protobuf.ProtobufData.fromConnectSchema (8.1). Maps become repeated messages with the
fields key and value, which is what a map is on the wire, so that keys of every type are possible. Defaults are left
out: proto3 has none, and a null is written as the default.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2

from airflow_connect.api.schema import DATE, DECIMAL, DECIMAL_SCALE, TIME, TIMESTAMP, Schema, Type
from airflow_connect.converters.protobuf import files, meta, names
from airflow_connect.converters.protobuf.names import ProtobufOptions
from airflow_connect.converters.protobuf.text_parser import SCALARS
from airflow_connect.errors import SchemaError
from airflow_connect.java.numbers import integer_parameter

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    Type.INT8: "int32",
    Type.INT16: "int32",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "bool",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_WRAPPERS = {
    "int32": "google.protobuf.Int32Value",
    "int64": "google.protobuf.Int64Value",
    "uint32": "google.protobuf.UInt32Value",
    "fixed32": "google.protobuf.UInt32Value",
    "uint64": "google.protobuf.UInt64Value",
    "fixed64": "google.protobuf.UInt64Value",
    "float": "google.protobuf.FloatValue",
    "double": "google.protobuf.DoubleValue",
    "bool": "google.protobuf.BoolValue",
    "string": "google.protobuf.StringValue",
    "bytes": "google.protobuf.BytesValue",
}
_LOGICAL = {
    DECIMAL: (names.DECIMAL_MESSAGE, files.DECIMAL_FILE),
    DATE: (names.DATE_MESSAGE, files.DATE_FILE),
    TIME: (names.TIME_MESSAGE, files.TIME_FILE),
    TIMESTAMP: (names.TIMESTAMP_MESSAGE, files.TIMESTAMP_FILE),
}
_FIRST_RESERVED, _LAST_RESERVED = 19_000, 19_999


class ProtobufFile(NamedTuple):
    """A file for values of one Connect schema; `message` is the full name of their type in it."""

    file: Any
    message: str


def schema_from_connect(schema: Schema, options: ProtobufOptions) -> ProtobufFile:
    """The file for values of `schema`.

    Raises:
        SchemaError: the schema has lists of lists, lists of maps, or a list or map at the root, which Protobuf does
            not support.
    """
    if schema.type is not Type.STRUCT:
        scalar = _SCALARS.get(schema.type)
        if scalar is None or schema.name in _LOGICAL:
            raise _unsupported(f"a value that is {schema.name or schema.type.name}, not a struct")
        return ProtobufFile(files.known_file(files.WRAPPERS_FILE), _WRAPPERS[scalar])
    writing = _Writing(options)
    package, _, name = writing.name_of(schema).rpartition(".")
    file = writing.file
    file.package = ".".join(_scrub(part, options) for part in package.split(".")) if package else ""
    writing.message(file.message_type.add(name=_scrub(name, options)), schema)
    file.dependency.sort()
    return ProtobufFile(file, f"{file.package}.{_scrub(name, options)}".lstrip("."))


def _scrub(name: str, options: ProtobufOptions) -> str:
    return names.scrubbed(name) if options.scrub_names else name


def _new_file() -> Any:
    return descriptor_pb2.FileDescriptorProto(name=files.MAIN_FILE, syntax="proto3")


@dataclass
class _Writing:
    """One file under construction; `unnamed` counts the types that got a name here."""

    options: ProtobufOptions
    file: Any = field(default_factory=_new_file)
    unnamed: int = 0

    def name_of(self, schema: Schema) -> str:
        if schema.name:
            return schema.name
        self.unnamed += 1
        return f"{names.DEFAULT_NAME}{self.unnamed}"

    def short_name(self, schema: Schema) -> str:
        return _scrub(self.name_of(schema).rpartition(".")[2], self.options)

    def message(self, message: Any, schema: Schema) -> None:
        """Fill a DescriptorProto with the fields of a STRUCT."""
        tags = _Tags(schema)
        # What is defined inside of this message: name to schema, so that equal ones are defined once.
        known: dict[str, Schema] = {}
        for member in schema.fields:
            if names.is_union(member.schema):
                self._oneof(message, member.schema, tags, known)
            else:
                self._field(message, member.name, member.schema, tags, known)
        synthetic = [made for made in message.field if made.proto3_optional]
        for made in synthetic:
            made.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{made.name}")

    def _oneof(self, message: Any, union: Schema, tags: _Tags, known: dict[str, Schema]) -> None:
        name = union.parameters.get(names.GENERAL_UNION) or (union.name or "").removeprefix(names.UNION_PREFIX)
        index = len(message.oneof_decl)
        message.oneof_decl.add(name=_scrub(name.rpartition(".")[2] or f"union_{index}", self.options))
        for member in union.fields:
            made = self._field(message, member.name, member.schema, tags, known)
            made.proto3_optional = False
            made.oneof_index = index

    def _field(self, message: Any, name: str, schema: Schema, tags: _Tags, known: dict[str, Schema]) -> Any:
        name = _scrub(name, self.options)
        made = message.field.add(name=name, number=tags.take(schema), label=_Field.LABEL_OPTIONAL)
        element = schema
        if schema.type in (Type.ARRAY, Type.MAP):
            made.label = _Field.LABEL_REPEATED
        elif self.options.optional_for_nullables and schema.optional:
            made.proto3_optional = True
        if schema.type is Type.ARRAY and schema.value_schema is not None:
            element = schema.value_schema
            if element.type in (Type.ARRAY, Type.MAP) or names.is_union(element):
                raise _unsupported(f"the list {name}, whose elements are {element.type.name}")
        self._type(message, made, element, known)
        return made

    def _type(self, message: Any, made: Any, schema: Schema, known: dict[str, Schema]) -> None:
        if schema.name in _LOGICAL:
            made.type_name, imported = _LOGICAL[schema.name]
            self._import(imported)
            if schema.name == DECIMAL:
                self._note(made, _decimal_notes(schema))
        elif schema.type is Type.STRUCT:
            name = self.short_name(schema)
            # A type and a field of one message cannot have the same name.
            made.type_name = self._nested(message, name + "Message" * (name == made.name), schema, known)
        elif schema.type is Type.MAP:
            made.type_name = self._nested(message, names.map_entry(self.short_name(schema)), schema, known)
        elif names.enum_word(schema):
            made.type_name = self._enum(message, schema, known)
        else:
            self._scalar(made, schema)

    def _scalar(self, made: Any, schema: Schema) -> None:
        kind = _SCALARS[schema.type]
        given = schema.parameters.get(names.TYPE, "")
        if schema.type in (Type.INT32, Type.INT64) and given in SCALARS:
            kind = given
        if schema.type in (Type.INT8, Type.INT16):
            self._note(made, {names.CONNECT_TYPE: schema.type.value})
        if self.options.wrapper_for_nullables and schema.optional:
            made.type_name = _WRAPPERS.get(kind, _WRAPPERS[_SCALARS[schema.type]])
            self._import(files.WRAPPERS_FILE)
        else:
            made.type = SCALARS[kind]

    def _nested(self, message: Any, name: str, schema: Schema, known: dict[str, Schema]) -> str:
        """A type inside of a message; another one with the same name gets a number."""
        bare = replace(schema, optional=False, default=None, doc=None, version=None, parameters={})
        number = 1
        unique = name
        while known.get(unique, bare) != bare:
            number += 1
            unique = f"{name}{number}"
        if unique not in known:
            known[unique] = bare
            nested = message.nested_type.add(name=unique)
            if schema.type is Type.MAP:
                self._entry(nested, schema)
            else:
                self.message(nested, schema)
        return unique

    def _entry(self, entry: Any, schema: Schema) -> None:
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        known: dict[str, Schema] = {}
        for number, (name, part) in enumerate((("key", schema.key_schema), ("value", schema.value_schema)), 1):
            if part.type in (Type.ARRAY, Type.MAP) or names.is_union(part):
                raise _unsupported(f"a map whose {name} is {part.type.name}")
            made = entry.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL)
            self._type(entry, made, part, known)

    def _enum(self, message: Any, schema: Schema, known: dict[str, Schema]) -> str:
        word = names.enum_word(schema)
        name = _scrub(schema.parameters[word] or self.short_name(schema), self.options)
        if name not in known:
            known[name] = schema
            enum = message.enum_type.add(name=name)
            for key, text in schema.parameters.items():
                if key.startswith(f"{word}."):
                    enum.value.add(name=key.removeprefix(f"{word}."), number=integer_parameter(text, key))
            # proto3 requires the zero first, and an option if two symbols have one number.
            ordered = sorted(enum.value, key=lambda value: value.number != 0)
            numbers = [value.number for value in ordered]
            enum.options.allow_alias = len(set(numbers)) < len(numbers)
            values = [descriptor_pb2.EnumValueDescriptorProto.FromString(v.SerializeToString()) for v in ordered]
            del enum.value[:]
            enum.value.extend(values)
        return name

    def _note(self, made: Any, params: dict[str, str]) -> None:
        if params:
            meta.add_params(made, params)
            self._import(files.META_FILE)

    def _import(self, name: str) -> None:
        if name not in self.file.dependency:
            self.file.dependency.append(name)


class _Tags:
    """Numbers of the fields of a message: the given ones, and for the others the next that is free."""

    def __init__(self, schema: Schema) -> None:
        flat = [f.schema for f in schema.fields] + [
            inner.schema for f in schema.fields if names.is_union(f.schema) for inner in f.schema.fields
        ]
        self._used = {integer_parameter(s.parameters[names.TAG], names.TAG) for s in flat if names.TAG in s.parameters}
        self._next = 1

    def take(self, schema: Schema) -> int:
        if names.TAG in schema.parameters:
            return integer_parameter(schema.parameters[names.TAG], names.TAG)
        while self._next in self._used or _FIRST_RESERVED <= self._next <= _LAST_RESERVED:
            self._next += 1
        self._used.add(self._next)
        return self._next


def _decimal_notes(schema: Schema) -> dict[str, str]:
    notes = {}
    if names.CONNECT_PRECISION in schema.parameters:
        notes[names.PRECISION] = schema.parameters[names.CONNECT_PRECISION]
    if DECIMAL_SCALE in schema.parameters:
        notes[names.SCALE] = schema.parameters[DECIMAL_SCALE]
    return notes


def _unsupported(what: str) -> SchemaError:
    return SchemaError(
        f"Protobuf cannot represent {what}.",
        code="data.schema",
        suggestion="Put it into a struct, or use JsonSchemaConverter or AvroConverter.",
    )
