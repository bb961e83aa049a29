"""Debezium's placeholder for a value that it does not have is counted: it replaces the value of the column."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from airflow_connect.api import schema as s
from tests.support.values.jdbc_columns import ColumnRun

pytestmark = pytest.mark.integration

PLACEHOLDER = "__debezium_unavailable_value"
ORDER = s.struct(("n", s.INT64), ("text", s.OPTIONAL_STRING), ("raw", s.Schema(s.Type.BYTES, optional=True)))
UPSERT = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "n"}


def order(n: int, text: str | None = None) -> dict[str, Any]:
    raw = base64.b64encode(PLACEHOLDER.encode()).decode() if n == 7 else None
    return {"n": n, "text": text or f"{PLACEHOLDER}.", "raw": raw}


@pytest.mark.parametrize("mode", ["insert", "upsert", "update"])
@pytest.mark.parametrize(
    ("count", "columnar"), [(20, False), (200, False), (700, True)], ids=["few", "rows", "columns"]
)
def test_values_that_debezium_does_not_have_are_counted(database, mode, count, columnar):
    blob = {"postgresql": "bytea", "mysql": "blob", "sqlite": "blob"}[database.dialect]
    database.execute(f"CREATE TABLE orders (n BIGINT NOT NULL PRIMARY KEY, text VARCHAR(40), raw {blob})")
    if mode == "update":
        database.execute("INSERT INTO orders VALUES (5, 'the value', NULL), (6, NULL, NULL), (7, NULL, NULL)")
    values = [order(n, PLACEHOLDER if n in (5, 6) else None) for n in range(count)]
    config = {**UPSERT, "insert_mode": mode} if mode != "insert" else {}
    notes = ColumnRun(database, ORDER, **config).copy(values, columnar=columnar).notes
    (note,) = (note for note in notes if PLACEHOLDER in note)
    assert note.startswith(f"Records have {PLACEHOLDER} in place of a value, and it was written to orders: ")
    assert " orders: raw (1), text (2). Debezium sends it" in note
    assert database.rows(f"SELECT n FROM orders WHERE text = '{PLACEHOLDER}' ORDER BY n") == [(5,), (6,)]


def test_records_that_the_database_refuses_are_not_counted(postgresql_database):
    postgresql_database.execute(
        "CREATE TABLE orders (n bigint PRIMARY KEY, text varchar(28) CHECK (n <> 1), raw bytea)"
    )
    run = ColumnRun(postgresql_database, ORDER, errors_tolerance="all")
    copied = run.copy([order(n, PLACEHOLDER) for n in range(3)])
    (note,) = copied.notes
    assert copied.letters == [1] and " orders: text (2). Debezium" in note
