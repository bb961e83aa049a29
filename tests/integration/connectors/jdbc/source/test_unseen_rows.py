"""Rows that PostgreSQL does not show to a run, and tables behind a query that are others than before, are named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration
ORDERS = "CREATE TABLE orders (id int PRIMARY KEY, changed timestamptz NOT NULL DEFAULT now())"
NEXT_SECOND = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'
AND date_trunc('second', clock_timestamp()) > xact_start
"""
INCREMENTING = {"mode": "incrementing", "incrementing.column.name": "id"}
TIMESTAMP = {"mode": "timestamp", "timestamp.column.name": "changed"}


@contextmanager
def open_transaction(database: Database, *statements: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database.url.replace("+psycopg", "")) as connection:
        for statement in statements:
            connection.execute(statement.encode())
        yield connection


def named(notes: list[str], words: str) -> list[str]:
    return [note for note in notes if words in note]


@pytest.mark.parametrize("what", ["table", "query", "view"])
@pytest.mark.parametrize("mode", [INCREMENTING, TIMESTAMP], ids=["incrementing", "timestamp"])
def test_open_transactions_whose_rows_come_too_late_are_named(postgresql_database, mode, what):
    database = postgresql_database
    database.execute(ORDERS, "CREATE VIEW seen AS SELECT * FROM orders", "INSERT INTO orders VALUES (5, '2026-01-01')")
    chosen = {
        "table": {"table.whitelist": "orders"},
        "query": {"query": "SELECT * FROM orders"},
        "view": {"table.whitelist": "seen", "table.types": "VIEW", "validate.non.null": "false"},
    }[what]
    runs = Copies({"connection.url": database.jdbc_url, **mode, **chosen})
    with open_transaction(database, "INSERT INTO orders VALUES (4, '2025-12-31')"):
        run = runs.run()
    assert run.ids() == [5]
    (note,) = named(run.notes, "open transactions")
    assert ("had written to" if mode is INCREMENTING else "had locked rows of, or written to") in note
    assert ".public.orders (1 transaction)" in note
    database.execute("INSERT INTO orders VALUES (6, '2026-01-02')")
    run = runs.run()
    assert run.ids() == [6]  # Row 4 is not found.
    assert named(run.notes, "open transactions") == []


def test_open_transactions_that_will_write_are_named_where_rows_have_the_time_of_their_beginning(postgresql_database):
    """A number is taken when a row is written, but now() is the time when the transaction began."""
    database = postgresql_database
    database.execute(ORDERS, "INSERT INTO orders VALUES (5, '2026-01-01')")
    for mode, count in ((TIMESTAMP, 1), (INCREMENTING, 0)):
        with open_transaction(database, "SELECT * FROM orders FOR UPDATE"):
            # The run reads up to the beginning of a second.
            wait_until(lambda: database.rows(NEXT_SECOND) != [(0,)], "the next second")
            run = Copies({"connection.url": database.jdbc_url, **mode}).run()
        assert len(named(run.notes, "open transactions")) == count


@pytest.mark.parametrize(
    ("more", "count"),
    [
        (TIMESTAMP, 1),
        ({**TIMESTAMP, **INCREMENTING, "mode": "timestamp+incrementing", "query": "SELECT * FROM seen"}, 1),
        ({**TIMESTAMP, "timestamp.delay.interval.ms": "1000"}, 0),
        ({**TIMESTAMP, "timestamp.lookback.ms": "1000"}, 0),
        (INCREMENTING, 0),
    ],
    ids=["table", "query", "delay", "look-back", "numbers"],
)
def test_tables_that_logical_replication_fills_are_named(postgresql_database, unique_name, more, count):
    """Rows have the times of another server, and come when this one has got them: they were missed without a word."""
    database, name = postgresql_database, unique_name.replace("-", "_")
    database.execute(ORDERS, "CREATE VIEW seen AS SELECT * FROM orders", "INSERT INTO orders VALUES (5, '2026-01-01')")
    database.execute(
        f"CREATE SUBSCRIPTION {name} CONNECTION 'host=nowhere' PUBLICATION p"
        " WITH (connect = false, enabled = false, slot_name = NONE, create_slot = false)",
        # What REFRESH PUBLICATION does, which needs the other server.
        "SET LOCAL allow_system_table_mods = on",
        "INSERT INTO pg_subscription_rel SELECT oid, 'orders'::regclass, 'r', NULL FROM pg_subscription"
        f" WHERE subname = '{name}'",
    )
    try:
        run = Copies({"connection.url": database.jdbc_url, "validate.non.null": "false", **more}).run()
    finally:
        database.execute(f"DROP SUBSCRIPTION {name}")
    assert run.ids() == [5]
    notes = named(run.notes, "Logical replication (a subscription) fills ")
    assert len(notes) == count
    assert all(".public.orders: rows come later than their timestamps say" in note for note in notes)


