"""Partitions are added to an offsets topic: keys belong elsewhere from then on, and old copies must not count."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.reading.topic_contents import committed_records, ranges_of
from airflow_connect.runtime.driver.entry import reset_offsets
from tests.integration.runtime.source.conftest import Numbers
from tests.support.kafka_data import add_partitions, create_topic

pytestmark = pytest.mark.integration
SOURCE_PARTITIONS = 8


@pytest.fixture
def grown(numbers: Numbers, unique_name: str) -> Numbers:
    """A source whose offsets topic got more partitions after its first run."""
    topic = f"{unique_name}-offsets"
    create_topic(numbers.bootstrap, topic, 3, {"cleanup.policy": "compact"})
    numbers.worker_config["offset.storage.topic"] = topic
    numbers.feed(*[2] * SOURCE_PARTITIONS)
    numbers.run()
    add_partitions(numbers.bootstrap, topic, 7)
    return numbers


def copies(numbers: Numbers) -> Counter[bytes]:
    """How many partitions hold each offset."""
    last: dict[tuple[bytes, int], bytes | None] = {}
    settings = {"bootstrap.servers": numbers.bootstrap}
    ranges = ranges_of(admin_client(settings), numbers.worker_config["offset.storage.topic"])
    for record in committed_records(settings, ranges):
        last[record.key or b"", record.partition] = record.value
    return Counter(key for (key, _), value in last.items() if value is not None)


def test_current_offsets_count_and_old_copies_are_deleted(grown: Numbers) -> None:
    for count in (3, 4, 5):
        grown.feed(*[count] * SOURCE_PARTITIONS)
        grown.run()

    grown.assert_exactly_once(*[5] * SOURCE_PARTITIONS)
    assert set(copies(grown).values()) == {1}
    assert len(copies(grown)) == SOURCE_PARTITIONS


def test_newest_copy_counts_if_partitions_were_added_twice(grown: Numbers) -> None:
    grown.feed(*[3] * SOURCE_PARTITIONS)
    grown.run()
    add_partitions(grown.bootstrap, grown.worker_config["offset.storage.topic"], 11)
    for count in (4, 5):
        grown.feed(*[count] * SOURCE_PARTITIONS)
        grown.run()

    grown.assert_exactly_once(*[5] * SOURCE_PARTITIONS)
    assert set(copies(grown).values()) == {1}


def test_offsets_that_are_reset_leave_no_copy_behind(grown: Numbers) -> None:
    grown.feed(*[3] * SOURCE_PARTITIONS)
    grown.run()

    reset_offsets(grown.spec())

    assert copies(grown) == {}
    assert grown.run().records == 3 * SOURCE_PARTITIONS
    assert json.dumps([grown.name, {"p": 0}], separators=(",", ":")).encode() in copies(grown)
