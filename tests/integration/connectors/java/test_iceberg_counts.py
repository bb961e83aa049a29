"""Records that Apache's Iceberg sink drops without a word are counted by the run."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from airflow_connect.documents.run import RunReport
from tests.conftest import TopicProducer
from tests.support.copies.java_iceberg import JavaIceberg, rows

pytestmark = [pytest.mark.integration, pytest.mark.budget(60)]


def row(**value: Any) -> Any:
    return (0, None, json.dumps(value).encode(), 1000, [])


def counted(report: RunReport) -> list[str]:
    return [note for note in report.notes if "in no table" in note]


def test_records_that_the_plugin_leaves_out_are_counted(java_iceberg_sink: JavaIceberg, produce: TopicProducer) -> None:
    sink = java_iceberg_sink
    topic = sink.config["topics"]
    produce(topic, rows(range(4)))
    assert counted(sink.run()) == []

    produce(topic, [*rows(range(4, 8)), (0, None, None, 1000, []), (1, None, None, 1000, [])])
    (said,) = counted(sink.run(tasks_max="2"))
    assert said.startswith("2 records of the 6 that the plugin got are in no table: its files have 4 rows.")
    assert sink.numbers() == Counter(range(8))

    produce(topic, [row(n=8, to="nowhere"), row(n=9), row(n=10, to=sink.table_name)])
    routed = {"iceberg_tables": None, "iceberg_tables_route-field": "to", "iceberg_tables_dynamic-enabled": "true"}
    (said,) = counted(sink.run(**routed, **{"iceberg_tables_auto-create-enabled": "false"}))
    assert said.startswith("2 records of the 3 that the plugin got are in no table: its files have 1 row.")
    assert sink.numbers() == Counter([*range(8), 10])


def test_report_says_that_the_plugin_changes_numbers_and_drops_fields(
    java_iceberg_sink: JavaIceberg, produce: TopicProducer
) -> None:
    """These changes are not counted, so the notes name them. If a later plugin makes none, the notes must go."""
    sink = java_iceberg_sink
    produce(sink.config["topics"], [row(n=1)])
    sink.run()
    produce(sink.config["topics"], [row(n=2.75, more="x")])
    report = sink.run()
    assert sink.catalog.load_table(sink.table_name).scan().to_arrow().sort_by("n").to_pylist() == [{"n": 1}, {"n": 2}]
    assert [note for note in report.notes if "2.75 becomes 2" in note]
    assert [note for note in report.notes if "drops fields for which a table has no column" in note]
