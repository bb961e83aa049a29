"""StringFormat of Confluent's HDFS sink: one value per line, each line ended by a line feed.

Confluent's format accepts strings only and fails for anything else. Here other values are written as Java's `toString`
prints them (converters/java_text.py), as in Kafka's FileStreamSink. Line feeds inside a value are unchanged.
Source: io.confluent.connect.hdfs.string.StringRecordWriter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.converters.java_text import java_string
from airflow_connect.errors import DataError

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema
    from airflow_connect.formats.format import ByteSink


class StringFormat:
    """Lines of text, in UTF-8."""

    extension = ".txt"
    content_type = "text/plain"
    content_encoding = ""

    def open(self, sink: ByteSink, schema: Schema | None) -> StringEncoder:
        """Start a file; every schema can be written."""
        return StringEncoder(sink, schema)


class StringEncoder:
    """Writes immediately, without a buffer."""

    buffered_bytes = 0

    def __init__(self, sink: ByteSink, schema: Schema | None) -> None:
        """`schema`: determines the meaning of numbers and dicts."""
        self._sink = sink
        self._schema = schema

    def append(self, values: Sequence[Any]) -> None:
        """Write one line per value.

        Raises:
            DataError: a text is not valid Unicode; none of `values` is then written.
        """
        if not values:
            return
        schema = self._schema
        try:
            data = "".join([java_string(schema, value) + "\n" for value in values]).encode()
        except UnicodeEncodeError as error:
            raise DataError(
                "StringFormat cannot write a value: it contains half of a character (a lone surrogate), which cannot be"
                " encoded in UTF-8.",
                code="data.not_utf8",
                suggestion="Fix the producer, or skip such records with errors.tolerance=all.",
            ) from error
        self._sink.write(data)

    def spill(self) -> None:
        """There is nothing to spill."""

    def finish(self) -> None:
        """There is no footer."""
