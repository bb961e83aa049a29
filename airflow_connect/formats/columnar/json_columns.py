"""Converts columns (`airflow_connect.api.columns`) to JSON lines: text of each column, then the columns joined.

The reference is `converters/json/writer.py`, value by value; the bytes are the same. The result is None for what is
not supported here (values that the reference refuses); the reference path then handles it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_connect.api.schema import DECIMAL, DECIMAL_SCALE, TIME, Schema, Type
from airflow_connect.converters.column_pieces import with_texts_merged
from airflow_connect.converters.java_text import MS_PER_DAY
from airflow_connect.converters.json.text import string_text
from airflow_connect.converters.json.writer import WriterOptions, value_writer
from airflow_connect.converters.map_columns import entries_of
from airflow_connect.converters.time_of_day import is_beyond
from airflow_connect.formats.columnar.arrow_columns import list_offsets
from airflow_connect.java.numbers import decimal_of_bytes, integer_parameter

_INTEGERS = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)
_FLOATS = (Type.FLOAT32, Type.FLOAT64)
# Doubles that Java writes without an exponent.
_SMALLEST, _LARGEST = 1e-3, 1e7
# Bytes of text that JSON escapes, and the first byte of characters beyond the BMP, which Jackson writes as escapes.
_IS_ESCAPED = np.zeros(256, dtype=np.bool_)
_IS_ESCAPED[:0x20] = True
_IS_ESCAPED[[ord('"'), ord("\\")]] = True
_IS_ESCAPED[0xF0:] = True


class JsonColumnWriter:
    """Writes columns of one schema as JSON lines."""

    def __init__(self, schema: Schema, options: WriterOptions) -> None:
        """`options`: those of the file format."""
        self._schema = schema
        self._options = options

    def lines(self, values: Any) -> Any | None:
        """One line per value, binary[n]; None if one of them needs the reference path."""
        try:
            text = _joined([*self._parts(values, self._schema, 0), "\n"], len(values))
        except pa.ArrowInvalid:
            return None
        return text.cast(pa.binary())

    def _parts(self, column: Any, schema: Schema, nulls_above: int) -> list[Any]:
        """The parts that are joined to the text of a column: a str for all rows, or one text per row.

        Args:
            column: the values; null wherever a struct around them is.
            schema: of the values.
            nulls_above: how many of the nulls come from structs around the values; their text is not used.

        Raises:
            pa.ArrowInvalid: a value needs the reference.
        """
        if column.null_count == 0:
            return self._present(column, schema, 0)
        if column.null_count > nulls_above and not schema.optional and schema.default is None:
            raise pa.ArrowInvalid("a null that is refused")
        null = "null"
        if schema.default is not None and self._options.replace_null:
            null = value_writer(schema, self._options)(None)
        text = _joined(self._present(column, schema, column.null_count), len(column))
        return [pc.if_else(column.is_valid(), text, null)]

    def _present(self, column: Any, schema: Schema, nulls: int) -> list[Any]:
        """Parts of values; for null values, any text or null."""
        if schema.type is Type.STRUCT:
            return self._struct(column, schema, nulls)
        if schema.type is Type.ARRAY and schema.value_schema is not None:
            elements = _joined(self._parts(column.flatten(), schema.value_schema, 0), len(column.flatten()))
            lists: Any = pa.ListArray.from_arrays(list_offsets(column), elements)
            return ["[", pc.binary_join(lists, ","), "]"]
        if schema.type is Type.MAP and schema.key_schema is not None and schema.value_schema is not None:
            return self._map(column, schema.key_schema, schema.value_schema)
        if schema.name == DECIMAL or schema.type is Type.BYTES:
            return [self._one_by_one(column, schema)]
        if schema.name == TIME and is_beyond(column, MS_PER_DAY):
            raise pa.ArrowInvalid("a Time that is refused")
        if schema.type is Type.STRING:
            return _strings(column)
        if schema.type in _FLOATS:
            return [_floats(column, value_writer(schema, self._options))]
        if schema.type in _INTEGERS or schema.type is Type.BOOLEAN:
            return [column.cast(pa.string())]
        raise pa.ArrowInvalid("another type")

    def _map(self, column: Any, key: Schema, value: Schema) -> list[Any]:
        """An object if keys are texts, else a list of pairs."""
        offsets, keys, values = entries_of(column)
        parts = [*self._parts(keys, key, 0), ":" if key.type is Type.STRING else ",", *self._parts(values, value, 0)]
        if key.type is not Type.STRING:
            parts = ["[", *parts, "]"]
        lists: Any = pa.ListArray.from_arrays(offsets, _joined(parts, len(keys)))
        before, after = "{}" if key.type is Type.STRING else "[]"
        return [before, pc.binary_join(lists, ","), after]

    def _struct(self, column: Any, schema: Schema, nulls: int) -> list[Any]:
        parts: list[Any] = ["{"]
        for number, (member, field) in enumerate(zip(column.flatten(), schema.fields, strict=True)):
            parts.append(("," if number else "") + string_text(field.name) + ":")
            parts += self._parts(member, field.schema, nulls)
        return [*parts, "}"]

    def _one_by_one(self, column: Any, schema: Schema) -> Any:
        """Values that Arrow cannot write as text: bytes and Decimals."""
        write = value_writer(schema, self._options)
        values = column.to_pylist()
        if schema.name == DECIMAL:
            scale = integer_parameter(schema.parameters.get(DECIMAL_SCALE, "0"))
            values = [None if value is None else decimal_of_bytes(value, scale) for value in values]
        return pa.array([None if value is None else write(value) for value in values], pa.string())


def _joined(parts: Sequence[Any], count: int) -> Any:
    """The joined parts, string[count]; null if one of them is null."""
    merged = with_texts_merged(parts)
    if all(isinstance(part, str) for part in merged):
        return pa.array(["".join(merged)] * count, pa.string())
    return merged[0] if len(merged) == 1 else pc.binary_join_element_wise(*merged, "")


def _strings(column: Any) -> list[Any]:
    """Text in quotes. Escapes are rare: only the values that need one are written one by one."""
    bounds = np.frombuffer(column.buffers()[1], dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    data = column.buffers()[2]
    if data is None or not len(column):
        return ['"', column, '"']
    letters = np.frombuffer(data, dtype=np.uint8)[bounds[0] : bounds[-1]]
    escaped = np.flatnonzero(_IS_ESCAPED[letters])
    if not len(escaped):
        return ['"', column, '"']
    rows = np.unique(np.searchsorted(bounds, escaped + bounds[0], side="right") - 1)
    is_escaped = np.zeros(len(column), dtype=np.bool_)
    is_escaped[rows] = True
    mask = pa.array(is_escaped)
    texts = [None if text is None else string_text(text) for text in column.filter(mask).to_pylist()]
    quoted = pc.binary_join_element_wise('"', column, '"', "")
    return [pc.replace_with_mask(quoted, mask, pa.array(texts, pa.string()))]


def _floats(column: Any, write: Any) -> Any:
    """Numbers as Java formats them. Arrow formats them in the same way if there is no exponent, except for `.0`."""
    numbers = column.fill_null(1.5).to_numpy()
    text = column.cast(pa.string())
    with np.errstate(invalid="ignore"):  # a signalling NaN
        whole = numbers == np.floor(numbers)
    if whole.any():
        text = pc.if_else(pa.array(whole), pc.binary_join_element_wise(text, ".0", ""), text)
    sizes = np.abs(numbers)
    odd = ~((sizes >= _SMALLEST) & (sizes < _LARGEST)) & (numbers != 0)
    if odd.any():
        mask = pa.array(odd)
        others = pa.array([write(number) for number in column.filter(mask).to_pylist()], pa.string())
        text = pc.replace_with_mask(text, mask, others)
    return text
