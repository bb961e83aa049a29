"""FileStreamSink under the conformance suite that third parties use."""

from __future__ import annotations

import re
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


class TestFileStreamSink(SinkConformance):
    connector_class = "FileStreamSink"
    stores_tombstones = True

    def connector_config(self, target: Path) -> Mapping[str, str]:
        return {"file": str(target / "lines.txt")}

    def read_back(self, target: Path) -> Sequence[Any]:
        """Java's text of a map: `{n=1, p=2}`."""
        file = target / "lines.txt"
        lines = file.read_text().splitlines() if file.exists() else []
        return [None if line == "null" else _numbers(line) for line in lines]


def _numbers(line: str) -> dict[str, int]:
    found = re.fullmatch(r"\{n=(\d+), p=(\d+)\}", line)
    assert found is not None, f"{line!r} is no line of this test"
    return {"n": int(found[1]), "p": int(found[2])}
