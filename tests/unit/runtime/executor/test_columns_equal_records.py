"""Converters and transformations: whatever the messages and the configuration, columns are the records one by one.

Made up from seeds, without hypothesis: a thousand small cases take as long as thirty whole copies, which
tests/unit/connectors/files/shared/test_column_configurations.py compares.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from google.protobuf import message_factory

from airflow_connect.api.columns import NullValues, RecordColumns
from airflow_connect.api.record import KafkaRecord, SinkRecord
from airflow_connect.config.resolved.loading import load_connector_config
from airflow_connect.converters.json.converter import JsonConverter
from airflow_connect.converters.protobuf.files import message_at, open_schema
from airflow_connect.errors import DataError
from airflow_connect.formats.key_and_header_values import stored_header_text
from airflow_connect.registry.client import AVRO, JSON, PROTOBUF, SchemaRegistryClient, SchemaText, SubjectVersion
from airflow_connect.runtime.executor.converting import ConversionError, RecordConverter
from airflow_connect.runtime.executor.sink.column_path import column_path
from airflow_connect.runtime.executor.sink.header_texts import HeaderTexts
from airflow_connect.runtime.executor.sink.null_values import left_to_sink
from airflow_connect.runtime.executor.source.columns import python_values
from tests.support.session.searching import examples, seed_day
from tests.support.values.connect_values import same
from tests.unit.connectors.files.shared.staging import NOW_MS, columns_of
from tests.unit.runtime.executor.random_messages import avro, json_texts, protobuf
from tests.unit.runtime.executor.random_messages.values import NAMES, broken, integer, text

KAFKA = "org.apache.kafka.connect."
WORKER = {"bootstrap.servers": "x:1", "key.converter": "StringConverter", "value.converter": "JsonConverter"}
SINK = {
    "name": "c", "connector.class": "S3SinkConnector", "topics": "t", "s3.bucket.name": "bucket",
    "s3.region": "eu-west-1", "storage.class": "S3Storage", "flush.size": "3", "format.class": "JsonFormat",
}  # fmt: skip
EVEN = "tests.unit.connectors.files.shared.test_column_configurations:EvenOffset"
HEADERS = (b"1", b"007", b"null", b"[1]", b"[" * 101, b"{" * 120, b"1" * 9865, b"-" + b"1" * 200, b"\xff", b"", None)


@dataclass
class Kind:
    """Messages of one converter.

    Attributes:
        config: of the converter.
        message: makes one.
        schemas: what the registry has, by id.
    """

    config: dict[str, str]
    message: Callable[[], bytes]
    schemas: dict[int, SchemaText] = field(default_factory=dict)


def registered(name: str, r: Random, options: Sequence[str]) -> dict[str, str]:
    chosen = {f"value.converter.{key}": "true" for key in options if r.random() < 0.15}
    return {"value.converter": name, "value.converter.schema.registry.url": "http://127.0.0.1:9", **chosen}


def one_of(r: Random, count: int) -> Callable[[], int]:
    """Ids of schemas, in runs."""
    chosen, changes = [1], r.choice([0.05, 0.4])

    def next_id() -> int:
        if r.random() < changes:
            chosen[0] = r.randint(1, count)
        return chosen[0]

    return next_id


def prefix(number: int) -> bytes:
    return b"\0" + number.to_bytes(4, "big")


def avro_kind(r: Random, odd: float) -> Kind:
    maker = avro.AvroSchemas(r)
    schemas = [maker.record()]
    schemas += [maker.other_version(schemas[0])] if r.random() < 0.4 else []
    ids = one_of(r, len(schemas))
    options = ("enhanced.avro.schema.support", "generalized.sum.type.support", "ignore.default.for.nullables")

    def message() -> bytes:
        number = ids()
        return prefix(number) + avro.encoded(r, schemas[number - 1], odd)

    texts = {n: SchemaText(AVRO, json.dumps(schema)) for n, schema in enumerate(schemas, 1)}
    return Kind(registered("AvroConverter", r, options), message, texts)


def protobuf_kind(r: Random, odd: float) -> Kind:
    first = protobuf.proto(r)
    label = "message Event {"
    schemas = [first, first.replace(label, f"{label} optional string added = 99;", 1)][: r.choice([1, 2])]
    types = [message_factory.GetMessageClass(message_at(open_schema(schema, {}), [0])) for schema in schemas]
    ids = one_of(r, len(schemas))
    options = (
        "strict.types", "int.for.enums", "optional.for.nullables", "wrapper.for.nullables", "generate.struct.for.nulls",
        "flatten.unions", "generalized.sum.type.support",
    )  # fmt: skip

    def message() -> bytes:
        number = ids()
        data: bytes = protobuf.filled(r, types[number - 1]()).SerializePartialToString()
        return prefix(number) + b"\0" + (protobuf.shuffled(r, data) if r.random() < odd else data)

    texts = {n: SchemaText(PROTOBUF, schema) for n, schema in enumerate(schemas, 1)}
    return Kind(registered("ProtobufConverter", r, options), message, texts)


def json_schema_kind(r: Random, odd: float) -> Kind:
    schema = json_texts.json_schema(r)
    options = ("use.optional.for.nonrequired", "strict.types", "ignore.default.for.nullables")
    return Kind(
        registered("JsonSchemaConverter", r, options),
        lambda: prefix(1) + json_texts.document(r, schema, odd).encode(),
        {1: SchemaText(JSON, json.dumps(schema))},
    )


def envelope_kind(r: Random, odd: float) -> Kind:
    schemas = [json_texts.connect_schema(r) for _ in range(r.choice([1, 1, 2]))]
    ids, strict = one_of(r, len(schemas)), {"value.converter.strict.types": "true"} if r.random() < 0.2 else {}

    def message() -> bytes:
        schema = schemas[ids() - 1]
        return f'{{"schema":{json.dumps(schema)},"payload":{json_texts.document(r, schema, odd)}}}'.encode()

    return Kind({"value.converter": "JsonConverter", **strict}, message)


def content_kind(r: Random, odd: float) -> Kind:
    schema = json_texts.connect_schema(r)
    config = {"value.converter": "JsonConverter", "value.converter.schema.content": json.dumps(schema)}
    if r.random() < 0.2:
        config["value.converter.replace.null.with.default"] = "false"
    return Kind(config, lambda: json_texts.document(r, schema, odd).encode())


def plain_kind(r: Random, _: float) -> Kind:
    kinds = [
        Kind(
            {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"},
            lambda: json_texts.free(r).encode("utf-8", "surrogatepass"),
        ),
        Kind({"value.converter": "StringConverter"}, lambda: text(r).encode()),
        Kind({"value.converter": "ByteArrayConverter"}, lambda: text(r).encode("utf-16")),
        Kind({"value.converter": "LongConverter"}, lambda: struct.pack(">q", integer(r, 64))),
    ]
    return r.choice(kinds)


KINDS: Mapping[str, Callable[[Random, float], Kind]] = {
    "avro": avro_kind, "protobuf": protobuf_kind, "json-schema": json_schema_kind, "envelope": envelope_kind,
    "content": content_kind, "plain": plain_kind,
}  # fmt: skip


def steps(r: Random) -> dict[str, str]:
    """Up to two transformations of fields that most schemas have."""
    name, other, rest = r.sample(NAMES, 3)
    found: list[dict[str, str]] = [
        {"type": "InsertField$Value", "offset.field": r.choice(["_o!", name]), "timestamp.field": "_at"},
        {"type": "ReplaceField$Value", "renames": f"{name}:new", "exclude": other},
        {"type": "ReplaceField$Value", "include": f"{name},{other},{rest}"},
        {"type": "MaskField$Value", "fields": name},
        {"type": "MaskField$Value", "fields": name, "replacement": "5"},
        {"type": "Cast$Value", "spec": f"{name}:{r.choice(['string', 'int8', 'int64', 'float32', 'boolean'])}"},
        {"type": "Flatten$Value"},
        {"type": "ExtractField$Value", "field": name},
        {"type": "HoistField$Value", "field": "w"},
        {"type": "TimestampConverter$Value", "field": name, "target.type": r.choice(["unix", "Date", "Timestamp"])},
        {"type": "HeaderFrom$Value", "fields": name, "headers": "h", "operation": r.choice(["copy", "move"])},
        {"type": "SetSchemaMetadata$Value", "schema.name": "thing"},
        {"type": "TimestampRouter", "timestamp.format": "SSS"},
        {"type": "InsertHeader", "header": "h", "value.literal": "1.10"},
        {"type": "Filter", "predicate": "even"},
    ]
    config: dict[str, str] = {}
    chosen = r.sample(found, r.choice([0, 0, 1, 1, 2]))
    for number, step in enumerate(chosen):
        config |= {f"transforms.s{number}.{key}": value for key, value in step.items()}
        config[f"transforms.s{number}.type"] = f"{KAFKA}transforms.{step['type']}"
        if r.random() < 0.3:
            config |= {f"transforms.s{number}.predicate": "even", f"transforms.s{number}.negate": "true"}
    if chosen:
        config |= {"transforms": ",".join(f"s{n}" for n in range(len(chosen))), "predicates": "even"}
        config["predicates.even.type"] = EVEN
    return config


def batch(r: Random, kind: Kind) -> list[KafkaRecord]:
    faults = r.choice([0, 0, 0.03, 0.2])
    nulls, has_headers, timestamp_type = r.choice([0, 0, 0.2]), r.random() < 0.3, r.choice([1, 1, 2, 0])
    records = []
    for offset in range(r.choice([1, 2, 5, 20])):
        value: bytes | None = kind.message()
        value = None if r.random() < nulls else broken(r, value or b"") if r.random() < faults else value
        headers = (("h", r.choice(HEADERS[:4] if r.random() < 0.9 else HEADERS)),) if has_headers else ()
        stamp = r.choice([0, -1, NOW_MS, NOW_MS + offset]) if timestamp_type else None
        records.append(KafkaRecord("t", 0, 3 * offset, b"k%d" % offset, value, stamp, timestamp_type, headers))
    return records


@contextmanager
def registry(schemas: Mapping[int, SchemaText]) -> Iterator[None]:
    def schema(_: SchemaRegistryClient, number: int) -> SchemaText:
        if number not in schemas:
            raise DataError(f"The schema {number} is not known.")
        return schemas[number]

    def lookup(_: SchemaRegistryClient, subject: str, found: SchemaText, **__: Any) -> SubjectVersion:
        return SubjectVersion(subject, 1, 1, found)

    with patch.object(SchemaRegistryClient, "schema", schema), patch.object(SchemaRegistryClient, "lookup", lookup):
        yield


def one_by_one(converter: RecordConverter, records: Sequence[KafkaRecord]) -> list[SinkRecord | None] | str:
    """The records, None where one is dropped; or the error of the first one that fails."""
    found: list[SinkRecord | None] = []
    for record in records:
        try:
            found.append(converter.convert(record))
        except ConversionError as error:
            return f"{record.offset}: {error}"
    return found


_SCHEMALESS = JsonConverter()
_SCHEMALESS.configure({"schemas.enable": "false"}, is_key=False)


def assert_same(piece: RecordColumns, records: Sequence[SinkRecord]) -> None:
    if piece.value.schema is None:
        values = [_SCHEMALESS.to_connect("t", document).value for document in piece.value.values.to_pylist()]
    else:
        values = python_values(piece.value.schema, piece.value.values)
    for row, record in enumerate(records):
        assert (piece.topic, piece.offsets[row]) == (record.topic, record.offset)
        assert piece.timestamp_type == record.timestamp_type
        assert record.timestamp is None or piece.timestamps[row] == record.timestamp
        assert piece.value.schema == record.value_schema
        # JSON without a schema has no infinity: documents have the text that JsonFormat writes.
        assert same(values[row], record.value) or (piece.value.schema is None and "inf" in repr(record.value))
        if piece.headers is not None:
            headers = [(header["key"], header["value"]) for header in piece.headers[row].as_py()]
            assert headers == [
                (header.key, stored_header_text(header.schema, header.value)) for header in record.headers
            ]


def compare(r: Random, kind: Kind) -> int:
    """Compare a batch; returns how many of its records are in columns."""
    resolved = load_connector_config({**SINK, **kind.config, **steps(r)}, WORKER)
    converter, reference = RecordConverter(resolved), RecordConverter(resolved)
    headers = HeaderTexts(converter.headers) if r.random() < 0.5 else None

    def nulls_of(found: Any) -> Any:
        return left_to_sink(found, converter, NullValues.LEFT_OUT, has_queue=False)

    path = column_path(converter.value, converter.steps, nulls_of=nulls_of, headers=headers)
    records = batch(r, kind)
    given = columns_of(records)
    if path is None or (headers is None and not converter.accepts_headers(given)):
        return 0
    try:
        pieces = path.convert(given)
    except DataError:
        pieces = None  # As in the loop: the records go one by one, where the error is reported.
    if not pieces:
        return 0
    expected = one_by_one(reference, records)
    assert not isinstance(expected, str), f"columns were made although a record is refused: {expected}"
    left_out = set() if path.nulls is None else set(path.nulls.tolist())
    kept = [record for record in expected if record is not None and record.offset not in left_out]
    assert sum(map(len, pieces)) == len(kept)
    for piece in pieces:
        assert_same(piece, kept[: len(piece)])
        kept = kept[len(piece) :]
    return len(records)


@pytest.mark.budget(10)
@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_any_messages_are_the_records(kind: str) -> None:
    in_columns = 0
    for seed in range(examples(800)):
        r = Random(f"{seed_day()} {kind} {seed}")
        try:
            found = KINDS[kind](r, r.choice([0, 0, 0.02, 0.1]))
            with registry(found.schemas):
                in_columns += compare(r, found)
        except Exception as error:
            error.add_note(f"The seed is '{seed_day()} {kind} {seed}'.")
            raise
    assert in_columns > examples(800) // 4
