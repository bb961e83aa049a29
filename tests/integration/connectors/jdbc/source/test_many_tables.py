"""Many tables of one database, with one task: what a connection keeps of a table must not grow with their number."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import Engine, event

from airflow_connect.connectors.jdbc.source import connector
from airflow_connect.connectors.jdbc.source.read import identities
from airflow_connect.connectors.jdbc.source.read.reading import Reading
from airflow_connect.connectors.jdbc.source.values.columns import columns_of, know_columns
from airflow_connect.databases.identifiers import TableId
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database
from tests.support.session.searching import IS_SOAK

pytestmark = pytest.mark.integration
TABLES = 2_000 if IS_SOAK else 40
TABLE = """
CREATE TABLE small_{0} (id int PRIMARY KEY, changed timestamptz NOT NULL);
INSERT INTO small_{0} VALUES ({0}, timestamptz '2026-01-01')
"""
MODE = {
    "mode": "timestamp+incrementing", "timestamp.column.name": "changed", "incrementing.column.name": "id",
    "tasks.max": "1",
}  # fmt: skip


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_every_table_is_copied_once_and_new_rows_of_some_are_found(
    postgresql_database: Database, monkeypatch: pytest.MonkeyPatch, columnar: bool
):
    database = postgresql_database
    monkeypatch.setattr(connector, "_TABLES_AT_ONCE", 7)
    database.execute(*(TABLE.format(number) for number in range(TABLES)))
    runs = Copies({"connection.url": database.jdbc_url, **MODE}, columnar=columnar)

    assert sorted(runs.run().ids()) == list(range(TABLES))
    assert runs.run().ids() == []

    database.execute("INSERT INTO small_7 VALUES (-1, now() - interval '1 minute')")
    assert runs.run().ids() == [-1]


def test_run_that_finds_nothing_takes_two_statements_for_each_table(postgresql_database: Database):
    database = postgresql_database
    database.execute(*(TABLE.format(number) for number in range(20)))
    runs = Copies({"connection.url": database.jdbc_url, **MODE})
    runs.run()
    seen: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_others: object) -> None:
        seen.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        assert runs.run().ids() == []
    finally:
        event.remove(Engine, "before_cursor_execute", note)

    assert len([statement for statement in seen if "small_" in statement]) == 2 * 20
    assert len(seen) < 3 * 20, seen


def test_catalog_says_the_same_of_many_tables_as_of_each(postgresql_database: Database):
    database = postgresql_database
    database.execute(
        '''CREATE TABLE plain (id serial PRIMARY KEY, a int NOT NULL, b int, "Ä ""b""" text NOT NULL)''',
        "CREATE TABLE pair (b int, a int GENERATED ALWAYS AS IDENTITY, c text DEFAULT 'x', PRIMARY KEY (c, a))",
        "CREATE TABLE parent (n int NOT NULL, m int NOT NULL)",
        "CREATE TABLE child () INHERITS (parent)",
        "CREATE TABLE other (n int, m int NOT NULL)",
        "CREATE TABLE nothing ()",
        "CREATE VIEW seen AS SELECT id, a FROM plain",
        'CREATE SCHEMA "Other"',
        'CREATE TABLE "Other".plain (a int, id int NOT NULL)',
    )
    names = ["plain", "pair", "parent", "child", "other", "nothing", "seen"]
    tables = [*(TableId("", "public", name) for name in names), TableId("", "Other", "plain")]

    with database.engine().connect() as connection:

        def described() -> list[object]:
            found: list[object] = []
            for table in tables:
                with closing(connection.exec_driver_sql(f'SELECT * FROM "{table.schema}".{table.table}')) as result:
                    found.append(columns_of("postgresql", connection, result.cursor, None))
            return found

        apart = described()
        know_columns("postgresql", connection, tables)
        assert described() == apart
        connection.exec_driver_sql("ALTER TABLE plain ADD COLUMN later int NOT NULL")
        again = described()
        know_columns("postgresql", connection, ())
        assert described() == again


def test_plan_does_not_lock_all_tables_at_once(postgresql_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """5,000 tables with sequences, or 2,200 with some indexes, failed each run: PostgreSQL lacked room for locks."""
    database = postgresql_database
    database.execute(*(f"CREATE TABLE t_{n} (id bigserial PRIMARY KEY, a int)" for n in range(24)))
    database.execute(*(f"CREATE INDEX ON t_{n} (a)" for n in range(24)))
    database.execute(*(f"INSERT INTO t_{n} VALUES (DEFAULT, 1)" for n in range(24)))
    found: list[int] = []
    own = connector.look

    def counted(reading: Reading, *given: Any, **more: Any) -> Any:
        query = "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation'"
        found.append(reading.connection.exec_driver_sql(query).scalar_one())
        return own(reading, *given, **more)

    monkeypatch.setattr(connector, "look", counted)
    runs = Copies({"connection.url": database.jdbc_url, "mode": "incrementing", "incrementing.column.name": "id"})
    runs.run()
    at_once = max(found)
    monkeypatch.setattr(connector, "_TABLES_AT_ONCE", 4)
    monkeypatch.setattr(identities, "_TABLES_AT_ONCE", 4)
    found.clear()
    database.execute(*(f"INSERT INTO t_{n} VALUES (DEFAULT, 1)" for n in range(24)))
    assert len(runs.run().records) == 24
    assert max(found) < at_once / 2, (max(found), at_once)
