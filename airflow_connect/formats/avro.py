"""Avro object container files: Confluent's AvroFormat.

Records are encoded by fastavro's compiled writer, one per schema and shared by all files of a format; the
container (header, blocks, codecs) is written here. So an open file needs only a block of at most 64 kB, which can be
spilled, and a value that cannot be encoded leaves no partial record in a block.
Source: Avro specification 1.12, "Object Container Files".
"""

from __future__ import annotations

import bz2
import io
import json
import os
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import fastavro.write
from isal import isal_zlib

from airflow_connect.converters.avro.mapping import AvroMapping
from airflow_connect.converters.avro.names import AvroSettings
from airflow_connect.converters.avro.parsing import AvroType, parsed_for_writing
from airflow_connect.converters.value_transform import Transform
from airflow_connect.errors import ConfigError
from airflow_connect.formats.spill import SpillBuffer
from airflow_connect.formats.value_check import cannot_write, no_schema

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from airflow_connect.api.schema import Schema
    from airflow_connect.formats.format import ByteSink

BLOCK_BYTES = 64 * 1024
"""Size of a block's records, before compression, at which it ends: Avro's default sync interval."""

_SCHEMAS_KEPT = 1000


def _deflate(block: bytes) -> bytes:
    # ISA-L 1: 95 % of the ratio of zlib's default, which Confluent uses, at ten times its speed.
    made = isal_zlib.compressobj(1, isal_zlib.DEFLATED, -15)
    return made.compress(block) + made.flush()


def _snappy(block: bytes) -> bytes:
    import pyarrow as pa  # takes 0.1 s, so it is imported for this codec only

    packed: bytes = pa.compress(block, codec="snappy", asbytes=True)
    return packed + zlib.crc32(block).to_bytes(4, "big")


_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": lambda block: block,
    "deflate": _deflate,
    "snappy": _snappy,
    "bzip2": bz2.compress,
}


class AvroFormat:
    """Writes values with a schema, of any Connect type; the codec is not part of the extension."""

    extension = ".avro"
    content_type = "avro/binary"
    content_encoding = ""

    def __init__(
        self,
        codec: str = "null",
        enhanced_schema: bool = True,
        connect_meta_data: bool = True,
        allow_optional_map_keys: bool = False,
    ) -> None:
        """Configure with `avro.codec` and the three keys that `AvroSettings` explains.

        Raises:
            ConfigError: an unknown codec.
        """
        if codec not in _CODECS:
            raise ConfigError(
                f"The Avro codec {codec!r} does not exist.",
                code="config.value",
                suggestion=f"Use one of {', '.join(_CODECS)}.",
                config_path="avro.codec",
            )
        self._codec = codec
        settings = AvroSettings(enhanced_schema, connect_meta_data, allow_optional_map_keys)
        self._mapping = AvroMapping(settings)
        self._records: dict[Schema, RecordWriter] = {}

    def avro_schema(self, schema: Schema) -> AvroType:
        """The Avro schema, as JSON, of files with values of `schema`.

        Raises:
            SchemaError: Avro cannot express it.
        """
        return self._mapping.avro_schema(schema)

    def open(self, sink: ByteSink, schema: Schema | None) -> AvroEncoder:
        """Start a file.

        Raises:
            SchemaError: no schema, or one that Avro cannot express.
        """
        if schema is None:
            raise no_schema("AvroFormat")
        records = self._records.get(schema)
        if records is None:
            if len(self._records) >= _SCHEMAS_KEPT:
                self._records.clear()
            records = self._records[schema] = RecordWriter(self._mapping, schema)
        return AvroEncoder(sink, records, self._codec)


