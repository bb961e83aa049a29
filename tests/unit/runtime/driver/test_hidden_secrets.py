"""Errors of a run, which reports, topics, pages and callbacks show, do not quote the secrets of its input."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_connect.errors import UnavailableError
from airflow_connect.runtime.driver import entry
from airflow_connect.runtime.spec import RunSpec

SECRETS = {
    "in a parameter": "opensesame1",
    "in an address": "rabbit77hole",
    "of type PASSWORD": "select ssn from patients",
    "of a connection": "jabberw0ck",
    "of a reference": "cheshire3",
}


def test_error_of_a_run_quotes_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    connector = {
        "name": "c",
        "connector.class": "JdbcSourceConnector",
        "connection.url": "jdbc:postgresql://h/db;password=opensesame1",
        "query.masked": SECRETS["of type PASSWORD"],
    }
    worker = {"hdfs.url": "hdfs://me:rabbit77hole@h:1"}
    spec = RunSpec(connector, worker, aws={"secret_access_key": "jabberw0ck"}, references={"${env:C}": "cheshire3"})

    def fail(*_: Any) -> Any:
        raise UnavailableError(f"Nothing at {worker['hdfs.url']}: {SECRETS}.", suggestion=f"Not {SECRETS}?")

    monkeypatch.setattr(entry, "kind_of", fail)
    events: list[Any] = []
    told = json.dumps([entry.run_connector(spec, events.append).to_json(), events])
    assert [secret for secret in SECRETS.values() if secret in told] == []
    assert "${env:C}" in told and "Nothing at hdfs://me:[hidden]@h:1" in told
