"""The local sink under the conformance suite that third parties use."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.testing import SinkConformance

pytestmark = pytest.mark.integration


@pytest.fixture
def kafka_bootstrap(kafka: KafkaBroker) -> str:
    return kafka.bootstrap


class TestLocalSink(SinkConformance):
    connector_class = "LocalSink"

    def connector_config(self, target: Path) -> Mapping[str, str]:
        (target / "out").mkdir(exist_ok=True)
        return {
            "store.url": f"file://{target}/out",
            "format.class": "JsonFormat",
            "flush.size": "7",
            "behavior.on.null.values": "ignore",
        }

    def read_back(self, target: Path) -> Sequence[Any]:
        files = (path for path in sorted((target / "out").rglob("*")) if path.is_file() and "+tmp" not in path.parts)
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]
