"""Blocks of an Avro object container file of whole records.

Source: Avro specification 1.12, "Object Container Files".
"""

from __future__ import annotations

import bz2
import io
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import fastavro

MAGIC, SYNC_BYTES = b"Obj\x01", 16


def _snappy(block: bytes) -> bytes:
    import pyarrow as pa

    data: bytes = pa.decompress(block[:-4], _length_of_snappy(block), codec="snappy", asbytes=True)
    if zlib.crc32(data).to_bytes(4, "big") != block[-4:]:
        raise ValueError("the checksum of a block is wrong")
    return data


def _length_of_snappy(block: bytes) -> int:
    size = shift = 0
    for byte in block:
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return size
        shift += 7
    raise ValueError("a block of snappy is cut off")


def _zstandard(block: bytes) -> bytes:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.BufferReader(block), "zstd").read()


_CODECS: Mapping[str, Callable[[bytes], bytes]] = {
    "null": lambda block: block,
    "deflate": lambda block: zlib.decompress(block, -15),
    "snappy": _snappy,
    "bzip2": bz2.decompress,
    "zstandard": _zstandard,
}


def field_names(schema: Any) -> list[str]:
    """Names of a record's fields; [] for other types."""
    return [field["name"] for field in schema.get("fields", ())] if isinstance(schema, dict) else []


class AvroBlocks:
    """Reads blocks, one after the other.

    Attributes:
        schema: of the file.
    """

    def __init__(self, content: io.RawIOBase) -> None:
        """Read the header.

        Raises:
            ValueError, EOFError: this is no container file.
        """
        self._file = io.BufferedReader(content, 1 << 20)
        if self._file.read(len(MAGIC)) != MAGIC:
            raise ValueError("it is not an Avro file")
        about: dict[str, bytes] = {}
        while count := self._long():
            if count < 0:
                count, _ = -count, self._long()
            for _ in range(count):
                name = self._exactly(self._long()).decode()
                about[name] = self._exactly(self._long())
        self._sync = self._exactly(SYNC_BYTES)
        self.schema: Any = json.loads(about["avro.schema"])
        codec = about.get("avro.codec", b"null").decode()
        if codec not in _CODECS:
            raise ValueError(f"the codec {codec} is unknown")
        self._decompress = _CODECS[codec]

    def __iter__(self) -> Iterator[list[dict[str, Any]]]:
        """The records of each block.

        Raises:
            ValueError, EOFError: a block is damaged, or cut off.
        """
        parsed: Any = fastavro.parse_schema(self.schema)
        for count, packed in self.packed():
            data = io.BytesIO(packed)
            rows: list[Any] = [fastavro.schemaless_reader(data, parsed, None) for _ in range(count)]
            if data.read(1):
                raise ValueError("a block holds more than its records")
            yield rows

    def packed(self) -> Iterator[tuple[int, bytes]]:
        """The number of records and the bytes of each block, decompressed.

        Raises:
            ValueError, EOFError: a block is damaged, or cut off.
        """
        while self._file.peek(1):
            count, size = self._long(), self._long()
            data = self._decompress(self._exactly(size))
            if self._exactly(SYNC_BYTES) != self._sync:
                raise ValueError("a block does not end with the mark of its file")
            yield count, data

    def _long(self) -> int:
        value = shift = 0
        while True:
            byte = self._exactly(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > 63:
                raise ValueError("a number is too long")

    def _exactly(self, size: int) -> bytes:
        data = self._file.read(size) if size >= 0 else b""
        if len(data) != size:
            raise EOFError("it is cut off")
        return data
