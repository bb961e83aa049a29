"""`files.per.partition=compact` on the real servers: full files in whatever order records come, exactly once."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

import pytest

from airflow_connect.runtime import crash_points
from tests.integration.connectors.files.s3.files.test_rotation import BASE, BY_SCHEMA, HOURLY, MINUTE, numbers
from tests.integration.connectors.files.s3.objects import PARQUET_FORMAT, WITH_SCHEMAS, contents, envelope
from tests.support.steps import Crashed, Steps

pytestmark = pytest.mark.integration

COMPACT = {**HOURLY, "files.per.partition": "compact"}
CUTTING = {"rotate.interval.ms": "60000", "partitioner.max.open.files": "1"}
"""What would cut a file for nearly every record."""


def minute(n: int) -> int:
    """Six hours in order, every fifth record up to five hours late."""
    on_time = 300 + n // 2
    return on_time - n * 7919 % 300 if n % 5 == 0 else on_time


def fill(produce, topic, start: int, stop: int) -> None:
    produce(topic, [(n % 2, None, json.dumps({"n": n}), BASE + minute(n) * MINUTE) for n in range(start, stop)])


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Actions at the named steps of the runs of this test."""
    return Steps(monkeypatch)


def files(sink) -> dict[str, list[list[int]]]:
    """Directory and partition to the records of its files, by start offset."""
    found: dict[str, list[list[int]]] = {}
    for key, rows in contents(sink, "topics/").items():
        found.setdefault(key.rpartition("+")[0], []).append([row["n"] for row in rows])
    return found


def test_late_records_make_as_few_files_as_there_can_be(make_topic, produce, make_sink):
    topic = make_topic(partitions=2)
    sink = make_sink(topic, **COMPACT, **CUTTING, **{"flush.size": "12"})
    by_hour = {"rotate.interval.ms": "3600000", "topics.dir": "classic"}
    classic = make_sink(topic, **HOURLY, **by_hour, **{"flush.size": "12"})
    fill(produce, topic, 0, 200)

    report = sink.run()
    classic.run()

    wanted = Counter(((BASE // MINUTE + minute(n)) // 60, n % 2) for n in range(200))
    found = files(sink)
    assert sorted(map(len, found.values())) == sorted(-(-count // 12) for count in wanted.values())
    for parts in found.values():
        assert all(len(part) == 12 for part in parts[:-1])
        assert all(part == sorted(part) for part in parts)
        assert all(before[0] < after[0] for before, after in pairwise(parts))
    assert sorted(n for parts in found.values() for part in parts for n in part) == [*range(200)]
    keys = sink.keys()
    of_compact = [key for key in keys if key.startswith("topics/")]
    assert len(keys) - len(of_compact) > 2 * len(of_compact)
    assert set(report.ignored_keys) == set(CUTTING)
    assert sink.offsets() == {0: 100, 1: 100}
    assert sink.uploads() == []


def test_limits_end_the_range_and_the_next_run_goes_on_there(make_topic, produce, make_sink):
    topic = make_topic(partitions=2)
    sink = make_sink(topic, **COMPACT, **{"flush.size": "15"})
    fill(produce, topic, 0, 100)

    for _ in range(4):
        sink.run(**{"run.max.records": "30"})

    assert sink.offsets() == {0: 50, 1: 50}
    assert sorted(n for parts in files(sink).values() for part in parts for n in part) == [*range(100)]


@pytest.mark.parametrize(
    ("mode", "objects"),
    [("NONE", [[0, 1, 3], [2]]), ("BACKWARD", [[0], [1, 2, 3]]), ("FULL", [[0], [1, 2, 3]]),
     ("FORWARD", [[0], [1, 2, 3]])],
)  # fmt: skip
def test_schemas_that_alternate_share_files(make_topic, produce, make_sink, mode, objects):
    schemas, fields = next((case[1], case[3]) for case in BY_SCHEMA if case[0] == mode)
    topic = make_topic()
    rows = [{field["field"]: n if field["field"] == "n" else "x" for field in schema["fields"]}
            for n, schema in enumerate(schemas)]  # fmt: skip
    produce(topic, [(0, None, envelope(schema, row)) for schema, row in zip(schemas, rows, strict=True)])
    given = {"files.per.partition": "compact", "schema.compatibility": mode, "format.class": PARQUET_FORMAT}
    sink = make_sink(topic, **WITH_SCHEMAS, **given)

    sink.run()

    found = contents(sink)
    assert [[row["n"] for row in part] for part in found.values()] == objects
    assert [
        set(row) for row in sorted((row for part in found.values() for row in part), key=lambda r: r["n"])
    ] == fields


def test_values_with_and_without_schema_may_alternate(make_topic, produce, make_sink):
    topic = make_topic()
    with_schema = envelope(BY_SCHEMA[0][1][0], {"n": 1, "old": "x"})
    without = json.dumps({"schema": None, "payload": {"n": 2}})
    produce(topic, [(0, None, value) for value in (with_schema, without, without, with_schema)])
    sink = make_sink(topic, **WITH_SCHEMAS, **{"files.per.partition": "compact"})

    sink.run()

    assert numbers(topic, contents(sink)) == {"partition=0@0": [1, 1], "partition=0@1": [2, 2]}


def crash(sink, steps, point, **overrides):
    steps.crash(point, 0)
    with pytest.raises(Crashed):
        sink.try_run(**overrides)


def test_lost_uploads_are_copied_again_equal_also_when_the_configuration_has_changed(
    make_topic, produce, make_sink, steps
):
    topic = make_topic(partitions=2)
    sink = make_sink(topic, **COMPACT, **{"flush.size": "15"})
    fill(produce, topic, 0, 200)
    crash(sink, steps, crash_points.MANIFEST_WRITTEN)
    manifest = sink.view().manifest
    expected = {file.key: file.records for file in manifest.files}
    client = sink.s3.client()
    for upload in client.list_multipart_uploads(Bucket=sink.bucket)["Uploads"][::2]:
        client.abort_multipart_upload(Bucket=sink.bucket, Key=upload["Key"], UploadId=upload["UploadId"])

    sink.run(**{"files.per.partition": "classic", "flush.size": "1000"})

    assert {key: len(rows) for key, rows in contents(sink).items()} == expected
    assert any("copying them again" in warning for warning in sink.warnings())
    assert sorted(n for parts in files(sink).values() for part in parts for n in part) == [*range(200)]
    assert sink.uploads() == []


def test_leaving_records_is_refused_before_anything_is_copied(make_topic, make_sink):
    sink = make_sink(make_topic(), **COMPACT, **{"flush.on.end": "false"})

    with pytest.raises(Exception, match=r"left for the next run, as flush\.on\.end=false requires"):
        sink.run()
