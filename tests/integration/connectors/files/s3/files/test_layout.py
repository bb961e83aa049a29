"""Names of directories and objects on the real servers: partitioners, extractors, zones, delimiters."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from tests.integration.connectors.files.s3.objects import WITH_SCHEMAS, contents, envelope, logical, struct

pytestmark = pytest.mark.integration

PARTITIONER = "io.confluent.connect.storage.partitioner."
BY_FIELD = {**WITH_SCHEMAS, "partitioner.class": f"{PARTITIONER}FieldPartitioner"}


def time_based(path: str = "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH", **given: str) -> dict[str, str]:
    return {
        "partitioner.class": f"{PARTITIONER}TimeBasedPartitioner", "path.format": path, "locale": "en-US",
        "partition.duration.ms": "3600000", "timezone": "UTC", "timestamp.extractor": "Record", **given,
    }  # fmt: skip


def instant(text: str) -> int:
    return round(dt.datetime.fromisoformat(text).timestamp() * 1000)


def directories(sink: Any) -> dict[str, list[Any]]:
    """Directory below the topic's own to the field `n` of its records."""
    found: dict[str, list[Any]] = {}
    prefix = f"topics/{sink.topic}/"
    for key, rows in contents(sink).items():
        assert key.startswith(prefix)
        found.setdefault(key.removeprefix(prefix).rpartition("/")[0], []).extend(row["n"] for row in rows)
    return found


def test_default_partitioner_and_all_parts_of_names_follow_their_keys(make_topic, produce, make_sink):
    topic = make_topic(partitions=2)
    produce(topic, [(n % 2, None, json.dumps(n)) for n in range(6)])
    settings = {
        "": {},
        "blank": {"topics.dir": ""},
        "deep": {"topics.dir": "deep/er"},
        "delimiters": {"topics.dir": "delimiters", "directory.delim": "~", "file.delim": "--"},
        "narrow": {"topics.dir": "narrow", "filename.offset.zero.pad.width": "0", "flush.size": "2"},
        "wide": {"topics.dir": "wide", "filename.offset.zero.pad.width": "20"},
    }
    for given in settings.values():
        sink = make_sink(topic, **given)
        sink.run()

    assert contents(sink) == {
        f"topics/{topic}/partition=0/{topic}+0+0000000000.json": [0, 2, 4],
        f"topics/{topic}/partition=1/{topic}+1+0000000000.json": [1, 3, 5],
        f"{topic}/partition=0/{topic}+0+0000000000.json": [0, 2, 4],
        f"{topic}/partition=1/{topic}+1+0000000000.json": [1, 3, 5],
        f"deep/er/{topic}/partition=0/{topic}+0+0000000000.json": [0, 2, 4],
        f"deep/er/{topic}/partition=1/{topic}+1+0000000000.json": [1, 3, 5],
        f"delimiters~{topic}~partition=0~{topic}--0--0000000000.json": [0, 2, 4],
        f"delimiters~{topic}~partition=1~{topic}--1--0000000000.json": [1, 3, 5],
        f"narrow/{topic}/partition=0/{topic}+0+0.json": [0, 2],
        f"narrow/{topic}/partition=0/{topic}+0+2.json": [4],
        f"narrow/{topic}/partition=1/{topic}+1+0.json": [1, 3],
        f"narrow/{topic}/partition=1/{topic}+1+2.json": [5],
        f"wide/{topic}/partition=0/{topic}+0+{0:020d}.json": [0, 2, 4],
        f"wide/{topic}/partition=1/{topic}+1+{0:020d}.json": [1, 3, 5],
    }


HARMLESS = ["Zürich", "a b", "100%", "%20", "x=y", "a+b", "...", "日本", "'quoted'", "tilde~", "", "a.b", "C:"]
HARMFUL = {
    "a/b": "a%2Fb", "../../up": "..%2F..%2Fup", "..": "%2E%2E", ".": "%2E", "back\\slash": "back%5Cslash",
    "new\nline": "new%0Aline", "nul\x00": "nul%00", "del\x7f": "del%7F", "c1\x85": "c1%C2%85", "%2F": "%252F",
}  # fmt: skip


def test_field_values_stay_verbatim_unless_they_could_leave_their_directory(make_topic, produce, make_sink):
    topic = make_topic()
    schema = struct(("n", "int32"), ("city", "string?"))
    values = [*HARMLESS, *HARMFUL, None]
    produce(topic, [(0, None, envelope(schema, {"n": n, "city": v})) for n, v in enumerate(values)])
    sink = make_sink(topic, **BY_FIELD, **{"partition.field.name": "city"})

    sink.run()

    names = [*HARMLESS, *HARMFUL.values(), "null"]
    assert directories(sink) == {f"city={name}": [n] for n, name in enumerate(names)}


