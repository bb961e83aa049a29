"""protoc, the compiler of Protocol Buffers, and descriptors in a form in which they can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc_tools
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import FieldDescriptor
from grpc_tools import protoc

from airflow_connect.converters.protobuf.files import MAIN_FILE

KNOWN_FILES = Path(grpc_tools.__file__).parent / "_proto"


def compiled(text: str, others: Mapping[str, str], folder: Path) -> Any | None:
    """The FileDescriptor that protoc makes of a schema; None when it refuses it."""
    for name, content in {MAIN_FILE: text, **others}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    out = folder / "descriptors"
    paths = [f"-I{folder}", f"-I{KNOWN_FILES}"]
    if protoc.main(["protoc", *paths, "--include_imports", f"--descriptor_set_out={out}", MAIN_FILE]):
        return None
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file:
        pool.Add(file)
    return pool.FindFileByName(MAIN_FILE)


def facts(file: Any) -> dict[str, Any]:
    """All of a FileDescriptor that reading and writing values depends on."""
    written = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(written)
    return {
        "package": file.package,
        "syntax": written.syntax or "proto2",
        "edition": written.edition,
        "imports": sorted(written.dependency),
        "public": sorted(written.dependency[index] for index in written.public_dependency),
        "options": _options(file),
        "messages": [_message(message) for message in file.message_types_by_name.values()],
        "enums": [_enum(enum) for enum in file.enum_types_by_name.values()],
    }


def _message(message: Any) -> dict[str, Any]:
    return {
        "name": message.full_name,
        "options": _options(message),
        "fields": [dict(_field(field)) for field in message.fields],
        "oneofs": [(oneof.name, [field.name for field in oneof.fields], _options(oneof)) for oneof in message.oneofs],
        "messages": [_message(nested) for nested in message.nested_types],
        "enums": [_enum(enum) for enum in message.enum_types],
    }


def _field(field: Any) -> Iterator[tuple[str, Any]]:
    yield "name", field.name
    yield "number", field.number
    yield "type", field.type
    yield (
        "type name",
        field.message_type.full_name if field.message_type else field.enum_type and field.enum_type.full_name,
    )
    yield "repeated, required", (field.is_repeated, field.is_required)
    yield "presence", field.has_presence
    yield "packed", field.is_packed
    yield "json name", field.json_name
    # NaN is not equal to itself.
    is_number = field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE)
    yield "default", (field.has_default_value, repr(field.default_value) if is_number else field.default_value)
    yield "oneof", field.containing_oneof and field.containing_oneof.name
    yield "options", _options(field)


def _enum(enum: Any) -> dict[str, Any]:
    return {
        "name": enum.full_name,
        "options": _options(enum),
        "closed": enum.is_closed,
        "values": [(value.name, value.number) for value in enum.values],
    }


def _options(described: Any) -> str:
    """Options that Protocol Buffers itself defines; those of one's own have no meaning here."""
    options = type(described.GetOptions())()
    options.CopyFrom(described.GetOptions())
    options.DiscardUnknownFields()
    for extension in [field for field, _ in options.ListFields() if field.is_extension]:
        options.ClearExtension(extension)
    return str(options)