@pytest.mark.parametrize("more", [{}, {"timestamp.lookback.ms": "86400000"}, {"timestamp.delay.interval.ms": "60000"}])
def test_open_transactions_whose_rows_are_found_need_no_note(postgresql_database, more):
    database = postgresql_database
    database.execute(ORDERS, "INSERT INTO orders VALUES (5, '2026-01-01')")
    mode = {**TIMESTAMP, **more} if more else INCREMENTING
    runs = Copies({"connection.url": database.jdbc_url, **mode})
    statement = "INSERT INTO orders VALUES (6)" if more else "SELECT * FROM orders FOR UPDATE"
    with open_transaction(database, statement):
        run = runs.run()
    assert run.ids() == [5]
    assert named(run.notes, "open transactions") == []


@pytest.mark.parametrize("what", ["table", "query", "view"])
def test_rows_that_policies_hide_are_named(postgresql_database, unique_name, what):
    database, user = postgresql_database, unique_name.replace("-", "_")
    database.execute(
        ORDERS,
        "INSERT INTO orders VALUES (1), (2)",
        "ALTER TABLE orders ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY p ON orders USING (id < 2)",
        "CREATE VIEW seen WITH (security_invoker = true) AS SELECT * FROM orders",
        f"CREATE ROLE {user} LOGIN",
        f"GRANT SELECT ON orders, seen TO {user}",
    )
    url = database.jdbc_url.replace("user=postgres", f"user={user}")
    chosen = {
        "table": {"table.whitelist": "orders"},
        "query": {"query": "SELECT * FROM orders"},
        "view": {"table.whitelist": "seen", "table.types": "VIEW"},
    }[what]
    run = Copies({"connection.url": url, "mode": "bulk", **chosen}).run()
    assert run.ids() == [1]
    assert len(named(run.notes, "Row level security is active")) == 1
    assert named(Copies({"connection.url": database.jdbc_url, "mode": "bulk", **chosen}).run().notes, "security") == []
    database.execute("DROP VIEW seen", "DROP TABLE orders", f"DROP ROLE {user}")


def test_table_behind_a_query_that_was_made_again_is_named(postgresql_database):
    database = postgresql_database
    database.execute(ORDERS, "CREATE TABLE kinds (id int)", "INSERT INTO orders VALUES (1), (2)")
    query = "SELECT o.* FROM orders o LEFT JOIN kinds k ON k.id = o.id"
    runs = Copies({"connection.url": database.jdbc_url, **INCREMENTING, "query": query})
    assert runs.run().ids() == [1, 2]
    database.execute("TRUNCATE kinds")
    assert named(runs.run().notes, "behind the query") == []
    database.execute("DROP TABLE orders", ORDERS, "INSERT INTO orders VALUES (1), (3)")
    run = runs.run()
    assert run.ids() == [3]
    (note,) = named(run.notes, "tables behind the query were dropped and created again")
    assert ".public.orders)" in note
    assert note.endswith("query: 1 row.")
    assert named(runs.run().notes, "behind the query") == []