def test_fields_nested_and_several_of_every_type_name_directories(make_topic, produce, make_sink):
    topic = make_topic()
    place = {**struct(("zip", "int16"), ("country", "string?"), name="place"), "optional": True}
    schema = struct(("n", "int32"), ("ok", "boolean"), ("big", "int64"), ("place", place))
    rows = [
        {"n": 0, "ok": True, "big": 1 << 60, "place": {"zip": 8001, "country": "CH"}},
        {"n": 1, "ok": False, "big": -1, "place": {"zip": -1, "country": None}},
        {"n": 2, "ok": False, "big": -1, "place": None},
        {"n": 3, "ok": True, "big": 1 << 60, "place": {"zip": 8001, "country": "CH"}},
    ]
    produce(topic, [(0, None, envelope(schema, row)) for row in rows])
    sink = make_sink(topic, **BY_FIELD, **{"partition.field.name": "place.country,place.zip, ok,big"})

    sink.run()

    assert directories(sink) == {
        f"place.country=CH/place.zip=8001/ok=true/big={1 << 60}": [0, 3],
        "place.country=null/place.zip=-1/ok=false/big=-1": [1],
        "place.country=null/place.zip=null/ok=false/big=-1": [2],
    }


@pytest.mark.parametrize(
    ("given", "value", "needle"),
    [
        ({**BY_FIELD, "partition.field.name": "missing"}, {"n": 1, "f": 1.5}, "missing"),
        ({**BY_FIELD, "partition.field.name": "f"}, {"n": 1, "f": 1.5}, "Error encoding partition"),
        ({"partitioner.class": "FieldPartitioner", "partition.field.name": "n"}, None, "not Struct type"),
    ],
)
def test_fields_that_cannot_name_a_directory_fail_with_the_place(make_topic, produce, make_sink, given, value, needle):
    topic = make_topic()
    produce(
        topic, [(0, None, '{"n": 1}' if value is None else envelope(struct(("n", "int32"), ("f", "double")), value))]
    )

    report = make_sink(topic, **given).try_run()

    assert report.status == "failed"
    assert needle in report.error["message"] and f"{topic}-0@0" in report.error["message"]


def test_record_timestamps_name_hours_days_and_texts_of_a_locale(make_topic, produce, make_sink):
    topic = make_topic()
    times = ["2024-02-29T23:59:59.999+00:00", "2024-03-01T00:00:00+00:00", "2024-12-30T12:00:00+00:00"]
    produce(topic, [(0, None, json.dumps({"n": n}), instant(t)) for n, t in enumerate(times)])

    def run(**given: str) -> dict[str, list[int]]:
        name = given.pop("dir")
        sink = make_sink(topic, **given, **{"topics.dir": name})
        sink.run()
        prefix = f"{name}/{topic}/"
        return {
            key.removeprefix(prefix).rpartition("/")[0]: [row["n"] for row in rows]
            for key, rows in contents(sink, prefix).items()
        }

    daily = {"partitioner.class": f"{PARTITIONER}DailyPartitioner", "locale": "en", "timezone": "UTC"}
    hourly = {**daily, "partitioner.class": "HourlyPartitioner"}
    record = {"timestamp.extractor": "Record"}
    assert run(dir="daily", **daily, **record) == {
        "year=2024/month=02/day=29": [0], "year=2024/month=03/day=01": [1], "year=2024/month=12/day=30": [2],
    }  # fmt: skip
    assert list(run(dir="hourly", **hourly, **record)) == [
        "year=2024/month=02/day=29/hour=23", "year=2024/month=03/day=01/hour=00", "year=2024/month=12/day=30/hour=12",
    ]  # fmt: skip
    assert sorted(run(dir="german", **time_based("EEEE/d. MMMM/", locale="de"))) == [
        "Donnerstag/29. Februar", "Freitag/1. März", "Montag/30. Dezember",
    ]  # fmt: skip
    # YYYY is the year of the era, not of the week: 2024-12-30 belongs to the first week of 2025.
    assert run(dir="weeks", **time_based("'y'=YYYY/'w'=xxxx-ww"))["y=2024/w=2025-01"] == [2]
    six = {**time_based(), "partition.duration.ms": "21600000"}
    assert sorted(run(dir="six", **six)) == [
        "year=2024/month=02/day=29/hour=18", "year=2024/month=03/day=01/hour=00", "year=2024/month=12/day=30/hour=12",
    ]  # fmt: skip


