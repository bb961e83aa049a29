"""A FileDescriptorProto as .proto text, in the form in which Confluent's registry keeps it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from google.protobuf import descriptor_pb2

from airflow_connect.converters.protobuf import meta

_Field = descriptor_pb2.FieldDescriptorProto


def print_proto(file: descriptor_pb2.FileDescriptorProto) -> str:
    """The text of a proto3 file; type names in it may be relative or begin with a dot."""
    lines = ['syntax = "proto3";']
    if file.package:
        lines.append(f"package {file.package};")
    if file.dependency:
        lines += ["", *(f"import {json.dumps(name)};" for name in file.dependency)]
    for message in file.message_type:
        lines += ["", *_message(message)]
    return "\n".join(lines) + "\n"


def _message(message: Any) -> Iterator[str]:
    yield f"message {message.name} {{"
    real = {f.oneof_index for f in message.field if f.HasField("oneof_index") and not f.proto3_optional}
    for field in message.field:
        if not field.HasField("oneof_index") or field.proto3_optional:
            yield f"  {_field(field)}"
    for index in sorted(real):
        yield f"  oneof {message.oneof_decl[index].name} {{"
        for field in message.field:
            if field.HasField("oneof_index") and field.oneof_index == index:
                yield f"    {_field(field)}"
        yield "  }"
    for nested in message.nested_type:
        yield ""
        yield from (f"  {line}" if line else line for line in _message(nested))
    for enum in message.enum_type:
        yield ""
        yield from (f"  {line}" for line in _enum(enum))
    yield "}"


def _field(field: Any) -> str:
    label = "repeated " if field.label == _Field.LABEL_REPEATED else "optional " if field.proto3_optional else ""
    kind = field.type_name or _Field.Type.Name(field.type).removeprefix("TYPE_").lower()
    params = meta.params_of(field.options)
    notes = ", ".join(f"{{ key: {json.dumps(k)}, value: {json.dumps(v)} }}" for k, v in params.items())
    option = f" [({meta.FIELD_META}) = {{ params: [{notes}] }}]" if params else ""
    return f"{label}{kind.removeprefix('.')} {field.name} = {field.number}{option};"


def _enum(enum: Any) -> Iterator[str]:
    yield f"enum {enum.name} {{"
    if enum.options.allow_alias:
        yield "  option allow_alias = true;"
    for value in enum.value:
        yield f"  {value.name} = {value.number};"
    yield "}"