def test_rows_that_two_tables_show_are_named(postgresql_database):
    """A table shows the rows of those that inherit from it: without a selection, they were in two topics."""
    database = postgresql_database
    database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY)", "CREATE TABLE old () INHERITS (orders)",
        "CREATE TABLE older () INHERITS (old)", "INSERT INTO orders VALUES (1)", "INSERT INTO older VALUES (2)",
        "ALTER TABLE old ALTER id SET NOT NULL", "CREATE TABLE other (id int PRIMARY KEY)",
    )  # fmt: skip
    run = Copies({"connection.url": database.jdbc_url, **INCREMENTING}).run()
    assert sorted((record.topic, record.value["id"]) for record in run.records) == [
        ("db-old", 2), ("db-older", 2), ("db-orders", 1), ("db-orders", 2),
    ]  # fmt: skip
    (note,) = named(run.notes, "are copied twice")
    schema = f"{note.partition('.public.')[0].rpartition(' ')[2]}.public"
    assert f"too: {schema}.old ({schema}.orders), {schema}.older ({schema}.old, {schema}.orders). If" in note
    run = Copies({"connection.url": database.jdbc_url, **INCREMENTING, "table.blacklist": "old,older"}).run()
    assert run.ids() == [1, 2] and named(run.notes, "are copied twice") == []


def test_rows_that_a_merge_table_shows_are_named(mariadb_database):
    """Its rows are those of its members, which may be in another database."""
    ((name,),) = mariadb_database.rows("SELECT database()")
    mariadb_database.execute(
        *(f"CREATE TABLE `{table}` (id int NOT NULL) ENGINE=MyISAM" for table in ("a", "b)", "c")),
        "CREATE TABLE whole (id int NOT NULL COMMENT '\n) ENGINE=MRG_MyISAM UNION=(`d`)')"
        f" ENGINE=MERGE UNION=(a,`b)`,`{name}`.`c`) INSERT_METHOD=LAST COMMENT 'UNION=(`d`)'",
        "CREATE TABLE d (id int NOT NULL)",
        "INSERT INTO a VALUES (1)",
        "INSERT INTO c VALUES (2)",
    )
    config = {"connection.url": mariadb_database.jdbc_url, **INCREMENTING}
    run = Copies({**config, "table.whitelist": "whole,d"}).run()
    assert run.ids() == [1, 2] and named(run.notes, "are copied twice") == []
    run = Copies({**config, "table.blacklist": "b)"}).run()
    assert sorted((record.topic, record.value["id"]) for record in run.records) == [
        ("db-a", 1), ("db-c", 2), ("db-whole", 1), ("db-whole", 2),
    ]  # fmt: skip
    (note,) = named(run.notes, "are copied twice")
    assert note.startswith("Rows of members of MERGE tables are copied twice")
    assert f"too: {name}.a ({name}.whole), {name}.c ({name}.whole). If" in note


@pytest.mark.parametrize("kind", ["partition", "heir"])
def test_open_transactions_that_write_to_a_part_of_a_table_are_named(postgresql_database, kind):
    """A statement for a partition, or for a table that inherits, locks that one only."""
    database = postgresql_database
    database.execute(*{
        "partition": (
            "CREATE TABLE orders (id int NOT NULL) PARTITION BY RANGE (id)",
            "CREATE TABLE part PARTITION OF orders FOR VALUES FROM (0) TO (9)",
        ),
        "heir": ("CREATE TABLE orders (id int NOT NULL)", "CREATE TABLE part () INHERITS (orders)"),
    }[kind], "INSERT INTO part VALUES (5)")  # fmt: skip
    chosen = {"table.whitelist": "orders", "table.types": "TABLE,PARTITIONED TABLE"}
    runs = Copies({"connection.url": database.jdbc_url, **INCREMENTING, **chosen})
    with open_transaction(database, "INSERT INTO part VALUES (4)"):
        run = runs.run()
    assert run.ids() == [5]
    (note,) = named(run.notes, "open transactions")
    assert ".public.orders (1 transaction)" in note
