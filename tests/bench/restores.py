"""The row of the restore source: a topic is backed up to a directory once; each record is counted back in its copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.documents.run import DONE, RunReport
from tests.bench.mirrors import BY_TIME, LZ4, checked
from tests.bench.topics import Load
from tests.support.kafka_data import delete_topic

STORE = "restore"
CONFIG = {**BY_TIME, **LZ4}
_SINK, _SOURCE = "LocalSinkConnector", "airflow_connect.connectors.local.LocalSourceConnector"
_PARQUET = {"format.class": "ParquetFormat"}


class Restores:
    """Backups of topics, in directories."""

    def __init__(self, folder: Path, kafka: KafkaBroker) -> None:
        """Nothing is backed up before it is needed."""
        self._folder, self._kafka = folder, kafka
        self._kept: set[Load] = set()

    def back_up(self, load: Load, run: Callable[[dict[str, Any]], tuple[float, float, int, RunReport]]) -> None:
        """Write the files of a topic once."""
        if load in self._kept:
            return
        whole = {"store.kafka.records": "true", "flush.size": "250000", "parquet.codec": "zstd"}
        places = {"store.url": f"file://{self._folder}", "topics": load.topic}
        report = run(
            {"name": f"backup-{load.topic}", "connector.class": _SINK, "tasks.max": "2", **places, **_PARQUET, **whole}
        )[3]
        if report.status != DONE:
            raise RuntimeError(f"The backup failed: {report.error}")
        self._kept.add(load)

    def connector(self, name: str, load: Load, config: Mapping[str, str]) -> dict[str, str]:
        """A connector that restores the topic under its own name."""
        return {
            "name": name,
            "connector.class": _SOURCE,
            "tasks.max": "2",
            "store.url": f"file://{self._folder}",
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
