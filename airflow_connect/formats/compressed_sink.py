"""A byte sink that compresses bytes and passes them to another one; cheap even if thousands are open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.formats.compression import DEFAULT_LEVEL, GzipStream
from airflow_connect.formats.spill import SpillArea, SpillBuffer

if TYPE_CHECKING:
    from airflow_connect.formats.format import ByteSink


class GzipSink:
    """Collects raw bytes into pieces of exactly `GzipStream.piece_bytes`, and passes them on as gzip.

    The file depends on the bytes only, not on how they were divided into writes or when memory was scarce: `spill`
    moves the collected raw bytes to disk instead of compressing a small piece early.
    """

    def __init__(self, sink: ByteSink, level: int = DEFAULT_LEVEL, area: SpillArea | None = None) -> None:
        """`sink`: gets the gzip bytes. `level`: as in `formats.compression`. `area`: where to spill.

        Raises:
            ConfigError: the level does not exist.
        """
        self._sink = sink
        self._stream = GzipStream(level)
        self._piece_bytes = self._stream.piece_bytes
        self._raw = SpillBuffer(area)

    @property
    def buffered_bytes(self) -> int:
        """Raw bytes held in memory, without those of the inner sink."""
        return self._raw.buffered_bytes

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append raw bytes.

        Raises:
            UnavailableError: bytes that were spilled cannot be read back.
        """
        piece_bytes = self._piece_bytes
        if len(self._raw) + len(data) < piece_bytes:
            self._raw.append(data)
            return
        with memoryview(data) as view:
            start = 0
            if len(self._raw):
                start = piece_bytes - len(self._raw)
                self._raw.append(view[:start])
                self._sink.write(self._stream.compress(self._raw.read_all()))
                self._raw.clear()
            while len(view) - start >= piece_bytes:
                self._sink.write(self._stream.compress(view[start : start + piece_bytes]))
                start += piece_bytes
            self._raw.append(view[start:])

    def spill(self) -> None:
        """Move the collected raw bytes to the executor's disk.

        Raises:
            UnavailableError: the disk is full.
        """
        self._raw.spill()

    def finish(self) -> None:
        """Pass on the collected bytes and the end of the gzip stream; the inner sink stays open. No write may follow.

        Raises:
            UnavailableError: bytes that were spilled cannot be read back.
        """
        self._sink.write(self._stream.finish(self._raw.read_all()))
        self._raw.close()
