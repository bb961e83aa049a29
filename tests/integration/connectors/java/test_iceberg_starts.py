"""Runs of Apache's Iceberg sink that begin before the offset of their group."""

from __future__ import annotations

from collections import Counter

import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.kafka.admin.consumer_group import alter_offsets
from airflow_connect.kafka.clients.short_lived import admin_client
from tests.conftest import TopicProducer
from tests.support.copies.java_iceberg import JavaIceberg, rows

pytestmark = [pytest.mark.integration, pytest.mark.budget(60)]


@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_records_before_an_offset_beyond_the_end_are_copied_if_asked(
    java_iceberg_sink: JavaIceberg, produce: TopicProducer, tolerance: str
) -> None:
    """The group's offset counted as written: records were left out, and said to be in the table."""
    sink = java_iceberg_sink
    topic = sink.config["topics"]
    sink.config["errors.tolerance"] = tolerance
    produce(topic, rows(range(10)))
    alter_offsets(admin_client({"bootstrap.servers": sink.bootstrap}), sink.group, {TopicPartition(topic, 0): 100})
    error = sink.try_run().error
    assert error is not None
    assert error["code"] == "offset.out_of_range"
    report = sink.run(offsets_out_of_range="earliest")
    assert report.records == 10
    assert sink.numbers() == Counter(range(10))
    assert [note for note in report.notes if f"from {topic}-0@100 back to 0" in note]
    assert not [note for note in report.notes if "written up to" in note]
    assert sink.run().status == "empty"
