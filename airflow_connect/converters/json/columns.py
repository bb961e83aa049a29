"""JSON messages with one schema to Arrow columns, all messages of a batch at once.

The schema is fixed (KIP-1054), or in the envelope of each message (`envelope_columns.py`).

The reference is JsonConverter, record by record; only batches in which every message is vectorizable are read here: one
JSON object per message whose members have exactly the types of the schema. JsonConverter's readings of anything else
(numbers of another type, wrapping integers, text after the document) and all of its errors stay with the
reference: `read` returns None, and the caller processes the records one by one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from numpy.typing import NDArray

from airflow_connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type
from airflow_connect.converters.json.column_values import has_columns, has_defaults, values_of, with_defaults
from airflow_connect.converters.json.text import MAX_DEPTH, has_long_number, parse_fast
from airflow_connect.converters.json.unread_members import member_finder
from airflow_connect.converters.time_of_day import LAST_MS, is_beyond

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_connect.converters.unread import Unread

_READ_AS: dict[Type, pa.DataType] = {
    Type.INT8: pa.int8(),
    Type.INT16: pa.int16(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float64(),
    Type.FLOAT64: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.STRING: pa.string(),
    Type.BYTES: pa.string(),
}
"""How Arrow reads a type; `column_values.py` makes columns of those that JSON does not have."""
_STORED_AS = {DATE: Type.INT32, TIME: Type.INT32, TIMESTAMP: Type.INT64, DECIMAL: Type.BYTES}
_OPEN, _CLOSE = b"{}"
_PARSED_AT_ONCE = 256
_UNEXPECTED = "unexpected field"  # in Arrow's message
# Where a value may begin; the text in a string may look like it.
_CONSTANT = re.compile(rb"[:\[,][ \t\r\n]*-?(?:NaN|Inf)")


class JsonColumns:
    """Reads messages of one schema."""

    def __init__(self, schema: Schema, unread: Unread | None, *, is_whole: bool, fills_defaults: bool) -> None:
        """Use `json_columns`."""
        self._fills_defaults = fills_defaults and has_defaults(schema)
        self._is_whole = is_whole
        self._schema = schema
        self._unread = unread
        self._columns = _read_fields(schema)
        kind = pa.schema(self._columns)
        self._exact = pj.ParseOptions(explicit_schema=kind, unexpected_field_behavior="error")
        self._lenient = pj.ParseOptions(explicit_schema=kind, unexpected_field_behavior="ignore")
        self._find_unread = None if unread is None else member_finder(schema, unread)

    def read(self, messages: Any) -> pa.StructArray | None:
        """Structs of the messages (binary[n] without nulls), or None if one of them is not vectorizable."""
        lines = pc.binary_join_element_wise(messages, b"", b"\n")
        starts, data = _content(lines)
        text = data.to_pybytes()
        if not _are_objects(text, starts) or has_long_number(text) or _is_too_deep(text, starts):
            return None
        table, has_unread = self._table(data)
        if table is None or (has_unread and _has_constant(text, starts)):
            return None
        # Every message begins with `{` and ends with `}`, and `}` line feed `{` lies inside no document: as many rows
        # as messages means one document per message.
        if table.num_rows != len(messages):
            return None
        (batch,) = table.combine_chunks().to_batches()
        if self._fills_defaults:
            structs = pa.StructArray.from_arrays(batch.columns, fields=self._columns)
            batch = pa.RecordBatch.from_struct_array(with_defaults(structs, self._schema))
        parts = zip(batch.columns, (f.schema for f in self._schema.fields), strict=True)
        if not all(_is_vectorizable(column, schema) for column, schema in parts):
            return None
        # One letter is found 20 times as fast as two, and most messages have no backslash at all.
        if b"\\" in text and b"\\u" in text and not _is_unicode(batch):
            return None
        if has_unread and not self._name_unread(messages):
            return None
        return values_of(pa.StructArray.from_arrays(batch.columns, fields=self._columns), self._schema)

    def _table(self, data: pa.Buffer) -> tuple[pa.Table | None, bool]:
        """What Arrow reads, or None, and whether it has left out members that the schema does not have."""
        reading = pj.ReadOptions(use_threads=False, block_size=len(data) + 1)
        source: Any = pa.BufferReader(data)
        try:
            return pj.read_json(source, reading, self._exact), False
        except pa.ArrowInvalid as error:
            if self._is_whole or _UNEXPECTED not in str(error):
                return None, False
        source.seek(0)
        try:
            return pj.read_json(source, reading, self._lenient), True
        except pa.ArrowInvalid:
            return None, True

    def _name_unread(self, messages: Any) -> bool:
        """Name the members that Arrow has left out, message by message; returns False if a message is not readable."""
        if self._unread is None or self._find_unread is None:
            return True
        for start in range(0, len(messages), _PARSED_AT_ONCE):
            texts = messages.slice(start, _PARSED_AT_ONCE).to_pylist()
            try:
                nodes = orjson.loads(b"[" + b",".join(texts) + b"]")
            except ValueError:
                return False
            for row, node in enumerate(nodes, start):
                self._find_unread(node)
                if self._unread.found:
                    self._unread.end_row(self._schema, row)
        return True


def json_columns(
    schema: Schema, unread: Unread | None = None, *, is_whole: bool = False, fills_defaults: bool = False
) -> JsonColumns | None:
    """A reader for messages of `schema`, or None if a part of it has no columnar form.

    Args:
        schema: of all messages.
        unread: gets the members that the schema does not have, for each message; None: they are not looked for.
        is_whole: whether a message with such members is not vectorizable.
        fills_defaults: whether a null, or a missing member, is the default of its schema. Otherwise messages with one
            are not vectorizable.
    """
    if schema.type is not Type.STRUCT or not schema.fields or not all(map(_is_readable, _parts(schema))):
        return None
    return JsonColumns(schema, unread, is_whole=is_whole, fills_defaults=fills_defaults)


def _parts(schema: Schema) -> Iterator[Schema]:
    for field in schema.fields:
        yield field.schema
        yield from _parts(field.schema)
    if schema.value_schema is not None:
        yield schema.value_schema
        yield from _parts(schema.value_schema)


def _is_readable(schema: Schema) -> bool:
    if _STORED_AS.get(schema.name or "", schema.type) is not schema.type:
        return False
    if schema.type is Type.BYTES:
        return has_columns(schema)
    return schema.type in _READ_AS or schema.type in (Type.STRUCT, Type.ARRAY)


def _read_fields(schema: Schema) -> list[pa.Field[Any]]:
    return [pa.field(f.name, _read_type(f.schema)) for f in schema.fields]


def _read_type(schema: Schema) -> pa.DataType:
    if schema.type is Type.STRUCT:
        return pa.struct(_read_fields(schema))
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        return pa.list_(pa.field("element", _read_type(schema.value_schema)))
    return _READ_AS[schema.type]


def _content(lines: Any) -> tuple[NDArray[np.int32], pa.Buffer]:
    """The start of each line, and the bytes of all lines, one after the other."""
    bounds = np.frombuffer(lines.buffers()[1], dtype=np.int32)[lines.offset : lines.offset + len(lines) + 1]
    first = int(bounds[0])
    return bounds[:-1] - first, lines.buffers()[2].slice(first, int(bounds[-1]) - first)


def _are_objects(text: bytes, starts: NDArray[np.int32]) -> bool:
    """Whether every line is text that begins like an object and ends like one."""
    letters = np.frombuffer(text, np.uint8)
    ends = np.append(starts[1:], len(text)) - 2
    if not (bool((ends > starts).all()) and bool((letters[starts] == _OPEN).all())):
        return False
    try:
        text.decode()  # The parser accepts any bytes as text; Jackson does not.
    except UnicodeDecodeError:
        return False
    return bool((letters[ends] == _CLOSE).all())


def _is_too_deep(text: bytes, starts: NDArray[np.int32]) -> bool:
    """Whether a message is nested beyond the limit of Jackson, even in members that the schema does not have."""
    ends = np.append(starts[1:], len(text))
    # Two characters for each level: only long messages can be too deep.
    suspects = [
        row
        for row in np.flatnonzero(ends - starts > 2 * MAX_DEPTH).tolist()
        if text.count(b"[", starts[row], ends[row]) + text.count(b"{", starts[row], ends[row]) > MAX_DEPTH
    ]
    return _is_any_refused(text, starts, suspects)


def _has_constant(text: bytes, starts: NDArray[np.int32]) -> bool:
    """Whether a message has NaN, Inf or Infinity, which Arrow reads and Jackson refuses.

    Only members that the schema does not have need this search: in its own columns they are numbers that
    `_is_vectorizable` does not accept.
    """
    if b"NaN" not in text and b"Inf" not in text:
        return False
    places = [found.start() for found in _CONSTANT.finditer(text)]
    return _is_any_refused(text, starts, np.unique(np.searchsorted(starts, places, side="right") - 1).tolist())


def _is_any_refused(text: bytes, starts: NDArray[np.int32], rows: list[int]) -> bool:
    ends = np.append(starts[1:], len(text))
    for row in rows:
        try:
            parse_fast(text[int(starts[row]) : int(ends[row])])
        except ValueError:
            return True
    return False


def _is_vectorizable(column: Any, schema: Schema) -> bool:
    """Whether the reference would read the same values: no null that it replaces or refuses, nothing out of range."""
    # Null is an error for a required field and the default for one that has a default.
    if column.null_count and (not schema.optional or schema.default is not None):
        return False
    if schema.type is Type.STRUCT:
        inner = (column.drop_null() if column.null_count else column).flatten()
        return all(_is_vectorizable(part, field.schema) for part, field in zip(inner, schema.fields, strict=True))
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        return _is_vectorizable(column.flatten(), schema.value_schema)
    if schema.name == TIME:
        return not is_beyond(column, LAST_MS)
    if schema.type in (Type.FLOAT32, Type.FLOAT64):
        values = column.drop_null().to_numpy()
        # `-0` is an integer for Jackson, and as a double 0.0. A number that rounds to infinity is for `strict.types`,
        # and Jackson refuses the constants NaN and Infinity.
        return not bool(np.any((values == 0) & np.signbit(values)) or not np.isfinite(values).all())
    return True


def _is_unicode(batch: pa.RecordBatch) -> bool:
    """Whether all text is valid: an escaped half of a surrogate pair is not."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
