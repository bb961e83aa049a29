"""The rows of the Iceberg sink: a topic into a table whose catalog is in SQLite, and whose files are in S3.

The peer is Apache's own sink in one worker of Kafka Connect, with as many tasks. Its files go to a local directory,
which is less work than S3. It commits every ten seconds; its time is that until its last record is in a snapshot, from
the creation of the connector.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.s3 import S3Server
from tests.bench.arrivals import BUCKET
from tests.bench.processes import TreeSampler, cpu_seconds
from tests.bench.topics import SCHEMA, Load
from tests.devstack.iceberg_worker import IcebergWorker
from tests.support.kafka_data import create_topic, delete_topic

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

    def __init__(self, folder: Path, kafka: KafkaBroker, s3: S3Server) -> None:
        """Opens nothing."""
        self._folder, self._kafka, self._compared = folder, kafka, False
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
        return _checked(self._properties, _table(name), load)

    def say_peer(self, load: Load, ours_cpu_s_per_million: float, ours_per_s: float) -> str:
        """Copy the topic of the first row with Apache's sink, and print its figures; returns what went wrong."""
        if self._compared:
            return ""
        self._compared = True
        place = self._folder / "apache"
        version = {"jdbc.schema-version": "V1"}
        java = {**version, "type": "jdbc", "uri": f"jdbc:sqlite:{place}/lake.db", "warehouse": f"file://{place}/lake"}
        ours = {"type": "sql", "uri": f"sqlite:///{place}/lake.db", "warehouse": f"file://{place}/lake"}
        ours["schema_version"] = "v1"
        place.mkdir()
        load_catalog("iceberg", **ours).close()  # Tasks of the peer that make its tables get in each other's way.
        create_topic(self._kafka.bootstrap, "control-iceberg", 1)
        table = _table("apache")
        with IcebergWorker.start(self._kafka.bootstrap, "bench-iceberg", heap_mb=2048) as worker:
            made = {**self.connector("apache", load, CONFIG), **{f"iceberg.catalog.{k}": v for k, v in java.items()}}
            cpu, started = cpu_seconds(worker.pid), time.monotonic()
            with TreeSampler(worker.pid) as sampler:
                worker.rest.create("apache", {**_of_peer(made), **_PEER})
                seconds = _committed_at(ours, table, load) - started
            cpu = cpu_seconds(worker.pid) - cpu
        delete_topic(self._kafka.bootstrap, "control-iceberg")
        _, problem = _checked(ours, table, load)
        rate, per_million = load.records / seconds, cpu / load.records * 1e6
        print(
            f"  peer: Apache's sink: {rate:,.0f} records/s ({ours_per_s / rate:.1f} times as fast here), CPU s/M"
            f" {per_million:.2f} ({per_million / ours_cpu_s_per_million:.1f} times ours), peak"
            f" {sampler.peak_bytes >> 20} MB",
            flush=True,
        )
        return f"Apache's sink: {problem}" if problem else ""


_PEER = {
    "iceberg.control.commit.interval-ms": "10000",
    "iceberg.control.commit.timeout-ms": "120000",
    "consumer.override.auto.offset.reset": "earliest",
    "consumer.override.max.poll.records": "10000",
    "consumer.override.max.partition.fetch.bytes": "4194304",
}
_LONGEST_S = 1800.0


def _of_peer(config: Mapping[str, str]) -> dict[str, str]:
    """Without what Kafka Connect gets otherwise, and without S3."""
    return {key: value for key, value in config.items() if key != "name" and ".catalog.s3." not in key}


def _committed_at(properties: Mapping[str, str], table: str, load: Load) -> float:
    """When the last record was in a snapshot."""
    deadline = time.monotonic() + _LONGEST_S
    rows = 0
    while time.monotonic() < deadline:
        time.sleep(0.5)
        catalog: Any = load_catalog("iceberg", **properties)
        with contextlib.suppress(NoSuchTableError, NoSuchNamespaceError):
            snapshot = catalog.load_table(table).current_snapshot()
            rows = int(snapshot.summary["total-records"]) if snapshot is not None else 0
        catalog.close()
        if rows >= load.records:
            return time.monotonic()
    raise RuntimeError(f"Apache's sink has committed {rows} of {load.records} records in {_LONGEST_S:.0f} s.")


def _checked(properties: Mapping[str, str], name: str, load: Load) -> tuple[int, str]:
    catalog: Any = load_catalog("iceberg", **properties)
    table = catalog.load_table(name)
    ids = np.sort(table.scan(selected_fields=("id",)).to_arrow()["id"].to_numpy())
    size = sum(task.file.file_size_in_bytes for task in table.scan().plan_files())
    catalog.purge_table(name)
    catalog.close()
    if np.array_equal(ids, np.arange(load.records)):
        return size, ""
    return size, f"{len(ids)} rows, {len(np.unique(ids))} of them different, of {load.records} records"


def _table(name: str) -> str:
    return f"bench.{name.replace('-', '_')}"
