"""Rows of the restore source: a topic is backed up to a directory once; each record is counted back in its copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.s3 import S3Server
from airflow_connect.documents.run import DONE, RunReport
from tests.bench.arrivals import BUCKET
from tests.bench.mirrors import BY_TIME, LZ4, checked
from tests.bench.topics import SCHEMA, Load
from tests.support.kafka_data import delete_topic

STORE = "restore"
CONFIG = {**BY_TIME, **LZ4}
_SINK, _SOURCE = "LocalSinkConnector", "airflow_connect.connectors.local.LocalSourceConnector"
_S3_SINK, _S3_SOURCE = "io.confluent.connect.s3.S3SinkConnector", "io.confluent.connect.s3.source.S3SourceConnector"
_PARQUET = {"format.class": "ParquetFormat"}
_JSON_VALUES = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
_LOSSES = {"accept.loss": "timestamp,key,headers"}
PARQUET_VALUES = {**CONFIG, **_PARQUET, **_JSON_VALUES, **_LOSSES}
JSON_VALUES = {**CONFIG, "format.class": "JsonFormat", **_JSON_VALUES, **_LOSSES}
OBJECTS = 9_000
SMALL_OBJECTS = {**JSON_VALUES, "s3.bucket.name": BUCKET}
_TYPED = {
    "value.converter": "JsonConverter",
    "value.converter.schemas.enable": "true",
    "value.converter.schema.content": SCHEMA,
    "key.converter": "StringConverter",
}
_SINKS = {
    "whole": {**_PARQUET, "store.kafka.records": "true", "parquet.codec": "zstd"},
    "parquet": {**_PARQUET, **_TYPED, "parquet.codec": "snappy"},
    "json": {
        "format.class": "JsonFormat",
        **_JSON_VALUES,
        "key.converter": "StringConverter",
        "s3.compression.type": "gzip",
    },
}
_SINKS["small"] = {**_SINKS["json"], "storage.class": "io.confluent.connect.s3.storage.S3Storage"}
"""What the sinks have that write the files of each layout."""


def layout_of(config: Mapping[str, str]) -> str:
    """Which files a row restores."""
    if config.get("format.class") == "JsonFormat":
        return "small" if "s3.bucket.name" in config else "json"
    return "parquet" if "value.converter" in config else "whole"


class Restores:
    """Backups of topics, in directories, and in a bucket if they are many objects."""

    def __init__(self, folder: Path, kafka: KafkaBroker, s3: S3Server) -> None:
        """Nothing is backed up before it is needed."""
        self._folder, self._kafka, self._s3 = folder, kafka, s3
        self._kept: set[tuple[str, Load]] = set()

    def back_up(
        self,
        load: Load,
        config: Mapping[str, str],
        run: Callable[[dict[str, Any]], tuple[float, float, int, RunReport]],
    ) -> None:
        """Write the files of a topic once, in the layout that a row restores."""
        layout = layout_of(config)
        if (layout, load) in self._kept:
            return
        size = -(-load.records // OBJECTS) if layout == "small" else 250_000
        places = {"topics": load.topic, "flush.size": str(size), **self._store(layout, _SINK, _S3_SINK)}
        name = f"backup-{layout}-{load.topic}"
        report = run({"name": name, "tasks.max": "2", **places, **_SINKS[layout]})[3]
        if report.status != DONE:
            raise RuntimeError(f"The backup failed: {report.error}")
        self._kept.add((layout, load))

    def _store(self, layout: str, of_directory: str, of_bucket: str) -> dict[str, str]:
        """Where the files are, and the connector for them."""
        if layout != "small":
            return {"connector.class": of_directory, "store.url": f"file://{self._folder}/{layout}"}
        return {
            "connector.class": of_bucket,
            "s3.bucket.name": BUCKET,
            "s3.region": self._s3.region,
            "store.url": self._s3.endpoint_url,
            "aws.access.key.id": self._s3.access_key,
            "aws.secret.access.key": self._s3.secret_key,
            "topics.dir": "small-objects",
        }

    def connector(self, name: str, load: Load, config: Mapping[str, str]) -> dict[str, str]:
        """A connector that restores the topic under its own name."""
        return {
            "name": name,
            "tasks.max": "2",
            **self._store(layout_of(config), _SOURCE, _S3_SOURCE),
            "topics": load.topic,
            "topic.rename": f"{load.topic}:{name}",
            "accept.loss": "retention",
            **_PARQUET,
            **config,
        }

    def check(self, name: str, load: Load) -> tuple[int, str]:
        """Bytes of the copy, and what is wrong with it; the copy is removed."""
        found = checked(self._kafka.bootstrap, name, load)
        delete_topic(self._kafka.bootstrap, name)
        return found
