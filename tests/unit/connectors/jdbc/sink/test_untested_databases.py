"""Databases whose statements were never run on a server: each plan and report says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
from airflow_connect.runtime.spec import RunSpec

WORKER = {"bootstrap.servers": "127.0.0.1:1", "key.converter": "StringConverter", "value.converter": "AvroConverter"}


def notes(url: str) -> tuple[str, ...]:
    config = {"name": "n", "connector.class": "JdbcSink", "topics": "t", "connection.url": url}
    return SinkConfiguration.from_spec(RunSpec(config, WORKER)).sink_notes


@pytest.mark.parametrize(
    ("url", "driver", "database"),
    [
        ("jdbc:sqlserver://db:1433;databaseName=shop", "pymssql", "SQL Server"),
        ("jdbc:oracle:thin:@//db:1521/shop", "oracledb", "Oracle"),
    ],
)
def test_run_into_an_untested_database_says_so(
    url: str, driver: str, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{driver}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    (note,) = notes(url)
    assert note.startswith(f"The JDBC sink is untested on {database}: its statements")


def test_run_into_a_tested_database_has_no_such_note() -> None:
    assert notes("jdbc:sqlite:/tmp/x.db") == ()
