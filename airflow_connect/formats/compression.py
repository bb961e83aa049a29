"""Gzip for text and raw files: one member, no time stamp, and no state between pieces but a checksum.

A deflate compressor costs up to 270 kB of memory, too much for thousands of open files. Here every piece is
compressed by a short-lived compressor that ends at a byte boundary (a sync flush, RFC 1951 section 3.2.4), so
the pieces put one after the other are one ordinary gzip member (RFC 1952). Forgetting the history between
pieces costs 0.3 % of size with pieces of 256 KiB, or of twice that size for the levels 4 to 9.

What Confluent's `s3.compression.level` means here, measured on 200-byte JSON lines:

| level | made by | why |
|---|---|---|
| -1 | ISA-L 1 | 95 % or more of the ratio of zlib's default, ten times as fast |
| 0 | stored | as in Java: gzip's frame without compression |
| 1 to 3 | ISA-L 1 | denser than zlib at 1, 2 or 3, and five times as fast |
| 4 to 8 | zlib-ng | ISA-L does not reach their ratio; as small as zlib (6: 0.4 % larger) in 0.7 of the time |
| 9 | zlib-ng 8 | smaller than zlib at 9, and than zlib-ng at 9 |
"""

from __future__ import annotations

from typing import Any

from isal import isal_zlib
from zlib_ng import zlib_ng

from airflow_connect.errors import ConfigError

DEFAULT_LEVEL = -1
PIECE_BYTES = 256 * 1024
"""Best size of a piece: larger ones compress no better, smaller ones worse (64 KiB: 1 %)."""
DENSE_PIECE_BYTES = 2 * PIECE_BYTES
"""The same for levels 4 to 9, which profit more from a longer history (0.7 %)."""

_RAW_DEFLATE = -15
_ISAL_LEVELS = {-1: 1, 1: 1, 2: 1, 3: 1}
_DENSEST_LEVEL = 8
# RFC 1952: magic, method deflate, no flags, modification time 0, no extra flags, system unknown.
_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"


class GzipStream:
    """One gzip file, created from pieces. The same pieces give the same bytes on every machine; holds no bytes."""

    __slots__ = ("_crc", "_level", "_size", "_started")

    def __init__(self, level: int = DEFAULT_LEVEL) -> None:
        """`level`: -1 to 9, see the module.

        Raises:
            ConfigError: another level.
        """
        if not -1 <= level <= 9:
            raise ConfigError(
                f"The gzip level {level} does not exist.",
                code="config.value",
                suggestion="Use -1 (default) or a number from 0 (none) to 9 (smallest file).",
                config_path="s3.compression.level",
            )
        self._level = level
        self._crc = 0
        self._size = 0
        self._started = False

    @property
    def piece_bytes(self) -> int:
        """The best size of a piece."""
        return DENSE_PIECE_BYTES if self._level > max(_ISAL_LEVELS) else PIECE_BYTES

    def compress(self, data: bytes | bytearray | memoryview) -> bytes:
        """Compress one piece, ideally of `piece_bytes`: small pieces compress badly."""
        return self._piece(data, isal_zlib.Z_SYNC_FLUSH)

    def finish(self, data: bytes | bytearray | memoryview = b"") -> bytes:
        """Compress the last piece and end the file."""
        end = self._piece(data, isal_zlib.Z_FINISH)
        return end + self._crc.to_bytes(4, "little") + (self._size & 0xFFFFFFFF).to_bytes(4, "little")

    def _piece(self, data: bytes | bytearray | memoryview, flush: int) -> bytes:
        self._crc = isal_zlib.crc32(data, self._crc)
        self._size += len(data)
        header = b"" if self._started else _HEADER
        self._started = True
        deflate = self._compressor()
        compressed: bytes = header + deflate.compress(data) + deflate.flush(flush)
        return compressed

    def _compressor(self) -> Any:
        if self._level in _ISAL_LEVELS:
            return isal_zlib.compressobj(_ISAL_LEVELS[self._level], isal_zlib.DEFLATED, _RAW_DEFLATE)
        return zlib_ng.compressobj(min(self._level, _DENSEST_LEVEL), zlib_ng.DEFLATED, _RAW_DEFLATE)
