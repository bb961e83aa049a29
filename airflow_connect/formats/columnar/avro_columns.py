"""Converts columns (`airflow_connect.api.columns`) to Avro records: encodes each field, then joins the fields.

The reference is `AvroFormat.open(...).append`, value by value. The result is None for what is not supported here
(unions of several types, enums, named types that are used twice, a default in place of a null); the reference path then
handles it.
Source: Avro specification 1.12, "Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from airflow_connect.api.schema import DECIMAL, TIME, Schema, Type
from airflow_connect.converters.avro.mapping import decimal_digits
from airflow_connect.converters.decimal_columns import has_longer, is_shortest
from airflow_connect.converters.map_columns import entries_of
from airflow_connect.converters.time_of_day import LAST_MS, is_beyond
from airflow_connect.formats.avro import AvroFormat

FieldWriter = Callable[[Any], "list[Any]"]
"""A column to the parts that are joined in its encoding: bytes for all rows, or binary[n]; arbitrary where the column
is null.

Raises:
    pa.ArrowInvalid: a value needs the reference.
"""
_INTEGERS = {Type.INT8: "int", Type.INT16: "int", Type.INT32: "int", Type.INT64: "long"}
_FIXED_WIDTH = {Type.FLOAT32: ("float", "<f4"), Type.FLOAT64: ("double", "<f8"), Type.BOOLEAN: ("boolean", "u1")}


def record_writer(file_format: AvroFormat, schema: Schema) -> Callable[[Any], Any | None] | None:
    """A function from values of `schema` (n, none of them null) to their encodings, binary[n]; None as in the module.

    Raises:
        SchemaError: Avro cannot express the schema.
    """
    write = _writer(file_format.avro_schema(schema), schema)
    if write is None:
        return None

    def encode(values: Any) -> Any | None:
        try:
            return _joined(write(values), len(values))
        except pa.ArrowInvalid:
            return None

    return encode


def varints(numbers: NDArray[np.int64]) -> Any:
    """Avro's int and long, binary[n]: zigzag, then seven bits per byte, lowest first."""
    zigzag = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    sizes = np.ones(len(zigzag), dtype=np.int32)
    largest = int(np.max(zigzag, initial=0))
    bits = 7
    while bits < 64 and largest >> bits:
        sizes += zigzag >= np.uint64(1 << bits)
        bits += 7
    offsets = np.zeros(len(zigzag) + 1, dtype=np.int32)
    np.cumsum(sizes, out=offsets[1:])
    data = np.empty(int(offsets[-1]), dtype=np.uint8)
    places, rest, left = offsets[:-1].astype(np.int64), zigzag, sizes
    while len(rest):
        data[places] = (rest & np.uint64(0x7F)).astype(np.uint8) | ((left > 1).astype(np.uint8) << 7)
        more = np.flatnonzero(left > 1)
        places, rest, left = places[more] + 1, rest[more] >> np.uint64(7), left[more] - 1
    return _binary(offsets, data)


def _binary(offsets: NDArray[np.int32], data: NDArray[np.uint8]) -> Any:
    starts, content = _buffer(offsets), _buffer(data)
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, starts, content])


def _buffer(numbers: Any) -> pa.Buffer:
    return pa.py_buffer(numbers)


def _writer(avro_type: Any, schema: Schema) -> FieldWriter | None:
    if isinstance(avro_type, list):
        return _optional(avro_type, schema)
    # A null that is written as the default never comes here: `_optional` refuses it.
    kind = avro_type["type"] if isinstance(avro_type, dict) else avro_type
    if isinstance(kind, dict | list):
        return _writer(kind, schema)
    if kind == "record" and schema.type is Type.STRUCT:
        return _record(avro_type, schema)
    if kind == "array" and schema.type is Type.ARRAY:
        return _array(avro_type, schema)
    if schema.type is Type.MAP and kind in ("map", "array"):
        return _map(avro_type, schema)
    if schema.name == TIME and kind == "int":
        return _times
    if _INTEGERS.get(schema.type) == kind:
        return _integers
    if schema.type in _FIXED_WIDTH and _FIXED_WIDTH[schema.type][0] == kind:
        return _fixed_width(_FIXED_WIDTH[schema.type][1])
    if schema.name == DECIMAL and kind == "bytes":
        return _decimals(decimal_digits(schema))
    is_text = (schema.type, kind) in ((Type.STRING, "string"), (Type.BYTES, "bytes"))
    return _with_length if is_text else None


def _optional(members: list[Any], schema: Schema) -> FieldWriter | None:
    if len(members) != 2 or "null" not in members:
        return None
    null = members.index("null")
    write = _writer(members[1 - null], schema)
    if write is None:
        return None
    null_branch, branch = bytes([2 * null]), bytes([2 * (1 - null)])

    def write_optional(column: Any) -> list[Any]:
        if not column.null_count:
            return [branch, *write(column)]
        if schema.default is not None:
            raise pa.ArrowInvalid("a null that is replaced by a default")
        return [pc.if_else(column.is_valid(), _joined([branch, *write(column)], len(column)), null_branch)]

    return write_optional


