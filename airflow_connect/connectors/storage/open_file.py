"""One open output file of a directory: the value file and, where wanted, its key and headers companions."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_connect.formats.compressed_sink import GzipSink
from airflow_connect.stores.store import FileIdentity, Stager, StagingFile

if TYPE_CHECKING:
    from airflow_connect.api.run import StagedFile
    from airflow_connect.api.schema import Schema
    from airflow_connect.formats.format import FileEncoder, Format

BATCH = 1000
"""Values gathered before the encoder is called: per-call costs vanish, memory stays small."""


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """How one kind of file (value, key or headers) is written.

    Attributes:
        format: the configured format.
        gzip_level: Confluent's `s3.compression.level`, or None for no compression.
    """

    format: Format
    gzip_level: int | None = None


class FileStream:
    """Values -> encoder -> (gzip) -> staged file."""

    def __init__(self, stager: Stager, settings: StreamSettings, identity: FileIdentity, schema: Schema | None) -> None:
        """Open the staged file and the encoder; costs no request."""
        file_format = settings.format
        self._role = identity.role
        self._staging: StagingFile = stager.open(
            replace(
                identity,
                content_type=file_format.content_type,
                content_encoding=file_format.content_encoding,
            )
        )
        self._gzip = None if settings.gzip_level is None else GzipSink(self._staging, settings.gzip_level)
        self._encoder: FileEncoder = file_format.open(self._gzip or self._staging, schema)
        self._values: list[Any] = []

    @property
    def buffered_bytes(self) -> int:
        """Bytes in memory, unencoded values not counted (at most `BATCH` of them)."""
        gzip_bytes = self._gzip.buffered_bytes if self._gzip else 0
        return self._encoder.buffered_bytes + gzip_bytes + self._staging.buffered_bytes

    def append(self, value: Any) -> None:
        """Add one value."""
        self._values.append(value)
        if len(self._values) >= BATCH:
            self._encode()

    def extend(self, values: Sequence[Any]) -> None:
        """Add values."""
        if self._values:
            self._encode()
        self._encoder.append(values)

    @property
    def encoder(self) -> FileEncoder:
        """The encoder, for the columnar path; buffered single values are encoded first to keep the order."""
        if self._values:
            self._encode()
        return self._encoder

    def spill(self) -> None:
        """Give memory back to the executor."""
        self.encoder.spill()
        if self._gzip is not None:
            self._gzip.spill()
        self._staging.spill()

    def close(self, end: int, records: int) -> Future[StagedFile]:
        """Write the rest and finish staging."""
        self.encoder.finish()
        if self._gzip is not None:
            self._gzip.finish()
        return self._staging.close(end, records)

    def abort(self) -> None:
        """Discard everything."""
        self._staging.abort()

    def _encode(self) -> None:
        values, self._values = self._values, []
        self._encoder.append(values)
