"""MySQL and MariaDB give a SELECT warnings, and no errors, for values that they cut or cannot compute."""

from __future__ import annotations

import pytest

from airflow_connect.databases.dialects.mysql import MySqlDialect
from airflow_connect.errors import DatabaseError
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database

pytestmark = pytest.mark.integration


@pytest.fixture
def database(mariadb_database: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A table of two rows, on a server that cuts GROUP_CONCAT as MySQL does by default (1024)."""
    mariadb_database.execute(
        "CREATE TABLE a (id INT PRIMARY KEY, v TEXT, n VARCHAR(20), changed DATETIME NOT NULL)",
        "INSERT INTO a VALUES (1, REPEAT('x', 900), 'secret', '2026-01-01'), (2, REPEAT('y', 900), '7', '2026-01-01')",
    )
    own = MySqlDialect.connect_arguments

    def limited(self: MySqlDialect, address: object) -> dict[str, object]:
        return {**own(self, address), "init_command": "SET group_concat_max_len = 1024"}  # type: ignore[arg-type]

    monkeypatch.setattr(MySqlDialect, "connect_arguments", limited)
    return mariadb_database


def warned(database: Database, columnar: bool, **config: str) -> list[str]:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    run = Copies({"connection.url": database.jdbc_url, "mode": "bulk", **settings}, columnar=columnar).run()
    assert run.records
    return [note for note in run.notes if "warning" in note]


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("(SELECT GROUP_CONCAT(v) FROM a)", "was cut by group_concat() (1260)"),
        ("CAST(n AS SIGNED)", "truncated incorrect integer value: (value not shown) (1292)"),
        ("id / 0", "division by 0 (1365)"),
        ("REPEAT('x', 1 << 30)", "max_allowed_packet"),
    ],
)
def test_values_that_the_database_cut_or_could_not_compute_are_named(
    database: Database, expression: str, said: str, columnar: bool
) -> None:
    query = f"SELECT id, changed, {expression} AS found FROM a"
    (note,) = warned(database, columnar, query=query)
    assert said in note.lower() and "when the query was read" in note
    assert "secret" not in note
    (note,) = warned(database, columnar, query=query, mode="timestamp", timestamp_column_name="changed")
    assert said in note.lower()
    database.execute(f"CREATE VIEW seen AS {query}")
    (note,) = warned(database, columnar, table_types="VIEW")
    assert ".seen was read" in note and said in note.lower()


def test_words_of_a_masked_query_are_not_repeated(database: Database) -> None:
    (note,) = warned(database, False, query_masked="SELECT id / 0 AS found FROM a")
    assert "2 warnings" in note and "1365" in note and "Division" not in note


def test_warnings_of_a_server_that_keeps_none_are_named(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `max_error_count=0` the server does not even count them: values were changed without a word."""
    own = MySqlDialect.connect_arguments

    def limited(self: MySqlDialect, address: object) -> dict[str, object]:
        return {**own(self, address), "init_command": "SET max_error_count = 0"}  # type: ignore[arg-type]

    monkeypatch.setattr(MySqlDialect, "connect_arguments", limited)
    (note,) = warned(database, False, query="SELECT CAST(n AS SIGNED) AS found FROM a")
    assert "1 warning" in note and "1292" in note


def test_results_without_warnings_have_no_note(database: Database) -> None:
    assert warned(database, False) == []
    assert (
        warned(database, False, query="SELECT id, CAST(n AS CHAR(3)) AS c, NULLIF(id, 1) AS z FROM a WHERE id > 1")
        == []
    )


def test_statement_that_the_server_ends_in_the_middle_of_its_result_is_an_error(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`max_statement_time` ends it after some rows were sent."""
    database.execute("INSERT INTO a SELECT seq, 'v', '1', '2026-01-01' FROM seq_3_to_2000")
    own = MySqlDialect.connect_arguments

    def limited(self: MySqlDialect, address: object) -> dict[str, object]:
        return {**own(self, address), "init_command": "SET max_statement_time = 1"}  # type: ignore[arg-type]

    monkeypatch.setattr(MySqlDialect, "connect_arguments", limited)
    query = "SELECT id, v, IF(id > 1500, benchmark(3000000, md5(id)), 0) AS w FROM a"
    config = {"mode": "incrementing", "incrementing.column.name": "id", "query": query, "batch.max.rows": "500"}
    runs = Copies({**config, "connection.url": database.jdbc_url, "query.retry.attempts": "1"})
    with pytest.raises(DatabaseError, match="max_statement_time exceeded"):
        runs.run()
    ((_, offset),) = runs.committed()
    assert 0 < offset["incrementing"] < 2000
