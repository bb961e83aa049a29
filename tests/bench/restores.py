"""Rows of the restore source: a topic is backed up to a directory once; each record is counted back in its copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.documents.run import DONE, RunReport
from tests.bench.mirrors import BY_TIME, LZ4, checked
from tests.bench.topics import SCHEMA, Load
from tests.support.kafka_data import delete_topic

STORE = "restore"
CONFIG = {**BY_TIME, **LZ4}
_SINK, _SOURCE = "LocalSinkConnector", "airflow_connect.connectors.local.LocalSourceConnector"
_PARQUET = {"format.class": "ParquetFormat"}
_JSON_VALUES = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
_LOSSES = {"accept.loss": "timestamp,key,headers"}
PARQUET_VALUES = {**CONFIG, **_PARQUET, **_JSON_VALUES, **_LOSSES}
JSON_VALUES = {**CONFIG, "format.class": "JsonFormat", **_JSON_VALUES, **_LOSSES}
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
"""What the sinks have that write the files of each layout."""


def layout_of(config: Mapping[str, str]) -> str:
    """Which files a row restores."""
    if config.get("format.class") == "JsonFormat":
        return "json"
    return "parquet" if "value.converter" in config else "whole"


class Restores:
    """Backups of topics, in directories."""

    def __init__(self, folder: Path, kafka: KafkaBroker) -> None:
        """Nothing is backed up before it is needed."""
        self._folder, self._kafka = folder, kafka
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
        places = {"store.url": self._url(layout), "topics": load.topic, "flush.size": "250000"}
        name = f"backup-{layout}-{load.topic}"
        report = run({"name": name, "connector.class": _SINK, "tasks.max": "2", **places, **_SINKS[layout]})[3]
        if report.status != DONE:
            raise RuntimeError(f"The backup failed: {report.error}")
        self._kept.add((layout, load))

    def _url(self, layout: str) -> str:
        return f"file://{self._folder}/{layout}"

    def connector(self, name: str, load: Load, config: Mapping[str, str]) -> dict[str, str]:
        """A connector that restores the topic under its own name."""
        return {
            "name": name,
            "connector.class": _SOURCE,
            "tasks.max": "2",
            "store.url": self._url(layout_of(config)),
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
