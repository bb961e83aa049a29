"""The real sink task against a slow simulation of Confluent's writer, object by object, over random runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.record import SinkRecord
from airflow_connect.api.schema import INT64, OPTIONAL_STRING, STRING, Schema, map_of, struct
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.connectors.files.s3.config import S3SinkConfig
from airflow_connect.connectors.files.shared.writing.opening import open_task_plan
from airflow_connect.documents.run import PartitionReport
from tests.integration.connectors.files.s3.fake_store import MemoryStager
from tests.integration.connectors.files.s3.files.slow_writer import Row, SlowWriter, expected_keys, slow_compact_copy
from tests.support.copies.sink_tasks import StagedInMemory, open_runner_of
from tests.support.session.searching import examples

HOUR_MS = 3_600_000
START_MS = 1_700_000_000_000 // HOUR_MS * HOUR_MS
TOPIC = TopicPartition("t", 3)
SCHEMAS: dict[str, Schema] = {
    f"v{version}": struct(
        ("offset", INT64), *((f"f{n}", OPTIONAL_STRING) for n in range(version)), name="row", version=version
    )
    for version in (1, 2, 3)
}
TIME_BASED = {
    "partitioner.class": "io.confluent.connect.storage.partitioner.HourlyPartitioner", "locale": "en-US",
    "timezone": "UTC", "timestamp.extractor": "Record",
}  # fmt: skip


def raw_config(**changes: str) -> dict[str, str]:
    return {
        "name": "sink", "connector.class": "io.confluent.connect.s3.S3SinkConnector", "topics": "t",
        "s3.bucket.name": "bucket", "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead",
        **changes,
    }  # fmt: skip


def hour(timestamp: int) -> str:
    hours = timestamp // HOUR_MS - START_MS // HOUR_MS
    day, of_day = divmod(22 + hours, 24)  # START_MS is 2023-11-14T22:00Z
    return f"year=2023/month=11/day={14 + day}/hour={of_day:02d}"


def sink_record(row: Row) -> SinkRecord:
    schema = None if row.schema is None else SCHEMAS[row.schema]
    value: Any = {"offset": row.offset}
    if row.schema is not None:
        value |= {f"f{n}": "x" for n in range(row.version or 0)}
    return SinkRecord(
        topic="t", partition=3, key_schema=STRING, key="k", value_schema=schema, value=value, offset=row.offset,
        timestamp=None if row.fails else row.timestamp,
    )  # fmt: skip


@cache
def sink_config(raw: frozenset[tuple[str, str]]) -> S3SinkConfig:
    return S3SinkConfig.from_config(dict(raw))


class Runs:
    """Runs one after another over a log, each from the offset that the one before committed."""

    def __init__(self, raw: dict[str, str]) -> None:
        self._context = RoleContext(raw, now_ms=START_MS, flush_on_end=False)
        self._plan = open_task_plan(sink_config(frozenset(raw.items())), self._context)
        self.objects: dict[str, list[int]] = {}
        self.order: list[str] = []
        self.committed = 0
        self.reports: list[PartitionReport] = []

    def run(self, rows: Sequence[Row], end: int) -> None:
        """Copy `[committed, end)`."""
        stager = MemoryStager()
        planned = OffsetRange(TOPIC.topic, TOPIC.partition, self.committed, end)
        task = open_runner_of(StagedInMemory(self._plan, stager), self._context, [planned])
        for row in rows:
            if not self.committed <= row.offset < end:
                continue
            task.put(sink_record(row))
        report = task.report(TOPIC, end, end=None, reason="")
        files = task.staged_files()
        task.close()
        check_accounts(report)
        assert sum(file.records for file in files) == report.written
        for key, body in stager.bodies.items():
            assert key not in self.objects, f"{key} made by two runs"
            self.objects[key] = [json.loads(line)["offset"] for line in body.splitlines()]
            self.order.append(key)
        self.reports.append(report)
        self.committed = report.commit_offset


def check_accounts(report: PartitionReport) -> None:
    accounted = report.written + report.filtered + report.dead_lettered + report.left
    assert report.read == accounted, report
    assert report.range.start <= report.commit_offset <= report.range.end


@st.composite
def logs(draw: st.DrawFn) -> list[Row]:
    """Records with gaps in their offsets, time that goes forward with some late ones, schemas that alternate."""
    schemas = draw(st.sampled_from([[None], ["v1"], ["v1", "v2"], ["v1", "v2", "v3"], [None, "v1"]]))
    rows, offset, now = [], draw(st.integers(0, 3)), START_MS
    for _ in range(draw(st.integers(1, 40))):
        now += draw(st.sampled_from([0, 1, 60_000, 600_000, HOUR_MS]))
        timestamp = now - draw(st.sampled_from([0, 0, 0, 60_000, HOUR_MS]))
        timestamp = max(START_MS, timestamp)
        schema = draw(st.sampled_from(schemas))
        fails = draw(st.sampled_from([False] * 8 + [True]))
        version = None if schema is None else int(schema[1:])
        rows.append(Row(offset, timestamp, hour(timestamp), schema, version, fails))
        offset += draw(st.sampled_from([1, 1, 1, 2]))
    return rows


@given(
    rows=logs(),
    flush_size=st.sampled_from([1, 2, 5, 100]),
    interval=st.sampled_from([-1, 60_000, 900_000, 3 * HOUR_MS]),
    change_rotates=st.booleans(),
    max_open=st.sampled_from([-1, 1, 2]),
    cuts=st.lists(st.integers(1, 80), max_size=6),
)
@settings(max_examples=examples(150), deadline=None)
def test_runs_that_leave_unfilled_files_give_the_objects_of_one_long_running_sink(
    rows: list[Row], flush_size: int, interval: int, change_rotates: bool, max_open: int, cuts: list[int]
) -> None:
    settings = {
        "flush.size": str(flush_size), "rotate.interval.ms": str(interval), "partitioner.max.open.files": str(max_open),
        "rotate.file.on.partition.change": str(change_rotates).lower(),
    }  # fmt: skip
    runs = Runs(raw_config(**TIME_BASED, **settings))
    end = rows[-1].offset + 1
    for cut in [*sorted(cut for cut in cuts if cut < end), end]:
        runs.run(rows, cut)

    slow = SlowWriter(flush_size, interval, time_based=True, change_rotates=change_rotates, max_open=max_open)
    expected = expected_keys(slow.copy(rows), "t", 3)

    assert runs.objects == expected
    assert runs.order == list(expected)


@given(
    rows=logs(),
    flush_size=st.sampled_from([2, 5, 100]),
    mode=st.sampled_from(["NONE", "BACKWARD", "FORWARD", "FULL"]),
    cuts=st.lists(st.integers(1, 80), max_size=4),
)
@settings(max_examples=examples(100), deadline=None)
def test_schema_changes_end_files_where_a_long_running_sink_ends_them(
    rows: list[Row], flush_size: int, mode: str, cuts: list[int]
) -> None:
    rows = [row._replace(directory="partition=3", fails=False) for row in rows]
    runs = Runs(raw_config(**{"flush.size": str(flush_size), "schema.compatibility": mode}))
    end = rows[-1].offset + 1
    for cut in [*sorted(cut for cut in cuts if cut < end), end]:
        runs.run(rows, cut)

    slow = SlowWriter(flush_size, compatibility=mode)

    assert runs.objects == expected_keys(slow.copy(rows), "t", 3)


@given(
    rows=logs(),
    flush_size=st.sampled_from([1, 2, 5, 100]),
    mode=st.sampled_from(["NONE", "BACKWARD", "FORWARD", "FULL"]),
    cuts=st.lists(st.integers(1, 80), max_size=3),
)
@settings(max_examples=examples(100), deadline=None)
def test_compact_files_are_piles_that_each_run_cuts(
    rows: list[Row], flush_size: int, mode: str, cuts: list[int]
) -> None:
    compact = {"files.per.partition": "compact", "flush.size": str(flush_size), "schema.compatibility": mode}
    # None of these ends a file.
    rotation = {"rotate.interval.ms": "60000", "partitioner.max.open.files": "1"}
    runs = Runs(raw_config(**TIME_BASED, **compact, **rotation))
    end, expected = rows[-1].offset + 1, {}
    for start, cut in pairwise([0, *sorted({cut for cut in cuts if cut < end}), end]):
        runs.run(rows, cut)
        part = [row for row in rows if start <= row.offset < cut]
        expected |= expected_keys(slow_compact_copy(part, flush_size, mode), "t", 3)
        assert (runs.committed, runs.reports[-1].left) == (cut, 0)

    assert runs.objects == expected


def test_schemas_of_the_model_are_those_of_the_task() -> None:
    assert [schema.version for schema in SCHEMAS.values()] == [1, 2, 3]
    assert map_of(STRING, INT64) not in SCHEMAS.values()
    assert hour(START_MS + 2 * HOUR_MS) == "year=2023/month=11/day=15/hour=00"
