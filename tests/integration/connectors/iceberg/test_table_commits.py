"""The snapshots that a run reports: its own, those of a run that it has finished, and those that nobody was told of."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.documents.run import RunReport
from airflow_connect.observe.status.connector_state import recent_runs
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.reporting.presentation import table_lines
from tests.support.copies.iceberg import IcebergSink, iceberg_sink
from tests.support.copies.s3 import numbered
from tests.support.kafka_data import TopicProducer
from tests.support.steps import Crashed, Steps

pytestmark = pytest.mark.integration

TASK = {"dag_id": "d", "dag_run_id": "r", "task_id": "t", "map_index": "-1"}


@pytest.fixture
def sink(kafka: KafkaBroker, tmp_path: Path, make_topic: Callable[..., str], produce: TopicProducer) -> IcebergSink:
    """A connector with 10 records in 2 partitions to copy."""
    made = iceberg_sink(kafka, tmp_path, make_topic(2), **{"iceberg_tables_default-partition-by": "bucket(n, 3)"})
    produce(made.topic, numbered(0, 10, 2)[0])
    return made


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    return Steps(monkeypatch)


def attempt(sink: IcebergSink, number: int, **other_task: str) -> RunReport:
    """An attempt of an Airflow task."""
    origin = {**TASK, "try_number": str(number), **other_task}
    return run_connector(replace(sink.spec(), origin=origin), lambda _: None, sink.engine)


def test_report_has_the_snapshot_of_each_table_with_its_counts_and_offsets(
    sink: IcebergSink, produce: TopicProducer
) -> None:
    second = f"{sink.table_name}_too"
    report = sink.run(**{"iceberg.tables": f"{sink.table_name},{second}"})
    table = sink.table()
    assert table is not None
    (snapshot,) = table.metadata.snapshots

    first, other = report.tables
    assert (first.uri, other.uri) == (f"iceberg://iceberg/{sink.table_name}", f"iceberg://iceberg/{second}")
    assert (first.snapshot_id, first.branch, first.run_id) == (str(snapshot.snapshot_id), "main", report.run_id)
    assert first.offsets == {f"{sink.topic}-0": (0, 5), f"{sink.topic}-1": (0, 5)}
    assert (first.rows, first.location) == (10, table.location())
    summary = snapshot.summary
    assert summary is not None
    told = ("added-data-files", "added-files-size", "changed-partition-count")
    assert [str(count) for count in (first.files, first.size_bytes, first.partitions)] == [summary[n] for n in told]
    assert first.snapshot_id != other.snapshot_id
    assert table_lines(report)[0] == (
        f"Table {sink.table_name} has the snapshot {first.snapshot_id} of this run: 10 rows in {first.files} files."
    )

    assert RunReport.from_json(json.loads(json.dumps(report.to_json()))).tables == report.tables
    (kept,) = recent_runs(sink.spec(), 5)
    assert RunReport.from_json(kept).tables == report.tables
    assert sink.run().tables == ()
    assert "tables" not in sink.run().to_json()


@pytest.mark.parametrize("is_more", [True, False])
def test_run_that_finishes_another_one_reports_both_snapshots(
    sink: IcebergSink, steps: Steps, produce: TopicProducer, is_more: bool
) -> None:
    steps.crash(crash_points.MANIFEST_WRITTEN, 0)
    with pytest.raises(Crashed):
        sink.try_run()
    if is_more:
        produce(sink.topic, numbered(10, 14, 2)[0])
    report = sink.run()

    table = sink.table()
    assert table is not None
    added = [str(one.snapshot_id) for one in table.metadata.snapshots]
    assert [one.snapshot_id for one in report.tables] == added
    runs = [report.recovered_run_id, report.run_id][: 1 + is_more]
    assert [one.run_id for one in report.tables] == runs
    assert [one.rows for one in report.tables] == [10, 4][: 1 + is_more]
    assert f"of run {report.recovered_run_id}: 10 rows" in table_lines(report)[0]
    # The history has each snapshot with the run that has copied it.
    history = {run["run_id"]: RunReport.from_json(run).tables for run in recent_runs(sink.spec(), 5)}
    assert history[report.recovered_run_id] == report.tables[:1]


def test_retry_of_a_task_that_was_killed_after_its_commit_reports_the_snapshot_again(
    sink: IcebergSink, steps: Steps
) -> None:
    steps.crash(crash_points.COMMITTED, 0)
    with pytest.raises(Crashed):
        attempt(sink, 1)
    table = sink.table()
    assert table is not None
    retry = attempt(sink, 2)

    assert (retry.status, [one.snapshot_id for one in retry.tables]) == (
        "empty",
        [str(one.snapshot_id) for one in table.metadata.snapshots],
    )
    assert attempt(sink, 1, dag_run_id="the next one").tables == ()
