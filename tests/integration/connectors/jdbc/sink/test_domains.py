"""Columns whose type is a domain of PostgreSQL get what columns of the type behind it get."""

from __future__ import annotations

from datetime import datetime

import pytest

from airflow_connect.api import schema as s
from tests.support.copies.jdbc_sink_tasks import SinkRun, give, records
from tests.support.values.jdbc_columns import ColumnRun

pytestmark = pytest.mark.integration

DOMAINS = (
    "CREATE DOMAIN moment AS timestamptz",
    "CREATE DOMAIN later AS moment CHECK (value > '2000-01-01')",
    "CREATE DOMAIN price AS numeric(10, 1)",
    "CREATE DOMAIN code AS char(9)",
)
UPSERT = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "id", "db_timezone": "Europe/Berlin"}


@pytest.mark.parametrize("count", [4, 700], ids=["rows", "columns"])
@pytest.mark.parametrize("declared", ["moment", "later", "timestamptz"])
def test_point_in_time_in_a_domain_stays_the_point(postgresql_database, declared, count):
    """It was written as the time of the clock in db.timezone: off by the zone's offset, without an error."""
    postgresql_database.execute(*DOMAINS, f"CREATE TABLE orders (id bigint PRIMARY KEY, t {declared})")
    order = s.struct(("id", s.INT64), ("t", s.timestamp()))
    copied = ColumnRun(postgresql_database, order, **UPSERT).copy(
        [{"id": n, "t": 1_767_323_045_000} for n in range(count)]
    )
    assert copied.notes == ()
    times = postgresql_database.rows("SELECT DISTINCT t AT TIME ZONE 'UTC' FROM orders")
    assert times == [(datetime.fromisoformat("2026-01-02 03:04:05"),)]


def test_domain_that_rounds_or_pads_is_named(postgresql_database):
    postgresql_database.execute(*DOMAINS, "CREATE TABLE orders (id code PRIMARY KEY, p price)")
    order = s.struct(("id", s.STRING), ("p", s.FLOAT64))
    notes = ColumnRun(postgresql_database, order, **UPSERT).copy([{"id": "a", "p": 1.25}]).notes
    assert len(notes) == 2
    assert "has the type character(9), which does not keep spaces at the end" in notes[0]
    assert notes[1].startswith("The column p of ") and "keeps 1 digit after the point" in notes[1]


def test_key_in_a_domain_is_found(postgresql_database):
    postgresql_database.execute(
        *DOMAINS, "CREATE TABLE orders (id price PRIMARY KEY)", "INSERT INTO orders VALUES (1.3)"
    )
    deletes = {"pk_mode": "record_key", "pk_fields": "id", "delete_enabled": "true"}
    run = SinkRun(postgresql_database, **deletes).open()
    give(run, records(None, keys=[1.25], key_schema=s.FLOAT64))
    assert "deleted no row" not in " ".join(run.notes.sentences)
    assert postgresql_database.rows("SELECT id FROM orders") == []
