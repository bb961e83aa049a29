"""JsonFormat: one JSON document per line, each line ended by a line feed.

Records with a schema are written as JsonConverter writes them with schemas disabled, byte for byte. Schemaless
values are written by orjson: the same JSON as Confluent's sink writes, except for three spellings. Keys of maps keep
the order of the message; Confluent has the order of Java's HashMap. Doubles from 10^7 on or below 10^-3 are
`10000000.0` and `1e-7`; Java prints `1.0E7` and `1.0E-7`. Characters beyond the BMP are UTF-8; Jackson writes two
escapes.
Source: io.confluent.connect.s3.format.json.JsonRecordWriterProvider.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from airflow_connect.api.schema import Schema
from airflow_connect.converters.json.documents import schemaless_lines
from airflow_connect.converters.json.writer import WriterOptions, value_writer
from airflow_connect.errors import ConfigError
from airflow_connect.formats.format import ByteSink


class JsonFormat:
    """`io.confluent.connect.s3.format.json.JsonFormat`.

    Args:
        decimal_format: how Decimals of records with a schema are written, `BASE64` or `NUMERIC`
            (`json.decimal.format`); a schemaless Decimal is always a number.
        gzip: whether the file is compressed downstream (`s3.compression.type=gzip`); determines extension and
            encoding.
    """

    content_type = "application/json"

    def __init__(self, decimal_format: str = "BASE64", *, gzip: bool = False) -> None:
        if decimal_format.upper() not in ("BASE64", "NUMERIC"):
            raise ConfigError(
                f"Invalid value {decimal_format} for configuration json.decimal.format: "
                "String must be one of (case insensitive): BASE64, NUMERIC.",
                config_path="json.decimal.format",
            )
        self.options = WriterOptions(numeric_decimals=decimal_format.upper() == "NUMERIC")
        self.extension = ".json.gz" if gzip else ".json"
        self.content_encoding = "gzip" if gzip else ""

    def open(self, sink: ByteSink, schema: Schema | None) -> JsonLinesEncoder:
        """Start a file of values with `schema`; every schema can be written."""
        if schema is None:
            return JsonLinesEncoder(sink, schemaless_lines)
        write = value_writer(schema, self.options)

        def struct_lines(values: Sequence[Any]) -> bytes:
            return "".join([write(value) + "\n" for value in values]).encode()

        return JsonLinesEncoder(sink, struct_lines)


class JsonLinesEncoder:
    """One file of JSON lines. It does not buffer: what is appended is written immediately."""

    buffered_bytes = 0

    def __init__(self, sink: ByteSink, lines: Callable[[Sequence[Any]], bytes]) -> None:
        self._sink = sink
        self._lines = lines

    def append(self, values: Sequence[Any]) -> None:
        """Write one line per value.

        Raises:
            DataError: a value cannot be written as JSON; none of `values` is then written.
        """
        if values:
            self._sink.write(self._lines(values))

    def spill(self) -> None:
        """There is nothing to spill."""

    def finish(self) -> None:
        """JSON lines have no footer."""