def _record(avro_type: dict[str, Any], schema: Schema) -> FieldWriter | None:
    pairs = zip(avro_type["fields"], schema.fields, strict=True)
    members = [(_writer(member["type"], field.schema), field.schema) for member, field in pairs]
    if not members or any(write is None for write, _ in members):
        return None

    def write_record(column: Any) -> list[Any]:
        parts: list[Any] = []
        for member, (write, field_schema) in zip(column.flatten(), members, strict=True):
            if member.null_count > column.null_count and not field_schema.optional:
                raise pa.ArrowInvalid("a null in a required field")
            assert write is not None
            parts += write(member)
        return parts

    return write_record


def _array(avro_type: dict[str, Any], schema: Schema) -> FieldWriter | None:
    assert schema.value_schema is not None
    write, is_optional = _writer(avro_type["items"], schema.value_schema), schema.value_schema.optional
    if write is None:
        return None

    def write_array(column: Any) -> list[Any]:
        elements = column.flatten()
        if elements.null_count and not is_optional:
            raise pa.ArrowInvalid("a null among required elements")
        counts = _filled(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
        return _block(counts, lambda: _joined(write(elements), len(elements)))

    return write_array


def _map(avro_type: dict[str, Any], schema: Schema) -> FieldWriter | None:
    """A map, or an array of records with a key and a value."""
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    if "values" in avro_type:
        of_key: Any = "string"
        of_value = avro_type["values"]
    elif isinstance(avro_type["items"], dict):
        of_key, of_value = (field["type"] for field in avro_type["items"]["fields"])
    else:  # the name of a type that is used twice
        return None
    write_key, write_value = _writer(of_key, schema.key_schema), _writer(of_value, schema.value_schema)
    is_optional = schema.value_schema.optional
    if write_key is None or write_value is None:
        return None

    def write_map(column: Any) -> list[Any]:
        offsets, keys, values = entries_of(column)
        if values.null_count and not is_optional:
            raise pa.ArrowInvalid("a null among required values")
        counts = np.diff(offsets.to_numpy()).astype(np.int64)
        return _block(counts, lambda: _joined([*write_key(keys), *write_value(values)], len(keys)))

    return write_map


def _block(counts: NDArray[np.int64], items: Callable[[], Any]) -> list[Any]:
    """One block with all items of an array or a map, then the empty block that ends it.

    Args:
        counts: items of each value.
        items: makes the encodings of all items, one value after the other; called if there are any.
    """
    if not counts.any():
        return [b"\0"]
    starts = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    lists = pa.ListArray.from_arrays(starts, items())
    blocks = pc.binary_join_element_wise(varints(counts), pc.binary_join(lists, b""), b"\0", b"")
    return [pc.if_else(pa.array(counts > 0), blocks, b"\0")]


def _integers(column: Any) -> list[Any]:
    return [varints(_filled(column, 0).to_numpy().astype(np.int64))]


def _times(column: Any) -> list[Any]:
    if is_beyond(column, LAST_MS):
        raise pa.ArrowInvalid("a Time that is refused")
    return _integers(column)


def _fixed_width(kind: str) -> FieldWriter:
    width = np.dtype(kind).itemsize

    def write(column: Any) -> list[Any]:
        numbers = _filled(column, 0).to_numpy(zero_copy_only=False).astype(kind)
        offsets = np.arange(0, width * len(numbers) + 1, width, dtype=np.int32)
        return [_binary(offsets, numbers.view(np.uint8))]

    return write


def _with_length(column: Any) -> list[Any]:
    data = _filled(column, b"").cast(pa.binary())
    return [varints(pc.binary_length(data).to_numpy().astype(np.int64)), data]


def _decimals(digits: int | None) -> FieldWriter:
    """Connect's bytes, unchanged. The reference path writes the shortest form, so it handles longer ones.

    `digits`: their maximum, if there is one; the reference path refuses more.
    """

    def write(column: Any) -> list[Any]:
        data = _filled(column, b"\0")
        if not is_shortest(data):
            raise pa.ArrowInvalid("a Decimal without bytes, or with more than it needs")
        if digits is not None and has_longer(data, digits):
            raise pa.ArrowInvalid("a Decimal with more digits than its precision")
        return _with_length(data)

    return write


def _filled(column: Any, value: Any) -> Any:
    """The column without nulls; the values in their place are not used."""
    if not column.null_count:
        return column
    scalar: Any = pa.scalar(value)
    return column.fill_null(scalar.cast(column.type))


def _joined(parts: Sequence[Any], count: int) -> Any:
    """The joined parts, binary[count]."""
    if len(parts) == 1 and not isinstance(parts[0], bytes):
        return parts[0]
    if all(isinstance(part, bytes) for part in parts):
        return pa.array([b"".join(parts)] * count, pa.binary())
    return pc.binary_join_element_wise(*parts, b"")
