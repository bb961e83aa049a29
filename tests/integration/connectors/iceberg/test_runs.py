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
