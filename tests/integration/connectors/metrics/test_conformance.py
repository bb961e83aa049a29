"""The metrics source under the conformance suite that third parties use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.testing import SourceConformance

pytestmark = pytest.mark.integration


@pytest.fixture
def kafka_bootstrap(kafka: KafkaBroker) -> str:
    return kafka.bootstrap


class TestMetricsSource(SourceConformance):
    connector_class = "MetricsSourceConnector"
    measures = True

    def connector_config(self, place: Path, topic: str) -> Mapping[str, str]:
        (place / "hosts").touch()
        sampler = "tests.integration.connectors.metrics.fleet:RosterSampler"
        return {"topic": topic, "sampler.class": sampler, "roster.file": str(place / "hosts"), "batch.size": "500"}

    def feed(self, place: Path, first: int, count: int) -> Sequence[Any]:
        numbers = range(first, first + count)
        with (place / "hosts").open("a") as file:
            file.writelines(f"host-{number:05d}\n" for number in numbers)
        return [{"host": f"host-{n:05d}", "metric": "number", "value": float(n), "unit": ""} for n in numbers]

    def value_of(self, value: Any) -> Any:
        return {name: part for name, part in value.items() if name != "timestamp"}
