"""One open output file of a directory: the value file and, if configured, the files for its keys and headers."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.files.shared.value_schemas import schema_text, with_schema
from airflow_connect.errors import DataError, FatalDataError, UnencodableError
from airflow_connect.formats.compressed_sink import GzipSink
from airflow_connect.stores.store import FileIdentity, Stager, StagingFile

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from airflow_connect.api.schema import Schema
    from airflow_connect.api.staging import StagedFile
    from airflow_connect.formats.format import ByteSink, FileEncoder, Format

BATCH = 1000
BATCH_BYTES = 1 << 20
"""Number and size of values to collect before the encoder is called: few calls, little memory."""


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """How one kind of file (value, key or headers) is written.

    Attributes:
        format: the configured format.
        gzip_level: Confluent's `s3.compression.level`, or None for no compression.
        tells_schema: whether staged files carry the schema of their values (`StagedFile.value_schema`).
    """

    format: Format
    gzip_level: int | None = None
    tells_schema: bool = False


class FileStream:
    """Values -> encoder -> (gzip) -> staged file."""

    def __init__(self, stager: Stager, settings: StreamSettings, identity: FileIdentity, schema: Schema | None) -> None:
        """Open the staged file and the encoder; costs no request."""
        file_format = settings.format
        self._key = identity.key
        self._told_schema = schema_text(schema) if settings.tells_schema else ""
        self._staging: StagingFile = stager.open(
            replace(
                identity,
                content_type=file_format.content_type,
                content_encoding=file_format.content_encoding,
            )
        )
        self._gzip = None if settings.gzip_level is None else GzipSink(self._staging, settings.gzip_level)
        self._sink: ByteSink = self._gzip or self._staging
        self._encoder: FileEncoder = file_format.open(self._sink, schema)
        self._values: list[Any] = []
        self._values_bytes = 0

    @property
    def staging(self) -> StagingFile:
        """The staged file in the store. It can be discarded even after this file was closed."""
        return self._staging

    @property
    def buffered_bytes(self) -> int:
        """Bytes in memory, including an estimate for values that are not encoded yet."""
        gzip_bytes = self._gzip.buffered_bytes if self._gzip else 0
        return self._values_bytes + self._encoder.buffered_bytes + gzip_bytes + self._staging.buffered_bytes

    def append(self, value: Any) -> int:
        """Add one value; returns its estimated size."""
        size = estimate_size(value)
        self._values.append(value)
        self._values_bytes += size
        if len(self._values) >= BATCH or self._values_bytes >= BATCH_BYTES:
            self._encode()
        return size

    def write_encoded(self, data: bytes | memoryview) -> None:
        """Columnar path: add encoded records. For formats whose encoders do not buffer."""
        if self._values:
            self._encode()
        self._sink.write(data)

    def append_arrow(self, batch: pa.RecordBatch) -> None:
        """Columnar path: add columns. For formats whose encoders accept them."""
        if self._values:
            self._encode()
        encoder: Any = self._encoder
        with self._fatal():
            encoder.append_arrow(batch)

    def append_encoded(self, data: memoryview, bounds: NDArray[np.int32]) -> None:
        """Columnar path: add records `data[bounds[i]:bounds[i + 1]]`. For formats that write blocks."""
        if self._values:
            self._encode()
        encoder: Any = self._encoder
        with self._fatal():
            encoder.append_encoded(data, bounds)

    def spill(self) -> None:
        """Release memory by moving data to the executor's disk."""
        if self._values:
            self._encode()
        with self._fatal():
            self._encoder.spill()
        if self._gzip is not None:
            self._gzip.spill()
        self._staging.spill()

    def close(self, end: int, records: int) -> Future[StagedFile]:
        """Write the rest and finish staging."""
        if self._values:
            self._encode()
        with self._fatal():
            self._encoder.finish()
        if self._gzip is not None:
            self._gzip.finish()
        staged = self._staging.close(end, records)
        return with_schema(staged, self._told_schema) if self._told_schema else staged

    def abort(self) -> None:
        """Discard everything."""
        self._staging.abort()

    def _encode(self) -> None:
        values, self._values, self._values_bytes = self._values, [], 0
        with self._fatal():
            self._encoder.append(values)

    @contextmanager
    def _fatal(self) -> Iterator[None]:
        """Encoders process many values at once, so a value that fails cannot be identified or skipped any more.

        The task then starts over with `check_each`. This is rare, because converters check what they read.
        """
        try:
            yield
        except FatalDataError:
            raise
        except DataError as error:
            raise UnencodableError(
                f"{error.message} It is in a record for {self._key}.", code=error.code, suggestion=error.suggestion
            ) from error


def estimate_size(value: Any) -> int:
    """Estimate of the bytes of memory that a value takes: fast, and accurate enough for a budget."""
    if isinstance(value, dict):
        return 100 + sum(map(estimate_size, value.values())) + 60 * len(value)
    if isinstance(value, str | bytes):
        return 60 + len(value)
    return 60 + sum(map(estimate_size, value)) if isinstance(value, list) else 32
