"""The file source under the conformance suite that third parties use, in records and in columns."""

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


class TestFileStreamSource(SourceConformance):
    connector_class = "FileStreamSource"

    def connector_config(self, place: Path, topic: str) -> Mapping[str, str]:
        (place / "lines.txt").touch()
        return {"file": str(place / "lines.txt"), "topic": topic}

    def feed(self, place: Path, first: int, count: int) -> Sequence[Any]:
        lines = [f"line {n}" for n in range(first, first + count)]
        with (place / "lines.txt").open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        return lines
