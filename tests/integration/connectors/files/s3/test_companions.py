"""Keys and headers beside values, records without value, and what becomes of records that cannot be written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Consumer

from tests.integration.connectors.files.s3.objects import (
    AVRO_FORMAT,
    BYTES_CONVERTER,
    BYTES_FORMAT,
    JSON_FORMAT,
    PARQUET_FORMAT,
    WITH_SCHEMAS,
    contents,
    envelope,
    raw,
    struct,
)

pytestmark = pytest.mark.integration

BOTH = {"store.kafka.keys": "true", "store.kafka.headers": "true"}
HEADERS = [("trace", b"abc"), ("count", b"5"), ("trace", b"again")]


def letters(kafka: Any, topic: str, count: int) -> list[Any]:
    """The first `count` messages of a topic, with headers."""
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap, "group.id": f"look-{topic}", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found = consumer.consume(count, timeout=30)
    consumer.close()
    return [(m.value(), dict(m.headers() or [])) for m in found]


@pytest.mark.parametrize(
    ("file_format", "extension", "key_of", "headers_of"),
    [
        (AVRO_FORMAT, ".avro", lambda row: row, lambda row: row),
        (JSON_FORMAT, ".json", lambda row: row, lambda row: row),
        (PARQUET_FORMAT, ".snappy.parquet", lambda row: row["key"], lambda row: row["headers"]),
    ],
    ids=["avro", "json", "parquet"],
)
def test_keys_and_headers_lie_beside_their_values(
    make_topic, produce, make_sink, file_format, extension, key_of, headers_of
):
    topic = make_topic()
    produce(topic, [(0, f"key {n}", json.dumps({"n": n}), 0, HEADERS) for n in range(3)])
    sink = make_sink(
        topic, **BOTH, **{"keys.format.class": file_format, "headers.format.class": file_format, "flush.size": "2"}
    )

    report = sink.run()

    names = [f"topics/{topic}/partition=0/{topic}+0+{start:010d}" for start in (0, 2)]
    expected = {f"{name}{middle}{ext}" for name in names for middle, ext in (
        ("", ".json"), (".keys", extension), (".headers", extension))}  # fmt: skip
    found = contents(sink)
    assert set(found) == expected
    assert [key_of(row) for row in found[f"{names[0]}.keys{extension}"]] == ["key 0", "key 1"]
    wanted = [{"key": name, "value": value} for name, value in [("trace", "abc"), ("count", "5"), ("trace", "again")]]
    assert [headers_of(row) for row in found[f"{names[1]}.headers{extension}"]] == [wanted]
    assert found[f"{names[0]}.json"] == [{"n": 0}, {"n": 1}]
    assert report.records == 3


def test_keys_as_raw_bytes_and_values_gzipped(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, [(0, b"\x00\xff", "1"), (0, b"k", "2")])
    given = {"store.kafka.keys": "true", "keys.format.class": BYTES_FORMAT, "key.converter": BYTES_CONVERTER}
    sink = make_sink(topic, **given, **{"s3.compression.type": "gzip"})

    sink.run()

    name = f"topics/{topic}/partition=0/{topic}+0+0000000000"
    assert sink.keys() == [f"{name}.json.gz", f"{name}.keys.bin.gz"]
    assert sink.body(f"{name}.keys.bin.gz") == b"\x00\xff\nk\n"
    assert sink.body(f"{name}.json.gz") == b"1\n2\n"


@pytest.mark.parametrize(
    ("given", "row", "code"),
    [
        ({"store.kafka.keys": "true"}, (0, None, "1"), "data.null_key"),
        ({"store.kafka.headers": "true"}, (0, "k", "1"), "data.no_headers"),
        ({}, (0, "k", None), "data.null_value"),
    ],
)
def test_missing_parts_of_records_fail_by_place_and_key(make_topic, produce, make_sink, given, row, code):
    topic = make_topic()
    produce(topic, [(0, "k", "0", 0, HEADERS), row])

    report = make_sink(topic, **given).try_run()

    assert report.status == "failed"
    assert (report.error["code"], f"{topic}-0@1" in report.error["message"]) == (code, True)
    assert report.error["configPath"] and report.error["suggestion"]


def test_missing_parts_are_tolerated_and_nothing_of_their_records_is_written(make_topic, produce, make_sink, kafka):
    topic, dead = make_topic(), make_topic()
    rows = [
        (0, None, '{"n": 0}', 0, HEADERS), (0, "b", '{"n": 1}', 0, HEADERS), (0, "c", '{"n": 2}'),
        (0, "d", '{"n": 3}', 0, HEADERS), (0, "e", "no json", 0, HEADERS),
    ]  # fmt: skip
    produce(topic, rows)
    tolerate = {
        "errors.tolerance": "all", "errors.deadletterqueue.topic.name": dead,
        "errors.deadletterqueue.context.headers.enable": "true",
    }  # fmt: skip
    sink = make_sink(topic, **BOTH, **tolerate)

    report = sink.run()

    name = f"topics/{topic}/partition=0/{topic}+0+0000000001"
    found = contents(sink)
    assert set(found) == {f"{name}.json", f"{name}.keys.avro", f"{name}.headers.avro"}
    assert found[f"{name}.json"] == [{"n": 1}, {"n": 3}]
    assert found[f"{name}.keys.avro"] == ["b", "d"]
    assert (report.records, report.dead_lettered) == (2, 3)
    letters_found = letters(kafka, dead, 3)
    assert [value for value, _ in letters_found] == [b'{"n": 0}', b'{"n": 2}', b"no json"]
    stages = [headers["__connect.errors.stage"] for _, headers in letters_found]
    assert stages == [b"TASK_PUT", b"TASK_PUT", b"VALUE_CONVERTER"]
    assert sink.offsets() == {0: 5}


def test_records_without_directory_or_schema_are_tolerated(make_topic, produce, make_sink, kafka):
    topic, dead = make_topic(), make_topic()
    schema = struct(("n", "int32"), ("city", "string?"))
    values = [
        envelope(schema, {"n": 0, "city": "Bern"}),
        envelope(struct(("n", "int32")), {"n": 1}),
        json.dumps({"schema": None, "payload": {"n": 2}}),
        envelope(schema, {"n": 3, "city": "Bern"}),
    ]
    produce(topic, [(0, None, value) for value in values])
    tolerate = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": dead}
    layout = {"partitioner.class": "FieldPartitioner", "partition.field.name": "city"}
    sink = make_sink(topic, **WITH_SCHEMAS, **tolerate, **layout, **{"format.class": AVRO_FORMAT})

    report = sink.run()

    expected = [{"n": 0, "city": "Bern"}, {"n": 3, "city": "Bern"}]
    assert contents(sink) == {f"topics/{topic}/city=Bern/{topic}+0+0000000000.avro": expected}
    assert [value for value, _ in letters(kafka, dead, 2)] == [value.encode() for value in values[1:3]]
    assert report.dead_lettered == 2


def test_schemaless_record_before_typed_ones_leaves_no_file_behind(make_topic, produce, make_sink):
    topic = make_topic()
    values = [json.dumps({"schema": None, "payload": {"n": 0}}), envelope(struct(("n", "int32")), {"n": 1})]
    produce(topic, [(0, None, value) for value in values])
    sink = make_sink(topic, **WITH_SCHEMAS, **{"errors.tolerance": "all", "format.class": AVRO_FORMAT})

    report = sink.run()

    assert contents(sink) == {f"topics/{topic}/partition=0/{topic}+0+0000000001.avro": [{"n": 1}]}
    assert (report.records, report.filtered) == (1, 1)


def test_ignored_null_values_are_left_out_and_reported(make_topic, produce, make_sink, kafka):
    topic, dead, quiet = make_topic(), make_topic(), make_topic()
    produce(topic, [(0, "a", "1"), (0, "b", None), (0, "c", "2")])
    ignore = {"behavior.on.null.values": "ignore", "errors.tolerance": "all"}
    reported = make_sink(topic, **ignore, **{"errors.deadletterqueue.topic.name": dead})
    silent = make_sink(
        topic, **ignore, **{"errors.deadletterqueue.topic.name": quiet, "report.null.values.to.dlq": "false"},
        **{"topics.dir": "silent"},
    )  # fmt: skip

    first, second = reported.run(), silent.run()

    assert contents(reported) == {
        f"{name}/{topic}/partition=0/{topic}+0+0000000000.json": [1, 2] for name in ("silent", "topics")
    }
    assert (first.dead_lettered, first.filtered) == (1, 0)
    assert (second.dead_lettered, second.filtered) == (0, 1)
    assert letters(kafka, dead, 1) == [(None, {})]
    assert reported.offsets() == silent.offsets() == {0: 3}


def test_null_values_fail_a_run_that_tolerates_errors(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, [(0, "a", "1"), (0, "b", None)])

    report = make_sink(topic, **{"errors.tolerance": "all"}).try_run()

    assert (report.status, report.error["code"]) == ("failed", "data.null_value")


def test_written_null_values_leave_keys_and_headers_in_the_tombstone_directory(make_topic, produce, make_sink):
    topic = make_topic()
    rows = [(0, "a", "1", 3_600_000, HEADERS), (0, "b", None, 7_200_000, HEADERS), (0, "c", "2", 7_200_001, HEADERS)]
    produce(topic, rows)
    hourly = {
        "partitioner.class": "HourlyPartitioner", "locale": "en", "timezone": "UTC", "timestamp.extractor": "Record",
    }  # fmt: skip
    sink = make_sink(
        topic, **BOTH, **hourly,
        **{"behavior.on.null.values": "write", "tombstone.encoded.partition": "gone/away",
           "keys.format.class": JSON_FORMAT},
    )  # fmt: skip

    report = sink.run()

    found = contents(sink)
    one, two, gone = (
        f"topics/{topic}/{directory}/{topic}+0+000000000{start}"
        for directory, start in (
            ("year=1970/month=01/day=01/hour=01", 0), ("year=1970/month=01/day=01/hour=02", 2), ("gone/away", 1)
        )
    )  # fmt: skip
    assert set(found) == {
        *(f"{name}{ext}" for name in (one, two) for ext in (".json", ".keys.json", ".headers.avro")),
        f"{gone}.keys.json", f"{gone}.headers.avro",
    }  # fmt: skip
    assert (found[f"{gone}.keys.json"], found[f"{two}.json"]) == (["b"], [2])
    assert report.records == 3
    assert raw(sink, f"{one}.keys.json") == b'"a"\n'
