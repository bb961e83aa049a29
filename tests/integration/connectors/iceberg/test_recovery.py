"""What the next run of an Iceberg sink does after a crash, and if a table has changed meanwhile."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from airflow_connect.connectors.iceberg.chain import property_name
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.runtime import crash_points
from tests.support.copies.iceberg import IcebergSink, iceberg_sink
from tests.support.copies.s3 import numbered
from tests.support.kafka_data import TopicProducer
from tests.support.steps import Crashed, Steps

pytestmark = pytest.mark.integration

NUMBERS = Schema(NestedField(1, "n", LongType(), required=False))


@pytest.fixture
def sink(kafka: KafkaBroker, tmp_path: Path, make_topic: Callable[..., str], produce: TopicProducer) -> IcebergSink:
    """A connector with 10 records in 2 partitions to copy."""
    made = iceberg_sink(kafka, tmp_path, make_topic(2))
    produce(made.topic, numbered(0, 10, 2)[0])
    return made


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Actions at the named steps of the runs of a test."""
    return Steps(monkeypatch)


def crash(sink: IcebergSink, steps: Steps, point: str) -> str:
    """A run that dies at `point`; returns its id."""
    steps.crash(point, 0)
    with pytest.raises(Crashed):
        sink.try_run()
    return next(str(e["plan"]["run_id"]) for e in sink.events if e["event"] == "plan")


def snapshots(sink: IcebergSink) -> int:
    table = sink.table()
    return 0 if table is None else len(table.metadata.snapshots)


@pytest.mark.parametrize("point", [crash_points.COPIED, crash_points.AUDITED])
def test_files_of_a_run_that_died_before_its_manifest_are_deleted(sink: IcebergSink, steps: Steps, point: str) -> None:
    crash(sink, steps, point)
    left = sink.uploads()
    report = sink.run()

    assert len(left) == 2
    assert report.swept == len(left)
    sink.assert_exactly_once(numbered(0, 10)[1])


@pytest.mark.parametrize("point", [crash_points.MANIFEST_WRITTEN, crash_points.PUBLISHED])
def test_run_that_died_after_its_manifest_is_committed_once(
    sink: IcebergSink, steps: Steps, produce: TopicProducer, point: str
) -> None:
    dead = crash(sink, steps, point)
    visible = snapshots(sink)
    produce(sink.topic, numbered(10, 14, 2)[0])
    report = sink.run()

    assert visible == int(point == crash_points.PUBLISHED)
    assert report.recovered_run_id == dead
    assert snapshots(sink) == 2
    sink.assert_exactly_once(numbered(0, 14)[1])
    for _ in range(4):  # Later runs look for what the dead one has left, and delete nothing that is in use.
        sink.run()
    sink.assert_exactly_once(numbered(0, 14)[1])


def test_snapshot_that_has_expired_is_not_added_again(sink: IcebergSink, steps: Steps) -> None:
    crash(sink, steps, crash_points.PUBLISHED)
    table = sink.table()
    assert table is not None
    (ours,) = table.metadata.snapshots
    table.append(table.scan(limit=0).to_arrow().cast(table.schema().as_arrow()))
    table.maintenance.expire_snapshots().by_id(ours.snapshot_id).commit()
    report = sink.run()

    assert report.recovered_run_id
    assert ours.snapshot_id not in {one.snapshot_id for one in sink.table().metadata.snapshots}  # type: ignore[union-attr]
    for _ in range(3):
        sink.run()
    assert sorted(row["n"] for row in sink.rows()) == list(range(10))


@pytest.mark.parametrize("what", ["dropped", "replaced", "without its files"])
def test_table_that_cannot_take_what_was_staged_gets_it_anew(sink: IcebergSink, steps: Steps, what: str) -> None:
    dead = crash(sink, steps, crash_points.MANIFEST_WRITTEN)
    if what == "without its files":
        for folder in Path(sink.bucket).rglob(f"data/ac-{dead}"):
            shutil.rmtree(folder)
    else:
        catalog = sink.catalog
        catalog.drop_table(sink.table_name)
        if what == "replaced":
            catalog.create_table(sink.table_name, NUMBERS, properties={"format-version": "2"})
        catalog.close()
    report = sink.run()

    assert (report.records, report.recovered_run_id) == (10, "")
    (note,) = (note for note in report.notes if dead in note)
    assert "all are given up" in note
    assert sorted(row["n"] for row in sink.rows()) == list(range(10))
    assert snapshots(sink) == 1


