"""Apache's Iceberg sink, in Java: its tasks are members of the connector's group, and commit its offsets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from tests.conftest import MakeTopic, TopicProducer
from tests.devstack.iceberg_rest import IcebergRest
from tests.support.copies.java_iceberg import JavaIceberg, iceberg_plugin, java_iceberg

pytestmark = [pytest.mark.integration, pytest.mark.budget(45)]


def rows(numbers: Iterable[int], partitions: int = 2) -> list[Any]:
    return [(n % partitions, None, json.dumps({"n": n}).encode(), 1000 + n, []) for n in numbers]


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return iceberg_plugin(tmp_path_factory.mktemp("plugins"))


@pytest.fixture
def sink(
    kafka: KafkaBroker, iceberg_rest: IcebergRest, plugins: Path, make_topic: MakeTopic, unique_name: str
) -> JavaIceberg:
    return java_iceberg(kafka.bootstrap, f"lake-{unique_name}", plugins, make_topic(2), iceberg_rest.uri)


def test_exactly_the_planned_records_in_two_runs(sink: JavaIceberg, produce: TopicProducer) -> None:
    topic = sink.config["topics"]
    produce(topic, rows(range(100)))
    first = sink.run()
    assert (first.records, first.delivery_guarantee) == (100, "exactly_once")
    assert sink.numbers() == Counter(range(100))

    produce(topic, rows(range(100, 130)))
    second = sink.run()
    third = sink.run()
    assert (second.records, third.status) == (30, "empty")
    assert sink.numbers() == Counter(range(130))
