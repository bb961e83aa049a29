"""Runs of the Iceberg sink: rows, snapshots, and what is in the table's properties."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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