def test_daylight_saving_both_folds_share_an_hour_and_the_gap_has_none(make_topic, produce, make_sink):
    topic = make_topic()
    times = [
        "2024-10-26T23:30:00+00:00",  # 01:30 summer time
        "2024-10-27T00:30:00+00:00",  # 02:30 summer time, the first fold
        "2024-10-27T01:30:00+00:00",  # 02:30 winter time, the second fold
        "2024-10-27T02:30:00+00:00",  # 03:30
        "2024-03-31T00:59:59+00:00",  # 01:59:59, the last second before the gap
        "2024-03-31T01:00:00+00:00",  # 03:00:00, right after it
    ]
    produce(topic, [(0, None, json.dumps({"n": n}), instant(t)) for n, t in enumerate(times)])
    sink = make_sink(topic, **time_based("MM-dd'T'HH", timezone="Europe/Zurich"))

    sink.run()

    assert directories(sink) == {
        "10-27T01": [0], "10-27T02": [1, 2], "10-27T03": [3], "03-31T01": [4], "03-31T03": [5],
    }  # fmt: skip


def test_offsets_as_zones_shift_days(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, [(0, None, '{"n": 0}', instant("2024-01-01T22:45:00+00:00"))])
    sink = make_sink(topic, **time_based("YYYY-MM-dd", timezone="+01:30"))

    sink.run()

    assert directories(sink) == {"2024-01-02": [0]}


MOMENT = instant("2024-05-06T07:08:09+00:00")


@pytest.mark.parametrize(
    ("field", "kind", "value", "has_schema"),
    [
        ("ts", "int64", MOMENT, True), ("ts", "int64", MOMENT, False),
        ("ts", "string", "2024-05-06T07:08:09Z", True), ("ts", "string", "2024-05-06T09:08:09.123+02:00", False),
        ("ts", "string", str(MOMENT), True), ("ts", "string", str(MOMENT), False),
        ("ts", logical("Timestamp", "int64"), MOMENT, True),
        ("in.ner.ts", "int64", MOMENT, True), ("in.ner.ts", "string", "2024-05-06T07:08:09Z", False),
    ],
)  # fmt: skip
def test_record_field_timestamps_of_every_type_name_the_hour(
    make_topic, produce, make_sink, field, kind, value, has_schema
):
    schema = {"type": kind, "optional": False} if isinstance(kind, str) else kind
    payload = value
    for name in reversed(field.split(".")):
        schema, payload = struct((name, schema), name=f"s{name}"), {name: payload}
    schema["fields"].append({"field": "n", "type": "int32", "optional": False})
    payload["n"] = 1
    topic = make_topic()
    produce(topic, [(0, None, envelope(schema, payload) if has_schema else json.dumps(payload))])
    given = WITH_SCHEMAS if has_schema else {}
    extractor = {"timestamp.field": field, "timestamp.extractor": "RecordField"}
    sink = make_sink(topic, **given, **time_based(**extractor))

    sink.run()

    assert directories(sink) == {"year=2024/month=05/day=06/hour=07": [1]}


def test_wallclock_names_the_time_of_the_run(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, [(0, None, '{"n": 0}', instant("2001-01-01T00:00:00+00:00"))])
    sink = make_sink(topic, **time_based("YYYY-MM-dd", **{"timestamp.extractor": "Wallclock"}))

    report = sink.run()

    days = {dt.datetime.fromtimestamp(ms / 1000, dt.UTC).date() for ms in (report.started_ms, report.ended_ms)}
    assert directories(sink).keys() <= {str(day) for day in days}
    assert directories(sink)


@pytest.mark.parametrize(
    ("affix", "expected"),
    [
        ("PREFIX", {"schema_name=org.A/partition=0": [0], "schema_name=b%2Fc/partition=0": [1]}),
        ("suffix", {"partition=0/schema_name=org.A": [0], "partition=0/schema_name=b%2Fc": [1]}),
        ("NONE", {"partition=0": [0, 1]}),
    ],
)
def test_schema_names_are_affixed_to_directories(make_topic, produce, make_sink, affix, expected):
    topic = make_topic()
    produce(
        topic, [(0, None, envelope(struct(("n", "int32"), name=s), {"n": n})) for n, s in enumerate(["org.A", "b/c"])]
    )
    sink = make_sink(topic, **WITH_SCHEMAS, **{"s3.schema.partition.affix.type": affix})

    sink.run()

    assert directories(sink) == expected


def test_values_without_schema_have_the_affix_null(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, [(0, None, '{"n": 0}')])
    sink = make_sink(topic, **{"s3.schema.partition.affix.type": "PREFIX"})

    sink.run()

    assert directories(sink) == {"schema_name=null/partition=0": [0]}
