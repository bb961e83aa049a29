"""A topic of Avro messages whose schema evolves, copied to S3 by whole runs."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow.parquet as pq
import pytest

from tests.integration.registry.avro_messages import message

if TYPE_CHECKING:
    from tests.conftest import MakeTopic
    from tests.integration.registry.conftest import Registry
    from tests.support.copies.s3 import Sink
    from tests.support.kafka_data import TopicProducer

pytestmark = pytest.mark.integration

FORMATS = "io.confluent.connect.s3.format"
AVRO_CONVERTER = "io.confluent.connect.avro.AvroConverter"
FIRST = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
SECOND = {**FIRST, "fields": [*FIRST["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}


def _value(n: int, **more: Any) -> dict[str, Any]:
    return {"id": n, "price": n.to_bytes(2, "big"), "at": 1_700_000_000_000 + n, **more}


@pytest.fixture
def orders(make_topic: MakeTopic, produce: TopicProducer, schema_registry: Registry) -> str:
    """Five orders of the first schema, five of the second, two of the first again."""
    topic = make_topic()
    ids = [schema_registry.register(f"{topic}-value", schema) for schema in (FIRST, SECOND)]
    rows = [message(ids[0], FIRST, _value(n)) for n in range(5)]
    rows += [message(ids[1], SECOND, _value(n, note=f"note {n}" if n % 2 else None)) for n in range(5, 10)]
    rows += [message(ids[0], FIRST, _value(n)) for n in range(10, 12)]
    produce(topic, [(0, None, data) for data in rows])
    return topic


def _objects(sink: Sink) -> dict[str, bytes]:
    return {key: sink.body(key) for key in sorted(sink.keys())}


def _offset(key: str) -> int:
    return int(key.rpartition("+")[2].partition(".")[0])


def _sink(make_sink: Callable[..., Sink], topic: str, registry: Registry, kind: str, **config: str) -> Sink:
    return make_sink(
        topic,
        format_class=f"{FORMATS}.{kind}",
        value_converter=AVRO_CONVERTER,
        value_converter_schema_registry_url=registry.url,
        **config,
    )


def test_run_to_parquet_without_compatibility_starts_a_file_at_each_schema(
    orders: str, make_sink: Callable[..., Sink], schema_registry: Registry
) -> None:
    sink = _sink(make_sink, orders, schema_registry, "parquet.ParquetFormat")
    report = sink.run()
    assert (report.status, sink.offsets()) == ("done", {0: 12})
    tables = {_offset(key): pq.read_table(io.BytesIO(data)) for key, data in _objects(sink).items()}
    assert {start: table.num_rows for start, table in tables.items()} == {0: 5, 5: 5, 10: 2}
    assert tables[0].schema.names == ["id", "price", "at"]
    assert tables[5].column("note").to_pylist() == ["note 5", None, "note 7", None, "note 9"]
    assert [str(price) for price in tables[0].column("price").to_pylist()] == ["0.00", "0.01", "0.02", "0.03", "0.04"]
    assert str(tables[0].schema.field("at").type) == "timestamp[ms, tz=UTC]"


def test_run_to_avro_with_backward_compatibility_projects_onto_the_newer_schema(
    orders: str, make_sink: Callable[..., Sink], schema_registry: Registry
) -> None:
    sink = _sink(make_sink, orders, schema_registry, "avro.AvroFormat", schema_compatibility="BACKWARD")
    assert sink.run().status == "done"
    files = {_offset(key): list(fastavro.reader(io.BytesIO(data))) for key, data in _objects(sink).items()}
    assert {start: [row["id"] for row in rows] for start, rows in files.items()} == {
        0: list(range(5)),
        5: list(range(5, 12)),
    }
    assert files[5][-1]["note"] is None


def test_run_over_broken_messages_fails_with_the_place_and_the_reason(
    make_topic: MakeTopic,
    produce: TopicProducer,
    make_sink: Callable[..., Sink],
    schema_registry: Registry,
) -> None:
    topic = make_topic()
    schema_id = schema_registry.register(f"{topic}-value", FIRST)
    produce(topic, [(0, None, message(schema_id, FIRST, _value(1))), (0, None, b'{"id":1}')])
    sink = _sink(make_sink, topic, schema_registry, "parquet.ParquetFormat")
    report = sink.try_run()
    assert report.status == "failed"
    assert f"{topic}-0@1" in str(report.error) and "Unknown magic byte!" in str(report.error)
    assert sink.keys() == []


def test_run_tolerating_errors_keeps_every_good_message(
    make_topic: MakeTopic,
    produce: TopicProducer,
    make_sink: Callable[..., Sink],
    schema_registry: Registry,
) -> None:
    topic = make_topic()
    schema_id = schema_registry.register(f"{topic}-value", FIRST)
    good = [message(schema_id, FIRST, _value(n)) for n in range(4)]
    bad = [b"", b'{"id":1}', good[0][:-1], good[0] + b"x", b"\0\x7f\xff\xff\xff\x00"]
    produce(topic, [(0, None, data) for data in [good[0], *bad, *good[1:]]])
    sink = _sink(make_sink, topic, schema_registry, "parquet.ParquetFormat", errors_tolerance="all")
    report = sink.run()
    assert (report.records, report.filtered + report.dead_lettered) == (4, 5)
    (data,) = _objects(sink).values()
    assert pq.read_table(io.BytesIO(data)).column("id").to_pylist() == [0, 1, 2, 3]


def test_run_registry_away_is_worth_a_retry(
    orders: str, make_sink: Callable[..., Sink], schema_registry: Registry
) -> None:
    sink = make_sink(
        orders,
        value_converter=AVRO_CONVERTER,
        value_converter_schema_registry_url="http://127.0.0.1:1",
        value_converter_max_retries="0",
    )
    report = sink.try_run()
    assert report.status == "failed"
    assert report.error is not None and report.error["retriable"]
    assert "The Schema Registry could not read the schema" in report.error["message"]
