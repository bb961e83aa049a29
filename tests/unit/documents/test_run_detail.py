"""What the history keeps of tasks, partitions and files: bounded, and readable by and from earlier releases."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.api.staging import StagedFile
from airflow_connect.documents.run import PartitionReport, RunReport, TaskReport
from airflow_connect.documents.run_detail import (
    MOST_FILES,
    MOST_PARTITIONS,
    MOST_REASONS,
    ReasonRow,
    RunDetail,
    reason_rows,
)
from airflow_connect.kafka.state.state_documents import PIECE_CHARACTERS


def task_report(task: int = 0, partitions: int = 1, files: int = 1, name: str = "t") -> TaskReport:
    parts = [
        PartitionReport(OffsetRange(name, n, 5, 12), 12, 11, read=6, written=3, filtered=1, dead_lettered=1, left=1)
        for n in range(partitions)
    ]
    staged = [StagedFile(f"topics/{name}/{n}.json", name, n, 5, 11, 3, 42) for n in range(files)]
    timings = {"open": 10, "copy": 200, "upload": 40}
    return TaskReport(task, 1, tuple(parts), tuple(staged), (), timings, "host-1", ended_ms=1_000_250)


def report(detail: RunDetail | None) -> RunReport:
    return RunReport("c", "20261123T010203-abcdef", "done", 1, 2, origin={"dag_id": "d"}, detail=detail)


def test_detail_of_a_run_survives_json() -> None:
    detail = RunDetail.of([task_report(1), task_report(0)], "dlq")
    assert detail is not None
    row = detail.partitions[0]
    assert (row.start, row.end, row.read, row.is_balanced) == (5, 11, 6, True)
    assert [(task.task, task.started_ms, task.ended_ms, task.records) for task in detail.tasks] == [
        (0, 1_000_000, 1_000_250, 6),
        (1, 1_000_000, 1_000_250, 6),
    ]
    assert detail.files[0].key == "topics/t/0.json"
    again = RunReport.from_json(json.loads(json.dumps(report(detail).to_json())))
    assert again.detail == detail
    assert again.origin == {"dag_id": "d"}


def test_a_run_without_tasks_has_no_detail_and_entries_of_earlier_releases_are_read() -> None:
    assert RunDetail.of([]) is None
    written = RunReport("c", "r", "empty", 1, 2).to_json()
    assert "detail" not in written and "origin" not in written  # as earlier releases wrote it
    assert RunReport.from_json(written).detail is None
    task = task_report().to_json()
    del task["ended_ms"]
    assert TaskReport.from_json(task).ended_ms == 0


def test_an_entry_of_a_huge_run_stays_one_record() -> None:
    reports = [task_report(task, 50, 50, "topic-" + "x" * 200) for task in range(300)]
    detail = RunDetail.of(reports, "dlq")
    assert detail is not None
    assert (len(detail.partitions), len(detail.files), detail.all_partitions) == (MOST_PARTITIONS, MOST_FILES, 15_000)
    assert len(json.dumps(report(detail).to_json())) < PIECE_CHARACTERS / 2


def test_reasons_of_failed_records_are_those_of_committed_letters_and_of_skipped_records() -> None:
    letters = tuple({"origin": ["t", 0, n], "reason": ["VALUE_CONVERTER", "data.json_type"]} for n in range(3))
    old = {"origin": ["t", 0, 9]}  # from a manifest of an earlier release
    skipped = (ReasonRow("TRANSFORMATION", "KeyError", 5), ReasonRow("VALUE_CONVERTER", "data.json_type", 1))
    reports = [replace(task_report(0), dead_letters=(*letters, old)), replace(task_report(1), skipped=skipped)]
    detail = RunDetail.of(reports)
    assert detail is not None
    assert detail.reasons == (
        ReasonRow("TRANSFORMATION", "KeyError", 5),
        ReasonRow("VALUE_CONVERTER", "data.json_type", 4),
    )
    assert RunReport.from_json(json.loads(json.dumps(report(detail).to_json()))).detail == detail
    assert TaskReport.from_json(json.loads(json.dumps(reports[1].to_json()))) == reports[1]


def test_many_reasons_are_summed_up_and_no_record_is_left_out() -> None:
    rows = reason_rows(Counter({("TASK_PUT", f"error.{n:03d}"): n + 1 for n in range(50)}))
    assert len(rows) == MOST_REASONS
    assert rows[-1][:2] == ("", "other errors")
    assert sum(row.records for row in rows) == sum(range(1, 51))


def test_releases_that_do_not_know_a_member_of_an_entry_leave_it_out() -> None:
    """As this release does with members of a later one, so earlier ones do with `reasons` and `oldest_ms`."""
    written = report(RunDetail.of([task_report()])).to_json()
    assert "reasons" not in written["detail"]  # without failed records, as earlier releases wrote it
    written["detail"]["later"] = written["later"] = [["x"]]
    assert RunReport.from_json(written) == report(RunDetail.of([task_report()]))
