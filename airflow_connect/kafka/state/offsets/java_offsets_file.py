"""The offsets file of Kafka Connect's standalone worker: a Java-serialised `HashMap<byte[],byte[]>`.

Keys and values are those of the offsets topic. Reading parses exactly what `ObjectOutputStream` writes for such a map
and nothing else, so no other class is ever instantiated; writing produces a file that `FileOffsetBackingStore` reads.

Source: org.apache.kafka.connect.storage.FileOffsetBackingStore; Java Object Serialization Specification, chapter 6
(grammar) and the serialised form of java.util.HashMap.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path

from airflow_connect.errors import ConfigError, UnavailableError

_MAGIC = b"\xac\xed\x00\x05"
_NULL, _REFERENCE, _CLASS, _OBJECT, _ARRAY, _BLOCK, _END = 0x70, 0x71, 0x72, 0x73, 0x75, 0x77, 0x78
_FIRST_HANDLE = 0x7E0000
_HASH_MAP_ID = 0x0507DAC1C31660D1
_BYTES_ID = 0xACF317F8060854E0
_WRITE_METHOD, _SERIALIZABLE = 0x01, 0x02
_LOAD_FACTOR = 0.75


def read(path: str) -> dict[bytes, bytes]:
    """Every key and value of the file; {} if the file does not exist, as for a worker that has not written one yet.

    Raises:
        ConfigError: it is not an offsets file.
        UnavailableError: it cannot be read now.
    """
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unusable(path, f"it cannot be read: {error.strerror or error}") from error
    if not data:
        return {}
    try:
        return _Reader(data).hash_map()
    except (_MalformedError, struct.error, IndexError) as error:
        raise ConfigError(
            f"offset.storage.file.filename={path} is not an offsets file of Kafka Connect: {error}.",
            suggestion="Specify the file that connect-standalone wrote, or remove the key.",
            config_path="offset.storage.file.filename",
        ) from error


def write(path: str, offsets: Mapping[bytes, bytes]) -> None:
    """Replace the file with these keys and values, atomically: a reader sees the old file or the new one.

    Raises:
        UnavailableError: it cannot be written.
    """
    target = Path(path)
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(encoded(offsets))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise _unusable(path, f"it cannot be written: {error.strerror or error}") from error


def encoded(offsets: Mapping[bytes, bytes]) -> bytes:
    """The map as `ObjectOutputStream` writes it."""
    buckets = 16
    while len(offsets) > buckets * _LOAD_FACTOR:
        buckets *= 2
    fields = b"F" + _text("loadFactor") + b"I" + _text("threshold")
    parts = [
        _MAGIC,
        bytes([_OBJECT, _CLASS]) + _text("java.util.HashMap") + _HASH_MAP_ID.to_bytes(8, "big"),
        bytes([_WRITE_METHOD | _SERIALIZABLE]) + struct.pack(">H", 2) + fields + bytes([_END, _NULL]),
        struct.pack(">fi", _LOAD_FACTOR, int(buckets * _LOAD_FACTOR)),
        bytes([_BLOCK, 8]) + struct.pack(">ii", buckets, len(offsets)),
    ]
    # Handles are given in the order of the stream: 0 HashMap's class, 1 the map, 2 the class of byte arrays.
    byte_arrays = bytes([_CLASS]) + _text("[B") + _BYTES_ID.to_bytes(8, "big")
    byte_arrays += bytes([_SERIALIZABLE]) + struct.pack(">H", 0) + bytes([_END, _NULL])
    for data in (data for entry in offsets.items() for data in entry):
        parts.append(bytes([_ARRAY]) + byte_arrays + struct.pack(">i", len(data)) + data)
        byte_arrays = bytes([_REFERENCE]) + struct.pack(">i", _FIRST_HANDLE + 2)
    return b"".join([*parts, bytes([_END])])


class _MalformedError(Exception):
    """The bytes are not such a file."""


class _Reader:
    """A cursor over the stream."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def hash_map(self) -> dict[bytes, bytes]:
        if self._take(4) != _MAGIC:
            raise _MalformedError("it does not begin with a Java object")
        self._expect(_OBJECT, "an object")
        if self._class() != "java.util.HashMap":
            raise _MalformedError("the object in it is not a java.util.HashMap")
        self._take(8)  # loadFactor and threshold
        self._expect(_BLOCK, "the size of the map")
        self._take(1)
        _, size = struct.unpack(">ii", self._take(8))
        found: dict[bytes, bytes] = {}
        for _ in range(size):
            key, value = self._bytes(), self._bytes()
            if key is not None and value is not None:
                found[key] = value
        self._expect(_END, "the end of the map")
        return found

    def _bytes(self) -> bytes | None:
        kind = self._take(1)[0]
        if kind == _NULL:
            return None
        if kind != _ARRAY:
            raise _MalformedError(f"an entry of the map is not a byte array (0x{kind:02x})")
        if self._data[self._at] == _REFERENCE:
            self._take(5)
        elif self._class() != "[B":
            raise _MalformedError("an entry of the map is not a byte array")
        (size,) = struct.unpack(">i", self._take(4))
        return self._take(size)

    def _class(self) -> str:
        """The name in a description of a class without superclass; its fields are skipped."""
        self._expect(_CLASS, "a class")
        name = self._text()
        self._take(9)  # serialVersionUID and flags
        (fields,) = struct.unpack(">H", self._take(2))
        for _ in range(fields):
            if self._take(1) in (b"L", b"["):
                raise _MalformedError(f"{name} has fields that HashMap does not have")
            self._text()
        self._expect(_END, "the end of a class")
        self._expect(_NULL, "a class without superclass")
        return name

    def _text(self) -> str:
        (size,) = struct.unpack(">H", self._take(2))
        return self._take(size).decode("utf-8", "replace")

    def _expect(self, kind: int, what: str) -> None:
        found = self._take(1)[0]
        if found != kind:
            raise _MalformedError(f"{what} was expected at byte {self._at - 1}, but 0x{found:02x} was found")

    def _take(self, size: int) -> bytes:
        if size < 0 or self._at + size > len(self._data):
            raise _MalformedError(f"it ends after {len(self._data)} bytes, in the middle of something")
        self._at += size
        return self._data[self._at - size : self._at]


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _unusable(path: str, why: str) -> UnavailableError:
    return UnavailableError(
        f"offset.storage.file.filename={path}: {why}.",
        suggestion="Check the path and its permissions on the machine of the driver, or remove the key.",
        config_path="offset.storage.file.filename",
    )
