"""Runs of a JDBC sink on the real broker and a real database, and what its table holds afterwards."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any

from airflow_connect.api import schema as s
from airflow_connect.converters.json.schema import schema_to_json
from tests.support.copies.s3 import Sink
from tests.support.servers.databases import Database


@dataclass
class JdbcSink(Sink):
    """One JDBC sink connector of a test; its table is `bucket`, without a key: what is written twice is there twice."""

    database: Database | None = None

    @property
    def table(self) -> str:
        """Its name, in quotes."""
        return f"`{self.bucket}`" if self.target.dialect == "mysql" else f'"{self.bucket}"'

    @property
    def target(self) -> Database:
        """The database."""
        assert self.database is not None
        return self.database

    def connector(self, **overrides: Any) -> dict[str, Any]:
        """The configuration as people write it for Confluent's sink; `None` removes a key, `_` stands for `.`."""
        config = {
            "name": self.name,
            "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
            "tasks.max": "2",
            "topics": self.topic,
            "connection.url": self.target.jdbc_url,
            "table.name.format": self.bucket,
            "fields.whitelist": "n,pad",
            "retry.backoff.ms": "100",
            **self.config,
        }
        overrides["batch_size"] = overrides.pop("flush_size", None)
        config.update({key.replace("_", "."): value for key, value in overrides.items()})
        return {key: value for key, value in config.items() if value is not None}

    def values(self) -> list[Any]:
        """Every row."""
        return [{"n": n} for (n,) in self.target.rows(f"SELECT n FROM {self.table}")]

    def uploads(self) -> list[str]:
        """Nothing is staged."""
        return []

    def identities(self) -> dict[str, tuple[str, str]]:
        """Every row: what is visible never vanishes. `COUNT` changes if one is there twice."""
        query = f"SELECT n, COUNT(*) FROM {self.table} GROUP BY n"
        return {str(n): (str(count), "") for n, count in self.target.rows(query)}

    def settings_for_pieces(self, piece_bytes: int) -> dict[str, str]:
        """There is no such setting."""
        return {}

    def most_pieces(self) -> int:
        """Large records need several transactions; no row tells which."""
        return 2

    def remove_all(self) -> None:
        """Delete every row."""
        self.target.execute(f"DELETE FROM {self.table}")


VALUE_SCHEMA = s.struct(("n", s.INT64), ("pad", s.OPTIONAL_STRING))


def jdbc_sink(kafka: Any, database: Database, topic: str, *, in_columns: bool = False, **config: str) -> JdbcSink:
    """A connector with a table of its own. `in_columns`: values have a schema, without which there are only rows."""
    name = f"sink-{uuid.uuid4().hex[:8]}"
    settings = {key.replace("_", "."): value for key, value in config.items()}
    if in_columns:
        settings |= {
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schema.content": schema_to_json(VALUE_SCHEMA, lambda _, default: json.dumps(default)),
        }
    sink = JdbcSink(kafka, None, name, name, topic, settings, database=database)  # type: ignore[arg-type]
    text = "LONGTEXT" if database.dialect == "mysql" else "TEXT"
    database.execute(f"CREATE TABLE {sink.table} (n BIGINT NOT NULL, pad {text})")
    return sink
