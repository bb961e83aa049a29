"""Runs of Apache's Iceberg sink, in Java, into tables that pyiceberg reads."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError

from tests.devstack.iceberg_worker import ICEBERG_LOCK, SPARK_JARS
from tests.devstack.jars import fetch_jars
from tests.support.copies.java_plugin import JavaConnector, plugin_folder

COUNT_OF_PARTITIONS = 2
CLASS = "org.apache.iceberg.connect.IcebergSinkConnector"
QUICK = {
    "iceberg.control.commit.interval-ms": "1500",
    "iceberg.control.commit.timeout-ms": "5000",
    "consumer.override.session.timeout.ms": "6000",
}


def iceberg_plugin(plugin_path: Path) -> Path:
    """A plugin path with the sink, and the jars of Hadoop that it needs."""
    found = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    spark = [path for path in found if path.name.startswith(SPARK_JARS)]
    return plugin_folder(plugin_path, ICEBERG_LOCK, [*fetch_jars(ICEBERG_LOCK), *spark])


def rows(numbers: Iterable[int]) -> list[Any]:
    """Records with these numbers, for a topic of two partitions."""
    return [(n % COUNT_OF_PARTITIONS, None, json.dumps({"n": n}).encode(), 1000 + n, []) for n in numbers]


@dataclass
class JavaIceberg(JavaConnector):
    """One connector of a test. Values have a number `n`."""

    catalog_uri: str = ""

    @property
    def table_name(self) -> str:
        """Its table."""
        return f"lake.{self.name.replace('-', '_')}"

    @property
    def control_topic(self) -> str:
        """A topic of its own."""
        return self.config["iceberg.control.topic"]

    @property
    def catalog(self) -> Catalog:
        """The catalog, opened anew."""
        return load_catalog("iceberg", type="rest", uri=self.catalog_uri)

    def numbers(self) -> Counter[int]:
        """How often each number is in the table."""
        try:
            table = self.catalog.load_table(self.table_name)
        except NoSuchTableError:
            return Counter()
        return Counter(table.scan().to_arrow()["n"].to_pylist())

    def drop_table(self) -> None:
        """Drop the table."""
        self.catalog.drop_table(self.table_name)


def java_iceberg(bootstrap: str, name: str, plugin_path: Path, topics: str, catalog_uri: str) -> JavaIceberg:
    """A sink into a table of a REST catalog, which commits every one and a half seconds."""
    made = JavaIceberg(bootstrap, name, plugin_path, catalog_uri=catalog_uri)
    made.config = {
        "connector.class": CLASS,
        "airflow.java.prefer": "true",
        "topics": topics,
        "iceberg.tables": made.table_name,
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.catalog.type": "rest",
        "iceberg.catalog.uri": catalog_uri,
        "iceberg.control.topic": f"control-{name}",
        **QUICK,
    }
    return made
