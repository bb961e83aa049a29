"""Tables that do not keep what a transaction has written, or keep what it has rolled back, are refused or named."""

from __future__ import annotations

import pytest

from airflow_connect.api import schema as s
from airflow_connect.errors import DatabaseError
from tests.support.copies.jdbc_sink_tasks import SinkRun, give, records
from tests.support.values.jdbc_columns import ColumnRun

pytestmark = pytest.mark.integration

ORDER = s.struct(("n", s.INT64), ("note", s.OPTIONAL_STRING))
BASE = "CREATE TABLE base (n BIGINT NOT NULL PRIMARY KEY, note VARCHAR(20))"
VIEW = "CREATE VIEW orders AS SELECT * FROM base"
UPSERT = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "n"}
ROWS = [{"n": n, "note": "y"} for n in range(3)]


def refused(run: SinkRun) -> DatabaseError:
    with pytest.raises(DatabaseError) as caught:
        give(run.claim().open(), records(*ROWS, schema=ORDER))
    return caught.value


@pytest.mark.parametrize("engine", ["Aria", "MyISAM"])
def test_offsets_table_without_transactions_is_refused(mariadb_database, engine):
    """An offset that had been moved stayed there when the rows were rolled back: they counted as written."""
    mariadb_database.execute(BASE.replace("base", "orders"))
    run = SinkRun(mariadb_database)
    run.write(records(*ROWS[:1], schema=ORDER))
    mariadb_database.execute(f"ALTER TABLE airflow_connect_offsets ENGINE={engine}")
    error = refused(run)
    assert error.code == "jdbc.storage_engine" and error.message.startswith("The table airflow_connect_offsets has the")


def test_offsets_table_that_a_crash_empties_is_refused(postgresql_database):
    postgresql_database.execute(BASE.replace("base", "orders"))
    run = SinkRun(postgresql_database)
    run.write(records(*ROWS[:1], schema=ORDER))
    postgresql_database.execute("ALTER TABLE airflow_connect_offsets SET UNLOGGED")
    error = refused(run)
    assert error.code == "jdbc.offsets_table" and "SET LOGGED" in error.suggestion


@pytest.mark.parametrize("views", [(VIEW,), (VIEW.replace("orders", "inner_view"), VIEW.replace("base", "inner_view"))])
def test_view_of_a_table_without_transactions_is_refused(mariadb_database, views):
    mariadb_database.execute(f"{BASE} ENGINE=MyISAM", *views)
    error = refused(SinkRun(mariadb_database, table_types="TABLE,VIEW"))
    assert error.code == "jdbc.storage_engine" and ".base has the storage engine MyISAM" in error.message


@pytest.mark.parametrize("count", [3, 1000])
def test_view_of_a_table_without_a_unique_index_is_named(mariadb_database, count):
    rows = [{"n": n, "note": "y"} for n in range(count)]
    config = {"table_types": "TABLE,VIEW", **UPSERT}
    mariadb_database.execute(BASE, VIEW)
    assert ColumnRun(mariadb_database, ORDER, **config).copy(rows).notes == ()
    mariadb_database.execute("ALTER TABLE base DROP PRIMARY KEY")
    (note,) = ColumnRun(mariadb_database, ORDER, "again", **config).copy(rows).notes
    assert note.startswith("The table orders is a view, and the table behind it has no unique index over n, as far as")
    assert mariadb_database.rows("SELECT COUNT(*) FROM base") == [(2 * count,)]


def test_text_that_is_too_long_for_a_table_without_transactions_is_refused(mariadb_database):
    """STRICT_TRANS_TABLES cuts it from the second row of a statement on."""
    mariadb_database.execute(BASE.replace("base", "orders") + " ENGINE=MyISAM")
    rows = [{"n": n, "note": "x" * 30 if n == 1 else "y"} for n in range(3)]
    run = SinkRun(mariadb_database, offsets_table_name="", errors_tolerance="all", **UPSERT)
    give(run.open(), records(*rows, schema=ORDER))
    assert [offset for offset, _ in run.errors.letters] == [1]
    assert mariadb_database.rows("SELECT n FROM orders ORDER BY n") == [(0,), (2,)]


def test_partitions_that_do_not_last_as_the_offsets_do_are_named(postgresql_database):
    postgresql_database.execute(
        "CREATE TABLE orders (n BIGINT, note VARCHAR(20)) PARTITION BY RANGE (n)",
        "CREATE UNLOGGED TABLE first_part PARTITION OF orders FOR VALUES FROM (0) TO (100)",
        "CREATE FOREIGN DATA WRAPPER elsewhere",
        "CREATE SERVER other FOREIGN DATA WRAPPER elsewhere",
        "CREATE FOREIGN TABLE second_part PARTITION OF orders FOR VALUES FROM (100) TO (200) SERVER other",
    )
    unlogged, foreign = ColumnRun(postgresql_database, ORDER).copy(ROWS).notes
    assert unlogged.startswith("The table orders is UNLOGGED, or a partition of it is: PostgreSQL empties it after")
    assert foreign.startswith("The table orders is a foreign table, or a partition of it is: another server commits")
    assert postgresql_database.rows("SELECT COUNT(*) FROM ONLY first_part") == [(3,)]


def test_table_of_something_else_cannot_be_the_offsets_table(database):
    database.execute("CREATE TABLE orders (n BIGINT, EPOCH BIGINT)")
    with pytest.raises(DatabaseError, match="cannot be the offsets table, because it lacks its columns") as caught:
        SinkRun(database, offsets_table_name="orders").claim()
    assert caught.value.code == "jdbc.offsets_table" and "epoch" not in str(caught.value)
