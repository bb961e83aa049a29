"""Runs of the Iceberg sink: rows, snapshots, and what is in the table's properties."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO

from airflow_connect.devstack.kafka import KafkaBroker
from tests.support.copies.iceberg import IcebergSink, iceberg_sink
from tests.support.kafka_data import TopicProducer

pytestmark = pytest.mark.integration


@pytest.fixture
def sink(kafka: KafkaBroker, tmp_path: Path, make_topic: Any) -> IcebergSink:
    return iceberg_sink(kafka, tmp_path, make_topic(2))


def test_run_adds_one_snapshot(sink: IcebergSink, produce: TopicProducer) -> None:
    values = [{"n": n, "name": f"name {n}", "price": n / 4} for n in range(20)]
    produce(sink.topic, [(n % 2, None, json.dumps(value)) for n, value in enumerate(values)])
    report = sink.run()
    print(report)
    sink.assert_exactly_once(values)
    table = sink.table()
    assert table is not None
    print(table.metadata.snapshots, table.properties, table.schema())
    assert len(table.metadata.snapshots) == 1
    assert sink.run().status == "empty"


def fill(sink: IcebergSink, produce: TopicProducer, start: int, end: int) -> None:
    produce(sink.topic, [(n % 2, None, json.dumps({"n": n})) for n in range(start, end)])


def test_table_that_was_dropped_rolled_back_or_set_back_is_named_once(
    sink: IcebergSink, produce: TopicProducer
) -> None:
    def notes() -> list[str]:
        return [note for note in sink.run().notes if "committed to it" in note or "rolled back" in note]

    for start in (0, 10):
        fill(sink, produce, start, start + 10)
        assert notes() == []
    table = sink.table()
    assert table is not None
    first, second = table.metadata.snapshots
    table.manage_snapshots().set_current_snapshot(snapshot_id=first.snapshot_id).commit()
    fill(sink, produce, 20, 30)
    (rolled_back,) = notes()
    assert f"no longer has the snapshot {second.snapshot_id}" in rolled_back
    assert len(sink.rows()) == 20

    table = sink.table()
    assert table is not None
    (name,) = (key for key in table.properties if key.startswith("airflow-connect."))
    table.transaction().set_properties({name: '{"runs":["an-earlier-one"]}'}).commit_transaction()
    table.maintenance.expire_snapshots().by_id(first.snapshot_id).commit()
    fill(sink, produce, 30, 40)
    assert notes() == []  # Its snapshot is there.

    catalog = sink.catalog
    catalog.drop_table(sink.table_name)
    catalog.close()
    fill(sink, produce, 40, 50)
    (dropped,) = notes()
    assert "was dropped since run" in dropped
    fill(sink, produce, 50, 60)
    assert notes() == []
    assert sorted(row["n"] for row in sink.rows()) == list(range(40, 60))


@pytest.mark.parametrize("is_deleted", [True, False])
def test_old_metadata_of_a_table_in_a_database_is_deleted_if_the_table_says_so(
    sink: IcebergSink, produce: TopicProducer, is_deleted: bool
) -> None:
    properties = {"previous-versions-max": "2", "delete-after-commit.enabled": str(is_deleted).lower()}
    prefix = "iceberg_tables_auto-create-props_write_metadata_"
    config = {f"{prefix}{key.replace('.', '_')}": value for key, value in properties.items()}
    runs = 5
    for run in range(runs):
        fill(sink, produce, run * 10, run * 10 + 10)
        sink.run(**config)

    table = sink.table()
    assert table is not None
    there = {path.name for path in Path(sink.bucket).rglob("*.metadata.json")}
    known = {Path(entry.metadata_file).name for entry in table.metadata.metadata_log}
    current = {Path(table.metadata_location).name}
    assert len(known) == 2
    if is_deleted:
        assert there == known | current
    else:
        assert len(there) > runs
    assert len(sink.rows()) == runs * 10


def test_old_metadata_that_cannot_be_deleted_is_a_warning_and_the_commit_holds(
    sink: IcebergSink, produce: TopicProducer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    prefix = "iceberg.tables.auto-create-props.write.metadata."
    sink.config |= {f"{prefix}previous-versions-max": "1", f"{prefix}delete-after-commit.enabled": "true"}

    def refuse(self: object, location: object) -> None:
        raise PermissionError(f"{location} is locked")

    monkeypatch.setattr(PyArrowFileIO, "delete", refuse)
    for run in range(3):
        fill(sink, produce, run * 10, run * 10 + 10)
        assert sink.run().status == "done"
    assert f"of table {sink.table_name} could not be deleted" in caplog.text
    assert "is locked" in caplog.text
    assert len(sink.rows()) == 30
