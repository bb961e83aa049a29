"""What a row holds does not depend on the number of rows that are written with it, nor on the path that they take."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from airflow_connect.api import schema as s
from tests.support.values.jdbc_columns import ColumnRun

pytestmark = pytest.mark.integration

CASES = [
    ("postgresql", s.BOOLEAN, "text", True, "true"),
    ("postgresql", s.FLOAT64, "text", 1.0, "1"),
    ("postgresql", s.FLOAT64, "varchar(20)", 1e15, "1e+15"),
    ("postgresql", s.FLOAT64, "numeric", 1.0, "1"),
    ("postgresql", s.FLOAT32, "numeric", 0.10000000149011612, "0.1"),
    ("postgresql", s.FLOAT64, "real", 0.1, "0.1"),
    ("postgresql", s.decimal(2), "text", base64.b64encode(b"\x64").decode(), "1.00"),
    ("postgresql", s.BYTES, "text", base64.b64encode(b"a").decode(), "\\x61"),
    ("postgresql", s.date(), "text", 20455, "2026-01-02"),
    ("postgresql", s.time(), "text", 11_045_500, "03:04:05.5"),
    ("postgresql", s.timestamp(), "text", 1_767_323_045_500, "2026-01-02 03:04:05.5"),
    ("postgresql", s.timestamp(), "date", 1_767_323_045_500, "2026-01-02"),
    ("mariadb", s.time(), "VARCHAR(30)", 11_045_000, "03:04:05"),
    ("mariadb", s.timestamp(), "VARCHAR(30)", 1_767_323_045_000, "2026-01-02 03:04:05"),
    ("mariadb", s.timestamp(), "VARBINARY(30)", 1_767_323_045_500, "2026-01-02 03:04:05.500000"),
    ("mariadb", s.FLOAT64, "VARCHAR(30)", 1.0, "1"),
]


@pytest.mark.parametrize(("kind", "schema", "declared", "value", "kept"), CASES)
def test_few_rows_are_written_as_many(request, kind, schema, declared, value, kept):
    """COPY wrote 1.0 where INSERT wrote 1: as a key, there were two rows of one record."""
    database = request.getfixturevalue(f"{kind}_database")
    database.execute(f"CREATE TABLE orders (n bigint PRIMARY KEY, v {declared})")
    order = s.struct(("n", s.INT64), ("v", schema))
    run = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "n"}
    for name, first, count, columnar in (("few", 0, 2, True), ("many", 1000, 150, False), ("columns", 2000, 700, True)):
        copied = ColumnRun(database, order, name, **run).copy(
            [{"n": first + n, "v": value} for n in range(count)], columnar=columnar
        )
        assert copied.report.written == count
    shown = "v::text" if kind == "postgresql" else "CAST(v AS CHAR)"
    assert database.rows(f"SELECT DISTINCT {shown} FROM orders") == [(kept,)]


@pytest.mark.parametrize("count", [10, 150, 600])
def test_user_who_may_not_create_temporary_tables_upserts_as_well(postgresql_database, count):
    """Where the right was taken away, 100 rows failed, and 99 did not."""
    ((name,),) = postgresql_database.rows("SELECT current_database()")
    role = f"plain_{name}"
    postgresql_database.execute(
        "CREATE TABLE orders (n INT PRIMARY KEY, note TEXT)",
        f"CREATE ROLE {role} LOGIN",
        f"REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC",
        f"GRANT ALL ON SCHEMA public TO {role}",
        f"GRANT SELECT, INSERT, UPDATE ON orders TO {role}",
    )
    schema = s.struct(("n", s.INT32), ("note", s.OPTIONAL_STRING))
    user = replace(postgresql_database, jdbc_url=postgresql_database.jdbc_url.replace("user=postgres", f"user={role}"))
    try:
        run = ColumnRun(user, schema, insert_mode="upsert", pk_mode="record_value", pk_fields="n")
        copied = run.copy([{"n": n % (count - 1), "note": str(n)} for n in range(count)])
        assert (copied.report.written, copied.in_columns) == (count, 0)
        found = postgresql_database.rows("SELECT count(*), max(note) FILTER (WHERE n = 0) FROM orders")
        assert found == [(count - 1, str(count - 1))]
    finally:
        postgresql_database.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")
