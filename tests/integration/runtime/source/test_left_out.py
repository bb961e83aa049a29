"""A part of a source that cannot be copied: the others are committed, then the run fails and names it."""

from __future__ import annotations

import json
from pathlib import Path

from airflow_connect.testing.topics import Topics
from tests.integration.runtime.source.conftest import Numbers
from tests.support.servers.databases import sqlite_in


def test_run_fails_after_the_other_tables_are_committed(numbers: Numbers, tmp_path: Path) -> None:
    database = sqlite_in(tmp_path)
    for table in ("a", "bad", "c"):
        database.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, n DECIMAL(9,2) NOT NULL)")
        database.execute(f"INSERT INTO {table} VALUES (1, 1), (2, 2)")
    database.execute("UPDATE bad SET n = 'NaN' WHERE id = 2", 'CREATE TABLE "no topic" (id INTEGER PRIMARY KEY)')
    prefix = f"{numbers.topic}-"
    numbers.config = {
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector", "mode": "incrementing",
        "connection.url": database.jdbc_url, "topic.prefix": prefix,
        "topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1",
    }  # fmt: skip
    report = numbers.try_run()
    assert report.status == "failed" and report.records == 4 and report.error is not None
    assert report.error["code"] == "source.left_out" and not report.error["retriable"]
    assert "the table bad" in report.error["message"] and "the table no topic" in report.error["message"]
    notes = [note for note in report.notes if "was left out" in note]
    assert sorted(note.partition(" was")[0] for note in notes) == ["The table bad", "The table no topic"]

    database.execute("UPDATE bad SET n = 2 WHERE id = 2", 'DROP TABLE "no topic"')
    mended = numbers.run()
    assert mended.records == 2 and mended.error is None
    read = Topics(numbers.bootstrap).read
    for table in ("a", "bad", "c"):
        assert [json.loads(m.value() or b"")["id"] for m in read(prefix + table)] == [1, 2], table
