"""The Iceberg sink under the conformance suite of all sinks, with a catalog in SQLite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog

from airflow_connect.testing import SinkConformance
from tests.support.copies.iceberg import ICEBERG_SINK, sqlite_catalog

pytestmark = pytest.mark.integration

TABLE = "lake.conformance"


class TestIcebergSink(SinkConformance):
    """A table for all topics, whose columns are made from the records."""

    connector_class = ICEBERG_SINK
    errant_value = '["no object"]'

    @pytest.fixture
    def target(self, tmp_path: Path) -> Path:
        return tmp_path

    def connector_config(self, target: Path) -> Mapping[str, str]:
        return {
            "iceberg.tables": TABLE,
            "iceberg.tables.auto-create-enabled": "true",
            "iceberg.tables.evolve-schema-enabled": "true",
            **{f"iceberg.catalog.{key}": value for key, value in sqlite_catalog(target).items()},
        }

    def read_back(self, target: Path) -> Sequence[Any]:
        catalog = load_catalog("iceberg", **sqlite_catalog(target))
        if not catalog.namespace_exists("lake") or not catalog.table_exists(TABLE):
            return []
        table = catalog.load_table(TABLE)
        # The order of a scan has no meaning: files in the order of their snapshots. Folders are named after runs.
        runs = [snapshot.summary["airflow-connect.run-id"] for snapshot in table.metadata.snapshots]
        paths = [task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()]
        paths.sort(key=lambda path: runs.index(path.split("/")[-2].removeprefix("ac-")))
        return [row for path in paths for row in pq.read_table(path).to_pylist()]
