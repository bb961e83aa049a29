"""Snapshots of tables in the report of a run: bounded, and nothing is left out without a note."""

from __future__ import annotations

import json

from airflow_connect.documents.run import RunReport
from airflow_connect.documents.run_tables import (
    MOST_OFFSETS,
    MOST_TABLES,
    TableCommit,
    distinct,
    kept_in_report,
    notes_on_left_out,
)
from airflow_connect.kafka.state.state_documents import PIECE_CHARACTERS
from airflow_connect.runtime.reporting.presentation import MOST_TABLES as MOST_NAMED
from airflow_connect.runtime.reporting.presentation import table_lines


def commit(number: int, partitions: int = 1) -> TableCommit:
    return TableCommit(
        catalog="iceberg",
        table=f"sales.a_table_with_a_long_name_{number:04d}",
        branch="main",
        snapshot_id=str((1 << 63) - 1 - number),
        run_id="20261123T010203-abcdef",
        rows=10,
        files=2,
        offsets={f"a.topic.with.a.long.name-{n}": (10**12, 10**12 + 1) for n in range(partitions)},
        location="s3://a-bucket-with-a-name/a-warehouse/sales/a_table_with_a_long_name",
    )


def report(*tables: TableCommit) -> RunReport:
    return RunReport("c", "20261123T010203-abcdef", "done", 1, 2, tables=tables)


def test_report_of_a_run_over_very_many_tables_stays_small_and_says_what_it_leaves_out() -> None:
    commits = [commit(number, partitions=9) for number in range(1000)]
    kept = kept_in_report(commits)

    assert [one.table for one in kept] == [one.table for one in commits[:MOST_TABLES]]
    with_offsets = [one for one in kept if one.offsets]
    assert len(with_offsets) == MOST_OFFSETS // 9
    assert notes_on_left_out(commits) == (
        "1,000 tables got a snapshot; the report has the first 250.",
        "The report does not have the offsets in the snapshots of 28 tables, because there are more than 2,000 in all.",
    )
    assert len(json.dumps(report(*kept).to_json())) < PIECE_CHARACTERS / 2


def test_usual_report_has_everything() -> None:
    commits = [commit(number) for number in range(MOST_NAMED + 2)]
    assert (kept_in_report(commits), notes_on_left_out(commits)) == (tuple(commits), ())
    *lines, last = table_lines(report(*commits))
    assert len(lines) == MOST_NAMED
    assert last == "2 more snapshots: the pages, --json and asset events have them all."


def test_snapshot_that_is_told_twice_is_one() -> None:
    assert distinct([commit(1), commit(2), commit(1)]) == (commit(1), commit(2))
