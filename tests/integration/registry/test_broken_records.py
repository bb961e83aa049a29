"""Broken Avro messages through whole runs: named, or alone in the dead letter queue; and a registry that is away."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from tests.integration.connectors.files.s3.objects import AVRO_FORMAT, JSON_FORMAT, PARQUET_FORMAT, records
from tests.integration.registry.avro_messages import message
from tests.integration.runtime.sink.failures.test_errors import TOLERANT, read_all
from tests.support.copies.s3 import InProcessEngine

pytestmark = pytest.mark.integration

AVRO_CONVERTER = "io.confluent.connect.avro.AvroConverter"
ORDER = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "OLD"]}},
    ],
}


def order(schema_id, n):
    return message(schema_id, ORDER, {"id": n, "name": f"order {n}", "note": None, "kind": "OLD"})


def broken_messages(schema_id, schema_id_of_others):
    """Messages that are not what their schema says, by name. An order begins with id, length of the name, name."""
    start = b"\0" + schema_id.to_bytes(4, "big")
    whole = order(schema_id, 7)
    return {
        "nothing": b"",
        "magic byte alone": b"\0",
        "half a schema id": start[:3],
        "schema id alone": start,
        "wrong magic byte": b"\x07" + whole[1:],
        "JSON": b'{"id": 7}',
        "unknown schema id": b"\0\x7f\xff\xff\xff" + whole[5:],
        "schema of others": b"\0" + schema_id_of_others.to_bytes(4, "big") + whole[5:],
        "truncated in the name": whole[:8],
        "truncated before the last field": whole[:-1],
        "bytes behind the end": whole + b"more",
        "name of negative length": start + b"\x0e\x03abc\x00\x00",
        "name longer than memory": start + b"\x0e" + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f" + b"abc",
        "number without end": start + b"\xff" * 40,
        "branch that the union does not have": start + b"\x0e\x02a\x08\x00",
        "symbol that the enum does not have": start + b"\x0e\x02a\x00\x0a",
    }


class RecordByRecord(InProcessEngine):
    """Without the columnar path."""

    def run(self, settings, tasks):
        return super().run(replace(settings, columnar=False), tasks)


@pytest.fixture(params=["in columns", "record by record"])
def engine(request):
    return InProcessEngine() if request.param == "in columns" else RecordByRecord()


@pytest.fixture
def mixed(make_topic, produce, make_sink, schema_registry, unique_name, engine):
    """`(format) -> sink, broken messages by name, their offsets`: each one between orders."""

    def make(file_format):
        topic = make_topic()
        schema_id = schema_registry.register(f"{topic}-value", ORDER)
        others = schema_registry.register(f"{topic}-other", {"type": "record", "name": "O", "fields": [
            {"name": "text", "type": {"type": "array", "items": "string"}}]})  # fmt: skip
        broken = broken_messages(schema_id, others)
        rows, offsets = [], {}
        for n, (name, data) in enumerate(broken.items()):
            rows.append((0, "good", order(schema_id, n)))
            offsets[name] = len(rows)
            rows.append((0, name, data))
        rows += [(0, "good", order(schema_id, n)) for n in range(len(broken), 39)]
        # Text that is not UTF-8 is no error to Java's Avro: each bad byte becomes U+FFFD.
        rows.append((0, "good", b"\0" + schema_id.to_bytes(4, "big") + b"\x4e\x04\xff\xfe\x00\x00"))
        produce(topic, rows)
        sink = make_sink(
            topic,
            format_class=file_format,
            value_converter=AVRO_CONVERTER,
            value_converter_schema_registry_url=schema_registry.url,
            errors_deadletterqueue_topic_name=f"{unique_name}-dlq",
            errors_deadletterqueue_topic_replication_factor="1",
        )
        sink.engine = engine
        return sink, broken, offsets

    return make


@pytest.mark.parametrize("file_format", [PARQUET_FORMAT, AVRO_FORMAT, JSON_FORMAT])
def test_tolerated_broken_messages_are_dead_letters_and_their_neighbours_arrive(mixed, file_format):
    sink, broken, offsets = mixed(file_format)

    report = sink.run(**TOLERANT)

    letters = read_all(sink.kafka.bootstrap, sink.config["errors.deadletterqueue.topic.name"])
    assert [(m.key().decode(), m.value()) for m in letters] == list(broken.items())
    for letter in letters:
        told = {header: value.decode() for header, value in letter.headers()}
        assert told["__connect.errors.offset"] == str(offsets[letter.key().decode()])
        assert (told["__connect.errors.stage"], told["__connect.errors.class.name"]) == (
            "VALUE_CONVERTER", AVRO_CONVERTER
        )  # fmt: skip
    assert (report.records, report.dead_lettered, report.filtered) == (40, len(broken), 0)
    names = {row["id"]: row["name"] for row in records(sink)}
    assert names == {**{n: f"order {n}" for n in range(39)}, 39: "\ufffd\ufffd"}
    assert sink.uploads() == []


def test_untolerated_broken_message_is_named_and_nothing_is_visible_or_lost(mixed):
    sink, _, offsets = mixed(PARQUET_FORMAT)
    for name, offset in offsets.items():
        sink.set_offsets({0: offset - 1})

        report = sink.try_run(run_max_records="2")

        message_text = report.error["message"]
        assert report.status == "failed", name
        assert f"The record at {sink.topic}-0@{offset} failed in VALUE_CONVERTER: " in message_text, (
            name,
            message_text,
        )
        assert not report.error["retriable"], name
        assert len(message_text) < 1000, name
        assert sink.offsets() == {0: offset - 1}, name
    assert (sink.keys(), sink.uploads()) == ([], [])


def test_registry_that_is_away_makes_no_dead_letters(mixed):
    sink, _, _ = mixed(PARQUET_FORMAT)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    away = sink.try_run(
        **TOLERANT,
        value_converter_schema_registry_url=f"http://127.0.0.1:{port}",
        errors_retry_timeout="200",
        errors_retry_delay_max_ms="50",
    )

    assert (away.error["type"], away.error["retriable"]) == ("UnavailableError", True)
    assert f"{sink.topic}-0@0 failed in VALUE_CONVERTER" in away.error["message"]
    assert (sink.keys(), sink.offsets()) == ([], {})
    assert read_all(sink.kafka.bootstrap, sink.config["errors.deadletterqueue.topic.name"]) == []
    assert sink.run(**TOLERANT).records == 40
