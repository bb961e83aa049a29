"""JsonFormat: one JSON document per line, each line ended by a line feed.

Records with a schema are written as JsonConverter writes them with schemas disabled, byte for byte. Schemaless
values are written by orjson: the same JSON as Confluent's sink emits, spelled otherwise in three places. Keys of
maps keep the order of the message, where Confluent has the order of Java's HashMap. Doubles from 10^7 on or below
10^-3 read `10000000.0` and `1e-7`, where Java prints `1.0E7` and `1.0E-7`. Characters beyond the BMP are UTF-8,
where Jackson writes two escapes.
Source: io.confluent.connect.s3.format.json.JsonRecordWriterProvider.
"""

from __future__ import annotations

import base64
import datetime
import math
import secrets
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

import orjson

from airflow_connect.api.errors import ConfigError, DataError
from airflow_connect.api.schema import Schema
from airflow_connect.converters.java_text import decimal_text, epoch_ms, java_string
from airflow_connect.converters.json_converter import plain_json
from airflow_connect.converters.json_text import HUGE_DOUBLE, string_text
from airflow_connect.converters.json_writer import WriterOptions, value_writer
from airflow_connect.formats.format import ByteSink

# Small enough for the processor's cache, large enough that the work for a chunk does not count.
_CHUNK_RECORDS: Final = 128
_CHUNK_BYTES: Final = 1 << 20
# Values that orjson would write in its own way come back as TypeError and take the exact way.
_NATIVE_ONLY: Final = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
# Stands between messages that are parsed together. No message can contain it: every process chooses it anew.
_SEPARATOR: Final = secrets.token_hex(8)


class JsonFormat:
    """`io.confluent.connect.s3.format.json.JsonFormat`.

    Args:
        decimal_format: how Decimals of records with a schema are written, `BASE64` or `NUMERIC`
            (`json.decimal.format`); a schemaless Decimal is always a number.
        gzip: whether the file is compressed downstream (`s3.compression.type=gzip`): names extension and
            encoding.
    """

    needs_schema = False
    content_type = "application/json"

    def __init__(self, decimal_format: str = "BASE64", *, gzip: bool = False) -> None:
        if decimal_format.upper() not in ("BASE64", "NUMERIC"):
            raise ConfigError(
                f"Invalid value {decimal_format} for configuration json.decimal.format: "
                "String must be one of (case insensitive): BASE64, NUMERIC.",
                config_path="json.decimal.format",
            )
        self._options = WriterOptions(numeric_decimals=decimal_format.upper() == "NUMERIC")
        self.extension = ".json.gz" if gzip else ".json"
        self.content_encoding = "gzip" if gzip else ""

    def open(self, sink: ByteSink, schema: Schema | None) -> JsonLinesEncoder:
        """Start a file of values with `schema`; every schema can be written."""
        if schema is None:
            return JsonLinesEncoder(sink, schemaless_lines)
        write = value_writer(schema, self._options)

        def struct_lines(values: Sequence[Any]) -> bytes:
            return "".join([write(value) + "\n" for value in values]).encode()

        return JsonLinesEncoder(sink, struct_lines)


class JsonLinesEncoder:
    """One file of JSON lines. It holds nothing back: what is appended is written at once."""

    buffered_bytes = 0

    def __init__(self, sink: ByteSink, lines: Callable[[Sequence[Any]], bytes]) -> None:
        self._sink = sink
        self._lines = lines

    def append(self, values: Sequence[Any]) -> None:
        """Write one line per value.

        Raises:
            DataError: a value has no JSON form; none of `values` is then written.
        """
        if values:
            self._sink.write(self._lines(values))

    def spill(self) -> None:
        """Nothing is held."""

    def finish(self) -> None:
        """JSON lines have no footer."""


def schemaless_lines(values: Sequence[Any]) -> bytes:
    """Schemaless values as JSON lines.

    Raises:
        DataError: a value has no JSON form.
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
        return str(value)
    if isinstance(value, Decimal) and value.is_finite():
        return decimal_text(value)
    if isinstance(value, dict):
        # Keys that are the same text follow the last of them.
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
        # Lone surrogates have no UTF-8 form, but an escape.
        return string_text(text)


def _key_json(key: Any) -> str:
    if key is None:
        raise DataError("Null key for a Map not allowed in JSON.", suggestion="Drop the entry, or give it a key.")
    return _text_json(java_string(None, key))


def to_json_lines(values: Sequence[bytes]) -> bytes:
    """Messages of plain JSON as JSON lines: JsonConverter without schemas, then JsonFormat, in one step.

    The bytes are those of the two steps for every input. Messages are parsed many at a time; where they prove
    to be written already as we would write them, which is usual, they are not written again.

    Raises:
        DataError: a message is not JSON. Which one it is, the steps one by one tell.
    """
    chunks = []
    start = 0
    while start < len(values):
        chunk = values[start : start + _CHUNK_RECORDS]
        if len(chunk) > 1 and sum(map(len, chunk)) > _CHUNK_BYTES:
            chunk = chunk[: max(1, len(chunk) * _CHUNK_BYTES // sum(map(len, chunk)))]
        chunks.append(_chunk_lines(chunk))
        start += len(chunk)
    return b"".join(chunks)


def _chunk_lines(chunk: Sequence[bytes]) -> bytes:
    separator = b',"%b",' % _SEPARATOR.encode()
    joined = b"[" + separator.join(chunk) + b"]"
    try:
        parsed = orjson.loads(joined)
        # Every second element being the separator proves that no message reaches into the next one.
        if len(parsed) != 2 * len(chunk) - 1 or parsed[1::2].count(_SEPARATOR) != len(chunk) - 1:
            raise ValueError("a message is not one JSON document")
        # A message is canonical when it is as orjson would write it: then the message is the line.
        first = orjson.dumps(parsed[0], None, orjson.OPT_STRICT_INTEGER)
        if first == chunk[0] and orjson.dumps(parsed, None, orjson.OPT_STRICT_INTEGER) == joined:
            return b"\n".join(chunk) + b"\n"
        text = b"\n".join([orjson.dumps(value, None, orjson.OPT_STRICT_INTEGER) for value in parsed[::2]]) + b"\n"
        # Integers beyond 64 bits were read as doubles.
        if HUGE_DOUBLE not in text:
            return text
    except (ValueError, TypeError):
        pass
    return schemaless_lines([plain_json(message) for message in chunk])
