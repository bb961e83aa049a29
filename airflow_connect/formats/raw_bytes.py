"""Raw bytes with a separator after each record: Confluent's ByteArrayFormat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.api.errors import DataError, SchemaError
from airflow_connect.api.schema import Type
from airflow_connect.formats.compressed_sink import GzipSink
from airflow_connect.formats.compression import DEFAULT_LEVEL

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema
    from airflow_connect.formats.format import ByteSink

_USE_BYTES = (
    "Set value.converter (for keys: key.converter) to "
    "org.apache.kafka.connect.converters.ByteArrayConverter, "
    "or choose a format.class that can write typed values."
)


class ByteArrayFormat:
    """Every value as it is, each followed by the separator.

    Source: io.confluent.connect.s3.format.bytearray.ByteArrayFormat; the separator is written after the last
    record too and is never escaped inside values.
    """

    needs_schema = False

    def __init__(
        self,
        extension: str = ".bin",
        separator: bytes = b"\n",
        gzip: bool = False,
        gzip_level: int = DEFAULT_LEVEL,
    ) -> None:
        """Configure.

        Args:
            extension: `format.bytearray.extension`, with dot; gzip adds `.gz`.
            separator: `format.bytearray.separator`, taken as it is, blanks included.
            gzip: `s3.compression.type` is `gzip`.
            gzip_level: `s3.compression.level`.
        """
        self._extension = extension
        self._separator = separator
        self._gzip = gzip
        self._gzip_level = gzip_level

    @property
    def extension(self) -> str:
        """With `.gz` when compressed."""
        return self._extension + (".gz" if self._gzip else "")

    @property
    def content_type(self) -> str:
        """Nothing is known about the bytes."""
        return "application/octet-stream"

    @property
    def content_encoding(self) -> str:
        """`gzip` when compressed."""
        return "gzip" if self._gzip else ""

    def open(self, sink: ByteSink, schema: Schema | None) -> ByteArrayEncoder:
        """Start a file of BYTES or schemaless values.

        Raises:
            SchemaError: the schema is not plain BYTES.
            ConfigError: the gzip level does not exist.
        """
        if schema is not None and (schema.type is not Type.BYTES or schema.name is not None):
            found = schema.name or schema.type.name
            raise SchemaError(
                f"ByteArrayFormat can only write BYTES, but the values have the schema {found}.",
                suggestion=_USE_BYTES,
            )
        return ByteArrayEncoder(sink, self._separator, GzipSink(sink, self._gzip_level) if self._gzip else None)


class ByteArrayEncoder:
    """Writes through at once: the only bytes held are those that wait for compression."""

    def __init__(self, sink: ByteSink, separator: bytes, gzip: GzipSink | None) -> None:
        """`gzip`: wraps `sink`, or None."""
        self._sink: ByteSink = gzip or sink
        self._gzip = gzip
        self._separator = separator

    @property
    def buffered_bytes(self) -> int:
        """Bytes that wait for compression."""
        return self._gzip.buffered_bytes if self._gzip else 0

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

    def append_joined(self, data: bytes | bytearray | memoryview) -> None:
        """Columnar path: values that already have a separator after each."""
        self._sink.write(data)

    def spill(self) -> None:
        """Move bytes that wait for compression to disk."""
        if self._gzip:
            self._gzip.spill()

    def finish(self) -> None:
        """End the compression, if any."""
        if self._gzip:
            self._gzip.finish()


def _python_type(value: Any) -> str:
    return "null" if value is None else f"of the Python type {type(value).__name__}"
