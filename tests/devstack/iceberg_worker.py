"""A real Apache Kafka Connect worker with Apache's Iceberg sink."""

from __future__ import annotations

from pathlib import Path

import pyspark

from tests.devstack.connect_worker import ConnectWorker
from tests.devstack.jars import fetch_jars

ICEBERG_LOCK = "iceberg-connect-1.11.0"
SPARK_JARS = (
    "commons-codec", "commons-compress", "commons-io", "commons-lang3", "hadoop-client-api",
    "hadoop-client-runtime", "jcl-over-slf4j",
)  # fmt: skip
"""Prefixes of the names of the jars that the sink needs, out of Spark's."""


class IcebergWorker(ConnectWorker):
    """A `ConnectWorker` that also has `org.apache.iceberg.connect.IcebergSinkConnector` 1.11.0."""

    name = "Kafka Connect 4.3.1 with Iceberg's sink"

    def _class_path(self) -> list[Path]:
        """Return the worker's jars, the sink's, and some of Spark's."""
        found = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
        spark = [path for path in found if path.name.startswith(SPARK_JARS)]
        return [*super()._class_path(), *fetch_jars(ICEBERG_LOCK), *spark]
