"""Confluent's notes on fields, `(confluent.field_meta)`: Connect types and decimal scales.

They are options with the number 1088 (confluent/meta.proto). Options travel as bytes here, so that the pool of a schema
need not know their type.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

FIELD_META = "confluent.field_meta"
_NUMBER = 1088


@cache
def _options_class() -> Any:
    """A message that reads the note out of any field's options."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="field_options.proto", package="notes", syntax="proto3")
    note = file.message_type.add(name="Meta")
    note.field.add(name="doc", number=1, label=field.LABEL_OPTIONAL, type=field.TYPE_STRING)
    note.field.add(name="params", number=2, label=field.LABEL_REPEATED, type_name="ParamsEntry")
    note.field.add(name="tags", number=3, label=field.LABEL_REPEATED, type=field.TYPE_STRING)
    entry = note.nested_type.add(name="ParamsEntry")
    entry.options.map_entry = True
    for number, name in ((1, "key"), (2, "value")):
        entry.field.add(name=name, number=number, label=field.LABEL_OPTIONAL, type=field.TYPE_STRING)
    options = file.message_type.add(name="Options")
    options.field.add(name="field_meta", number=_NUMBER, label=field.LABEL_OPTIONAL, type_name="Meta")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("notes.Options"))


def add_to_field(field: Any, text: str) -> None:
    """Add a note, written as in a .proto text between the braces, to a FieldDescriptorProto.

    Raises:
        text_format.ParseError: it is not a note.
    """
    options = _options_class()()
    text_format.Merge(text, options.field_meta)
    field.options.MergeFromString(options.SerializeToString())


def add_params(field: Any, params: Mapping[str, str]) -> None:
    """Add a note with these parameters to a FieldDescriptorProto."""
    options = _options_class()()
    options.field_meta.params.update(params)
    field.options.MergeFromString(options.SerializeToString())


def params_of(options: Any) -> dict[str, str]:
    """The parameters of the note in a field's options; {} without one."""
    data = options.SerializeToString()
    return dict(_options_class().FromString(data).field_meta.params) if data else {}
