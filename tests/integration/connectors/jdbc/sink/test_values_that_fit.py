"""A value is written exactly, or its record is refused with its place and the name of the field."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from airflow_connect.api import schema as s
from airflow_connect.errors import DataError
from tests.support.copies.jdbc_sink_tasks import SinkRun, records
from tests.support.copies.jdbc_source import Copies

pytestmark = pytest.mark.integration

AMOUNT = s.struct(("n", s.INT64), ("amount", s.decimal(2)))
EXACT = ["0.10", "-1234567890123.45", "9223372036854775807.00", "1000000000000000000000.00", "-9007199254740993.00"]
INEXACT = ["12345678901234567.89", "9223372036854775809.00", "-0.12345678901234567"]


def amounts(texts: list[str]) -> list[object]:
    values = [{"n": n, "amount": Decimal(text)} for n, text in enumerate(texts)]
    return records(*values, schema=AMOUNT)


def test_decimals_of_sqlite_are_exact_or_refused(sqlite_database):
    run = SinkRun(sqlite_database, auto_create="true", errors_tolerance="all")
    run.write(amounts(EXACT + INEXACT))
    found = sqlite_database.rows("SELECT typeof(amount), printf('%.2f', amount) FROM orders ORDER BY n")
    assert [kind for kind, _ in found] == ["real", "real", "integer", "real", "integer"]
    assert [Decimal(str(value)) for (value,) in sqlite_database.rows("SELECT amount FROM orders ORDER BY n")] == [
        Decimal(text) for text in EXACT
    ]
    assert [offset for offset, _ in run.errors.letters] == [5, 6, 7]
    assert "The field amount of orders-0@5 is a number with more digits than SQLite keeps" in run.errors.letters[0][1]
    assert not any("1234567890" in message for _, message in run.errors.letters)


def test_decimals_in_texts_of_sqlite_keep_every_digit_and_are_read_again(sqlite_database):
    sqlite_database.execute("CREATE TABLE orders (n INTEGER PRIMARY KEY, amount TEXT)")
    SinkRun(sqlite_database).write(amounts(EXACT + INEXACT))
    config = {"connection.url": sqlite_database.jdbc_url, "mode": "bulk", "table.whitelist": "orders"}
    assert [record.value["amount"] for record in Copies(config).run().records] == EXACT + INEXACT


def test_default_with_too_many_digits_for_sqlite_is_refused(sqlite_database):
    amount = replace(s.decimal(2), default=Decimal("12345678901234567.89"))
    run = SinkRun(sqlite_database, auto_create="true")
    with pytest.raises(DataError, match="default of the field amount has more digits") as caught:
        run.write(records({"n": 1, "amount": Decimal(1)}, schema=s.struct(("n", s.INT64), ("amount", amount))))
    assert caught.value.code == "jdbc.default"


@pytest.mark.parametrize("default", [b"hush", "back\\slash"], ids=["bytes", "backslash"])
def test_default_that_no_statement_can_have_is_refused_with_the_name_of_the_field(database, default):
    schema = replace(s.OPTIONAL_BYTES if isinstance(default, bytes) else s.OPTIONAL_STRING, default=default)
    run = SinkRun(database, auto_create="true")
    with pytest.raises(DataError, match="The field note has a default that no column can have") as caught:
        run.write(records({"n": 1, "note": None}, schema=s.struct(("n", s.INT64), ("note", schema))))
    assert caught.value.code == "jdbc.default" and "hush" not in str(caught.value)


def test_decimals_of_a_real_column_keep_15_digits(sqlite_database):
    sqlite_database.execute("CREATE TABLE orders (n INTEGER PRIMARY KEY, amount DOUBLE)")
    run = SinkRun(sqlite_database, errors_tolerance="all")
    run.write(amounts(["0.10", "9223372036854775807.00", "1E+400", "1E-400"]))
    assert sqlite_database.rows("SELECT amount FROM orders") == [(0.1,)]
    assert [offset for offset, _ in run.errors.letters] == [1, 2, 3]


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        (s.date(), "2026-01-01", "has a value of the type str"),
        (s.time(), -1, "cannot be written: the time is outside the range of the database"),
        (s.timestamp(), 10**18, "cannot be written: the timestamp is outside the range of the database"),
        (s.timestamp(), {"a": 1}, "has a value of the type dict"),
    ],
    ids=["text", "time", "timestamp", "object"],
)
def test_value_of_another_type_than_its_schema_is_named(postgresql_database, schema, value, reason):
    run = SinkRun(postgresql_database, auto_create="true", errors_tolerance="all")
    run.write(records({"n": 1, "at": value}, schema=s.struct(("n", s.INT64), ("at", schema))))
    ((offset, message),) = run.errors.letters
    assert offset == 0 and message.startswith(
        f"The field at of orders-0@0, which is {schema.name} by its schema, {reason}"
    )


@pytest.mark.parametrize(
    ("server", "column", "schema", "value", "reason"),
    [
        ("mariadb", "INT", s.STRING, {"hush": "x"}, "the field k of its key has a value of the type dict"),
        ("mariadb", "FLOAT", s.INT64, ["hush"], "the field k of its key has a value of the type list"),
        ("mariadb", "DATE", s.STRING, {"hush": "x"}, "the field k of its key has a value of the type dict"),
        ("mariadb", "BIT(8)", s.STRING, 7712, "the field k of its key has a value of the type int"),
        ("sqlite", "REAL", s.INT64, "hush", "k of orders-0@0, which is a number by its schema, has a value of the"),
        ("sqlite", "REAL", s.INT64, ["hush"], "k of orders-0@0, which is a number by its schema, has a value of the"),
    ],
)
@pytest.mark.parametrize("deletes", [True, False], ids=["delete", "update"])
def test_key_of_another_type_than_its_schema_is_refused_as_a_record(
    request, server, column, schema, value, reason, deletes
):
    """It ended the run with a TypeError."""
    database = request.getfixturevalue(f"{server}_database")
    database.execute(f"CREATE TABLE orders (n BIGINT, k {column} PRIMARY KEY)")
    settings = {"insert_mode": "upsert" if deletes else "update", "pk_mode": "record_key", "pk_fields": "k"}
    run = SinkRun(database, errors_tolerance="all", delete_enabled="true", **settings)
    given = None if deletes else {"n": 1}
    run.write(records(given, keys=[value], key_schema=schema, schema=None if deletes else s.struct(("n", s.INT64))))
    ((offset, message),) = run.errors.letters
    assert offset == 0 and "orders-0@0" in message and reason in message
    assert "hush" not in message and "7712" not in message


@pytest.mark.parametrize("mode", ["insert", "upsert"])
@pytest.mark.parametrize("count", [2, 150, 700])
def test_column_with_a_default_that_the_records_do_not_have_gets_its_default(database, count, mode):
    """The migration of a table: ALTER TABLE ... ADD ... NOT NULL DEFAULT."""
    database.execute("CREATE TABLE orders (n BIGINT NOT NULL PRIMARY KEY, note VARCHAR(9))")
    schema = s.struct(("n", s.INT64), ("note", s.OPTIONAL_STRING))
    run = {"insert_mode": mode, "pk_mode": "record_value", "pk_fields": "n"}
    SinkRun(database, **run).write(records({"n": -1, "note": "old"}, schema=schema))
    database.execute("ALTER TABLE orders ADD state VARCHAR(9) DEFAULT 'new' NOT NULL")
    SinkRun(database, "later", **run).write(records(*({"n": n, "note": "x"} for n in range(count)), schema=schema))
    assert database.rows("SELECT DISTINCT state FROM orders") == [("new",)]
    wider = s.struct(("n", s.INT64), ("state", s.OPTIONAL_STRING))
    last = SinkRun(database, "null", errors_tolerance="all", **run)
    last.write(records({"n": 9_000, "state": None}, {"n": 9_001, "state": "own"}, schema=wider))
    ((offset, message),) = last.errors.letters
    assert offset == 0 and "state" in message
    assert database.rows("SELECT state FROM orders WHERE n >= 9000") == [("own",)]


@pytest.mark.parametrize("name", ["hu\ud800sh", "hu\0sh"], ids=["surrogate", "zero byte"])
def test_field_whose_name_no_column_can_have_is_refused_as_a_record(sqlite_database, name):
    """It ended the run with a UnicodeEncodeError, or with advice about quotes, also if errors are tolerated."""
    run = SinkRun(sqlite_database, errors_tolerance="all", auto_create="true", auto_evolve="true")
    run.write(records({"n": 1}, {"n": 2, name: 3}, {"n": 4}))
    ((offset, message),) = run.errors.letters
    assert offset == 1 and f"The field {name!r} of records for the table orders has a character" in message
    assert sqlite_database.rows("SELECT n FROM orders ORDER BY n") == [(1,), (4,)]


@pytest.mark.parametrize("text", ["1_000", " 12", "1e3", "9223372036854775808"])
def test_text_of_a_timestamp_that_is_no_whole_number_is_refused(database, text):
    """`1_000`, which only Python takes for a number, was written as 1000."""
    run = SinkRun(database, errors_tolerance="all", auto_create="true", timestamp_fields_list="at")
    run.write(records({"at": "-12"}, {"at": text}, schema=s.struct(("at", s.OPTIONAL_STRING))))
    ((offset, message),) = run.errors.letters
    assert offset == 1 and "timestamp.fields.list does not hold a whole number" in message
    assert len(database.rows("SELECT at FROM orders")) == 1
