"""Schemaless JSON of whole batches as lines, each ended by a line feed: one canonical document per message.

Values are written by orjson, in the order of the message's members; `airflow_connect/formats/json_lines.py` lists the
differences in spelling from Confluent's sink.
"""

from __future__ import annotations

import base64
import datetime
import math
import secrets
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import orjson

from airflow_connect.converters.java_text import decimal_text, epoch_ms, java_string
from airflow_connect.converters.json.plain import plain_json
from airflow_connect.converters.json.text import has_huge_double, has_long_number, may_overflow, string_text
from airflow_connect.converters.unread import Unread
from airflow_connect.errors import DataError
from airflow_connect.java.numbers import integer_text

# Small enough for the processor's cache, large enough that the overhead per chunk is negligible.
_CHUNK_RECORDS: Final = 128
_CHUNK_BYTES: Final = 1 << 20
# Values that orjson would write differently cause a TypeError and take the exact path.
_NATIVE_ONLY: Final = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
# Separates messages that are parsed together. No message can contain it, because every process chooses a new one.
_SEPARATOR: Final = secrets.token_hex(8)
_LINE_FEED: Final = 10
_NULL_LINE: Final = b"null\n"


def schemaless_lines(values: Sequence[Any]) -> bytes:
    """Schemaless values as JSON lines.

    Raises:
        DataError: a value cannot be written as JSON.
    """
    chunks = []
    for start in range(0, len(values), _CHUNK_RECORDS):
        chunk = values[start : start + _CHUNK_RECORDS]
        try:
            text = b"\n".join([orjson.dumps(value, None, _NATIVE_ONLY) for value in chunk])
            # orjson writes numbers that are not finite as null.
            if b"null" in text and any(map(_has_odd_number, chunk)):
                text = b"\n".join([_line(value) for value in chunk])
        except TypeError:
            text = b"\n".join([_line(value) for value in chunk])
        chunks.append(text)
    return b"\n".join([*chunks, b""])


def _line(value: Any) -> bytes:
    try:
        if not _has_odd_number(value):
            try:
                return orjson.dumps(value, None, _NATIVE_ONLY)
            except TypeError:
                pass
        return _exact_text(value).encode()
    except RecursionError as error:
        raise DataError(
            "A value cannot be written as JSON: it is nested too deeply.", suggestion="Flatten it first."
        ) from error


def _has_odd_number(value: Any) -> bool:
    """Whether a number inside is not finite."""
    kind = type(value)
    if kind is float:
        return not math.isfinite(value)
    if kind is dict:
        return any(map(_has_odd_number, value.values()))
    return kind in (list, tuple) and any(map(_has_odd_number, value))


def _exact_text(value: Any) -> str:
    """What orjson cannot write, as Jackson's ObjectMapper does it in Confluent's sink."""
    if isinstance(value, str):
        return _text_json(value)
    if value is None or isinstance(value, bool) or (isinstance(value, float) and math.isfinite(value)):
        return orjson.dumps(value).decode()
    if isinstance(value, float):
        return f'"{java_string(None, value)}"'
    if isinstance(value, int):
        return integer_text(value)
    if isinstance(value, Decimal) and value.is_finite():
        return decimal_text(value)
    if isinstance(value, dict):
        # For keys with the same text, the last one counts.
        members = {_key_json(k): _exact_text(v) for k, v in value.items()}
        return "{" + ",".join([f"{k}:{v}" for k, v in members.items()]) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join([_exact_text(item) for item in value]) + "]"
    if isinstance(value, bytes | bytearray | memoryview):
        return '"' + base64.b64encode(value).decode("ascii") + '"'
    if isinstance(value, datetime.datetime):
        return str(epoch_ms(value))
    raise DataError(
        f"A value of type {type(value).__name__} cannot be written as JSON.",
        suggestion="Convert it to text or to a number, or give the record a schema.",
    )


def _text_json(text: str) -> str:
    try:
        return orjson.dumps(text).decode()
    except TypeError:
        # Lone surrogates cannot be encoded in UTF-8, but can be escaped.
        return string_text(text)


def _key_json(key: Any) -> str:
    if key is None:
        raise DataError("Null key for a Map not allowed in JSON.", suggestion="Drop the entry, or give it a key.")
    return _text_json(java_string(None, key))


