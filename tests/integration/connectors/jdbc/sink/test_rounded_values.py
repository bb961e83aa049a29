"""Columns in which the database rounds without an error are named in the report; the others are not."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from airflow_connect.api import schema as s
from tests.support.copies.jdbc_sink_tasks import SinkRun, give, records
from tests.support.values.jdbc_columns import ColumnRun

pytestmark = pytest.mark.integration

AT = dt.datetime(2026, 3, 1, 10, 20, 30, 678_000, tzinfo=dt.UTC)
AT_MS = round(AT.timestamp() * 1000)
FIELDS = {
    "price": (s.FLOAT64, 1.25),
    "ratio": (s.FLOAT64, 1.23456789012),
    "big": (s.INT64, 2**53 + 1),
    "at": (s.timestamp(), AT_MS),
}
SCHEMA = s.struct(*((name, schema) for name, (schema, _) in FIELDS.items()))
ROW = {name: value for name, (_, value) in FIELDS.items()}
COARSE = {
    "postgresql": ["numeric(10, 1)", "real", "double precision", "timestamp(0)"],
    "mariadb": ["decimal(10, 1)", "float", "double", "datetime"],
}
FINE = {
    "postgresql": ["double precision", "double precision", "bigint", "timestamp"],
    "mariadb": ["double", "double", "bigint", "datetime(6)"],
}
KEPT = {
    "price": "1 digit after the point, and the field is a floating-point number",
    "ratio": "about 7 digits of a number, and the field may have more",
    "big": "about 15 digits of a number, and the field may have more",
    "at": "0 digits of a second after the point, and the field has 3",
}


def create(types: list[str]) -> str:
    return f"CREATE TABLE orders ({', '.join(f'{name} {type}' for name, type in zip(FIELDS, types, strict=True))})"


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_columns_that_round_are_named_once(request, kind, columnar):
    database = request.getfixturevalue(f"{kind}_database")
    database.execute(create(COARSE[kind]))
    notes = ColumnRun(database, SCHEMA).copy([ROW] * 600, columnar=columnar).notes
    assert len(notes) == len(KEPT)
    for (name, kept), note in zip(KEPT.items(), notes, strict=True):
        assert note.startswith(f"The column {name} of ") and f" keeps {kept}: the database rounds" in note
    (price,) = database.rows("SELECT DISTINCT price FROM orders")[0]
    assert price in (Decimal("1.3"), Decimal("1.2"))


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_columns_that_keep_everything_are_not_named(request, kind):
    database = request.getfixturevalue(f"{kind}_database")
    database.execute(create(FINE[kind]))
    copied = ColumnRun(database, SCHEMA).copy([ROW] * 600)
    assert (copied.report.written, copied.in_columns, copied.notes) == (600, 600, ())


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_date_for_a_timestamp_and_a_smaller_scale_are_named(request, kind):
    database = request.getfixturevalue(f"{kind}_database")
    database.execute("CREATE TABLE orders (at date, price numeric(10, 1), fine numeric(10, 2))")
    runner = SinkRun(database).open()
    schema = s.struct(("at", s.timestamp()), ("price", s.decimal(2)), ("fine", s.decimal(2)))
    give(runner, records({"at": AT_MS, "price": Decimal("1.25"), "fine": Decimal("1.25")}, schema=schema))
    of_date, of_price = runner.notes.sentences
    assert "The column at of" in of_date and "keeps no time of day, and the field has one" in of_date
    assert "The column price of" in of_price and "1 digit after the point, and the field has 2" in of_price


MOMENT = "2026-01-01T10:00:00.123456789"
CHANGED = {
    "postgresql": {
        "a": ("timestamp", s.STRING, f"{MOMENT}+05:00", "keeps no zone and 6 digits of a second after the point, and"),
        "b": ("timestamptz", s.STRING, f"{MOMENT}+05:00", "keeps 6 digits of a second after the point, and the field"),
        "c": ("time", s.STRING, "10:00:00+05:00", "keeps no date, no zone and 6 digits of a second after the point"),
        "d": ("time", s.timestamp(), AT_MS, "keeps no date, and the field has one: the database rounds, or drops"),
        "e": ("money", s.STRING, "12,00", "has the type money, and the field is a text"),
        "f": ("text", s.BYTES, "YQ==", "is a text, and the field is bytes"),
    },
    "mariadb": {
        "a": ("datetime(6)", s.STRING, MOMENT, "keeps 6 digits of a second after the point, and the field is a text"),
        "b": ("time(3)", s.timestamp(), AT_MS, "keeps no date, and the field has one: the database rounds, or drops"),
        "c": ("bit(8)", s.STRING, "1", "has the type bit, in which the database takes the bytes of a text for bits"),
        "d": ("bit(8)", s.FLOAT64, 0.7, "keeps 0 digits after the point, and the field is a floating-point number"),
        "e": ("double(5,2)", s.FLOAT64, 1.239, "keeps 2 digits after the point, and the field is a floating-point"),
        "f": ("binary(3)", s.BYTES, "YQ==", "has the type binary(3), which fills shorter values with zero bytes"),
    },
}
IN_DATABASE = {
    "postgresql": (
        "SELECT DISTINCT a::text, b::text, c::text, d::text, e::numeric::text, f FROM orders",
        ("2026-01-01 10:00:00.123457", "2026-01-01 05:00:00.123457+00", "10:00:00", "10:20:30.678", "1200.00", "\\x61"),
    ),
    "mariadb": (
        "SELECT DISTINCT CAST(a AS CHAR), CAST(b AS CHAR), c + 0, d + 0, e, HEX(f) FROM orders",
        ("2026-01-01 10:00:00.123456", "10:20:30.678", 49, 0, 1.24, "610000"),
    ),
}


@pytest.mark.parametrize("kind", list(CHANGED))
@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_columns_that_drop_a_part_of_a_value_are_named(request, kind, columnar):
    """A text with +05:00 in a `timestamp` of PostgreSQL was hours off, and a date in a `time` was gone."""
    database, columns = request.getfixturevalue(f"{kind}_database"), CHANGED[kind]
    database.execute(f"CREATE TABLE orders ({', '.join(f'{name} {made}' for name, (made, *_) in columns.items())})")
    schema = s.struct(*((name, field) for name, (_, field, *_) in columns.items()))
    row = {name: value for name, (_, _, value, _) in columns.items()}
    notes = ColumnRun(database, schema).copy([row] * 600, columnar=columnar).notes
    notes = tuple(note for note in notes if not note.startswith("The column a of orders has the type datetime, in"))
    assert len(notes) == len(columns), notes
    for (name, (*_, said)), note in zip(columns.items(), notes, strict=True):
        assert note.startswith(f"The column {name} of orders {said}"), note
    statement, expected = IN_DATABASE[kind]
    assert database.rows(statement) == [expected]


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_texts_that_mariadb_takes_for_times_and_numbers_that_it_fills_are_named(mariadb_database, columnar):
    mariadb_database.execute("CREATE TABLE orders (a time, b binary(4), c binary(4))")
    schema = s.struct(("a", s.STRING), ("b", s.INT32), ("c", s.BOOLEAN))
    notes = ColumnRun(mariadb_database, schema).copy([{"a": "1012", "b": 7, "c": True}] * 600, columnar=columnar).notes
    for name, said in (
        ("a", "has the type time, in which the database takes digits in a text, such as `1012`, for minutes"),
        ("b", "has the type binary(4), which fills shorter values with zero bytes"),
        ("c", "has the type binary(4), which fills shorter values with zero bytes"),
    ):
        assert [note for note in notes if note.startswith(f"The column {name} of orders {said}")], notes
    statement = "SELECT DISTINCT CAST(a AS CHAR), HEX(b), HEX(c) FROM orders"
    assert mariadb_database.rows(statement) == [("00:10:12", "37000000", "31000000")]
