"""The example sink, found by its entry point, under the conformance suite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.runtime.driver.entry import validate_connector
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing import SinkConformance
from tests.docs.pages import blocks

pytestmark = pytest.mark.integration


@pytest.mark.usefixtures("installed_examples")
class TestSqliteSink(SinkConformance):
    connector_class = "SqliteSink"
    stores_tombstones = True

    def connector_config(self, target: Path) -> Mapping[str, str]:
        return {"sqlite.file": str(target / "records.sqlite")}

    def read_back(self, target: Path) -> Sequence[Any]:
        if not (target / "records.sqlite").exists():
            return []
        with closing(sqlite3.connect(target / "records.sqlite")) as database:
            rows = database.execute("SELECT value FROM records ORDER BY partition, offset").fetchall()
        return [json.loads(value) for (value,) in rows]


@pytest.mark.usefixtures("installed_examples")
def test_configuration_of_the_page_is_right():
    (block,) = blocks("json sink")
    worker = {"bootstrap.servers": "broker:9092", "key.converter": "StringConverter"}
    assert validate_connector(RunSpec(json.loads(block.text), worker)) == []
