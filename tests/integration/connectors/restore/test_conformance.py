"""The restore source under the conformance suite that third parties use."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.testing import SourceConformance
from tests.support.copies.backups import record, write_file
from tests.support.copies.restore import LOCAL_SOURCE

pytestmark = pytest.mark.integration


@pytest.fixture
def kafka_bootstrap(kafka: KafkaBroker) -> str:
    return kafka.bootstrap


class TestRestoreSource(SourceConformance):
    connector_class = LOCAL_SOURCE

    @pytest.fixture
    def place(self, tmp_path: Path) -> Any:
        return tmp_path

    def connector_config(self, place: Any, topic: str) -> Mapping[str, str]:
        return {
            "store.url": str(place),
            "format.class": "ParquetFormat",
            "topics": "original",
            "topic.rename": f"original:{topic}",
            # The suite creates the topic, and looks at one that it fills itself.
            "target.must_be": "any",
        }

    def feed(self, place: Any, first: int, count: int) -> Sequence[Any]:
        values = [f"line {n}" for n in range(first, first + count)]
        records = [record(n, json.dumps(value).encode(), "original") for n, value in enumerate(values, first)]
        if records:
            write_file(place / "topics", records)
        return values
