"""Lists of dates and times in columns of PostgreSQL that hold lists of such."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

import pytest

from airflow_connect.api import schema as s
from tests.support.copies.jdbc_sink_tasks import SinkRun, records
from tests.support.servers.databases import Database

pytestmark = pytest.mark.integration

MOMENT_MS = 1_767_323_045_500
MOMENT = datetime(2026, 1, 2, 3, 4, 5, 500_000, UTC).replace(tzinfo=None)
SCHEMA = s.struct(
    ("n", s.INT64),
    ("days", s.array(s.date(optional=True))),
    ("clocks", s.array(s.time())),
    ("moments", s.array(s.timestamp(optional=True))),
    ("amounts", s.array(s.decimal(2))),
)
VALUE = {"days": [20_455, None], "clocks": [11_045_500], "moments": [MOMENT_MS, None], "amounts": []}


def written(database: Database, count: int, **config: str) -> set[str]:
    run = SinkRun(database, insert_mode="upsert", pk_mode="record_value", pk_fields="n", **config)
    run.write(records(*({"n": n, **VALUE} for n in range(count)), schema=SCHEMA))
    rows = database.rows("SELECT days, clocks, moments, amounts FROM orders")
    assert len(rows) == count
    return set(map(repr, rows))


@pytest.mark.parametrize("count", [3, 150])
def test_lists_of_dates_and_times_fit_the_columns_that_are_created(postgresql_database: Database, count: int) -> None:
    """The sink made a column of dates, and then sent whole numbers, which the database refused."""
    expected = ([date(2026, 1, 2), None], [time(3, 4, 5, 500_000)], [MOMENT, None], [])
    assert written(postgresql_database, count, auto_create="true") == {repr(expected)}


@pytest.mark.parametrize("count", [3, 150])
@pytest.mark.parametrize(("declared", "hour"), [("timestamptz", 3), ("timestamp", 4)])
def test_points_in_time_of_a_list_are_those_of_its_column(
    postgresql_database: Database, count: int, declared: str, hour: int
) -> None:
    postgresql_database.execute(
        f"CREATE TABLE orders (n bigint PRIMARY KEY, days date[], clocks time[], moments {declared}[], amounts money[])"
    )
    written(postgresql_database, count, db_timezone="Europe/Berlin", date_timezone="UTC")
    ((moments,),) = postgresql_database.rows("SELECT DISTINCT moments FROM orders")
    found = moments[0].astimezone(UTC).replace(tzinfo=None) if declared == "timestamptz" else moments[0]
    assert (found, moments[1]) == (MOMENT.replace(hour=hour), None)


def test_lists_of_dates_are_dates_in_a_text(postgresql_database: Database) -> None:
    postgresql_database.execute(
        "CREATE TABLE orders (n bigint PRIMARY KEY, days text, clocks text, moments text, amounts text)"
    )
    SinkRun(postgresql_database).write(records({"n": 1, **VALUE}, schema=SCHEMA))
    assert postgresql_database.rows("SELECT days, clocks FROM orders") == [("{2026-01-02,NULL}", "{03:04:05.5}")]
