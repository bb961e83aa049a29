"""Files that Apache's Iceberg sink would lose silently: a run tells of them; in the soak."""

from __future__ import annotations

from collections import Counter

import pytest
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

from tests.conftest import TopicProducer
from tests.support.copies.java_iceberg import LONGEST_S, JavaIceberg, killed_once_offsets_moved, rows
from tests.support.kafka_data import create_topic, delete_records, delete_topic
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.budget(120)]


def has_table(sink: JavaIceberg) -> bool:
    try:
        sink.catalog.load_table(sink.table_name)
    except (NoSuchTableError, NoSuchNamespaceError):
        return False
    return True


def test_files_of_a_table_that_was_dropped_are_counted(java_iceberg_sink: JavaIceberg, produce: TopicProducer) -> None:
    sink = java_iceberg_sink
    produce(sink.config["topics"], rows(range(10)))
    process = sink.start(**{"iceberg_control_commit_interval-ms": "10000"})
    wait_until(lambda: has_table(sink), "the table", LONGEST_S)
    uuid = str(sink.catalog.load_table(sink.table_name).metadata.table_uuid)
    sink.drop_table()
    report = process.wait()
    assert report is not None
    assert report.error is not None
    assert report.error["code"] == "java.left_out", report.error
    assert uuid in report.error["message"]
    assert "10 records" in report.error["message"]
    produce(sink.config["topics"], rows(range(10, 14)))
    assert sink.run().records == 4
    assert sink.numbers() == Counter(range(10, 14))


def test_control_topic_that_was_made_again_is_refused(java_iceberg_sink: JavaIceberg, produce: TopicProducer) -> None:
    """Tables hold its offsets, so the plugin would take new files for committed ones."""
    sink = java_iceberg_sink
    produce(sink.config["topics"], rows(range(10)))
    sink.run()
    delete_topic(sink.bootstrap, sink.control_topic)
    wait_until(lambda: not sink.control_exists(), "the end of the control topic", LONGEST_S)
    create_topic(sink.bootstrap, sink.control_topic, 1)
    produce(sink.config["topics"], rows(range(10, 20)))
    error = sink.try_run().error
    assert error is not None
    assert error["code"] == "java.control_offsets", error
    sink.config["iceberg.control.topic"] += "-2"
    assert sink.run().records == 10
    assert sink.numbers() == Counter(range(20))


def test_events_that_were_deleted_matter_only_if_they_were_not_read(
    java_iceberg_sink: JavaIceberg, produce: TopicProducer
) -> None:
    sink = java_iceberg_sink
    produce(sink.config["topics"], rows(range(10)))
    sink.run()
    delete_records(sink.bootstrap, sink.control_topic, 0, -1)
    produce(sink.config["topics"], rows(range(10, 20)))
    sink.run()
    assert sink.numbers() == Counter(range(20))

    produce(sink.config["topics"], rows(range(20, 30)))
    killed_once_offsets_moved(sink)
    delete_records(sink.bootstrap, sink.control_topic, 0, -1)
    produce(sink.config["topics"], rows(range(30, 40)))
    error = sink.try_run().error
    assert error is not None
    assert error["code"] == "java.control_offsets", error
    assert "was deleted" in error["message"] or "were deleted" in error["message"]
