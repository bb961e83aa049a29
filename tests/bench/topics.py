"""Topics with a known load, spread over partitions and hours: JSON of 7 fields and 200 bytes, Avro or Protobuf of 8."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.request import Request, urlopen

import fastavro
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from google.protobuf.message_factory import GetMessageClass

from airflow_connect.converters.protobuf.files import message_at, open_schema

RECORD_BYTES = 200
HOUR_MS = 3_600_000
FIRST_MS = 1_700_000_000_000 // (24 * HOUR_MS) * (24 * HOUR_MS)
SCHEMA = """{"type":"struct","optional":false,"fields":[
{"field":"id","type":"int64","optional":false},{"field":"user","type":"string","optional":false},
{"field":"event","type":"string","optional":true},{"field":"amount","type":"double","optional":true},
{"field":"at","type":"int64","name":"org.apache.kafka.connect.data.Timestamp","version":1,"optional":false},
{"field":"session","type":"string","optional":true},{"field":"note","type":"string","optional":true}]}"""
"""Connect schema of the records, for `value.converter.schema.content` (KIP-1054)."""

AVRO_SCHEMA = """{"type":"record","name":"Event","namespace":"bench","fields":[
{"name":"id","type":"long"},{"name":"user","type":"string"},{"name":"event","type":["null","string"],"default":null},
{"name":"amount","type":["null","double"],"default":null},
{"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}},
{"name":"session","type":["null","string"],"default":null},{"name":"paid","type":"boolean"},
{"name":"note","type":["null","string"],"default":null}]}"""
"""The same records and one field more, for the registry."""

JSON_SCHEMA = """{"type":"object","title":"Event","required":["id","user","at"],"properties":{
"id":{"type":"integer"},"user":{"type":"string"},"event":{"oneOf":[{"type":"null"},{"type":"string"}]},
"amount":{"oneOf":[{"type":"null"},{"type":"number"}]},
"at":{"type":"integer","title":"org.apache.kafka.connect.data.Timestamp","connect.type":"int64"},
"session":{"oneOf":[{"type":"null"},{"type":"string"}]},"note":{"oneOf":[{"type":"null"},{"type":"string"}]}}}"""
"""The same records for the registry, with the fields of `SCHEMA`."""

PROTOBUF_SCHEMA = """syntax = "proto3"; package bench; import "google/protobuf/timestamp.proto";
message Event { int64 id = 1; string user = 2; optional string event = 3; optional double amount = 4;
google.protobuf.Timestamp at = 5; optional string session = 6; bool paid = 7; optional string note = 8; }"""
"""The records of `AVRO_SCHEMA`."""

_TAGS = ',{"name":"tags","type":{"type":"array","items":"string"}}]}'
_LABELS = ',{"name":"labels","type":{"type":"map","values":"string"}}]}'
_PARSED_AVRO_SCHEMA = fastavro.parse_schema(json.loads(AVRO_SCHEMA.replace(',"logicalType":"timestamp-millis"', "")))
_EVENTS = ("view", "click", "search", "purchase", "logout")
_TEXT = "the quick brown fox jumps over a lazy dog while seven wizards box under bright summer skies"


@dataclass(frozen=True, slots=True)
class Load:
    """What a topic holds.

    Attributes:
        partitions: of the topic; record n goes to partition `n % partitions`.
        directories: hours over which the timestamps are scattered, every hour in every batch: the worst case for
            a writer of hourly directories.
        records: in the whole topic; their ids are 0 to `records - 1`.
        is_avro: Avro with a schema id of a registry in front, instead of JSON.
        is_json_schema: JSON with a schema id of a registry in front.
        is_protobuf: Protobuf with a schema id of a registry in front.
        has_arrays: whether Avro records have one field more, an array of up to three texts.
        has_maps: whether Avro records have one field more, a map of up to three texts.
        late_percent: when above 0, timestamps go forward through the hours instead, but for this share of the
            records, which are of any earlier instant.
        has_headers: whether each record has two headers of the same name.
        has_keys: whether each record has a key, a text of 12 bytes.
        has_nulls: whether every ninth record is followed by one without a value, which has no id.
        has_schemas: whether each record has its schema, as JsonConverter writes it.
        record_bytes: size of a JSON record; what is beyond 200 bytes is text in its last field.
    """

    partitions: int
    directories: int
    records: int
    is_avro: bool = False
    is_json_schema: bool = False
    is_protobuf: bool = False
    late_percent: int = 0
    has_headers: bool = False
    has_arrays: bool = False
    has_keys: bool = False
    has_maps: bool = False
    has_nulls: bool = False
    has_schemas: bool = False
    record_bytes: int = RECORD_BYTES

    @property
    def needs_registry(self) -> bool:
        """Whether each record has a schema id of a registry."""
        return self.is_avro or self.is_json_schema or self.is_protobuf

    @property
    def topic(self) -> str:
        """Name of the topic."""
        kind = ("-avro" if self.is_avro else "") + (f"-late{self.late_percent}" if self.late_percent else "")
        kind += ("-arrays" if self.has_arrays else "") + ("-maps" if self.has_maps else "")
        kind += ("-nulls" if self.has_nulls else "") + ("-keys" if self.has_keys else "")
        kind += "-json-schema" if self.is_json_schema else ""
        kind += "-protobuf" if self.is_protobuf else ""
        kind += ("-headers" if self.has_headers else "") + ("-schemas" if self.has_schemas else "")
        kind += "" if self.record_bytes == RECORD_BYTES else f"-{self.record_bytes}b"
        return f"load-{self.partitions}p-{self.directories}d-{self.records}{kind}"

    def rows(self, schema_id: int = 0) -> Iterator[tuple[int, bytes | None, int]]:
        """Partition, value and timestamp of every record, the same in every run.

        Args:
            schema_id: of the schema in the registry.
        """
        prefix = b"\0" + schema_id.to_bytes(4, "big")
        before, after = (b'{"schema":%b,"payload":' % SCHEMA.encode(), b"}") if self.has_schemas else (b"", b"")
        before = prefix if self.is_json_schema else before
        protobuf = _protobuf_writer(prefix) if self.is_protobuf else None
        for n, stamp, bits, note in self._drawn():
            if protobuf is not None:
                value = protobuf(_event(n, stamp, bits, note))
            elif self.is_avro:
                value = prefix + _avro(n, stamp, bits, note) + (_tags(n) if self.has_arrays else b"")
                value += _labels(n) if self.has_maps else b""
            else:
                value = before + (_json_head(n, stamp, bits) + note)[: self.record_bytes - 2].encode() + b'"}' + after
            yield n % self.partitions, value, stamp
            if self.has_nulls and n % 9 == 8:
                yield n % self.partitions, None, stamp

    def _drawn(self) -> Iterator[tuple[int, int, int, str]]:
        """Id, timestamp, random bits and note of every record."""
        chosen, words = random.Random(20), _TEXT.split()
        notes = [" ".join(chosen.choices(words, k=24 + (self.record_bytes - RECORD_BYTES) // 4)) for _ in range(1000)]
        for n in range(self.records):
            bits = chosen.getrandbits(128)
            yield n, FIRST_MS + self._since_first_ms(n, bits), bits, notes[(bits >> 50) % 1000]

    def _since_first_ms(self, n: int, bits: int) -> int:
        if not self.late_percent:
            # Scattered over the directories, and every partition meets every directory.
            return (n // self.partitions * 7919 % self.directories) * HOUR_MS + n % HOUR_MS
        now = n * self.directories * HOUR_MS // self.records
        return (bits >> 100) * now >> 28 if (bits >> 60) % 100 < self.late_percent else now


def _json_head(n: int, stamp: int, bits: int) -> str:
    return (
        f'{{"id":{n},"user":"user-{bits % 100_000:05d}","event":"{_EVENTS[(bits >> 20) % 5]}",'
        f'"amount":{((bits >> 30) % 100_000) / 100},"at":{stamp},'
        f'"session":"{bits >> 80:012x}","note":"'
    )


def _event(n: int, stamp: int, bits: int, note: str) -> dict[str, Any]:
    return {
        "id": n,
        "user": f"user-{bits % 100_000:05d}",
        "event": _EVENTS[(bits >> 20) % 5],
        "amount": ((bits >> 30) % 100_000) / 100,
        "at": stamp,
        "session": f"{bits >> 80:012x}",
        "paid": bool(bits & 1),
        "note": note[:60],
    }


def _avro(n: int, stamp: int, bits: int, note: str) -> bytes:
    made = io.BytesIO()
    fastavro.schemaless_writer(made, _PARSED_AVRO_SCHEMA, _event(n, stamp, bits, note))
    return made.getvalue()


def _protobuf_writer(prefix: bytes) -> Callable[[dict[str, Any]], bytes]:
    kind, start = GetMessageClass(message_at(open_schema(PROTOBUF_SCHEMA, {}), [0])), prefix + b"\0"

    def write(event: dict[str, Any]) -> bytes:
        seconds, ms = divmod(event["at"], 1000)
        made = kind(**{**event, "at": {"seconds": seconds, "nanos": ms * 1_000_000}})
        return start + bytes(made.SerializeToString())

    return write


def _tags(n: int) -> bytes:
    """An array of `n % 4` texts, as one block and its end."""
    count = n % 4
    return bytes([2 * count]) + b"\x08blue" * count + b"\0" if count else b"\0"


def _labels(n: int) -> bytes:
    """A map of `n % 4` texts, as one block and its end."""
    count = n % 4
    entries = b"".join(b"\x04k%d\x08blue" % key for key in range(count))
    return bytes([2 * count]) + entries + b"\0" if count else b"\0"


def register(registry: str, load: Load) -> int:
    """Give the registry the schema of a load; returns its id."""
    more = _TAGS if load.has_arrays else _LABELS if load.has_maps else ""
    avro = AVRO_SCHEMA.removesuffix("]}") + more if more else AVRO_SCHEMA
    asked = {"schema": avro}
    if load.is_json_schema:
        asked = {"schema": JSON_SCHEMA, "schemaType": "JSON"}
    elif load.is_protobuf:
        asked = {"schema": PROTOBUF_SCHEMA, "schemaType": "PROTOBUF"}
    url, headers = f"{registry}/subjects/{load.topic}-value/versions", {"Content-Type": "application/json"}
    with urlopen(Request(url, json.dumps(asked).encode(), headers), timeout=30) as answer:
        return int(json.load(answer)["id"])


def fill(bootstrap: str, load: Load, schema_id: int, show: Callable[[int], None]) -> None:
    """Make the topic and write all records, lz4; `show` hears how many are written."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(load.topic, num_partitions=load.partitions, replication_factor=1)])[
        load.topic
    ].result(60)
    failed: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": "lz4",
            "linger.ms": 100,
            "batch.size": 262_144,
            "queue.buffering.max.messages": 500_000,
            "delivery.report.only.error": True,
            "on_delivery": lambda error, _: failed.append(error),
        }
    )
    headers: list[tuple[str, bytes]] = [("trace", b"4bf92f3577b34da6"), ("trace", b"")] if load.has_headers else []
    for n, (partition, value, stamp) in enumerate(load.rows(schema_id)):
        while True:
            try:
                key = b"key-%08d" % n if load.has_keys else None
                producer.produce(load.topic, value, key, partition=partition, timestamp=stamp, headers=headers)
                break
            except BufferError:
                producer.poll(0.1)
        if n % 20_000 == 0:
            producer.poll(0)
            show(n)
    left = producer.flush(120)
    if left or failed:
        raise RuntimeError(f"{left + len(failed)} records of {load.topic} were not written: {failed[:1]}")
    show(load.records)
