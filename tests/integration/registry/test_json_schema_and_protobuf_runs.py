"""Topics of JSON Schema and Protobuf messages whose schemas evolve, copied to S3 by whole runs."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from google.protobuf import message_factory

from airflow_connect.converters.protobuf.files import open_schema

if TYPE_CHECKING:
    from tests.conftest import MakeTopic
    from tests.integration.registry.conftest import Registry
    from tests.support.copies.s3 import Sink
    from tests.support.kafka_data import TopicProducer

pytestmark = pytest.mark.integration

FORMATS = "io.confluent.connect.s3.format"
ORDER = """syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";
message Order { int64 id = 1; google.protobuf.Timestamp at = 2; repeated Line lines = 3; oneof paid { string card = 4; }
  Color color = 5; map<string, int32> counts = 6; bytes raw = 7; MORE
  message Line { uint32 qty = 1; } enum Color { RED = 0; BLUE = 1; } }"""
FIRST, SECOND = ORDER.replace("MORE", ""), ORDER.replace("MORE", "optional string note = 8;")
PERSON = {
    "type": "object",
    "title": "Person",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer"},
        "price": {
            "type": "number",
            "title": "org.apache.kafka.connect.data.Decimal",
            "connect.type": "bytes",
            "connect.parameters": {"scale": "2"},
        },
        "born": {
            "type": "integer",
            "title": "org.apache.kafka.connect.data.Date",
            "connect.type": "int32",
            "connect.version": 1,
        },
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}


def _prefix(schema_id: int) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big")


def _order(schema_id: int, text: str, **content: Any) -> bytes:
    kind = message_factory.GetMessageClass(open_schema(text, {}).message_types_by_name["Order"])
    data: bytes = kind(**content).SerializeToString()
    return _prefix(schema_id) + b"\0" + data


def _offset(key: str) -> int:
    return int(key.rpartition("+")[2].partition(".")[0])


def test_protobuf_topic_becomes_json_objects(
    make_topic: MakeTopic, produce: TopicProducer, make_sink: Callable[..., Sink], schema_registry: Registry
) -> None:
    topic = make_topic()
    ids = [schema_registry.register(f"{topic}-value", text, schemaType="PROTOBUF") for text in (FIRST, SECOND)]
    first = _order(ids[0], FIRST, id=1, at={"seconds": 1}, lines=[{"qty": 4_000_000_000}], card="x", counts={"a": 1})
    second = _order(ids[1], SECOND, id=2, color=1, raw=b"\x01", note="")
    produce(topic, [(0, None, data) for data in (first, second, first)])
    sink = make_sink(
        topic,
        value_converter="io.confluent.connect.protobuf.ProtobufConverter",
        value_converter_schema_registry_url=schema_registry.url,
    )
    assert (sink.run().status, sink.offsets()) == ("done", {0: 3})
    rows = [json.loads(line) for key in sorted(sink.keys()) for line in sink.body(key).splitlines()]
    assert rows[0] == rows[2] == {
        "paid_0": {"card": "x"}, "id": 1, "at": 1000, "lines": [{"qty": 4_000_000_000}], "color": "RED",
        "counts": {"a": 1}, "raw": "",
    }  # fmt: skip
    assert rows[1] == {
        "paid_0": None, "id": 2, "at": None, "lines": [], "color": "BLUE", "counts": {}, "raw": "AQ==", "note": "",
    }  # fmt: skip


def test_json_schema_topic_becomes_parquet_files(
    make_topic: MakeTopic, produce: TopicProducer, make_sink: Callable[..., Sink], schema_registry: Registry
) -> None:
    topic = make_topic()
    wider = {**PERSON, "properties": {**PERSON["properties"], "note": {"type": "string"}}}  # type: ignore[dict-item]
    ids = [schema_registry.register(f"{topic}-value", each, schemaType="JSON") for each in (PERSON, wider)]
    texts = [
        (ids[0], b'{"id":1,"price":1.50,"born":19782,"tags":["a","b"]}'),
        (ids[0], b'{"id":2,"price":2.25,"born":-1,"tags":[]}'),
        (ids[1], b'{"id":3,"note":"n"}'),
    ]
    produce(topic, [(0, None, _prefix(schema_id) + text) for schema_id, text in texts])
    sink = make_sink(
        topic,
        format_class=f"{FORMATS}.parquet.ParquetFormat",
        value_converter="io.confluent.connect.json.JsonSchemaConverter",
        value_converter_schema_registry_url=schema_registry.url,
        value_converter_use_optional_for_nonrequired="true",
    )
    assert (sink.run().status, sink.offsets()) == ("done", {0: 3})
    tables = {_offset(key): pq.read_table(io.BytesIO(sink.body(key))) for key in sorted(sink.keys())}
    assert {start: table.column_names for start, table in tables.items()} == {
        0: ["id", "price", "born", "tags"],
        2: ["id", "price", "born", "tags", "note"],
    }
    assert [str(price) for price in tables[0].column("price").to_pylist()] == ["1.50", "2.25"]
    assert [str(day) for day in tables[0].column("born").to_pylist()] == ["2024-02-29", "1969-12-31"]
    assert tables[2].to_pylist() == [{"id": 3, "price": None, "born": None, "tags": None, "note": "n"}]


def test_fields_that_the_schema_does_not_have_are_named_in_the_report(
    make_topic: MakeTopic, produce: TopicProducer, make_sink: Callable[..., Sink], schema_registry: Registry
) -> None:
    topics = [make_topic(), make_topic()]
    ids = [
        schema_registry.register(f"{topics[0]}-value", FIRST, schemaType="PROTOBUF"),
        schema_registry.register(f"{topics[1]}-value", PERSON, schemaType="JSON"),
    ]
    orders = [_order(ids[0], text, id=1, **content) for text, content in ((FIRST, {}), (SECOND, {"note": "n"}))]
    people = [b'{"id":1}', b'{"id":2,"nick":"x"}', b'{"id":3,"nick":null}', b'{"id":4,"nick":"y","tags":["a"]}']
    produce(topics[0], [(0, None, data) for data in orders])
    produce(topics[1], [(0, None, _prefix(ids[1]) + text) for text in people])
    reports = [
        make_sink(
            topic,
            value_converter=f"io.confluent.connect.{converter}",
            value_converter_schema_registry_url=schema_registry.url,
            **more,
        ).run()
        for topic, converter, more in (
            (topics[0], "protobuf.ProtobufConverter", {}),
            (topics[1], "json.JsonSchemaConverter", {"value_converter_use_optional_for_nonrequired": "true"}),
        )
    ]
    notes = [[note for note in report.notes if "left out" in note] for report in reports]
    beginning = (
        "Some values of the topic {} held fields that the schema {} (version 1) does not have. They were left out:"
    )
    assert notes == [
        [f"{beginning.format(topics[0], 'Order')} field 8 of shop.Order. Records: 1."],
        [f"{beginning.format(topics[1], 'Person')} nick. Records: 2."],
    ]


@pytest.mark.parametrize(
    ("converter", "kind", "schema", "good", "bad"),
    [
        ("json.JsonSchemaConverter", "JSON", PERSON, b'{"id":1}', b'{"id":1'),
        ("protobuf.ProtobufConverter", "PROTOBUF", FIRST, b"\0\x08\x01", b"\0\x08"),
    ],
)
def test_run_tolerating_errors_keeps_every_good_message(
    make_topic: MakeTopic,
    produce: TopicProducer,
    make_sink: Callable[..., Sink],
    schema_registry: Registry,
    converter: str,
    kind: str,
    schema: Any,
    good: bytes,
    bad: bytes,
) -> None:
    topic = make_topic()
    start = _prefix(schema_registry.register(f"{topic}-value", schema, schemaType=kind))
    rows = [start + good, start + bad, b"", good, b"\0\x7f\xff\xff\xff" + good, start + good]
    produce(topic, [(0, None, data) for data in rows])
    sink = make_sink(
        topic,
        value_converter=f"io.confluent.connect.{converter}",
        value_converter_schema_registry_url=schema_registry.url,
        value_converter_use_optional_for_nonrequired="true" if kind == "JSON" else None,
        errors_tolerance="all",
    )
    report = sink.run()
    assert (report.records, report.filtered + report.dead_lettered) == (2, 4)
    assert [json.loads(line)["id"] for key in sorted(sink.keys()) for line in sink.body(key).splitlines()] == [1, 1]
