"""Formats times sources: what was produced is what is read back, with the types it had."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import json
from decimal import Decimal
from typing import Any

import pytest

from tests.integration.connectors.files.s3.objects import (
    AVRO_FORMAT,
    BYTES_CONVERTER,
    BYTES_FORMAT,
    JSON_FORMAT,
    PARQUET_FORMAT,
    STRING_CONVERTER,
    WITH_SCHEMAS,
    avro_header,
    contents,
    envelope,
    logical,
    raw,
    records,
    struct,
)

pytestmark = pytest.mark.integration

UTC = dt.UTC
ALL_TYPES = struct(
    ("i8", "int8"), ("i16", "int16"), ("i32", "int32"), ("i64", "int64"), ("f32", "float"), ("f64", "double"),
    ("flag", "boolean"), ("text", "string"), ("data", "bytes"), ("maybe", "string?"),
    ("amount", logical("Decimal", "bytes", scale="2")), ("day", logical("Date", "int32")),
    ("clock", logical("Time", "int32")), ("at", logical("Timestamp", "int64")),
    ("inner", struct(("n", "int32"), ("deep", struct(("t", "string?"), name="deep")), name="inner")),
    ("list", {"type": "array", "optional": False, "items": {"type": "int32", "optional": False}}),
    ("by_name", {"type": "map", "optional": False, "keys": {"type": "string", "optional": False},
                 "values": {"type": "int64", "optional": True}}),
    name="org.example.AllTypes",
)  # fmt: skip


def base64_of(number: int) -> str:
    """The shortest two's complement, as Java's BigInteger."""
    return base64.b64encode(number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)).decode()


PAYLOADS: list[dict[str, Any]] = [
    {
        "i8": -128, "i16": 32767, "i32": -5, "i64": 1 << 62, "f32": 1.5, "f64": 0.1, "flag": True, "text": "zürich 🚲",
        "data": base64.b64encode(b"\x00\xff").decode(), "maybe": None, "amount": base64_of(12345), "day": 19675,
        "clock": 3_600_001, "at": 1_700_000_000_123, "inner": {"n": 1, "deep": {"t": None}}, "list": [3, 1, 2],
        "by_name": {"a": 1, "b": None},
    },
    {
        "i8": 127, "i16": -32768, "i32": 5, "i64": -(1 << 62), "f32": -0.25, "f64": 1e300, "flag": False, "text": "",
        "data": "", "maybe": "there", "amount": base64_of(-1), "day": -1, "clock": 0, "at": -1,
        "inner": {"n": 2, "deep": {"t": "x"}}, "list": [], "by_name": {},
    },
]  # fmt: skip
TYPED: list[dict[str, Any]] = [
    {
        **PAYLOADS[0], "data": b"\x00\xff", "amount": Decimal("123.45"), "day": dt.date(2023, 11, 14),
        "clock": dt.time(1, 0, 0, 1000), "at": dt.datetime(2023, 11, 14, 22, 13, 20, 123000, UTC),
    },
    {
        **PAYLOADS[1], "data": b"", "amount": Decimal("-0.01"), "day": dt.date(1969, 12, 31), "clock": dt.time(0),
        "at": dt.datetime(1969, 12, 31, 23, 59, 59, 999000, UTC),
    },
]  # fmt: skip


@pytest.fixture
def typed_topic(make_topic, produce):
    """A topic of two messages with every type of Connect."""
    topic = make_topic()
    produce(topic, [(0, None, envelope(ALL_TYPES, payload)) for payload in PAYLOADS])
    return topic


@pytest.mark.parametrize("level", ["-1", "0", "1", "5", "9"])
def test_schemaless_json_gzipped_at_any_level_holds_the_same_lines(make_topic, produce, make_sink, level):
    topic = make_topic()
    values = [{"n": n, "text": "ä" * 50, "list": [1, None, {"x": 1.5}]} for n in range(300)]
    produce(topic, [(0, None, json.dumps(v)) for v in values])
    sink = make_sink(topic, **{"s3.compression.type": "gzip", "s3.compression.level": level})

    sink.run()

    (key,) = sink.keys()
    assert key == f"topics/{topic}/partition=0/{topic}+0+0000000000.json.gz"
    stored = raw(sink, key)
    assert records(sink) == values
    assert (len(stored) > len(gzip.decompress(stored))) == (level == "0")
    head = sink.s3.client().head_object(Bucket=sink.bucket, Key=key)
    assert (head["ContentType"], head["ContentEncoding"]) == ("application/json", "gzip")


def test_schemaless_json_of_every_shape_is_one_document_per_line(make_topic, produce, make_sink):
    topic = make_topic()
    values = [{"a": {"b": []}}, [1, 2], "text\nwith line", 5, 1.25, True, {"": "\u2028"}, 1 << 62]
    produce(topic, [(0, None, json.dumps(v)) for v in values])
    sink = make_sink(topic)

    sink.run()

    assert contents(sink) == {f"topics/{topic}/partition=0/{topic}+0+0000000000.json": values}


@pytest.mark.parametrize(("decimals", "amounts"), [("BASE64", None), ("NUMERIC", [123.45, -0.01])])
def test_values_with_schemas_become_json_as_json_converter_writes_it(typed_topic, make_sink, decimals, amounts):
    sink = make_sink(typed_topic, **WITH_SCHEMAS, **{"json.decimal.format": decimals})

    sink.run()

    expected = PAYLOADS if amounts is None else [{**p, "amount": a} for p, a in zip(PAYLOADS, amounts, strict=True)]
    assert records(sink) == expected


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "bzip2"])
def test_values_with_schemas_become_avro_with_every_codec(typed_topic, make_sink, codec):
    sink = make_sink(typed_topic, **WITH_SCHEMAS, **{"format.class": AVRO_FORMAT, "avro.codec": codec})

    sink.run()

    (key,) = sink.keys()
    found_codec, schema = avro_header(raw(sink, key))
    assert key.endswith("+0+0000000000.avro")
    assert found_codec == codec
    assert (schema["namespace"], schema["name"]) == ("org.example", "AllTypes")
    assert records(sink) == TYPED


@pytest.mark.parametrize(
    ("codec", "extension", "stored"),
    [
        ("none", ".parquet", "UNCOMPRESSED"), ("snappy", ".snappy.parquet", "SNAPPY"),
        ("gzip", ".gz.parquet", "GZIP"), ("brotli", ".br.parquet", "BROTLI"), ("zstd", ".zstd.parquet", "ZSTD"),
        ("lz4", ".lz4hadoop.parquet", "LZ4"), ("lz4_raw", ".lz4raw.parquet", "LZ4"),
        ("uncompressed", ".parquet", "UNCOMPRESSED"),
    ],
)  # fmt: skip
def test_values_with_schemas_become_parquet_with_every_codec(typed_topic, make_sink, codec, extension, stored):
    import io

    import pyarrow.parquet as pq

    sink = make_sink(typed_topic, **WITH_SCHEMAS, **{"format.class": PARQUET_FORMAT, "parquet.codec": codec})

    sink.run()

    (key,) = sink.keys()
    assert key.endswith(f"+0+0000000000{extension}")
    column = pq.ParquetFile(io.BytesIO(raw(sink, key))).metadata.row_group(0).column(3)
    assert column.compression == stored
    assert records(sink) == TYPED


@pytest.mark.parametrize("file_format", [AVRO_FORMAT, PARQUET_FORMAT])
def test_plain_json_with_a_schema_in_the_configuration_becomes_typed(make_topic, produce, make_sink, file_format):
    topic = make_topic()
    schema = struct(("id", "int64"), ("name", "string?"), ("at", logical("Timestamp", "int64")))
    produce(topic, [(0, None, json.dumps({"id": n, "name": None if n else "x", "at": n})) for n in range(3)])
    given = {**WITH_SCHEMAS, "value.converter.schema.content": json.dumps(schema), "format.class": file_format}
    sink = make_sink(topic, **given)

    sink.run()

    epoch = dt.datetime(1970, 1, 1, tzinfo=UTC)
    expected = [{"id": n, "name": None if n else "x", "at": epoch + dt.timedelta(milliseconds=n)} for n in range(3)]
    assert records(sink) == expected


@pytest.mark.parametrize("file_format", [AVRO_FORMAT, PARQUET_FORMAT])
def test_schemaless_json_to_a_typed_format_says_how_to_give_a_schema(make_topic, produce, make_sink, file_format):
    topic = make_topic()
    produce(topic, [(0, None, '{"a": 1}')])
    sink = make_sink(topic, **{"format.class": file_format})

    report = sink.try_run()

    assert report.status == "failed"
    assert report.error["code"] == "data.schemaless"
    assert f"{topic}-0@0" in report.error["message"]
    assert "value.converter.schemas.enable=true" in report.error["suggestion"]
    assert "value.converter.schema.content" in report.error["suggestion"]
    assert (sink.keys(), sink.uploads(), sink.offsets()) == ([], [], {})


@pytest.mark.parametrize(
    ("given", "extension", "separator"),
    [
        ({}, ".bin", b"\n"),
        ({"format.bytearray.extension": ".msg", "format.bytearray.separator": " | "}, ".msg", b" | "),
        ({"format.bytearray.separator": "", "s3.compression.type": "gzip"}, ".bin.gz", b""),
    ],
)
def test_raw_bytes_stay_what_they_are(make_topic, produce, make_sink, given, extension, separator):
    topic = make_topic()
    values = [b"\x00\x01", b"", b"two\nlines", bytes(range(256))]
    produce(topic, [(0, None, value) for value in values])
    sink = make_sink(topic, **{"value.converter": BYTES_CONVERTER, "format.class": BYTES_FORMAT, **given})

    sink.run()

    (key,) = sink.keys()
    assert key == f"topics/{topic}/partition=0/{topic}+0+0000000000{extension}"
    assert sink.body(key) == b"".join(value + separator for value in values)


@pytest.mark.parametrize("file_format", [JSON_FORMAT, AVRO_FORMAT])
def test_string_values_are_written_as_strings(make_topic, produce, make_sink, file_format):
    topic = make_topic()
    values = ["plain", 'with "quotes"', "", "zwei\nZeilen"]
    produce(topic, [(0, None, value) for value in values])
    sink = make_sink(topic, **{"value.converter": STRING_CONVERTER, "format.class": file_format})

    sink.run()

    assert records(sink) == values


@pytest.mark.parametrize(("file_format", "needle"), [(PARQUET_FORMAT, "STRUCT"), (BYTES_FORMAT, "BYTES")])
def test_string_values_are_refused_where_they_cannot_be_written(make_topic, produce, make_sink, file_format, needle):
    topic = make_topic()
    produce(topic, [(0, None, "text")])
    sink = make_sink(topic, **{"value.converter": STRING_CONVERTER, "format.class": file_format})

    report = sink.try_run()

    assert report.status == "failed"
    assert needle in report.error["message"].upper()
    assert f"{topic}-0@0" in report.error["message"]
    assert report.error["suggestion"]


def test_avro_schema_details_follow_their_three_keys(make_topic, produce, make_sink):
    topic = make_topic()
    entries = {"type": "map", "optional": False, "keys": {"type": "string", "optional": True},
               "values": {"type": "int32", "optional": False}}  # fmt: skip
    schema = struct(("m", entries), ("small", "int8"), name="r", version=7)
    produce(topic, [(0, None, envelope(schema, {"m": {"a": 1}, "small": 1}))])
    found: dict[str, dict[str, Any]] = {}
    for name, given in {
        "plain": {},
        "bare": {"connect.meta.data": "false"},
        "maps": {"allow.optional.map.keys": "true"},
        "old": {"enhanced.avro.schema.support": "false"},
    }.items():
        sink = make_sink(topic, **WITH_SCHEMAS, **{"format.class": AVRO_FORMAT, "topics.dir": name}, **given)
        sink.run()
        key = f"{name}/{topic}/partition=0/{topic}+0+0000000000.avro"
        found[name] = avro_header(raw(sink, key))[1]

    assert found["plain"]["connect.version"] == 7
    assert "connect.version" not in found["bare"]
    fields = {name: {f["name"]: f["type"] for f in schema["fields"]} for name, schema in found.items()}
    assert fields["plain"]["m"]["type"] == "array"
    assert fields["maps"]["m"]["type"] == "map"
    assert fields["plain"]["small"]["connect.type"] == "int8"
    assert fields["old"]["small"]["type"] == "int"


@pytest.mark.parametrize("file_format", [AVRO_FORMAT, PARQUET_FORMAT])
def test_text_that_no_encoding_can_hold_fails_the_run_and_leaves_nothing(make_topic, produce, make_sink, file_format):
    topic = make_topic()
    schema = struct(("n", "int32"), ("text", "string"))
    produce(topic, [(0, None, envelope(schema, {"n": n, "text": t})) for n, t in enumerate(["fine", "\ud800"])])
    sink = make_sink(topic, **WITH_SCHEMAS, **{"format.class": file_format})

    report = sink.try_run()

    assert (report.status, report.error["code"]) == ("failed", "data.mismatch")
    assert f"{topic}-0@1 failed in TASK_PUT" in report.error["message"]
    assert "field text contains half of a surrogate pair" in report.error["message"]
    assert (sink.keys(), sink.uploads(), sink.offsets()) == ([], [], {})