class RecordWriter:
    """Encodes values of one schema, without container; shared by the files of a format, keeps no bytes."""

    def __init__(self, mapping: AvroMapping, schema: Schema) -> None:
        """Compile the schema.

        Raises:
            SchemaError: Avro cannot express it.
        """
        self.schema = schema
        avro_type = mapping.avro_schema(schema)
        self.header_schema = json.dumps(avro_type, separators=(",", ":")).encode()
        self._parsed = parsed_for_writing(avro_type, for_files=True)
        self._transform: Transform | None = mapping.transform(schema)
        self._start()

    def _start(self) -> None:
        self._buffer = io.BytesIO()
        # A tuple is a branch of a union and its value; no other Connect value is a tuple.
        self._writer = fastavro.write.Writer(self._buffer, self._parsed, sync_interval=BLOCK_BYTES)
        self._forget()

    def _forget(self) -> None:
        self._buffer.seek(0)
        self._buffer.truncate()

    def encode(self, values: Sequence[Any]) -> list[tuple[int, bytes]]:
        """Blocks of (records, bytes) of about `BLOCK_BYTES`, the last one smaller.

        Raises:
            DataError: a value does not fit the schema; nothing of this call is kept.
        """
        write, change = self._writer.write, self._transform
        value: Any = None
        try:
            if change is None:
                for value in values:
                    write(value)
            else:
                for value in values:
                    write(change(value))
        except (ValueError, TypeError, AttributeError, KeyError, OverflowError, ArithmeticError) as error:
            self._start()
            raise cannot_write("AvroFormat", self.schema, value, error) from error
        self._writer.flush()
        blocks = list(_split_blocks(self._buffer.getvalue()))
        self._forget()
        return blocks


def _split_blocks(data: bytes) -> list[tuple[int, bytes]]:
    """Blocks of an uncompressed container, without its header: records, size, data, 16 bytes of marker."""
    blocks, position = [], 0
    while position < len(data):
        records, position = _read_long(data, position)
        size, position = _read_long(data, position)
        blocks.append((records, data[position : position + size]))
        position += size + 16
    return blocks


def _read_long(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[position]
        number |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
        shift += 7


def _long(number: int) -> bytes:
    """Avro's long: zigzag, then seven bits per byte, lowest first."""
    number = (number << 1) ^ (number >> 63)
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _bytes(data: bytes) -> bytes:
    return _long(len(data)) + data


class AvroEncoder:
    """One container file. The header is written with the first block."""

    def __init__(self, sink: ByteSink, records: RecordWriter, codec: str) -> None:
        """`records`: encodes the values; `codec`: one of Avro's."""
        self._sink = sink
        self._records = records
        self._codec = codec
        self._block = SpillBuffer()
        self._block_records = 0
        self._marker = os.urandom(16)
        self._has_header = False

    @property
    def buffered_bytes(self) -> int:
        """Bytes of the open block in memory."""
        return self._block.buffered_bytes

    def append(self, values: Sequence[Any]) -> None:
        """Encode values.

        Raises:
            DataError: a value does not fit the schema; none of `values` is in the file then.
        """
        for records, data in self._records.encode(values):
            if self._block_records == 0 and len(data) >= BLOCK_BYTES:
                self._write_block(records, data)
                continue
            self._block.append(data)
            self._block_records += records
            if len(self._block) >= BLOCK_BYTES:
                self._end_block()

    def append_encoded(self, data: memoryview, bounds: NDArray[np.int32]) -> None:
        """Columnar path: append encoded records.

        Args:
            data: the records, one after the other.
            bounds: int32[n + 1]; record i is `data[bounds[i]:bounds[i + 1]]`.
        """
        start, count = 0, len(bounds) - 1
        while start < count:
            full = int(bounds[start]) + BLOCK_BYTES - len(self._block)
            stop = min(count, max(start + 1, int(bounds.searchsorted(full))))
            self._block.append(data[int(bounds[start]) : int(bounds[stop])])
            self._block_records += stop - start
            if len(self._block) >= BLOCK_BYTES:
                self._end_block()
            start = stop

    def spill(self) -> None:
        """Move the open block to disk: an early, small block would compress badly."""
        self._block.spill()

    def finish(self) -> None:
        """Write the last block; a file without records is a header."""
        if self._block_records:
            self._end_block()
        elif not self._has_header:
            self._sink.write(self._header())
        self._block.close()

    def _end_block(self) -> None:
        self._write_block(self._block_records, bytes(self._block.read_all()))
        self._block.clear()
        self._block_records = 0

    def _write_block(self, records: int, data: bytes) -> None:
        header = b"" if self._has_header else self._header()
        packed = _CODECS[self._codec](data)
        self._sink.write(b"".join((header, _long(records), _long(len(packed)), packed, self._marker)))
        self._has_header = True

    def _header(self) -> bytes:
        pairs = ((b"avro.codec", self._codec.encode()), (b"avro.schema", self._records.header_schema))
        metadata = b"".join(_bytes(key) + _bytes(value) for key, value in pairs)
        return b"Obj\x01" + _long(len(pairs)) + metadata + b"\0" + self._marker
