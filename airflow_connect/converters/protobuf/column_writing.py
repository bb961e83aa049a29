"""Columns of one schema to Protobuf messages: the bytes of `writing.py`, without a Python object per value.

Fields are written in the order of their numbers, as the protobuf runtime does. A field without presence is left out if
it is zero (of a float: if all its bits are), one that is null always.
Source: Protocol Buffers, "Encoding".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import FieldDescriptor
from numpy.typing import NDArray

from airflow_connect.api.schema import Schema, Type
from airflow_connect.converters.column_pieces import Pieces, Present, writer_of_values
from airflow_connect.converters.map_columns import entries_of, has_key_twice
from airflow_connect.converters.protobuf import names
from airflow_connect.converters.protobuf.column_payloads import LOGICAL_PAYLOADS, PAYLOADS, VARINT, Payload, numbers_of
from airflow_connect.converters.protobuf.names import ProtobufOptions
from airflow_connect.converters.protobuf.to_connect import is_map
from airflow_connect.converters.scan import NotPlainError

ColumnWriter = Callable[[Any], Any]
"""Arrow array of a schema to binary array of messages; None if a value is not vectorizable."""
_FieldWriter = Callable[[Any, Pieces, Present], None]
"""Writes a column with its tags."""
_KINDS: dict[tuple[int, Type], Any] = {
    (FieldDescriptor.TYPE_INT32, Type.INT8): pa.int8(),
    (FieldDescriptor.TYPE_INT32, Type.INT16): pa.int16(),
    (FieldDescriptor.TYPE_INT32, Type.INT32): pa.int32(),
    (FieldDescriptor.TYPE_INT64, Type.INT64): pa.int64(),
    (FieldDescriptor.TYPE_FLOAT, Type.FLOAT32): pa.float32(),
    (FieldDescriptor.TYPE_DOUBLE, Type.FLOAT64): pa.float64(),
    (FieldDescriptor.TYPE_BOOL, Type.BOOLEAN): pa.bool_(),
    (FieldDescriptor.TYPE_STRING, Type.STRING): pa.string(),
    (FieldDescriptor.TYPE_BYTES, Type.BYTES): pa.binary(),
}
_LENGTH_DELIMITED = 2


def column_writer(message: Any, schema: Schema, prefix: bytes, options: ProtobufOptions) -> ColumnWriter | None:
    """A writer for values of a Connect schema, or None if parts of it can only be written value by value.

    Those are enums, unions, and numbers with another type in Protobuf, such as `sint64`.

    Args:
        message: Descriptor of the type that was made for the schema.
        schema: of the values.
        prefix: before each value.
        options: of the converter.
    """
    try:
        write = _Writers(options).root(message, schema)
    except NotPlainError:
        return None

    return writer_of_values(write, prefix)


class _Writers:
    """Builds the writer of one schema."""

    def __init__(self, options: ProtobufOptions) -> None:
        self._options = options

    def root(self, message: Any, schema: Schema) -> _FieldWriter:
        if schema.type is Type.STRUCT and not names.is_union(schema):
            return self._members(message, schema)
        return self._singular(message.fields_by_name["value"], schema)

    def _members(self, message: Any, schema: Schema) -> _FieldWriter:
        """A struct without a tag before it."""
        found = []
        for index, member in enumerate(schema.fields):
            name = names.scrubbed(member.name) if self._options.scrub_names else member.name
            field = message.fields_by_name.get(name)
            if field is None:
                raise NotPlainError
            found.append((field.number, index, self._field(field, member.schema)))
        writers = [(index, write) for _, index, write in sorted(found, key=lambda one: one[0])]
        expected = [member.name for member in schema.fields]

        def write(values: Any, pieces: Pieces, present: Present) -> None:
            kind: Any = values.type
            if not pa.types.is_struct(kind) or [kind.field(n).name for n in range(kind.num_fields)] != expected:
                raise NotPlainError
            for index, write_field in writers:
                write_field(values.field(index), pieces, present)

        return write

    def _field(self, field: Any, schema: Schema) -> _FieldWriter:
        if names.is_union(schema) or names.enum_word(schema):
            raise NotPlainError
        if schema.type is Type.ARRAY and field.is_repeated:
            return self._array(field, schema)
        if schema.type is Type.MAP and field.is_repeated:
            return self._map(field, schema)
        if field.is_repeated:
            raise NotPlainError
        return self._singular(field, schema)

    def _singular(self, field: Any, schema: Schema) -> _FieldWriter:
        payload, start, has_default = self._payload(field, schema), _tag(field), schema.default is not None
        # A message is there or not; a number or a text without presence is left out if it is zero.
        is_left_out = payload.is_zero if not field.has_presence else None

        def write(values: Any, pieces: Pieces, present: Present) -> None:
            written = _written(values, present)
            if has_default and written is not present:
                raise NotPlainError
            if is_left_out is not None:
                zero = is_left_out(values)
                written = ~zero if written is None else written & ~zero
            pieces.constant(start, written)
            payload.write(values, pieces, written)

        return write

    def _payload(self, field: Any, schema: Schema) -> Payload:
        """What follows the tag."""
        if schema.name in LOGICAL_PAYLOADS:
            if field.message_type is None:
                raise NotPlainError
            return LOGICAL_PAYLOADS[schema.name](schema)
        if field.message_type is not None:
            is_struct = schema.type is Type.STRUCT
            inner = self._members if is_struct else self._wrapped
            return Payload(_nested(inner(field.message_type, schema)), None)
        kind = _KINDS.get((field.type, schema.type))
        if kind is None:
            raise NotPlainError
        return PAYLOADS[field.type].of_kind(kind)

    def _wrapped(self, message: Any, schema: Schema) -> _FieldWriter:
        """A value in a message of google/protobuf/wrappers.proto."""
        if message.full_name not in names.WRAPPERS:
            raise NotPlainError
        return self._singular(message.fields_by_name["value"], schema)

    def _array(self, field: Any, schema: Schema) -> _FieldWriter:
        element = schema.value_schema
        if element is None or names.is_union(element) or names.enum_word(element) or is_map(field):
            raise NotPlainError
        payload, start, is_packed = self._payload(field, element), _tag(field), field.is_packed
        has_default = schema.default is not None

        def items(values: Any) -> Any:
            if values.null_count:
                raise NotPlainError
            pieces = Pieces(len(values))
            if not is_packed:
                pieces.constant(start)
            payload.write(values, pieces, None)
            return pieces.joined()

        def write(values: Any, pieces: Pieces, present: Present) -> None:
            values = _in_place(values, present, has_default=has_default)
            joined = _concatenated(_offsets(values), values.flatten(), items)
            if is_packed:
                written = numbers_of(pc.binary_length(joined)) > 0
                pieces.constant(_packed_tag(field), written)
                _with_length(joined, pieces, written)
            else:
                pieces.column(joined)

        return write

    def _map(self, field: Any, schema: Schema) -> _FieldWriter:
        """Entries in the order of the map; a map of descriptors that are sorted is written value by value."""
        entry, key, value = field.message_type, schema.key_schema, schema.value_schema
        if not is_map(field) or entry.GetOptions().map_entry or key is None or value is None:
            raise NotPlainError
        write_key = self._field(entry.fields_by_name["key"], key)
        write_value = self._field(entry.fields_by_name["value"], value)
        start, has_default = _tag(field), schema.default is not None

        def items(pairs: Any) -> Any:
            inner = Pieces(len(pairs))
            write_key(pairs.field(0), inner, None)
            write_value(pairs.field(1), inner, None)
            pieces = Pieces(len(pairs))
            pieces.constant(start)
            _with_length(inner.joined(), pieces, None)
            return pieces.joined()

        def write(values: Any, pieces: Pieces, present: Present) -> None:
            values = _in_place(values, present, has_default=has_default)
            offsets, keys, members = entries_of(values)
            if has_key_twice(np.diff(offsets.to_numpy()).astype(np.int64), keys):
                raise NotPlainError
            pairs = pa.StructArray.from_arrays([keys, members], names=["key", "value"])
            pieces.column(_concatenated(offsets, pairs, items))

        return write


def _tag(field: Any) -> bytes:
    wire = VARINT if field.type not in PAYLOADS else PAYLOADS[field.type].wire_type
    return _varint(field.number << 3 | (_LENGTH_DELIMITED if field.message_type is not None else wire))


def _packed_tag(field: Any) -> bytes:
    return _varint(field.number << 3 | _LENGTH_DELIMITED)


def _varint(number: int) -> bytes:
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _written(values: Any, present: Present) -> Present:
    """The rows of a column that are there; `present` itself if none of them is null."""
    if not values.null_count:
        return present
    valid: NDArray[np.bool_] = values.is_valid().to_numpy(zero_copy_only=False)
    if present is None:
        return valid
    return present if valid[present].all() else valid & present


def _nested(write_members: _FieldWriter) -> Callable[[Any, Pieces, Present], None]:
    def write(values: Any, pieces: Pieces, present: Present) -> None:
        inner = Pieces(pieces.count)
        write_members(values, inner, present)
        _with_length(inner.joined(), pieces, present)

    return write


def _with_length(data: Any, pieces: Pieces, present: Present) -> None:
    """Bytes behind their length; those of rows that are not there are empty."""
    pieces.varints(numbers_of(pc.binary_length(data)).astype(np.uint64), present)
    pieces.column(data)


def _in_place(values: Any, present: Present, *, has_default: bool) -> Any:
    """Lists or maps, null where they are not there."""
    if has_default and _written(values, present) is not present:
        raise NotPlainError
    if present is None or present.all():
        return values
    scalar: Any = pa.scalar(None, values.type)
    return pc.if_else(pa.array(present), values, scalar)


def _offsets(values: Any) -> Any:
    """Offsets of lists in their `flatten()`: int32[n + 1]."""
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(numbers_of(pc.list_value_length(values)), out=offsets[1:])
    return pa.array(offsets)


def _concatenated(offsets: Any, elements: Any, items: Callable[[Any], Any]) -> Any:
    """The encoded elements of each list, one after the other: binary[n]."""
    if not len(elements):
        return pa.array([b""] * (len(offsets) - 1), pa.binary())
    made: Any = pa.ListArray
    return pc.binary_join(made.from_arrays(offsets, items(elements)), b"")
