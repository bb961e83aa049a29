"""Dates in a zone behind UTC: Confluent's default writes the day before, and the report says so."""

from __future__ import annotations

import datetime as dt

import pytest

from airflow_connect.api import schema as s
from tests.support.values.jdbc_columns import ColumnRun

pytestmark = pytest.mark.integration
DAY = s.struct(("n", s.INT64), ("day", s.date()), ("at", s.timestamp()))
VALUES = [{"n": n, "day": 18262, "at": 0} for n in range(600)]


@pytest.mark.parametrize("columnar", [True, False])
@pytest.mark.parametrize(
    ("zones", "written"),
    [
        ({"db_timezone": "America/New_York"}, dt.date(2019, 12, 31)),
        ({"db_timezone": "America/New_York", "date_timezone": "UTC"}, dt.date(2020, 1, 1)),
        ({"db_timezone": "Asia/Tokyo"}, dt.date(2020, 1, 1)),
        ({}, dt.date(2020, 1, 1)),
    ],
)
def test_dates_that_become_the_day_before_are_named(database, zones, written, columnar):
    copied = ColumnRun(database, DAY, auto_create="true", **zones).copy(VALUES, columnar=columnar)
    is_sqlite = database.dialect == "sqlite"
    assert (copied.report.written, copied.in_columns) == (600, 600 if columnar and not is_sqlite else 0)
    named = [note for note in copied.notes if note.startswith("The column day of orders gets dates as they are")]
    if is_sqlite:  # milliseconds
        assert database.rows("SELECT DISTINCT day FROM orders") == [(18262 * 86_400_000,)] and named == []
        return
    assert database.rows("SELECT DISTINCT day FROM orders") == [(written,)]
    assert len(named) == (1 if written.year == 2019 else 0)
    assert all("in America/New_York (db.timezone)" in note and "date.timezone=UTC" in note for note in named)
