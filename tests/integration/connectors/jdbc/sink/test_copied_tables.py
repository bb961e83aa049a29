"""What a table of one database has is what its copy in another one has, and texts and keys that other tools mistake."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from airflow_connect.api import schema as s
from tests.support.copies.jdbc_sink_tasks import SinkRun, give, record, records
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database
from tests.support.values.jdbc_columns import ColumnRun

pytestmark = pytest.mark.integration

POSTGRESQL = {
    "a": ("numeric(30,5)", "123456789012345678901234.12345", "-0.00001"),
    "b": ("numeric(38,21)", "1.5", "0.000000000000000000001"),
    "c": ("smallint", "-32768", "0"),
    "d": ("bigint", "9223372036854775807", "-9223372036854775808"),
    "e": ("real", "1.1", "-1e-30"),
    "f": ("double precision", "0.1", "1e300"),
    "g": ("text", "''", "E'a\\tb\\n\\\\'"),
    "h": ("varchar(20)", "'\\N'", "'é😀'"),
    "i": ("char(5)", "'ab'", "''"),
    "j": ("bytea", "'\\x00ff5c'", "''"),
    "k": ("date", "'1000-01-01'", "'0001-01-01'"),
    "l": ("time", "'23:59:59.999'", "'00:00:00'"),
    "m": ("timestamp", "'1000-11-18 02:06:45.123'", "'1582-10-10 00:00:00'"),
    "n": ("timestamptz", "'9999-12-31 23:59:59+00'", "'1969-12-31 23:59:59+00'"),
    "o": ("boolean", "true", "false"),
}
MARIADB = {
    "a": ("decimal(30,5)", "1234567890123456789012345.12345", "-0.00001"),
    "b": ("tinyint unsigned", "255", "0"),
    "c": ("smallint unsigned", "65535", "0"),
    "d": ("bigint unsigned", "9223372036854775807", "0"),
    "e": ("tinyint(1)", "2", "-1"),
    "f": ("float", "1.1", "-1e-30"),
    "g": ("text", "''", "'\\\\N'"),
    "h": ("varbinary(10)", "x'00ff5c'", "x''"),
    "i": ("binary(4)", "x'0100'", "x'00'"),
    "j": ("date", "'1000-01-01'", "'9999-12-31'"),
    "k": ("time(3)", "'23:59:59.999'", "'00:00:00'"),
    "l": ("datetime(3)", "'1000-11-18 02:06:45.123'", "'9999-12-31 23:59:59.999'"),
    "m": ("mediumint unsigned", "16777215", "0"),
    "n": ("bit(1)", "b'1'", "b'0'"),
    "o": ("decimal(65,30)", "12345678901234567890123456789012345.123456789012345678901234567890", "-1e-28"),
}


def plain(value: Any) -> Any:
    """A value in a form that does not depend on the driver."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, timedelta):
        return (datetime(2000, 1, 1, tzinfo=UTC) + value).time()
    if isinstance(value, Decimal):
        return value.normalize()
    return int.from_bytes(value) if isinstance(value, bytes) and value in (b"\0", b"\1") else value


@pytest.mark.parametrize("target", ["postgresql", "mariadb"])
@pytest.mark.parametrize("source", ["postgresql", "mariadb"])
def test_copy_of_a_table_in_another_database_has_the_same_values(
    request: pytest.FixtureRequest, source: str, target: str
) -> None:
    read: Database = request.getfixturevalue(f"{source}_database")
    write: Database = request.getfixturevalue(f"{target}_database")
    columns = POSTGRESQL if source == "postgresql" else MARIADB
    listed = ", ".join(f"{name} {kind}" for name, (kind, *_) in columns.items())
    rows = [", ".join(values) for values in zip(*(values for _, *values in columns.values()), strict=True)]
    rows.append(", ".join(["NULL"] * len(columns)))
    read.execute(
        f"CREATE TABLE t (id int PRIMARY KEY, {listed})",
        *(f"INSERT INTO t VALUES ({n}, {row})" for n, row in enumerate(rows)),
    )
    run = Copies({"connection.url": read.jdbc_url, "mode": "bulk", "table.whitelist": "t"}).run()
    assert not run.notes
    upsert = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "id", "auto_create": "true"}
    copied = [record(n, one.value, schema=one.value_schema) for n, one in enumerate(run.records)]
    assert give(SinkRun(write, **upsert).open(), copied).written == len(rows)
    names = ", ".join(["id", *columns])
    found, wanted = ([[plain(v) for v in row] for row in database.rows(f"SELECT {names} FROM {table} ORDER BY id")]
                     for database, table in ((write, "orders"), (read, "t")))  # fmt: skip
    assert found == wanted


@pytest.mark.parametrize("rows", [5, 600], ids=["rows", "columns"])
def test_texts_that_stand_for_null_elsewhere_stay_texts_also_in_keys(database: Database, rows: int) -> None:
    texts = ["", "\\N", "NULL", "null", " "]
    database.execute("CREATE TABLE orders (n BIGINT NOT NULL, k VARCHAR(9) NOT NULL, t VARCHAR(9), PRIMARY KEY (n, k))")
    schema = s.struct(("n", s.INT64), ("k", s.STRING), ("t", s.OPTIONAL_STRING))
    values = [{"n": n, "k": texts[n % 5], "t": texts[n % 5]} for n in range(rows)]
    run = ColumnRun(database, schema, insert_mode="upsert", pk_mode="record_value", pk_fields="n,k")
    copied = run.copy(values)
    assert (copied.report.written, copied.letters) == (rows, [])
    found = database.rows("SELECT n, k, t FROM orders ORDER BY n")
    assert found == [(value["n"], value["k"], value["t"]) for value in values]


@pytest.mark.parametrize("step", [1, -1])
def test_rows_whose_keys_move_to_the_next_one_are_all_there(database: Database, step: int) -> None:
    """`UPDATE t SET id = id + 1`, as a capture of changes sends it: each row is deleted and inserted in turn."""
    config = {"insert_mode": "upsert", "pk_mode": "record_key", "pk_fields": "id", "delete_enabled": "true"}
    run = SinkRun(database, auto_create="true", **config)
    schema, count = s.struct(("v", s.INT64)), 300
    moved = range(count) if step == -1 else reversed(range(count))
    values: list[Any] = [{"v": n} for n in range(count)]
    keys = list(range(count))
    for n in moved:
        values += [None, {"v": n}]
        keys += [n, n + step]
    rows = records(*values, keys=keys, key_schema=s.INT64, schema=schema)
    assert give(run.open(), rows).written == len(rows)
    assert database.rows("SELECT id, v FROM orders ORDER BY id") == [(n + step, n) for n in range(count)]
