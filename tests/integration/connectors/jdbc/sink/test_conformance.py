"""The JDBC sink under the conformance suite of all sinks, on a real database of each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from airflow_connect.testing import SinkConformance
from airflow_connect.testing.cases.sink_case import SinkCase
from tests.support.servers.databases import Database

pytestmark = pytest.mark.integration

TABLE = "CREATE TABLE numbers (id INTEGER PRIMARY KEY {auto}, n INTEGER NOT NULL, p INTEGER)"


class JdbcConformance(SinkConformance):
    """Plain inserts: nothing but the offsets table keeps a record from being written twice."""

    connector_class = "io.confluent.connect.jdbc.JdbcSinkConnector"
    errant_value = '{"n": null, "p": 1}'

    def connector_config(self, target: Database) -> Mapping[str, str]:
        return {
            "connection.url": target.jdbc_url,
            "table.name.format": "numbers",
            "behavior.on.null.values": "ignore",
            "retry.backoff.ms": "100",
        }

    def read_back(self, target: Database) -> Sequence[Any]:
        return [{"n": n, "p": p} for n, p in target.rows("SELECT n, p FROM numbers ORDER BY id")]

    def test_records_that_the_target_has_are_not_read_again(self, case: SinkCase) -> None:
        case.add(9)
        assert case.start(crash_at="copied").wait() is None
        report = case.run()

        assert (report.status, report.records, report.filtered) == ("done", 0, 0)
        case.check_everything_arrived(once=True)
        assert case.committed() == {0: 3, 1: 3, 2: 3}


class TestOnSqlite(JdbcConformance):
    @pytest.fixture
    def target(self, sqlite_database: Database) -> Any:
        sqlite_database.execute(TABLE.format(auto="AUTOINCREMENT"))
        return sqlite_database


class TestOnPostgresql(JdbcConformance):
    @pytest.fixture
    def target(self, postgresql_database: Database) -> Any:
        postgresql_database.execute(TABLE.format(auto="GENERATED ALWAYS AS IDENTITY"))
        return postgresql_database


class TestOnMariaDb(JdbcConformance):
    @pytest.fixture
    def target(self, mariadb_database: Database) -> Any:
        mariadb_database.execute(TABLE.format(auto="AUTO_INCREMENT"))
        return mariadb_database
