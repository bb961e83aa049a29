"""The rows of the Iceberg sink: a topic into a table whose catalog is in SQLite, and whose files are in S3."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pyiceberg.catalog import load_catalog

from airflow_connect.devstack.s3 import S3Server
from tests.bench.arrivals import BUCKET
from tests.bench.topics import SCHEMA, Load

STORE = "iceberg"
CLASS = "org.apache.iceberg.connect.IcebergSinkConnector"
CONFIG = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "true",
    "value.converter.schema.content": SCHEMA,
    "iceberg.tables.auto-create-enabled": "true",
}
BY_HOUR = {**CONFIG, "iceberg.tables.default-partition-by": "hour(at)"}


class Lakes:
    """Tables of one catalog."""

    def __init__(self, folder: Path, s3: S3Server) -> None:
        """Opens nothing."""
        self._properties = {
            "type": "sql",
            "uri": f"sqlite:///{folder}/lake.db",
            "warehouse": f"s3://{BUCKET}/lake",
            "s3.endpoint": s3.endpoint_url,
            "s3.access-key-id": s3.access_key,
            "s3.secret-access-key": s3.secret_key,
            "s3.region": s3.region,
        }

    def connector(self, name: str, load: Load, config: Mapping[str, str]) -> dict[str, str]:
        """A connector that fills a table of its own."""
        return {
            "name": name,
            "connector.class": CLASS,
            "tasks.max": "2",
            "topics": load.topic,
            "iceberg.tables": _table(name),
            **{f"iceberg.catalog.{key}": value for key, value in self._properties.items()},
            **config,
        }

    def check(self, name: str, load: Load) -> tuple[int, str]:
        """Bytes of the table's files, and what is wrong with its rows; the table is dropped."""
        catalog: Any = load_catalog("iceberg", **self._properties)
        table = catalog.load_table(_table(name))
        ids = np.sort(table.scan(selected_fields=("id",)).to_arrow()["id"].to_numpy())
        size = sum(task.file.file_size_in_bytes for task in table.scan().plan_files())
        catalog.purge_table(_table(name))
        catalog.close()
        if np.array_equal(ids, np.arange(load.records)):
            return size, ""
        return size, f"{len(ids)} rows, {len(np.unique(ids))} of them different, of {load.records} records"


def _table(name: str) -> str:
    return f"bench.{name.replace('-', '_')}"
