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
