"""A metastore, sinks whose files become tables of it, and what it holds afterwards."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.documents.run import RunReport
from airflow_connect.hive.client import MetastoreClient
from airflow_connect.hive.settings import MetastoreSettings
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.spec import RunSpec
from tests.devstack.hive_metastore import HiveMetastore
from tests.support.copies.s3 import InProcessEngine


@dataclass
class HiveSink:
    """An HDFS sink with hive.integration, and its tables."""

    kafka: KafkaBroker
    name: str
    topic: str
    store_url: str
    uris: str
    database: str
    config: dict[str, str] = field(default_factory=dict)

    def connector(self, **overrides: str) -> dict[str, str]:
        """The configuration; `_` stands for `.`."""
        return {
            "name": self.name,
            "connector.class": "io.confluent.connect.hdfs.HdfsSinkConnector",
            "tasks.max": "2",
            "topics": self.topic,
            "store.url": self.store_url,
            "format.class": "io.confluent.connect.hdfs.parquet.ParquetFormat",
            "flush.size": "1000",
            "schema.compatibility": "BACKWARD",
            "hive.integration": "true",
            "hive.metastore.uris": self.uris,
            "hive.database": self.database,
            **self.config,
            **{key.replace("_", "."): value for key, value in overrides.items()},
        }

    def spec(self, **overrides: str) -> RunSpec:
        """What a run is told."""
        worker = {
            "bootstrap.servers": self.kafka.bootstrap,
            "group.id": "test-workers",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "true",
            "runs.storage.replication.factor": "1",
        }
        return RunSpec(self.connector(**overrides), worker)

    def try_run(self, **overrides: str) -> RunReport:
        """One run, whatever comes of it."""
        return run_connector(self.spec(**overrides), engine=InProcessEngine())

    def run(self, **overrides: str) -> RunReport:
        """One run that must be done."""
        report = self.try_run(**overrides)
        assert report.status in ("done", "empty"), report.error
        return report

    def client(self) -> MetastoreClient:
        """A client of the metastore."""
        return MetastoreClient(MetastoreSettings.from_keys(self.uris, ""))

    @property
    def table_name(self) -> str:
        """The table of the topic."""
        return self.topic.replace("-", "_").replace(".", "_")

    def table(self, name: str = "") -> Any:
        """The metastore's table."""
        with self.client() as client:
            found = client.table(self.database, name or self.table_name)
        assert found is not None
        return found

    def columns(self) -> list[tuple[str, str]]:
        """Names and types of the table's columns."""
        return [(column.name, column.type) for column in self.table().sd.cols]

    def partitions(self) -> dict[tuple[str, ...], Any]:
        """The table's partitions, by value."""
        with self.client() as client:
            found = client._call("list", lambda c: c.get_partitions(self.database, self.table_name, -1))
        return {tuple(partition.values): partition for partition in found}

    def files(self) -> list[Path]:
        """Visible files of a local store."""
        root = Path(self.store_url.removeprefix("file://"))
        return sorted(p for p in root.rglob("*") if p.is_file() and "+tmp" not in p.parts and p.name[0] not in "._")


MakeHiveSink = Callable[..., HiveSink]


@pytest.fixture
def make_hive_sink(kafka: KafkaBroker, metastore: HiveMetastore, tmp_path: Path) -> MakeHiveSink:
    """Make a sink: `make_hive_sink(topic, store_url=None, **config)`, `_` in a key standing for `.`."""

    def make(topic: str, store_url: str = "", uris: str = "", **config: str) -> HiveSink:
        return HiveSink(
            kafka,
            f"hive-{uuid.uuid4().hex[:8]}",
            topic,
            store_url or f"file://{tmp_path}/store",
            uris or metastore.uri,
            f"db_{uuid.uuid4().hex[:8]}",
            {key.replace("_", "."): value for key, value in config.items()},
        )

    return make


def enveloped(
    fields: Sequence[Mapping[str, Any]], payloads: Sequence[Mapping[str, Any]], version: int = 1, partition: int = 0
) -> list[tuple[Any, ...]]:
    """Rows to produce: JsonConverter's envelopes of structs with these fields."""
    schema = {"type": "struct", "name": "shop.Order", "version": version, "optional": False, "fields": list(fields)}
    return [(partition, None, json.dumps({"schema": schema, "payload": payload})) for payload in payloads]


def member(name: str, kind: str, /, *, optional: bool = False, **more: Any) -> dict[str, Any]:
    """A field of a struct as JsonConverter writes it."""
    return {"field": name, "type": kind, "optional": optional, **more}
