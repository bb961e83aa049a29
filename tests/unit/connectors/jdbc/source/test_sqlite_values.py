"""SQLite has values of any type in any column: they fit their field exactly, or end the run without being shown."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.errors import ConnectError, DataError
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database, sqlite_in

BOTH_PATHS = pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return sqlite_in(tmp_path)


def copied(database: Database, declared: str, value: str, columnar: bool, **more: str) -> Any:
    database.execute(f"CREATE TABLE t (c {declared})", f"INSERT INTO t VALUES ({value})")
    config = {"connection.url": database.jdbc_url, "mode": "bulk", **{k.replace("_", "."): v for k, v in more.items()}}
    (record,) = Copies(config, columnar=columnar).run().records
    return record.value["c"]


@BOTH_PATHS
@pytest.mark.parametrize(
    ("declared", "value", "expected"),
    [
        ("DECIMAL(10,2)", "0.1 + 0.2", "0.30"),
        ("DECIMAL(10,2)", "1.1 * 1.1 * 100", "121.00"),
        ("DECIMAL(10,2)", "'1.25'", "1.25"),
        ("DECIMAL(16,2)", "12345678901234.56", "12345678901234.56"),
        ("NUMERIC", "2.0", "2"),
        ("NUMERIC", "1e20", "100000000000000000000"),
        ("NUMERIC", "9223372036854775807", "9223372036854775807"),
    ],
)
def test_numbers_are_as_they_were_written(
    database: Database, declared: str, value: str, expected: str, columnar: bool
) -> None:
    found = copied(database, declared, value, columnar)
    assert (found, str(found)) == (Decimal(expected), expected)


@BOTH_PATHS
@pytest.mark.parametrize(
    ("declared", "value", "mapping", "reason"),
    [
        ("NUMERIC", "1.5", "none", "more than 0 digits after the point"),
        ("DECIMAL(10,2)", "1.005", "none", "more than 2 digits after the point"),
        ("DECIMAL(10,2)", "'1.255'", "none", "more than 2 digits after the point"),
        ("NUMERIC(5)", "1.5", "best_fit", "not a whole number of 32 bits"),
        ("NUMERIC(5)", "123456789012", "best_fit", "not a whole number of 32 bits"),
        ("NUMERIC(2)", "300", "precision_only", "not a whole number of 8 bits"),
        # SQLite has stored 18446744073709551616 or a number near it: such digits were written as if they were exact.
        ("NUMERIC", "18446744073709551615", "none", "a REAL that has lost digits"),
        ("DECIMAL(30,2)", "-123456789012345678901", "best_fit", "a REAL that has lost digits"),
        # Python takes these texts for numbers, SQLite does not.
        ("DECIMAL(10,2)", "'1_000'", "none", "it is not a number"),
        ("DECIMAL(10,2)", "'\uff11'", "none", "it is not a number"),
        ("DECIMAL(10,2)", "'1_000'", "best_fit", "it is not a number"),
        ("REAL", "'1_000'", "none", "it is not a number"),
        ("REAL", "'\uff11'", "none", "it is not a number"),
        ("REAL", "'nan'", "none", "it is not a number"),
        ("DOUBLE", "x'31'", "none", "it is not a number"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(
    database: Database, declared: str, value: str, mapping: str, reason: str, columnar: bool
) -> None:
    with pytest.raises(DataError, match=reason):
        copied(database, declared, value, columnar, numeric_mapping=mapping)


@BOTH_PATHS
@pytest.mark.parametrize("mode", ["incrementing", "timestamp+incrementing"])
@pytest.mark.parametrize("what", ["table", "query"])
def test_incrementing_number_above_64_bits_is_refused(database: Database, what: str, mode: str, columnar: bool) -> None:
    """The next run said that this row had not been copied, or that of a query ended with an OverflowError."""
    database.execute(
        "CREATE TABLE t (id NUMERIC NOT NULL, at TIMESTAMP NOT NULL)",
        "INSERT INTO t VALUES (7, '2026-01-01 00:00:00'), (1e30, '2026-01-01 00:00:00')",
    )
    config = {"connection.url": database.jdbc_url, "mode": mode, "incrementing.column.name": "id"}
    config |= {"timestamp.column.name": "at"} if "timestamp" in mode else {}
    config |= {"query": "SELECT id * 1.0 AS id, at FROM t"} if what == "query" else {}
    runs = Copies({**config, "batch.max.rows": "1"}, columnar=columnar)
    with pytest.raises(DataError, match=r"has the value 1e\+30, which is not a whole number of 64 bits"):
        runs.run()
    database.execute("DELETE FROM t WHERE id > 7")
    assert {*runs.run().ids(), 7} == {7}
    # An offset that an earlier release has written, or somebody has set.
    for partition, offset in runs.committed():
        if "incrementing" in offset:
            runs.commit(partition, {**offset, "incrementing": 10**30})
    database.execute("INSERT INTO t VALUES (8, '2026-01-01 00:00:00')")
    run = runs.run()
    assert run.ids() == []


@BOTH_PATHS
@pytest.mark.parametrize("value", ["'2026-01-01 10:00'", "1767268800000", "1767268800"])
def test_date_with_a_time_of_day_is_refused(database: Database, value: str, columnar: bool) -> None:
    with pytest.raises(DataError, match="it has a time of day, which a date has not: declare the column as TIMESTAMP"):
        copied(database, "DATE", value, columnar)


@pytest.mark.parametrize(("zone", "value"), [("UTC", "1767225600000"), ("Europe/Berlin", "1767222000000")])
def test_number_in_a_date_is_midnight_of_the_zone(database: Database, zone: str, value: str) -> None:
    assert copied(database, "DATE", value, False, db_timezone=zone) == 20454  # 2026-01-01


@BOTH_PATHS
@pytest.mark.parametrize(("value", "nearest"), [("1767268800000", 86_399_999), ("86400000", 86_399_999), ("-1", 0)])
def test_number_in_a_time_that_is_none_of_a_day_is_refused(
    database: Database, value: str, nearest: int, columnar: bool
) -> None:
    """The date of a moment was dropped without a word."""
    with pytest.raises(DataError, match="it is not a time of a day"):
        copied(database, "TIME", value, columnar)
    database.execute("DROP TABLE t")
    assert copied(database, "TIME", value, columnar, values_out_of_range="clamp") == nearest
    database.execute("DROP TABLE t")
    assert copied(database, "TIME", "86399999", columnar) == 86_399_999


@BOTH_PATHS
@pytest.mark.parametrize("declared", ["INTEGER", "REAL", "DECIMAL(5,2)", "NUMERIC", "DATE", "TIMESTAMP", "TIME"])
def test_text_in_another_column_is_not_shown(database: Database, declared: str, columnar: bool) -> None:
    with pytest.raises(DataError, match=r"column c .* of the table t cannot be written") as caught:
        copied(database, declared, "'secret words'", columnar)
    assert "secret" not in str(caught.value)


@BOTH_PATHS
@pytest.mark.parametrize("mode", ["bulk", "incrementing"])
def test_column_of_a_query_has_the_type_of_its_first_value_whatever_the_batches_are(
    database: Database, columnar: bool, mode: str
) -> None:
    database.execute('CREATE TABLE t ("a:b")', "INSERT INTO t VALUES (NULL), (NULL), (5)")
    config = {
        "connection.url": database.jdbc_url,
        "mode": mode,
        "query": 'SELECT rowid AS id, "a:b", NULL AS n FROM t',
        "incrementing.column.name": "id",
        "validate.non.null": "false",
        "batch.max.rows": "1",
    }
    runs = Copies(config, columnar=columnar)
    records = runs.run(batches=1).records + runs.run().records
    assert [record.value["a:b"] for record in records][-3:] == [None, None, 5]
    for record in records:
        assert record.value_schema is not None
        kinds = {field.name: field.schema.type.name for field in record.value_schema.fields}
        assert kinds == {"id": "INT64", "a:b": "INT64", "n": "STRING"}


def test_text_that_is_not_utf_8_is_not_shown(database: Database) -> None:
    with pytest.raises(
        ConnectError, match=r"Could not decode to UTF-8 column 'c' with text \(value not shown\)"
    ) as caught:
        copied(database, "TEXT", "CAST(x'736563726574ff' AS TEXT)", False)
    assert "secret" not in str(caught.value)


@BOTH_PATHS
@pytest.mark.parametrize(
    ("second", "reason"),
    [("9007199254740993", "a whole number with more digits than a double keeps"), ("'1.5'", "it is not a number")],
)
def test_number_of_a_query_that_its_double_does_not_hold_is_refused(
    database: Database, second: str, reason: str, columnar: bool
) -> None:
    """A column of a query has the type of its first value; the number became another one without a word."""
    database.execute("CREATE TABLE t (c)", f"INSERT INTO t VALUES (1.5), (9007199254740992), ({second})")
    config = {"connection.url": database.jdbc_url, "mode": "bulk"}
    query = "SELECT c FROM t WHERE {}"
    run = Copies({**config, "query": query.format("rowid < 3")}, columnar=columnar).run()
    assert [record.value["c"] for record in run.records] == [1.5, 9007199254740992.0]
    with pytest.raises(DataError, match=reason):
        Copies({**config, "query": query.format("true")}, columnar=columnar).run()
