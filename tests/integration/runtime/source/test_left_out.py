"""A part of a source that cannot be copied: the others are committed, then the run fails and names it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from airflow_connect.connectors.jdbc.source.task import JdbcSourceTask
from airflow_connect.connectors.jdbc.source.work import Item
from airflow_connect.errors import UnavailableError
from airflow_connect.retrying import Backoff
from airflow_connect.runtime.executor.source import loop
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


def test_offset_without_a_record_is_kept_if_the_poll_fails_after_it_for_a_moment(
    numbers: Numbers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The beginning that `timestamp.initial=-1` gives a table was forgotten, and with it rows until the next run."""
    database = sqlite_in(tmp_path)
    for table in ("a", "b"):
        database.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, changed DATETIME NOT NULL)")
    numbers.config = {
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector", "mode": "timestamp",
        "timestamp.column.name": "changed", "timestamp.initial": "-1", "tasks.max": "1",
        "connection.url": database.jdbc_url, "topic.prefix": f"{numbers.topic}-",
        "topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1",
    }  # fmt: skip
    open_table, failed = JdbcSourceTask._open, []

    def fail_once(task: JdbcSourceTask, item: Item) -> bool:
        if item.table is not None and item.table.table == "b" and not failed:
            failed.append(item)
            raise UnavailableError("The database did not answer.")
        return open_table(task, item)

    monkeypatch.setattr(JdbcSourceTask, "_open", fail_once)
    monkeypatch.setattr(loop, "POLL_BACKOFF", Backoff(0.001))
    assert numbers.run().records == 0 and failed

    for table in ("a", "b"):
        database.execute(f"INSERT INTO {table} VALUES (1, strftime('%Y-%m-%d %H:%M:%f', 'now'))")
    time.sleep(1.1)  # SQLite's clock has whole seconds, and a run reads only rows before its own.
    assert numbers.run().records == 2
