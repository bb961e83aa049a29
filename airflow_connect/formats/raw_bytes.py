"""Raw bytes with a separator after each record: Confluent's ByteArrayFormat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.api.schema import Type
from airflow_connect.errors import DataError, SchemaError

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema
    from airflow_connect.formats.format import ByteSink

_USE_BYTES = (
    "Set value.converter (for keys: key.converter) to "
    "org.apache.kafka.connect.converters.ByteArrayConverter, "
    "or choose a format.class that can write typed values."
)


class ByteArrayFormat:
    """Every value unchanged, each followed by the separator.

    Source: io.confluent.connect.s3.format.bytearray.ByteArrayFormat; the separator is written after the last
    record too and is never escaped inside values.
    """

    def __init__(self, extension: str = ".bin", separator: bytes = b"\n", *, gzip: bool = False) -> None:
        """Configure.

        Args:
            extension: `format.bytearray.extension`, with dot; gzip adds `.gz`.
            separator: `format.bytearray.separator`, taken as it is, blanks included.
            gzip: whether the file is compressed downstream by a `GzipSink` (`s3.compression.type=gzip`): it only
                shows in the names.
        """
        self._extension = extension
        self._separator = separator
        self._gzip = gzip

    @property
    def separator(self) -> bytes:
        """The separator after every value."""
        return self._separator

    @property
    def extension(self) -> str:
        """The extension, with `.gz` if compressed."""
        return self._extension + (".gz" if self._gzip else "")

    @property
    def content_type(self) -> str:
        """The type of unknown bytes."""
        return "application/octet-stream"

    @property
    def content_encoding(self) -> str:
        """`gzip` if compressed."""
        return "gzip" if self._gzip else ""

    def open(self, sink: ByteSink, schema: Schema | None) -> ByteArrayEncoder:
        """Start a file of BYTES or schemaless values.

        Raises:
            SchemaError: the schema is not plain BYTES.
        """
        if schema is not None and (schema.type is not Type.BYTES or schema.name is not None):
            found = schema.name or schema.type.name
            raise SchemaError(
                f"ByteArrayFormat can only write BYTES, but the values have the schema {found}.",
                suggestion=_USE_BYTES,
            )
        return ByteArrayEncoder(sink, self._separator)


class ByteArrayEncoder:
    """Writes immediately, without a buffer."""

    buffered_bytes = 0

    def __init__(self, sink: ByteSink, separator: bytes) -> None:
        """`separator`: follows every value."""
        self._sink = sink
        self._separator = separator

    def append(self, values: Sequence[Any]) -> None:
        """Write each value and the separator.

        Raises:
            DataError: a value is not bytes.
        """
        if not values:
            return
        try:
            self._sink.write(self._separator.join((*values, b"")))
        except TypeError as error:
            wrong = next((v for v in values if not isinstance(v, bytes | bytearray | memoryview)), None)
            raise DataError(
                f"ByteArrayFormat can only write bytes, but a value is {_python_type(wrong)}.",
                code="data.not_bytes",
                suggestion=_USE_BYTES,
            ) from error

    def spill(self) -> None:
        """There is nothing to spill."""

    def finish(self) -> None:
        """There is no footer."""


def _python_type(value: Any) -> str:
    return "null" if value is None else f"of the Python type {type(value).__name__}"
