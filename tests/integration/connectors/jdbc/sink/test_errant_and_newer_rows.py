"""An errant record of a run that died, or of another attempt, is tried again, but never written over a newer row."""

from __future__ import annotations

import pytest

from airflow_connect.api import schema as s
from airflow_connect.errors import DataError
from tests.support.copies.jdbc_sink_tasks import SinkRun, give, put, record, records, stored
from tests.support.servers.databases import Database

pytestmark = pytest.mark.integration

WIDE = s.struct(("n", s.INT64), ("note", s.STRING))
BY_KEY = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "n"}
ROWS = records(
    {"n": 1, "note": "too long"}, {"n": 2, "note": "too long"}, {"n": 1, "note": "new"}, {"n": 3, "note": "new"},
    schema=WIDE,
)  # fmt: skip
NEWEST = [(1, "new"), (2, "too long"), (3, "new")]


@pytest.fixture(params=["postgresql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    """A database with a table whose column is too narrow for two of the records."""
    found: Database = request.getfixturevalue(f"{request.param}_database")
    found.execute("CREATE TABLE orders (n INT PRIMARY KEY, note VARCHAR(5))")
    return found


def widen(database: Database) -> None:
    kind = "ALTER note TYPE" if database.dialect == "postgresql" else "MODIFY note"
    database.execute(f"ALTER TABLE orders {kind} VARCHAR(50)")


def rows_of(database: Database) -> list[tuple]:
    return database.rows("SELECT n, note FROM orders ORDER BY n")


def test_errant_record_of_a_run_that_died_does_not_replace_a_newer_row(database):
    SinkRun(database, errors_tolerance="all", **BY_KEY).write(ROWS)
    widen(database)
    again = SinkRun(database, errors_tolerance="all", **BY_KEY)
    report = again.write([*ROWS, record(4, {"n": 4, "note": "new"}, schema=WIDE)])
    assert rows_of(database) == [*NEWEST, (4, "new")]
    assert [offset for offset, _ in again.errors.letters] == [0]
    assert "the older record must not replace it" in again.errors.letters[0][1]
    assert (report.written, report.dead_lettered) == (4, 1)
    assert stored(database) == (5, "[0]")


def test_run_that_does_not_read_what_came_later_does_not_write_an_errant_record(database):
    """As with `run.max.bytes`. The record is a dead letter; it is refused if errors are not tolerated any more."""
    SinkRun(database, errors_tolerance="all", **BY_KEY).write(ROWS)
    widen(database)
    again = SinkRun(database, errors_tolerance="all", **BY_KEY)
    again.write(ROWS[:2])
    assert [offset for offset, _ in again.errors.letters] == [0, 1]
    with pytest.raises(DataError, match="orders-0@0 could not be written by a run that ended"):
        SinkRun(database, **BY_KEY).write(ROWS)
    assert rows_of(database) == [(1, "new"), (3, "new")]


def test_errant_record_of_another_attempt_does_not_replace_a_newer_row(database):
    run = SinkRun(database, errors_tolerance="all", **BY_KEY).claim()
    slow, fast = run.open(), run.open()
    put(slow, ROWS)
    slow.deliver()
    give(fast, ROWS)
    run.errors.letters.clear()
    widen(database)
    give(slow, [])
    assert rows_of(database) == NEWEST
    assert [offset for offset, _ in run.errors.letters] == [0]


def test_errant_insert_of_a_row_that_was_deleted_later_is_not_tried_again(database):
    config = {"pk_mode": "record_key", "pk_fields": "n", "delete_enabled": "true", "errors_tolerance": "all"}
    rows = [
        record(0, {"note": "too long"}, schema=s.struct(("note", s.STRING)), key=1, key_schema=s.INT64),
        record(1, None, key=1, key_schema=s.INT64),
    ]
    SinkRun(database, **config).write(rows)
    widen(database)
    again = SinkRun(database, **config)
    again.write(rows)
    assert rows_of(database) == []
    assert [offset for offset, _ in again.errors.letters] == [0]