def test_other_connector_of_the_same_name_is_a_conflict(sink: IcebergSink, steps: Steps) -> None:
    dead = crash(sink, steps, crash_points.MANIFEST_WRITTEN)
    table = sink.table()
    assert table is not None
    own = property_name(sink.name, "main")
    table.transaction().set_properties({own: '{"runs":["of-another-installation"]}'}).commit_transaction()
    failed = sink.try_run()

    assert failed.error is not None
    assert failed.error["code"] == "iceberg.chain"
    assert all(name in failed.error["message"] for name in (dead, "of-another-installation"))
    assert snapshots(sink) == 0
    table.refresh()
    table.transaction().set_properties({own: '{"runs":[""]}'}).commit_transaction()
    sink.run()
    sink.assert_exactly_once(numbered(0, 10)[1])


def test_tables_that_cannot_be_written_to_are_refused_before_the_copy(sink: IcebergSink) -> None:
    def refused(**config: str | None) -> str:
        report = sink.try_run(**config)
        assert report.error is not None
        assert sink.engine.jobs == 0
        return str(report.error["code"])

    no_table = refused(**{"iceberg_tables_auto-create-enabled": "false"})
    catalog = sink.catalog
    catalog.create_namespace_if_not_exists("lake")
    table = catalog.create_table(sink.table_name, NUMBERS, properties={"format-version": "2"})
    empty = refused(**{"iceberg_tables_default-commit-branch": "audit"})
    table.append(table.scan().to_arrow())
    table.manage_snapshots().create_tag(table.metadata.current_snapshot_id, "audit").commit()  # type: ignore[arg-type]
    tag = refused(**{"iceberg_tables_default-commit-branch": "audit"})
    catalog.drop_table(sink.table_name)
    catalog.create_table(sink.table_name, NUMBERS, properties={"format-version": "1"})
    old = refused()
    catalog.close()

    assert (no_table, empty, tag, old) == (
        "iceberg.no_table",
        "iceberg.branch",
        "iceberg.branch",
        "iceberg.format_version",
    )


def test_rows_go_to_the_branch_and_secrets_go_nowhere(sink: IcebergSink, caplog: pytest.LogCaptureFixture) -> None:
    catalog = sink.catalog
    catalog.create_namespace_if_not_exists("lake")
    table = catalog.create_table(sink.table_name, NUMBERS, properties={"format-version": "2"})
    table.append(table.scan().to_arrow())
    catalog.close()
    secrets = {
        "iceberg_catalog_s3_secret-access-key": "open-sesame-1",
        "iceberg_catalog_token": "open-sesame-2",
        "iceberg_catalog_credential": "me:open-sesame-3",
    }
    report = sink.run(**{"iceberg_tables_default-commit-branch": "audit", **secrets})
    table.refresh()
    told = json.dumps([report.to_json(), *sink.events], default=str) + caplog.text

    assert table.scan().to_arrow().num_rows == 0
    assert table.scan(snapshot_id=table.metadata.refs["audit"].snapshot_id).to_arrow().num_rows == 10
    assert "open-sesame" not in told
    assert "open-sesame" not in json.dumps(table.metadata.model_dump(mode="json"), default=str)


def test_branch_begins_with_the_rows_of_main_and_may_be_dropped_after_it_was_merged(
    sink: IcebergSink, produce: TopicProducer
) -> None:
    """As in Java's writers: otherwise `fast_forward` refuses it, and its readers miss the rows of main."""
    catalog, audit = sink.catalog, {"iceberg_tables_default-commit-branch": "audit"}
    catalog.create_namespace_if_not_exists("lake")
    table = catalog.create_table(sink.table_name, NUMBERS, properties={"format-version": "2"})
    table.append(pa.table({"n": [100]}))
    sink.run(**audit)
    table.refresh()
    branch = table.metadata.snapshot_by_name("audit")

    assert branch is not None
    assert branch.parent_snapshot_id == table.metadata.current_snapshot_id
    assert table.scan(snapshot_id=branch.snapshot_id).to_arrow().num_rows == 11
    assert table.scan().to_arrow().num_rows == 1

    table.manage_snapshots().set_current_snapshot(branch.snapshot_id).remove_branch("audit").commit()
    produce(sink.topic, numbered(10, 12, 2)[0])
    report = sink.run(**audit)
    table.refresh()
    branch = table.metadata.snapshot_by_name("audit")

    assert branch is not None
    assert report.notes == ()
    assert table.scan(snapshot_id=branch.snapshot_id).to_arrow().num_rows == 13
    catalog.close()
