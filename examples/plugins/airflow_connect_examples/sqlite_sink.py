"""A sink: values as JSON in a SQLite file. A repeated record replaces itself, so there are no duplicates."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing

from airflow_connect import api
from airflow_connect.api import ConfigDef, ConfigKey, ConfigType, Delivery, SinkConnector, SinkRecord, SinkTask

TABLE = "CREATE TABLE IF NOT EXISTS records (topic, partition, offset, value, PRIMARY KEY (topic, partition, offset))"


class SqliteSinkTask(SinkTask):
    def start(self, config: Mapping[str, str]) -> None:
        self.file = config["sqlite.file"]

    def put(self, records: Sequence[SinkRecord]) -> None:
        rows = [(r.original_topic, r.original_partition, r.offset, json.dumps(r.value)) for r in records]
        try:
            with closing(sqlite3.connect(self.file)) as database, database:
                database.execute(TABLE)
                database.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?)", rows)
        except sqlite3.OperationalError as error:  # another task writes just now: the same records come again
            raise api.RetriableError(f"{self.file} cannot be written: {error}.") from error

    def stop(self) -> None:
        """Nothing is open between two calls of put."""


class SqliteSinkConnector(SinkConnector):
    version = "1.0"
    task_class = SqliteSinkTask
    delivery = Delivery.IDEMPOTENT
    config_def = ConfigDef().define(ConfigKey("sqlite.file", ConfigType.STRING, documentation="Path of the file."))