def to_json_lines(values: Sequence[bytes], *, is_strict: bool = False, unread: Unread | None = None) -> bytes:
    """Messages of plain JSON as JSON lines: JsonConverter without schemas, then JsonFormat, in one step.

    The output is equal to that of both, byte by byte. Many messages are parsed at a time. A message that already has
    the form in which it would be written, as most have, is copied. `unread` gets the messages with text after the
    document, and those with numbers that become others.

    Raises:
        DataError: a message is not JSON, or `is_strict` and a number would become another one; the separate steps
            identify it.
    """
    chunks = []
    start = 0
    while start < len(values):
        chunk = values[start : start + _CHUNK_RECORDS]
        if len(chunk) > 1 and sum(map(len, chunk)) > _CHUNK_BYTES:
            chunk = chunk[: max(1, len(chunk) * _CHUNK_BYTES // sum(map(len, chunk)))]
        chunks.append(_chunk_lines(chunk, start, is_strict=is_strict, unread=unread))
        start += len(chunk)
    return b"".join(chunks)


def _chunk_lines(chunk: Sequence[bytes], first: int, *, is_strict: bool, unread: Unread | None) -> bytes:
    separator = b',"%b",' % _SEPARATOR.encode()
    joined = b"[" + separator.join(chunk) + b"]"
    try:
        if has_long_number(joined):
            raise ValueError("a number may have too many digits")
        parsed = orjson.loads(joined)
        # If every second element is the separator, no message extends into the next one.
        if len(parsed) != 2 * len(chunk) - 1 or parsed[1::2].count(_SEPARATOR) != len(chunk) - 1:
            raise ValueError("a message is not one JSON document")
        text = _written(parsed, chunk, joined)
        # Integers beyond 64 bits were read as doubles.
        if not has_huge_double(text):
            return text
    except (ValueError, TypeError):
        pass
    values = []
    for row, message in enumerate(chunk, first):
        values.append(plain_json(message, is_strict=is_strict, unread=unread))
        if unread is not None:
            unread.end_row(None, row)
    return schemaless_lines(values)


def _written(parsed: list[Any], chunk: Sequence[bytes], joined: bytes) -> bytes:
    """The lines of messages that were parsed together, with separators between them.

    Raises:
        TypeError: an integer may need more than 64 bits.
    """
    option = orjson.OPT_STRICT_INTEGER
    try:
        first = orjson.dumps(parsed[0], None, option)
        written = orjson.dumps(parsed, None, option) if first == chunk[0] else b""
    except TypeError:
        # Between 53 and 64 bits, as identifiers and times in nanoseconds often are, integers are exact.
        if may_overflow(joined):
            raise
        option = 0
        written = orjson.dumps(parsed, None, option)
    # A message is canonical if orjson would write the same bytes; the message is then the line.
    if written == joined:
        return b"\n".join(chunk) + b"\n"
    return b"\n".join([orjson.dumps(value, None, option) for value in parsed[::2]]) + b"\n"


def document_lines(messages: Any, *, is_strict: bool = False, unread: Unread | None = None) -> Any | None:
    """Messages of plain JSON (binary[n] without nulls) as binary[n]; see `lines_column`."""
    return lines_column(messages.to_pylist(), is_strict=is_strict, unread=unread)


def lines_column(messages: Sequence[bytes], *, is_strict: bool = False, unread: Unread | None = None) -> Any | None:
    """Messages of plain JSON as binary[n], one line each; None if one is not vectorizable.

    Messages that are not JSON, and those that are `null` (tombstones), are not vectorizable; with `is_strict`, nor are
    those with numbers that would become others. `unread` gets the messages with text after the document, and those with
    numbers that become others.
    """
    import numpy as np
    import pyarrow as pa

    try:
        text = to_json_lines(messages, is_strict=is_strict, unread=unread)
    except DataError:
        return None
    # JSON escapes line feeds inside text, so each one ends a record.
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == _LINE_FEED) + 1
    if len(ends) != len(messages):
        return None
    offsets = np.zeros(len(ends) + 1, dtype=np.int32)
    offsets[1:] = ends
    if any(text[e - len(_NULL_LINE) : e] == _NULL_LINE for e in ends[np.diff(offsets) == len(_NULL_LINE)].tolist()):
        return None
    starts: Any = offsets
    buffers: Any = [None, pa.py_buffer(starts), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.binary(), len(ends), buffers)
