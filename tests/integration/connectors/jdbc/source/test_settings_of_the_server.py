"""What a server, a database or a user sets for sessions changes neither rows nor values."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.api import schema as s
from airflow_connect.databases.dialects.mysql import MySqlDialect
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database
from tests.support.values.jdbc_columns import ColumnRun

pytestmark = pytest.mark.integration
SETTINGS = ("extra_float_digits = 0", "datestyle = 'German'", "quote_all_identifiers = on")


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_values_of_postgresql_are_whole(postgresql_database: Database, columnar: bool) -> None:
    database = postgresql_database
    ((name,),) = database.rows("SELECT current_database()")
    database.execute(
        "CREATE TABLE a (id int PRIMARY KEY, number float8, day date, moment timestamptz NOT NULL)",
        "INSERT INTO a VALUES (1, 0.1::float8 + 0.2::float8, '2026-02-01', '2026-02-01 05:06:07.123456+00')",
        *(f"ALTER DATABASE {name} SET {setting}" for setting in SETTINGS),
    )
    config = {"connection.url": database.jdbc_url, "mode": "timestamp", "timestamp.column.name": "moment"}
    (value,) = Copies(config, columnar=columnar).run().values
    assert value == {"id": 1, "number": 0.1 + 0.2, "day": 20485, "moment": 1769922367123}


@pytest.mark.parametrize("mode", ["bulk", "incrementing", "timestamp"])
def test_results_of_mariadb_are_whole(mariadb_database: Database, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sql_select_limit` ends every result without an error, also in the middle of equal timestamps."""
    mariadb_database.execute(
        "CREATE TABLE a (id INT PRIMARY KEY, changed DATETIME NOT NULL)",
        "INSERT INTO a SELECT seq, '2026-02-01 00:00:00' FROM seq_1_to_5",
    )
    own = MySqlDialect.connect_arguments

    def limited(self: MySqlDialect, address: Any) -> dict[str, Any]:
        return {**own(self, address), "init_command": "SET sql_select_limit = 2"}

    monkeypatch.setattr(MySqlDialect, "connect_arguments", limited)
    config = {"connection.url": mariadb_database.jdbc_url, "mode": mode}
    config |= {"incrementing.column.name": "id", "timestamp.column.name": "changed"} if mode != "bulk" else {}
    config = {key: value for key, value in config.items() if "." not in key or mode in key or "url" in key}
    assert Copies(config).run().ids() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("sql_mode", ["PAD_CHAR_TO_FULL_LENGTH", "ORACLE,EMPTY_STRING_IS_NULL", "ANSI_QUOTES"])
def test_texts_of_mariadb_are_whole(mariadb_database: Database, sql_mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mariadb_database.execute(
        "CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, c CHAR(5), v VARCHAR(5))",
        "INSERT INTO a VALUES (1, 'x', '')",
    )
    own = MySqlDialect.connect_arguments

    def changed(self: MySqlDialect, address: Any) -> dict[str, Any]:
        return {**own(self, address), "init_command": f"SET SESSION sql_mode = '{sql_mode}'"}

    monkeypatch.setattr(MySqlDialect, "connect_arguments", changed)
    for mode in ("bulk", "incrementing"):
        config = {"connection.url": mariadb_database.jdbc_url, "mode": mode}
        assert Copies(config).run().values == [{"id": 1, "c": "x", "v": ""}]


@pytest.mark.parametrize("value", ["CHAIN", "RELEASE"])
def test_commits_of_mariadb_only_commit(
    mariadb_database: Database, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """With RELEASE, a commit ended the session: each run of source and sink failed, and no message named the reason."""
    own = MySqlDialect.connect_arguments

    def changed(self: MySqlDialect, address: Any) -> dict[str, Any]:
        return {**own(self, address), "init_command": f"SET SESSION completion_type = '{value}'"}

    mariadb_database.execute("CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1), (2)")
    mariadb_database.execute("CREATE TABLE orders (id INT PRIMARY KEY)")
    monkeypatch.setattr(MySqlDialect, "connect_arguments", changed)
    config = {"connection.url": mariadb_database.jdbc_url, "mode": "incrementing", "table.whitelist": "a"}
    config["incrementing.column.name"] = "id"
    assert Copies(config).run().ids() == [1, 2]
    run = ColumnRun(mariadb_database, s.struct(("id", s.INT32)))
    assert run.copy([{"id": n} for n in range(3)]).report.written == 3
