"""What a file format is: an extension, and encoders that turn records into bytes of one file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema


class ByteSink(Protocol):
    """Where encoded bytes go: a staged file."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes."""


class FileEncoder(Protocol):
    """Encodes the records of one file, values only: a format is created for the value, the key or the headers."""

    @property
    def buffered_bytes(self) -> int:
        """Estimate of the bytes held in memory and not yet written to the sink."""

    def append(self, values: Sequence[Any]) -> None:
        """Encode values that all have the file's schema, in order.

        Raises:
            DataError: a value cannot be encoded; the encoder is then unusable and the file must be aborted.
        """

    def spill(self) -> None:
        """Release memory: write what can be written to the sink, or to the executor's disk."""

    def finish(self) -> None:
        """Write what is buffered and the footer; the encoder is then unusable."""


class Format(Protocol):
    """A configured file format (`format.class`)."""

    @property
    def extension(self) -> str:
        """With leading dot, compression included: `.json`, `.json.gz`, `.snappy.parquet`."""

    @property
    def content_type(self) -> str:
        """MIME type of the file."""

    @property
    def content_encoding(self) -> str:
        """`gzip` if the file is compressed with gzip, else ""."""

    def open(self, sink: ByteSink, schema: Schema | None) -> FileEncoder:
        """Start a file whose values have `schema` (None: schemaless).

        Raises:
            SchemaError: the schema, or its absence, cannot be written in this format.
        """


def check_value(file_format: Format, schema: Schema | None, value: Any) -> None:
    """Check whether a value can be written, by encoding it alone.

    A format may have a faster method `check(schema, value)`, with the same errors.

    Raises:
        DataError: it cannot; the message says which part of it.
    """
    check = getattr(file_format, "check", None)
    if check is not None:
        check(schema, value)
        return
    encoder = file_format.open(_Nowhere(), schema)
    encoder.append([value])
    encoder.finish()


class _Nowhere:
    """A file that discards its bytes."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Discard the bytes."""
