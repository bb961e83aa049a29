"""A Protobuf schema and all that it imports, in one pool of descriptors.

Imports are found among the schema's references and else among the files that every registry knows: google/protobuf,
google/type, confluent.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message import DecodeError

from airflow_connect.converters.protobuf.text_parser import parse_proto
from airflow_connect.errors import SchemaError

MAIN_FILE = "schema.proto"
DECIMAL_FILE, DATE_FILE = "confluent/type/decimal.proto", "google/type/date.proto"
TIME_FILE, TIMESTAMP_FILE = "google/type/timeofday.proto", "google/protobuf/timestamp.proto"
WRAPPERS_FILE, META_FILE = "google/protobuf/wrappers.proto", "confluent/meta.proto"
_KNOWN_TEXTS = {
    DECIMAL_FILE: (
        'syntax = "proto3"; package confluent.type; '
        "message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }"
    ),
    DATE_FILE: (
        'syntax = "proto3"; package google.type; message Date { int32 year = 1; int32 month = 2; int32 day = 3; }'
    ),
    TIME_FILE: (
        'syntax = "proto3"; package google.type; '
        "message TimeOfDay { int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }"
    ),
    META_FILE: (
        'syntax = "proto3"; package confluent; '
        "message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }"
    ),
}
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]++=*+\s*+")


def open_schema(text: str, others: Mapping[str, str]) -> Any:
    """The FileDescriptor of a schema.

    Args:
        text: .proto text, or a FileDescriptorProto in base64, as some clients register it.
        others: what its references hold, by the name under which they are imported.

    Raises:
        SchemaError: the schema or an import cannot be read, or is missing.
    """
    pool = descriptor_pool.DescriptorPool()
    main = _descriptor(text, MAIN_FILE)
    main.name = MAIN_FILE
    return _add(pool, main, others, {MAIN_FILE})


def _add(pool: Any, file: descriptor_pb2.FileDescriptorProto, others: Mapping[str, str], entered: set[str]) -> Any:
    for name in file.dependency:
        if name not in entered:
            entered.add(name)
            _add(pool, known_file(name) if name not in others else _descriptor(others[name], name), others, entered)
    try:
        pool.Add(file)
        return pool.FindFileByName(file.name)
    except (TypeError, KeyError) as error:
        raise SchemaError(
            f"The Protobuf schema {file.name} cannot be used: {error}.",
            code="data.schema",
            suggestion="Register the schema together with the schemas that it imports, as its references.",
        ) from error


def known_file(name: str) -> descriptor_pb2.FileDescriptorProto:
    """A file that needs no reference.

    Raises:
        SchemaError: there is no such file.
    """
    if name in _KNOWN_TEXTS:
        return parse_proto(_KNOWN_TEXTS[name], name)
    if name.startswith("google/") and re.fullmatch(r"[\w/]+\.proto", name):
        try:
            module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
        except ImportError:
            pass  # Reported below: neither referenced nor installed.
        else:
            return descriptor_pb2.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
    raise SchemaError(
        f"The Protobuf schema imports {name}, which is not among its references.",
        code="data.schema_reference",
        suggestion=(
            "Register the schema together with the schemas that it imports, as its references; files of google/type "
            "and google/api come with the Python package googleapis-common-protos."
        ),
    )


def _descriptor(text: str, name: str) -> descriptor_pb2.FileDescriptorProto:
    if _BASE64.fullmatch(text):
        try:
            found = descriptor_pb2.FileDescriptorProto.FromString(
                base64.b64decode("".join(text.split()), validate=True)
            )
        except (binascii.Error, DecodeError):
            pass  # Otherwise it is text, and the parser reports what is wrong with it.
        else:
            found.name = name
            return found
    return parse_proto(text, name)


def message_at(file: Any, indexes: list[int]) -> Any:
    """The message type that a list of positions leads to, or None: `[1, 0]` is the first one inside of the second.

    Entries of maps are not counted: no text names them. Source: Confluent's ProtobufSchema.toMessageName.
    """
    types = list(file.message_types_by_name.values())
    found = None
    for index in indexes:
        if not 0 <= index < len(types):
            return None
        found = types[index]
        types = [nested for nested in found.nested_types if not nested.GetOptions().map_entry]
    return found


def indexes_of(message: Any) -> list[int]:
    """The list of positions that leads to a message type."""
    indexes: list[int] = []
    while message is not None:
        outer = message.containing_type
        siblings = message.file.message_types_by_name.values() if outer is None else outer.nested_types
        names = [sibling.name for sibling in siblings if not sibling.GetOptions().map_entry]
        indexes.insert(0, names.index(message.name))
        message = outer
    return indexes


def may_lack_fields(message: Any) -> bool:
    """Whether a message of this type (a Descriptor) can be without a field that proto2 requires, at any level."""
    seen, waiting = {message.full_name}, [message]
    while waiting:
        found = waiting.pop()
        if found.is_extendable or any(field.is_required for field in found.fields):
            return True
        inner = [field.message_type for field in found.fields if field.message_type is not None]
        waiting += [one for one in inner if one.full_name not in seen]
        seen |= {one.full_name for one in inner}
    return False
