"""Write-ahead logs byte by byte, after the description of the format; nothing here is shared with the reader."""

from __future__ import annotations

import struct

MARK = bytes(range(100, 116))


def vint(number: int) -> bytes:
    """Hadoop's variable length: one byte up to 127, else minus 112 minus the number of bytes, and those."""
    if number <= 127:
        return struct.pack(">b", number)
    data = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return struct.pack(">b", -112 - len(data)) + data


def text(value: str) -> bytes:
    """Hadoop's Text."""
    data = value.encode()
    return vint(len(data)) + data


def entry(key: str, value: str = "") -> bytes:
    """A record of the log."""
    k, v = text(key), text(value)
    return struct.pack(">ii", len(k) + len(v), len(k)) + k + v


SYNC = struct.pack(">i", -1) + MARK


def log(*parts: bytes) -> bytes:
    """A log with a header."""
    return b"WAL\0" + MARK + b"".join(parts)


def block(*moves: tuple[str, str]) -> bytes:
    """A complete block."""
    return entry("BEGIN") + b"".join(entry(*move) for move in moves) + entry("END")
