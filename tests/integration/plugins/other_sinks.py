"""Two more ways to deliver: a sink that simply appends, and one that keeps its offsets beside its records."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from airflow_connect.api import (
    ConfigDef,
    ConfigKey,
    ConfigType,
    Delivery,
    SinkConnector,
    SinkRecord,
    SinkTask,
    TopicPartition,
)

PATH = ConfigDef().define(ConfigKey("path", ConfigType.STRING, documentation="Where records go."))


class AppendTask(SinkTask):
    """Appends a line per record; nothing tells it what is there already."""

    def start(self, config: Mapping[str, str]) -> None:
        self.path = Path(config["path"])

    def put(self, records: Sequence[SinkRecord]) -> None:
        with self.path.open("a") as file:
            file.writelines(json.dumps(record.value) + "\n" for record in records)

    def stop(self) -> None:
        pass


class AppendConnector(SinkConnector):
    """At least once."""

    task_class = AppendTask
    config_def = PATH


class OffsetsTask(SinkTask):
    """Records and the offsets behind them in one transaction of a database."""

    def start(self, config: Mapping[str, str]) -> None:
        self.database = sqlite3.connect(config["path"], timeout=60, isolation_level="IMMEDIATE")
        self.database.execute("CREATE TABLE IF NOT EXISTS records (partition, value)")
        self.database.execute("CREATE TABLE IF NOT EXISTS offsets (topic, partition, next, UNIQUE (topic, partition))")

    def open(self, partitions: Collection[TopicPartition]) -> None:
        for topic, partition, following in self.database.execute("SELECT topic, partition, next FROM offsets"):
            if TopicPartition(topic, partition) in partitions:
                self.context.offset(TopicPartition(topic, partition), following)

    def put(self, records: Sequence[SinkRecord]) -> None:
        with self.database:
            for r in records:
                # Asked again inside the transaction: an executor that was taken for dead may still be writing.
                place = (r.original_topic, r.original_partition, r.offset + 1)
                newer = "WHERE excluded.next > offsets.next"
                upsert = f"INSERT INTO offsets VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET next = excluded.next {newer}"
                if self.database.execute(upsert, place).rowcount:
                    self.database.execute("INSERT INTO records VALUES (?, ?)", (r.partition, json.dumps(r.value)))

    def stop(self) -> None:
        self.database.close()


class OffsetsConnector(SinkConnector):
    """Exactly once: the target says where to resume."""

    task_class = OffsetsTask
    delivery = Delivery.TRANSACTIONAL
    config_def = PATH
