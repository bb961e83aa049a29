"""No part of `query.masked` is in an error, whatever the database says about it."""

from __future__ import annotations

import pytest

from airflow_connect.errors import ConnectError
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("server", ["postgresql", "mariadb", "sqlite"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, hush1 FROM orders",
        "SELECT id FROM hush2",
        "SELECT id FROM orders WHERE 'hush3' FRUM hush4",
        "SELECT hush5(id) FROM orders",
        "SELECT id FROM orders WHERE id = CAST('hush6' AS DATE) AND hush7 = 'hush8'",
    ],
)
def test_error_of_a_masked_query_has_no_part_of_it(request, server: str, query: str, columnar: bool) -> None:
    database: Database = request.getfixturevalue(f"{server}_database")
    database.execute("CREATE TABLE orders (id int NOT NULL PRIMARY KEY)", "INSERT INTO orders VALUES (1)")
    config = {
        "connection.url": database.jdbc_url, "mode": "bulk", "connection.backoff.ms": "50",
        "query.masked": query, "query.retry.attempts": "0",
    }  # fmt: skip
    with pytest.raises(ConnectError, match=r"error .*query\.masked") as caught:
        Copies(config, columnar=columnar).run()
    assert "hush" not in f"{caught.value} {caught.value.suggestion} {caught.value.__cause__}"


@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
def test_report_of_a_masked_query_has_no_names_of_its_tables(request, server: str) -> None:
    """Notes of open transactions, of tables that were made again, and of zones named them."""
    database: Database = request.getfixturevalue(f"{server}_database")
    instant, local = ("timestamptz", "timestamp") if server == "postgresql" else ("timestamp", "datetime")
    rows = "INSERT INTO hush VALUES ({}, '2026-01-01 00:00:00', '2026-01-01 00:00:00')"
    made = f"CREATE TABLE hush (id int NOT NULL PRIMARY KEY, at {instant} NOT NULL, b {local} NOT NULL)"
    database.execute(made, rows.format(1))
    config = {
        "connection.url": database.jdbc_url, "mode": "timestamp", "timestamp.column.name": "b",
        "query.masked": "SELECT id, b, COALESCE(at, b) AS c FROM hush", "db.timezone": "Asia/Tokyo",
    }  # fmt: skip
    runs = Copies(config)
    with database.engine().connect() as other:
        other.exec_driver_sql(rows.format(2))
        notes = runs.run().notes
        other.rollback()
    database.execute("DROP TABLE hush", made, rows.format(1))
    notes += runs.run().notes
    assert [n for n in notes if "hush" in n] == []
    found = [n for n in notes if "a table of query.masked" in n]
    assert len(found) == (4 if server == "postgresql" else 1), found


def test_text_in_the_number_of_sqlite_is_not_shown(sqlite_database: Database) -> None:
    sqlite_database.execute("CREATE TABLE orders (id int NOT NULL)", "INSERT INTO orders VALUES ('hush')")
    config = {"mode": "incrementing", "incrementing.column.name": "id", "table.whitelist": "orders"}
    with pytest.raises(ConnectError) as caught:
        Copies({"connection.url": sqlite_database.jdbc_url, **config}).run()
    assert "has a text, which is not a whole number" in str(caught.value) and "hush" not in str(caught.value)
