"""What lies in the bucket, read back by libraries that have nothing to do with the sink."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
from fastavro import _read_py

from tests.support.copies.s3 import Sink

JSON_FORMAT = "io.confluent.connect.s3.format.json.JsonFormat"
AVRO_FORMAT = "io.confluent.connect.s3.format.avro.AvroFormat"
PARQUET_FORMAT = "io.confluent.connect.s3.format.parquet.ParquetFormat"
BYTES_FORMAT = "io.confluent.connect.s3.format.bytearray.ByteArrayFormat"
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
STRING_CONVERTER = "org.apache.kafka.connect.storage.StringConverter"
BYTES_CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"
WITH_SCHEMAS = {"value.converter": JSON_CONVERTER, "value.converter.schemas.enable": "true"}
"""Values are `{"schema", "payload"}` documents."""


@dataclass(frozen=True)
class Server:
    """What a Sink asks of an S3 server."""

    endpoint_url: str
    access_key: str = "id"
    secret_key: str = "secret"
    region: str = "us-east-1"

    def client(self) -> Any:
        """boto3's client."""
        return boto3.client(
            "s3", endpoint_url=self.endpoint_url, region_name=self.region, aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
        )  # fmt: skip


def raw(sink: Sink, key: str) -> bytes:
    """An object's bytes as they are stored."""
    body: bytes = sink.s3.client().get_object(Bucket=sink.bucket, Key=key)["Body"].read()
    return body


def json_lines(data: bytes) -> list[Any]:
    """JSON documents, one per line, the last line ended too."""
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]


def _read_snappy_block(decoder: Any) -> io.BytesIO:
    """A block of Avro's snappy codec, for fastavro, whose own reader wants a library that nothing else here needs."""
    packed = decoder.read_fixed(decoder.read_long() - 4)
    checksum = int.from_bytes(decoder.read_fixed(4), "big")
    size = sum((byte & 0x7F) << (7 * n) for n, byte in enumerate(_length_bytes(packed)))
    plain = pa.decompress(packed, size, codec="snappy", asbytes=True)
    assert zlib.crc32(plain) == checksum
    return io.BytesIO(plain)


def _length_bytes(packed: bytes) -> bytes:
    """The varint at the start of snappy data: the plain size."""
    end = next(n for n, byte in enumerate(packed) if byte < 0x80)
    return packed[: end + 1]


_read_py.BLOCK_READERS["snappy"] = _read_snappy_block


def avro_rows(data: bytes) -> list[Any]:
    """Records of an Avro container."""
    return list(_read_py.reader(io.BytesIO(data)))


def avro_header(data: bytes) -> tuple[str, dict[str, Any]]:
    """Codec and schema of an Avro container."""
    reader = _read_py.reader(io.BytesIO(data))
    return reader.codec, json.loads(reader.metadata["avro.schema"])


def parquet_rows(data: bytes) -> list[dict[str, Any]]:
    """Rows of a Parquet file."""
    rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(data)).to_pylist(maps_as_pydicts="strict")
    return rows


def reader_of(key: str) -> Callable[[bytes], list[Any]]:
    """The reader that a key's extension asks for."""
    if key.endswith(".avro"):
        return avro_rows
    if key.endswith(".parquet"):
        return parquet_rows
    if key.endswith(".json.gz"):
        return lambda data: json_lines(gzip.decompress(data))
    assert key.endswith(".json"), key
    return json_lines


def contents(sink: Sink, under: str = "") -> dict[str, list[Any]]:
    """Every object below a prefix: key to its records, in order."""
    keys = [key for key in sink.keys() if key.startswith(under)]  # noqa: SIM118 (a sink is no dict)
    return {key: reader_of(key)(raw(sink, key)) for key in keys}


def records(sink: Sink, under: str = "") -> list[Any]:
    """All records below a prefix, by key and then in order."""
    return [record for found in contents(sink, under).values() for record in found]


def envelope(schema: dict[str, Any], payload: Any) -> str:
    """A message of JsonConverter with schemas."""
    return json.dumps({"schema": schema, "payload": payload})


def struct(*fields: tuple[str, str | dict[str, Any]], name: str = "row", **extra: Any) -> dict[str, Any]:
    """A struct schema in JsonConverter's form; a type's name ends in `?` where it is optional."""
    members = []
    for field, kind in fields:
        member = dict(kind) if isinstance(kind, dict) else {"type": kind.rstrip("?"), "optional": kind.endswith("?")}
        members.append({**member, "field": field})
    return {"type": "struct", "name": name, "optional": False, "fields": members, **extra}


def logical(name: str, kind: str, **parameters: str) -> dict[str, Any]:
    """One of Connect's logical types."""
    schema = {"type": kind, "name": f"org.apache.kafka.connect.data.{name}", "version": 1, "optional": False}
    return {**schema, **({"parameters": parameters} if parameters else {})}
