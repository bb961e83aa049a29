"""A table and a connector of Debezium that reads its changes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import create_engine, text

from tests.support.copies.java_plugin import JavaConnector

ROWS_OF_CHANGES = {
    "transforms": "unwrap",
    "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
    "transforms.unwrap.delete.tombstone.handling.mode": "rewrite",
    "topic.creation.default.partitions": "1",
    "topic.creation.default.replication.factor": "1",
}
"""Rows instead of Debezium's envelopes; a deleted row is a record with `__deleted`."""


@dataclass
class Replicated:
    """A table, and the connector that reads its changes.

    Attributes:
        connector: of the table.
        url: of its database.
        topic: of its changes.
    """

    connector: JavaConnector
    url: str
    topic: str

    def execute(self, *statements: str) -> None:
        """Change the database, in one transaction."""
        arguments = {"ssl_disabled": True} if self.url.startswith("mysql") else {}
        engine = create_engine(self.url, connect_args=arguments)
        with engine.begin() as connection:
            for statement in statements:
                connection.execute(text(statement))
        engine.dispose()

    def changes(self) -> list[tuple[int, dict[str, Any]]]:
        """Key and value of every record, in the order of the topic."""
        messages = self.connector.messages(self.topic)
        return [(json.loads(m.key() or b"{}")["id"], json.loads(m.value() or b"null")) for m in messages]

    def rows(self) -> dict[int, str]:
        """What the topic says is in the table."""
        rows: dict[int, str] = {}
        for key, value in self.changes():
            if value["__deleted"] == "true":
                rows.pop(key, None)
            else:
                rows[key] = value["name"]
        return rows
