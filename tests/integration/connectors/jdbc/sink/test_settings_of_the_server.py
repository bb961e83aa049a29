"""What a server, a database or a user sets for sessions changes no value that is written, and hides no note."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.api import schema as s
from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.schema import array
from airflow_connect.databases.dialects.mysql import MySqlDialect
from tests.support.copies.jdbc_sink_tasks import TOPIC, SinkRun, give, put, records
from tests.support.servers.databases import Database
from tests.support.values.jdbc_columns import ColumnRun

pytestmark = pytest.mark.integration
TEXTS = ("", " ", "a\\b'c\"d%", "NULL", "\\x41")


@pytest.mark.parametrize("rows", [10, 600], ids=["rows", "columns"])
@pytest.mark.parametrize("mode", ["insert", "upsert", "update"])
@pytest.mark.parametrize(
    "sql_mode",
    [
        "EMPTY_STRING_IS_NULL",
        "PAD_CHAR_TO_FULL_LENGTH",
        "NO_BACKSLASH_ESCAPES",
        "ORACLE",
        "ANSI_QUOTES,PIPES_AS_CONCAT",
    ],
)
def test_texts_of_mariadb_are_what_was_sent(
    mariadb_database: Database, monkeypatch: pytest.MonkeyPatch, rows: int, mode: str, sql_mode: str
) -> None:
    own = MySqlDialect.connect_arguments

    def changed(self: MySqlDialect, address: Any) -> dict[str, Any]:
        return {**own(self, address), "init_command": f"SET SESSION sql_mode = '{sql_mode}'"}

    mariadb_database.execute("CREATE TABLE orders (n CHAR(5) NOT NULL PRIMARY KEY, a TEXT, b CHAR(20))")
    if mode == "update":
        mariadb_database.execute(f"INSERT INTO orders (n) SELECT seq FROM seq_0_to_{rows - 1}")
    monkeypatch.setattr(MySqlDialect, "connect_arguments", changed)
    schema = s.struct(("n", s.STRING), ("a", s.OPTIONAL_STRING), ("b", s.OPTIONAL_STRING))
    values = [{"n": str(n), "a": TEXTS[n % 5], "b": TEXTS[n % 5]} for n in range(rows)]
    run = ColumnRun(mariadb_database, schema, insert_mode=mode, pk_mode="record_value", pk_fields="n")
    copied = run.copy(values)
    assert (copied.report.written, copied.letters) == (rows, [])
    found = mariadb_database.rows("SELECT n, a, b FROM orders")
    assert sorted(found) == sorted((v["n"], v["a"], v["b"].rstrip(" ")) for v in values)


@pytest.mark.parametrize(
    "setting",
    [
        "quote_all_identifiers = on", "array_nulls = off", "standard_conforming_strings = off", "bytea_output = escape",
        "transform_null_equals = on", "datestyle = 'SQL, DMY'", "intervalstyle = 'sql_standard'",
    ],
)  # fmt: skip
def test_values_and_notes_of_postgresql_are_the_same(postgresql_database: Database, setting: str) -> None:
    database = postgresql_database
    ((name,),) = database.rows("SELECT current_database()")
    database.execute(
        "CREATE TABLE orders (n int PRIMARY KEY, a text, b text[], c bytea, d timestamp(3), e name, f bytea)",
        f"ALTER DATABASE {name} SET {setting}",
    )
    schema = s.struct(
        ("n", s.INT32), ("a", s.OPTIONAL_STRING), ("b", array(s.OPTIONAL_STRING, optional=True)),
        ("c", s.OPTIONAL_BYTES), ("d", s.timestamp(optional=True)), ("e", s.OPTIONAL_STRING), ("f", s.OPTIONAL_STRING),
    )  # fmt: skip
    texts = ["", "a\\b'c", "NULL", "{a,b}", 'q"x', None]
    values = [
        {"n": n, "a": text, "b": [text, None], "c": b"\\x41\x00\xff", "d": 1_770_091_506_007, "e": text, "f": "\\x41"}
        for n, text in enumerate(texts)
    ]
    runner = SinkRun(database, insert_mode="upsert", pk_mode="record_value", pk_fields="n").open()
    assert give(runner, records(*values, schema=schema)).written == len(values)
    found = database.rows("SELECT n, a, b, c, d, e, f FROM orders ORDER BY n")
    assert [(n, a, b, bytes(c), d.isoformat(), e, bytes(f)) for n, a, b, c, d, e, f in found] == [
        (n, text, [text, None], b"\\x41\x00\xff", "2026-02-03T04:05:06.007000", text, b"A")
        for n, text in enumerate(texts)
    ]
    assert sorted(note[:40] for note in runner.notes.sentences) == [
        "The column e of orders keeps 63 bytes of", "The column f of orders has the type byte",
    ]  # fmt: skip


@pytest.mark.parametrize("rows", [10, 600], ids=["rows", "columns"])
def test_duplicate_of_mariadb_is_found_by_its_statement(
    mariadb_database: Database, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """Without these checks, MariaDB fills an empty table in bulk and reports a duplicate in COMMIT, of no row."""
    own = MySqlDialect.connect_arguments

    def changed(self: MySqlDialect, address: Any) -> dict[str, Any]:
        return {**own(self, address), "init_command": "SET SESSION unique_checks = 0, foreign_key_checks = 0"}

    mariadb_database.execute("CREATE TABLE orders (n INT PRIMARY KEY, a VARCHAR(9) UNIQUE)")
    monkeypatch.setattr(MySqlDialect, "connect_arguments", changed)
    schema = s.struct(("n", s.INT32), ("a", s.OPTIONAL_STRING))
    run = ColumnRun(mariadb_database, schema, insert_mode="insert", errors_tolerance="all")
    copied = run.copy([{"n": n, "a": str(n % (rows - 2))} for n in range(rows)])
    assert copied.letters == [rows - 2, rows - 1]
    assert mariadb_database.rows("SELECT COUNT(*) FROM orders") == [(rows - 2,)]


@pytest.mark.parametrize("mode", ["insert", "upsert", "update"])
def test_session_of_postgresql_has_no_prepared_statements(postgresql_database: Database, mode: str) -> None:
    """A pooler such as PgBouncer may give a transaction the session of another client, which has others of this name.

    With pool_mode=transaction and two tables with equal columns, rows of one went into the other, without an error.
    """
    postgresql_database.execute("CREATE TABLE orders (n BIGINT PRIMARY KEY, note TEXT)")
    schema = s.struct(("n", s.INT64), ("note", s.OPTIONAL_STRING))
    runner = SinkRun(postgresql_database, insert_mode=mode, pk_mode="record_value", pk_fields="n").open()
    for first in range(0, 100, 10):
        put(runner, records(*({"n": n, "note": "a"} for n in range(first, first + 10)), first=first, schema=schema))
        runner.deliver()
        runner._task.flush()  # type: ignore[attr-defined]
    connection: Any = runner._task._writer._connection  # type: ignore[attr-defined]
    assert connection.exec_driver_sql("SELECT name FROM pg_prepared_statements").all() == []
    assert runner.report(TopicPartition(TOPIC, 0), 100, end=None, reason="").read == 100
    runner.abort()
