"""Keys that differ in Kafka, and that a column takes for one row, or for none."""

from __future__ import annotations

import json

import pytest

from airflow_connect.api import schema as s
from airflow_connect.converters.json.schema import schema_to_json
from tests.support.servers.databases import Database
from tests.support.values.jdbc_columns import ColumnRun

pytestmark = pytest.mark.integration
ORDER = s.struct(("id", s.STRING), ("n", s.INT64))
UPSERT = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "id"}
NAMES = ("a", "A", "a ", "ä")
ROWS_AND_COLUMNS = pytest.mark.parametrize("count", [4, 700])


@ROWS_AND_COLUMNS
def test_created_table_keeps_keys_apart(database: Database, count: int) -> None:
    values = [{"id": NAMES[n % 4], "n": n} for n in range(count)]
    copied = ColumnRun(database, ORDER, auto_create="true", **UPSERT).copy(values)
    assert sorted(database.rows("SELECT n FROM orders")) == [(count - 4 + n,) for n in range(4)]
    assert copied.notes == ()


@ROWS_AND_COLUMNS
def test_column_that_takes_different_keys_for_equal_is_named(request: pytest.FixtureRequest, count: int) -> None:
    declared = {
        "mariadb": "VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        "sqlite": "TEXT COLLATE NOCASE",
    }
    for kind, column in declared.items():
        database: Database = request.getfixturevalue(f"{kind}_database")
        database.execute(f"CREATE TABLE orders (id {column} PRIMARY KEY, n BIGINT)")
        values = [{"id": NAMES[n % 2], "n": n} for n in range(count)]
        (note,) = ColumnRun(database, ORDER, **UPSERT).copy(values).notes
        assert database.rows("SELECT n FROM orders") == [(count - 1,)]
        assert note.startswith("The column id of ") and "takes different texts for equal, such as `a` and `A`" in note


@ROWS_AND_COLUMNS
def test_null_in_a_key_changes_no_row_and_is_counted(database: Database, count: int) -> None:
    key = s.struct(("id", s.STRING), ("shop", s.OPTIONAL_STRING), ("n", s.INT64))
    database.execute("CREATE TABLE orders (id VARCHAR(9), shop VARCHAR(9), n BIGINT, UNIQUE (id, shop))")
    values = [{"id": "a", "shop": "x" if n % 2 else None, "n": n} for n in range(count)]
    (note,) = (
        note
        for note in ColumnRun(database, key, **{**UPSERT, "pk_fields": "id,shop"}).copy(values).notes
        if "null in a column of pk.fields" in note
    )
    assert note.startswith(f"{count // 2} records were written to ")
    assert database.rows("SELECT COUNT(*) FROM orders") == [(count // 2 + 1,)]


@ROWS_AND_COLUMNS
@pytest.mark.parametrize("pk_fields", ["id", "id,shop", ""])
def test_keys_with_fields_that_the_primary_key_does_not_have_are_named(
    database: Database, count: int, pk_fields: str
) -> None:
    """Such as the name of a shard, which Debezium adds to the key: rows of two shards were one, without a word."""
    key = s.struct(("id", s.STRING), ("shop", s.STRING))
    config = {"insert_mode": "upsert", "pk_mode": "record_key", "pk_fields": pk_fields}
    run = ColumnRun(database, ORDER, auto_create="true", **config)
    run.config |= {
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schema.content": schema_to_json(key, lambda _, default: json.dumps(default)),
    }
    keys = [json.dumps({"id": "a", "shop": f"{n % 2}"}).encode() for n in range(count)]
    copied = run.copy([{"id": "a", "n": n} for n in range(count)], keys=keys)
    assert copied.report.written == count
    assert copied.in_columns == (count if count == 700 and database.dialect != "sqlite" else 0)
    is_whole = pk_fields != "id"
    assert database.rows("SELECT COUNT(*) FROM orders") == [(2 if is_whole else 1,)]
    assert len(copied.notes) == (0 if is_whole else 1)
    assert all(
        note.startswith("Keys of the records of orders have fields that pk.fields does not have (shop).")
        for note in copied.notes
    )


@ROWS_AND_COLUMNS
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_column_that_drops_spaces_of_keys_is_named(request: pytest.FixtureRequest, kind: str, count: int) -> None:
    database: Database = request.getfixturevalue(f"{kind}_database")
    exact = " CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin" if kind == "mariadb" else ""
    database.execute(f"CREATE TABLE orders (id CHAR(9){exact} PRIMARY KEY, n BIGINT)")
    values = [{"id": ("a", "a ")[n % 2], "n": n} for n in range(count)]
    (note,) = ColumnRun(database, ORDER, **UPSERT).copy(values).notes
    assert database.rows("SELECT n FROM orders") == [(count - 1,)]
    assert note.startswith("The column id of ")
    assert "which does not keep spaces at the end" in note
