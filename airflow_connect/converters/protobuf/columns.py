"""Decodes many Protobuf messages of one type to Arrow columns, field by field, without a Python object per message.

Every message has its own position in the data. The fields are looked for in the order of their numbers, which is the
order in which serializers write them: all messages that continue with the tag of a field are read at once. Messages
with another order take more rounds. Whatever is unusual makes the whole batch None, and the reference path (`reading`)
reads it: unknown fields, a field twice, two members of a oneof, numbers of an enum without a symbol, text that is not
UTF-8, a required field that is missing, anything truncated.
Source: Protocol Buffers, "Encoding".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor

from airflow_connect.api.schema import Schema, Type
from airflow_connect.converters.protobuf.column_merging import (
    Piece,
    Values,
    list_column,
    merged,
    merged_lists,
    sorted_map_column,
    union_column,
)
from airflow_connect.converters.protobuf.column_values import (
    LENGTH,
    LOGICAL_FIELDS,
    PART_SCHEMAS,
    VARINT,
    WORD_32,
    WORD_64,
    FieldReader,
    Reader,
    logical_values,
    scalar_reader,
)
from airflow_connect.converters.protobuf.names import JSON_MESSAGES, ProtobufOptions
from airflow_connect.converters.protobuf.reading import may_be_missing, single_reader
from airflow_connect.converters.protobuf.to_connect import is_map, plain_fields, real_oneofs, union_name
from airflow_connect.converters.scan import NotPlainError, Scan, padded

_MOST_ROUNDS = 4
"""Serializers write fields by number; those of Go write members of a oneof last, which takes two rounds."""
_MOST_ITEMS = 1000
"""Of a repeated field that is not packed: items are found one after the other, in all messages at once."""
_MOST_LEVELS = 64
"""Of messages in messages; parsers allow 100."""
_WORD_BYTES = {WORD_32: 4, WORD_64: 8}


def column_reader(message: Any, schema: Schema, options: ProtobufOptions) -> Reader | None:
    """A reader of messages that fill the values of a scan; None if parts of the type can only be read one by one.

    Those are groups, messages of google/protobuf/struct.proto, lists of entries that are no Protobuf map, and message
    types without fields.

    Args:
        message: the type, a Descriptor.
        schema: its Connect schema.
        options: of the converter.
    """
    try:
        return _Readers(options).message(message, schema, 0)
    except NotPlainError:
        return None


def read_column(reader: Reader, scan: Scan) -> Any | None:
    """All messages of a scan; None if one of them is not vectorizable."""
    try:
        return reader(scan)
    except NotPlainError:
        return None


class _Form(NamedTuple):
    """A form in which a field is written: its tag, and how values after it are read."""

    tag: bytes
    read: Callable[[Scan], Values]


class _Slot(NamedTuple):
    """A field of a message type.

    Attributes:
        name: of the field.
        number: of the field.
        forms: two if it may be packed.
        merge: its values in so many messages to a column.
    """

    name: str
    number: int
    forms: Sequence[_Form]
    merge: Callable[[Sequence[Piece], int], Any]


class _Readers:
    """Builds the readers of a message type and of those in it."""

    def __init__(self, options: ProtobufOptions) -> None:
        self._options = options

    def message(self, message: Any, schema: Schema, level: int) -> Reader:
        if level > _MOST_LEVELS:
            raise NotPlainError
        if schema.type is not Type.STRUCT:
            return self._one_value(message, schema, level)
        if not schema.fields:
            raise NotPlainError
        read_members = _reader_of(self._slots(message, schema, level))
        oneofs = {self._union(oneof): [field.name for field in oneof.fields] for oneof in real_oneofs(message)}
        is_flat = self._options.flatten_unions

        def read(scan: Scan) -> Any:
            columns, unions = read_members(scan), {}
            for name, members in oneofs.items():
                inner = [columns[member] for member in members]
                _check_exclusive(inner)
                if not is_flat:
                    unions[name] = union_column(inner, schema.fields_by_name[name].schema)
            return _struct({**columns, **unions}, schema)

        return read

    def _union(self, oneof: Any) -> str:
        return union_name(oneof, self._options)

    def _one_value(self, message: Any, schema: Schema, level: int) -> Reader:
        """Of a message that is a logical type, or a wrapper of one value."""
        if schema.name in JSON_MESSAGES:
            raise NotPlainError
        types = {field.name: field.type for field in message.fields if not field.is_repeated}
        if schema.name in LOGICAL_FIELDS:
            if types != LOGICAL_FIELDS[schema.name] or len(types) < len(message.fields):
                raise NotPlainError
            read = _reader_of([self._always(field, PART_SCHEMAS[field.type], level) for field in message.fields])
            return lambda scan: logical_values(schema, read(scan))
        if list(types) != ["value"] or len(message.fields) > 1:
            raise NotPlainError
        read = _reader_of([self._always(message.fields[0], schema, level)])
        return lambda scan: read(scan)["value"]

    def _slots(self, message: Any, schema: Schema, level: int) -> list[_Slot]:
        slots = []
        for oneof in real_oneofs(message):
            outer = schema if self._options.flatten_unions else schema.fields_by_name[self._union(oneof)].schema
            slots += [self._single(f, outer.fields_by_name[f.name].schema, level) for f in oneof.fields]
        for field in plain_fields(message):
            own = schema.fields_by_name[field.name].schema
            if field.is_repeated:
                slots.append(self._map(field, own, level) if is_map(field) else self._list(field, own, level))
            elif may_be_missing(field, own, self._options):
                slots.append(self._single(field, own, level))
            else:
                slots.append(self._always(field, own, level))
        return slots

    def _single(self, field: Any, schema: Schema, level: int) -> _Slot:
        """A field that is null if it is missing."""
        return _single_slot(field, self._value(field, schema, level), None)

    def _always(self, field: Any, schema: Schema, level: int) -> _Slot:
        """A field that has its default if it is missing: a message is then one without fields."""
        value = self._value(field, schema, level)
        if field.message_type is not None:
            return _single_slot(field, value, lambda: value.read(_scan_of(b"\0")))  # its length
        default = single_reader(field, schema, self._options)(field.default_value)
        column: Any = pa.array([default], value.read(_scan_of()).type)
        return _single_slot(field, value, lambda: column)

    def _list(self, field: Any, schema: Schema, level: int) -> _Slot:
        assert schema.value_schema is not None
        value = self._value(field, schema.value_schema, level)
        empty = value.read(_scan_of())
        return _Slot(
            field.name,
            field.number,
            _repeated_forms(field, value),
            lambda pieces, count: list_column(merged_lists(pieces, count, empty), schema),
        )

    def _map(self, field: Any, schema: Schema, level: int) -> _Slot:
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        if not field.message_type.GetOptions().map_entry:
            raise NotPlainError
        key, value = field.message_type.fields
        parts = [self._always(key, schema.key_schema, level), self._always(value, schema.value_schema, level)]
        read_entries = _reader_of(parts)

        def entries(scan: Scan) -> Any:
            columns = read_entries(scan.of(*scan.lengths(is_zigzag=False)))
            return pa.StructArray.from_arrays([columns["key"], columns["value"]], ["key", "value"])

        empty = entries(_scan_of())
        return _Slot(
            field.name,
            field.number,
            _repeated_forms(field, FieldReader(LENGTH, entries)),
            lambda pieces, count: sorted_map_column(merged_lists(pieces, count, empty), schema),
        )

    def _value(self, field: Any, schema: Schema, level: int) -> FieldReader:
        if field.message_type is None:
            return scalar_reader(field, schema)
        if field.type == FieldDescriptor.TYPE_GROUP:
            raise NotPlainError
        read = self.message(field.message_type, schema, level + 1)
        return FieldReader(LENGTH, lambda scan: read(scan.of(*scan.lengths(is_zigzag=False))))


def _reader_of(slots: Sequence[_Slot]) -> Callable[[Scan], dict[str, Any]]:
    """A reader of the fields of messages that fill the values of a scan: columns by the names of the fields."""
    in_order = sorted(slots, key=lambda slot: slot.number)

    def read(scan: Scan) -> dict[str, Any]:
        found: dict[str, list[Piece]] = {slot.name: [] for slot in in_order}
        for _ in range(_MOST_ROUNDS):
            for slot in in_order:
                for form in slot.forms:
                    rows = scan.rows_at(form.tag)
                    if len(rows):
                        found[slot.name].append(Piece(rows, _read_part(scan, rows, form)))
            if scan.is_at_end():
                return {slot.name: slot.merge(found[slot.name], len(scan)) for slot in in_order}
        raise NotPlainError

    return read


def _single_slot(field: Any, value: FieldReader, default: Callable[[], Any] | None) -> _Slot:
    empty, read = value.read(_scan_of()), value.read
    form = _Form(_tag(field, value.wire_type), lambda part: Values(read(part)))
    absent = _refused if field.is_required else default
    return _Slot(field.name, field.number, [form], lambda pieces, count: merged(pieces, count, empty, absent))


def _refused() -> Any:
    """In the place of a default: a message without a field that is required is an error."""
    raise NotPlainError


def _read_part(scan: Scan, rows: Any, form: _Form) -> Values:
    if len(rows) == len(scan):
        scan.skip(len(form.tag))
        return form.read(scan)
    part = scan.part(rows)
    part.skip(len(form.tag))
    values = form.read(part)
    scan.take_back(rows, part)
    return values


def _check_exclusive(members: Sequence[Any]) -> None:
    """The parser keeps the last of several members of a oneof."""
    present = [column.is_valid().to_numpy(zero_copy_only=False) for column in members]
    if np.max(np.sum(present, axis=0), initial=0) > 1:
        raise NotPlainError


def _struct(columns: Mapping[str, Any], schema: Schema) -> Any:
    arrays = [columns[field.name] for field in schema.fields]
    if any(array.null_count and not field.schema.optional for array, field in zip(arrays, schema.fields, strict=True)):
        raise NotPlainError
    made = [
        pa.field(field.name, array.type, nullable=field.schema.optional)
        for array, field in zip(arrays, schema.fields, strict=True)
    ]
    return pa.StructArray.from_arrays(arrays, fields=made)


def _repeated_forms(field: Any, value: FieldReader) -> list[_Form]:
    """One tag for each item, and for numbers also one tag for all of them; parsers accept both of any field."""
    tag, (wire_type, read) = _tag(field, value.wire_type), value

    def read_each(part: Scan) -> Values:
        items, counts = _items(part, tag, wire_type)
        return Values(read(items), counts)

    def read_packed(part: Scan) -> Values:
        starts, ends = part.lengths(is_zigzag=False)
        packed = part.of(starts, ends)
        size = _WORD_BYTES.get(wire_type)
        items, counts = packed.numbers(ends) if size is None else packed.words_up_to(ends, size)
        return Values(read(items), counts)

    forms = [_Form(tag, read_each)]
    return forms if wire_type == LENGTH else [_Form(_tag(field, LENGTH), read_packed), *forms]


def _items(part: Scan, tag: bytes, wire_type: int) -> tuple[Scan, Any]:
    """A scan of all items of a repeated field, in their order, and how many each message has.

    Args:
        part: messages, after the tag of their first item; it moves past the last one.
        tag: of the field.
        wire_type: of an item.
    """
    rows, rest = np.arange(len(part)), part
    owners, starts, ends = [], [], []
    for _ in range(_MOST_ITEMS):
        owners.append(rows)
        starts.append(rest.at)
        _pass_over(rest, wire_type)
        ends.append(rest.at)
        if rest is not part:
            part.take_back(rows, rest)
        rows = rows[rest.rows_at(tag)]
        if not len(rows):
            owner = np.concatenate(owners)
            order = np.argsort(owner, kind="stable")
            items = part.of(np.concatenate(starts)[order], np.concatenate(ends)[order])
            return items, np.bincount(owner, minlength=len(part))
        rest = part.part(rows)
        rest.skip(len(tag))
    raise NotPlainError


def _pass_over(scan: Scan, wire_type: int) -> None:
    if wire_type == LENGTH:
        scan.lengths(is_zigzag=False)
    elif wire_type == VARINT:
        scan.unsigned()
    else:
        scan.skip(_WORD_BYTES[wire_type])


def _tag(field: Any, wire_type: int) -> bytes:
    number, tag = field.number << 3 | wire_type, bytearray()
    while number >= 0x80:
        tag.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*tag, number))


def _scan_of(*values: bytes) -> Scan:
    data = b"".join(values)
    bounds = np.cumsum([0, *map(len, values)], dtype=np.int64)
    return Scan(pa.py_buffer(data), padded(np.frombuffer(data, np.uint8)), bounds[:-1], bounds[1:])
