"""`files.per.partition=compact` where names hold the last offset too: ranges of directories interleave."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from tests.integration.connectors.files.local.test_files import CITIES, Case
from tests.support.kafka_data import TopicProducer

pytestmark = pytest.mark.integration


def test_directories_that_alternate_have_full_files_with_both_offsets(
    kafka: KafkaBroker, make_topic: Callable[..., str], produce: TopicProducer, tmp_path: Path
) -> None:
    topic = make_topic(1)
    produce(topic, [(0, b"k", json.dumps({"id": n, "city": CITIES[n % 2]}).encode()) for n in range(9)])
    case = Case(kafka.bootstrap, topic, tmp_path / "out")
    by_city = {"partitioner_class": "FieldPartitioner", "partition_field_name": "city"}

    report = case.run(flush_size="2", files_per_partition="compact", **by_city)

    assert report.status == "done", report.error
    found = {
        name.replace(topic, "t"): [json.loads(line)["id"] for line in data.splitlines()]
        for name, data in case.files().items()
    }
    name = "city={}/t+0+{:010d}+{:010d}.json".format
    assert found == {
        name("Berlin", 0, 2): [0, 2],
        name("Berlin", 4, 6): [4, 6],
        name("Berlin", 8, 8): [8],
        name("Paris", 1, 3): [1, 3],
        name("Paris", 5, 7): [5, 7],
    }
