"""Where files end on the real servers, as tables: records in, objects out."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.integration.connectors.files.s3.files.slow_writer import Row, SlowWriter, expected_keys
from tests.integration.connectors.files.s3.objects import WITH_SCHEMAS, contents, envelope, struct

pytestmark = pytest.mark.integration

BASE = round(dt.datetime(2024, 5, 6, 12, tzinfo=dt.UTC).timestamp() * 1000)
MINUTE = 60_000
HOURLY = {
    "partitioner.class": "io.confluent.connect.storage.partitioner.HourlyPartitioner", "locale": "en-US",
    "timezone": "UTC", "timestamp.extractor": "Record",
}  # fmt: skip
NOON, ONE = "year=2024/month=05/day=06/hour=12", "year=2024/month=05/day=06/hour=13"


def numbers(topic: str, objects: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """`directory@start` to the field `n` of the records."""
    found = {}
    for key, rows in objects.items():
        directory, _, name = key.removeprefix(f"topics/{topic}/").rpartition("/")
        start = int(name.removeprefix(f"{topic}+0+").partition(".")[0])
        found[f"{directory}@{start}"] = [row["n"] for row in rows]
    return found


BY_SIZE = [
    ({"flush.size": "3"}, {"partition=0@0": [0, 1, 2], "partition=0@3": [3, 4, 5], "partition=0@6": [6]}),
    ({"flush.size": "1"}, {f"partition=0@{n}": [n] for n in range(7)}),
    ({"flush.size": "0"}, {f"partition=0@{n}": [n] for n in range(7)}),
    # Time does not count without a time based partitioner.
    ({"flush.size": "9", "rotate.interval.ms": "1"}, {"partition=0@0": [0, 1, 2, 3, 4, 5, 6]}),
]


@pytest.mark.parametrize(("given", "expected"), BY_SIZE)
def test_size_ends_files(make_topic, produce, make_sink, given, expected):
    topic = make_topic()
    produce(topic, [(0, None, json.dumps({"n": n}), BASE + n * MINUTE) for n in range(7)])
    sink = make_sink(topic, **given)

    sink.run()

    assert numbers(topic, contents(sink)) == expected


BY_TIME = [
    # The interval runs from the first record of the topic-partition's files.
    ([0, 4, 5, 9, 10], {"rotate.interval.ms": "300000"}, {f"{NOON}@0": [0, 1], f"{NOON}@2": [2, 3], f"{NOON}@4": [4]}),
    # Late records never end files.
    ([10, 0, 12, 1, 15], {"rotate.interval.ms": "300000"}, {f"{NOON}@0": [0, 1, 2, 3], f"{NOON}@4": [4]}),
    # A late record that comes first makes the next normal one end its file.
    ([0, 20, 21], {"rotate.interval.ms": "300000"}, {f"{NOON}@0": [0], f"{NOON}@1": [1, 2]}),
    # A change of directory ends files, back and forth.
    ([59, 60, 58, 61], {"rotate.interval.ms": "900000"},
     {f"{NOON}@0": [0], f"{ONE}@1": [1], f"{NOON}@2": [2], f"{ONE}@3": [3]}),
    ([59, 60, 58, 61], {"rotate.interval.ms": "900000", "rotate.file.on.partition.change": "false"},
     {f"{NOON}@0": [0, 2], f"{ONE}@1": [1, 3]}),
    # Without an interval directories may alternate.
    ([59, 60, 58, 61], {}, {f"{NOON}@0": [0, 2], f"{ONE}@1": [1, 3]}),
    # flush.size counts all directories of the topic-partition together.
    ([59, 60, 58, 61], {"flush.size": "3"}, {f"{NOON}@0": [0, 2], f"{ONE}@1": [1], f"{ONE}@3": [3]}),
    ([59, 60, 58, 61], {"partitioner.max.open.files": "1"},
     {f"{NOON}@0": [0], f"{ONE}@1": [1], f"{NOON}@2": [2], f"{ONE}@3": [3]}),
]  # fmt: skip


@pytest.mark.parametrize(("minutes", "given", "expected"), BY_TIME)
def test_record_time_ends_files(make_topic, produce, make_sink, minutes, given, expected):
    topic = make_topic()
    produce(topic, [(0, None, json.dumps({"n": n}), BASE + m * MINUTE) for n, m in enumerate(minutes)])
    sink = make_sink(topic, **HOURLY, **given)

    sink.run()

    assert numbers(topic, contents(sink)) == expected


def versioned(version: int | None, **fields: str) -> dict[str, Any]:
    given = {} if version is None else {"version": version}
    return struct(("n", "int32"), *fields.items(), **given)


V1, V2 = versioned(1, old="string?"), versioned(2, old="string?", new="string?")
ROW1, ROW2 = {"n", "old"}, {"n", "old", "new"}
BY_SCHEMA = [
    # (mode, schemas, objects, fields of each record)
    ("NONE", [V1, V1, V2, V1], [[0, 1], [2], [3]], [ROW1, ROW1, ROW2, ROW1]),
    # Newer ends the file, older is projected to the newer schema.
    ("BACKWARD", [V1, V2, V1, V2], [[0], [1, 2, 3]], [ROW1, ROW2, ROW2, ROW2]),
    ("FULL", [V1, V2, V1, V2], [[0], [1, 2, 3]], [ROW1, ROW2, ROW2, ROW2]),
    # Older ends the file, newer is projected to the older schema.
    ("FORWARD", [V2, V1, V2, V1], [[0], [1, 2, 3]], [ROW2, ROW1, ROW1, ROW1]),
]


@pytest.mark.parametrize(("mode", "schemas", "objects", "fields"), BY_SCHEMA)
def test_schema_changes_end_files_or_are_projected(make_topic, produce, make_sink, mode, schemas, objects, fields):
    topic = make_topic()
    rows = [
        {member["field"]: n if member["field"] == "n" else f"{member['field']}{n}" for member in schema["fields"]}
        for n, schema in enumerate(schemas)
    ]
    produce(topic, [(0, None, envelope(schema, row)) for schema, row in zip(schemas, rows, strict=True)])
    for name in ("json.JsonFormat", "avro.AvroFormat", "parquet.ParquetFormat"):
        format_class = f"io.confluent.connect.s3.format.{name}"
        sink = make_sink(
            topic, **WITH_SCHEMAS, **{"schema.compatibility": mode, "format.class": format_class, "topics.dir": name}
        )
        sink.run()
        found = list(contents(sink, f"{name}/").values())
        wanted = [{field: row.get(field) for field in kept} for row, kept in zip(rows, fields, strict=True)]
        assert found == [[wanted[n] for n in numbers_of] for numbers_of in objects]


def test_compatibility_without_versions_fails_and_says_so(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, [(0, None, envelope(versioned(None), {"n": 1}))])
    sink = make_sink(topic, **WITH_SCHEMAS, **{"schema.compatibility": "BACKWARD"})

    report = sink.try_run()

    assert report.status == "failed"
    assert "Schema version required for BACKWARD compatibility" in report.error["message"]
    assert f"{topic}-0@0" in report.error["message"]


def test_switch_between_values_with_and_without_schema_ends_files(make_topic, produce, make_sink):
    topic = make_topic()
    with_schema = envelope(versioned(1), {"n": 1})
    without = json.dumps({"schema": None, "payload": {"n": 2}})
    produce(topic, [(0, None, value) for value in (with_schema, without, without, with_schema)])
    sink = make_sink(topic, **WITH_SCHEMAS)

    sink.run()

    assert numbers(topic, contents(sink)) == {"partition=0@0": [1], "partition=0@1": [2, 2], "partition=0@3": [1]}


def minutes_of_a_day() -> Sequence[int]:
    """Mostly forward, with late ones; gaps over an hour; starts late."""
    times = [30, *range(0, 50, 3), 47, 62, 61, 60, 59, 64, 200, 201, 190, 202]
    return [*times, *(300 + n // 2 for n in range(30)), 299, 361]


def test_runs_that_leave_unfilled_files_make_the_objects_of_one_long_running_sink(make_topic, produce, make_sink):
    topic = make_topic()
    minutes = minutes_of_a_day()
    settings = {"flush.size": "7", "rotate.interval.ms": "600000", "flush.on.end": "false"}
    sink = make_sink(topic, **HOURLY, **settings)
    committed = []
    for start in range(0, len(minutes), 9):
        part = range(start, min(start + 9, len(minutes)))
        produce(topic, [(0, None, json.dumps(n), BASE + minutes[n] * MINUTE) for n in part])
        sink.run()
        committed.append(sink.offsets().get(0, 0))

    rows = [
        Row(n, BASE + m * MINUTE, f"year=2024/month=05/day=06/hour={12 + m // 60:02d}") for n, m in enumerate(minutes)
    ]
    slow = SlowWriter(7, 600_000, time_based=True)
    expected = expected_keys(slow.copy(rows), topic, 0)

    assert contents(sink) == expected
    assert committed == sorted(committed)
    assert committed[-1] == sum(map(len, expected.values())) < len(minutes)
    assert sink.uploads() == []


def test_one_run_and_many_runs_end_the_same_files(make_topic, produce, make_sink):
    topic = make_topic()
    minutes = minutes_of_a_day()
    produce(topic, [(0, None, json.dumps(n), BASE + m * MINUTE) for n, m in enumerate(minutes)])
    settings = {**HOURLY, "flush.size": "5", "rotate.interval.ms": "900000", "flush.on.end": "false"}
    whole = make_sink(topic, **settings)
    whole.run()
    parts = make_sink(topic, **settings, **{"topics.dir": "parts"})
    for _ in range(10):
        # More than a file fits: a run that commits nothing would meet the same records again.
        parts.run(**{"run.max.records": "13"})

    assert parts.offsets() == whole.offsets()
    expected = {key.replace("topics/", "parts/", 1): rows for key, rows in contents(whole, "topics/").items()}
    assert contents(parts, "parts/") == expected


def test_schedule_publishes_unfilled_files_once_its_time_has_come(make_topic, produce, make_sink):
    topic = make_topic()
    schedule = {"rotate.schedule.interval.ms": "86400000", "timezone": "UTC", "flush.on.end": "false"}
    sink = make_sink(topic, **schedule)
    produce(topic, [(0, None, '{"n": 0}')])
    sink.run()
    assert (sink.keys(), sink.offsets()) == ([], {0: 0})

    produce(topic, [(0, None, '{"n": 1}')])
    sink.run(**{"rotate.schedule.interval.ms": "1"})

    assert numbers(topic, contents(sink)) == {"partition=0@0": [0, 1]}
    assert sink.offsets() == {0: 2}
