"""Numbers, tables and sentences for people."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.documentation import error_url
from airflow_connect.documents.run import Plan, RunReport, TaskPlan
from airflow_connect.runtime.reporting.presentation import (
    EventLines,
    error_lines,
    plan_table,
    progress_line,
    report_line,
)
from airflow_connect.runtime.reporting.texts import format_bytes, format_seconds, plural


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (99_400, "99.4 kB"),
        (123_456, "123 kB"),
        (999_600, "1.0 MB"),
        (1_500_000_000, "1.5 GB"),
        (5e15, "5000 TB"),
    ],
)
def test_bytes(size: float, text: str) -> None:
    assert format_bytes(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.149, "0.15 s"),
        (1, "1.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 00 s"),
        (245, "4 min 05 s"),
        (7800, "2 h 10 min"),
    ],
)
def test_seconds(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


def test_plural() -> None:
    assert [plural(n, "file") for n in (0, 1, 2000)] == ["0 files", "1 file", "2,000 files"]


def plan(partitions: int, topics: tuple[str, ...] = ("t",)) -> Plan:
    ranges = [OffsetRange(topic, p, 1000 * p, 1000 * p + 10) for topic in topics for p in range(partitions)]
    tasks = tuple(TaskPlan(n, tuple(ranges[n::2])) for n in range(2))
    return Plan("c", "r", 0, tasks)


def test_plan_of_few_partitions_has_a_line_for_each() -> None:
    assert plan_table(plan(3)) == [
        "TOPIC  PARTITION  START    END  RECORDS  TASK",
        "t              0      0     10       10     0",
        "t              1  1,000  1,010       10     1",
        "t              2  2,000  2,010       10     0",
        "Up to 30 records of 3 partitions in 2 tasks.",
    ]


def test_plan_of_many_partitions_has_a_line_for_each_topic() -> None:
    assert plan_table(plan(1500, ("a", "b"))) == [
        "TOPIC  PARTITIONS  RECORDS  TASKS",
        "a           1,500   15,000      2",
        "b           1,500   15,000      2",
        "Up to 30,000 records of 3,000 partitions in 2 tasks.",
    ]


def test_empty_plan_says_so() -> None:
    assert plan_table(Plan("c", "r", 0, ())) == ["Nothing to copy."]


def report(**fields: Any) -> RunReport:
    return RunReport(**{"connector": "c", "run_id": "r", "status": "done", "started_ms": 0, "ended_ms": 150, **fields})


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (report(records=1, files=1, size_bytes=10), "c: 1 record in 1 file, 10 B, 0.15 s, exactly_once."),
        (
            report(records=5, files=2, filtered=1, dead_lettered=2, left=3),
            "c: 5 records in 2 files, 0 B, 1 filtered, 2 dead-lettered, 3 left for the next run, 0.15 s, exactly_once.",
        ),
        (report(records=5), "c: 5 records, 0.15 s, exactly_once."),
        (report(status="empty"), "c: nothing to copy, 0.15 s."),
        (report(status="empty", recovered_run_id="q"), "c: nothing to copy, 0.15 s. Run q was finished first."),
        (report(status="failed", connector=""), "The connector failed after 0.15 s."),
    ],
    ids=["done", "all-counts", "no files", "empty", "recovered", "failed"],
)
def test_report_is_one_sentence(given: RunReport, text: str) -> None:
    assert report_line(given) == text


def test_progress_line_has_share_size_and_speed() -> None:
    event = {"event": "progress", "phase": "copy", "done": 4900, "total": 12000, "bytes": 1_200_000, "seconds": 0.1}
    assert progress_line(event) == "copy 40%: 4,900 of 12,000 records, 1.2 MB, 49,000 records/s"


def test_progress_line_without_size_and_time() -> None:
    assert progress_line({"event": "progress", "phase": "publish", "done": 0, "total": 1}) == "publish 0%: 0 of 1 file"


def test_error_lines_leave_out_what_is_not_known() -> None:
    error = {"code": "a.b", "message": "Bad.", "suggestion": "", "configPath": ""}
    assert error_lines(error) == ["✗ a.b", "  Bad.", f"  {error_url('a.b')}"]


def test_error_lines_escape_control_characters() -> None:
    error = {"code": "a.b", "message": "/a\x1b[2J\rb is bad.", "suggestion": "Rename /a\x1b."}
    assert error_lines(error)[1:3] == ["  /a\\x1b[2J\\x0db is bad.", "  → Rename /a\\x1b."]


def test_progress_is_written_every_ten_seconds_only() -> None:
    now = [0.0]
    lines: list[str] = []
    hear = EventLines(lines.append, lambda: now[0])
    hear({"event": "phase", "phase": "copy"})
    for second in range(31):
        now[0] = float(second)
        hear({"event": "progress", "phase": "copy", "done": second, "total": 100})
    assert lines == [
        "copy ...",
        "copy 10%: 10 of 100 records",
        "copy 20%: 20 of 100 records",
        "copy 30%: 30 of 100 records",
    ]


def test_last_progress_of_a_phase_is_written_once() -> None:
    lines: list[str] = []
    hear = EventLines(lines.append, lambda: 0.0)
    hear({"event": "phase", "phase": "copy"})
    hear({"event": "progress", "phase": "copy", "done": 40, "total": 100})
    hear({"event": "progress", "phase": "copy", "done": 100, "total": 100})
    hear({"event": "phase", "phase": "audit"})
    hear({"event": "phase", "phase": "publish"})
    assert lines == ["copy ...", "copy 100%: 100 of 100 records", "audit ...", "publish ..."]
