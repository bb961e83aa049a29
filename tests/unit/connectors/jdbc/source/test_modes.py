"""The modes of the JDBC source on a real SQLite file: which rows a run copies, and which the next one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_connect.errors import ConfigError
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database, sqlite_in

ORDERS = {"protocol": "1", "table": "orders"}


@pytest.fixture
def database(tmp_path: Path) -> Database:
    made = sqlite_in(tmp_path)
    made.execute(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price DECIMAL(10,2),"
        " changed TIMESTAMP NOT NULL)"
    )
    return made


def insert(database: Database, *rows: tuple[int, str, str]) -> None:
    with database.connected() as connection:
        for row in rows:
            connection.exec_driver_sql("INSERT INTO orders VALUES (?, ?, 1.5, ?)", row)


def copies(database: Database, mode: str, columnar: bool = False, **more: str) -> Copies:
    config = {"connection.url": database.jdbc_url, "mode": mode, **{k.replace("_", "."): v for k, v in more.items()}}
    return Copies(config, columnar=columnar)


STAMP = {"timestamp_column_name": "changed"}
NOON = "2026-01-01 12:00:00"


def at(second: float) -> str:
    return (datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(seconds=second)).strftime("%Y-%m-%d %H:%M:%S.%f")


def offset_at(second: float) -> dict[str, int]:
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(seconds=second)
    return {"timestamp": int(moment.timestamp() * 1000), "timestamp_nanos": moment.microsecond * 1000}


@pytest.mark.parametrize("columnar", [False, True])
def test_incrementing_copies_each_row_once(database: Database, columnar: bool) -> None:
    runs = copies(database, "incrementing", columnar, incrementing_column_name="id")
    insert(database, (1, "a", NOON), (2, "b", NOON))
    first = runs.run()
    assert [r.topic for r in first.records] == ["db-orders", "db-orders"] and first.ids() == [1, 2]
    assert runs.offset(ORDERS) == {"incrementing": 2}
    assert runs.run().tasks == []  # nothing new: no task, no Spark
    insert(database, (5, "c", NOON))
    assert runs.run().ids() == [5]


def test_incrementing_column_is_the_one_that_the_database_numbers(database: Database) -> None:
    insert(database, (1, "a", NOON))
    runs = copies(database, "incrementing")
    assert runs.run().ids() == [1] and runs.offset(ORDERS) == {"incrementing": 1}


def test_each_row_has_its_own_offset_as_confluent_writes_it(database: Database) -> None:
    insert(database, (1, "a", at(0)), (2, "b", at(0)), (3, "c", at(1.5)))
    by_id = copies(database, "incrementing").run()
    assert [r.source_offset for r in by_id.records] == [{"incrementing": n} for n in (1, 2, 3)]
    both = copies(database, "timestamp+incrementing", incrementing_column_name="id", **STAMP).run()
    assert [r.source_offset for r in both.records] == [
        {"incrementing": 1, **offset_at(0)}, {"incrementing": 2, **offset_at(0)}, {"incrementing": 3, **offset_at(1.5)},
    ]  # fmt: skip
    by_time = copies(database, "timestamp", **STAMP).run()
    assert [r.source_offset for r in by_time.records] == [{}, offset_at(0), offset_at(1.5)]
    assert {tuple(r.source_partition.items()) for r in by_time.records} == {tuple(ORDERS.items())}


@pytest.mark.parametrize("columnar", [False, True])
@pytest.mark.parametrize("mode", ["timestamp", "timestamp+incrementing"])
def test_changed_rows_come_again(database: Database, mode: str, columnar: bool) -> None:
    runs = copies(database, mode, columnar, incrementing_column_name="id" if "inc" in mode else "", **STAMP)
    insert(database, (1, "a", at(0)), (2, "b", at(1)))
    assert runs.run().ids() == [1, 2]
    database.execute(f"UPDATE orders SET name = 'A', changed = '{at(2)}' WHERE id = 1")
    again = runs.run()
    assert [(v["id"], v["name"]) for v in again.values] == [(1, "A")]
    assert runs.run().records == []


@pytest.mark.parametrize("killed_after", range(1, 8))
@pytest.mark.parametrize("columnar", [False, True])
def test_run_that_dies_between_batches_continues_without_gap_or_repetition(
    database: Database, killed_after: int, columnar: bool
) -> None:
    # Groups of 1 to 5 equal timestamps, and batches of 2.
    times = [0, 0, 1, 2, 2, 2, 3, 3, 3, 3, 3, 4]
    insert(database, *((n, "x", at(second)) for n, second in enumerate(times, 1)))
    for mode, more in (("timestamp", {}), ("timestamp+incrementing", {"incrementing_column_name": "id"})):
        runs = copies(database, mode, columnar, batch_max_rows="2", **STAMP, **more)
        before = runs.run(batches=killed_after).ids()
        assert before + runs.run().ids() == list(range(1, 13)), mode


def test_batch_never_ends_inside_a_group_of_equal_timestamps(database: Database) -> None:
    insert(database, *((n, "x", at(0 if n <= 7 else n)) for n in range(1, 11)))
    run = copies(database, "timestamp", batch_max_rows="2", **STAMP).run()
    assert run.batches[0] >= 7 and run.ids() == list(range(1, 11))


def test_rows_of_the_current_second_wait_for_the_next_run(database: Database) -> None:
    # CURRENT_TIMESTAMP of SQLite has whole seconds: another row may get the same one after this run has read.
    with database.connected() as connection:
        connection.exec_driver_sql(
            "INSERT INTO orders SELECT 1, 'old', 0, '2020-01-01 00:00:00' UNION SELECT 2, 'ahead', 0,"
            " strftime('%Y-%m-%d %H:%M:%S', 'now', '+1 hour')"
        )
    runs = copies(database, "timestamp", **STAMP)
    assert runs.run().ids() == [1]
    database.execute("UPDATE orders SET changed = '2020-01-01 00:00:01' WHERE id = 2")
    assert runs.run().ids() == [2]


def test_delay_holds_back_what_is_younger(database: Database) -> None:
    with database.connected() as connection:
        connection.exec_driver_sql(
            "INSERT INTO orders VALUES (1, 'old', 0, datetime('now', '-2 hours')),"
            " (2, 'young', 0, datetime('now', '-10 minutes'))"
        )
    runs = copies(database, "timestamp", timestamp_delay_interval_ms="3600000", **STAMP)
    assert runs.run().ids() == [1]
    assert copies(database, "timestamp", **STAMP).run().ids() == [1, 2]


def test_rows_written_during_a_run_are_for_the_next_one(database: Database) -> None:
    insert(database, *((n, "x", at(n)) for n in range(1, 6)))
    runs = copies(database, "timestamp", batch_max_rows="1", **STAMP)
    late = "INSERT INTO orders VALUES (99, 'late', 0, strftime('%Y-%m-%d %H:%M:%f', 'now', '+1 second'))"
    # The statement is open while rows are fetched; SQLite then lets nobody write, so the row comes right after it.
    run = runs.run()
    database.execute(late)
    assert run.ids() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(("initial", "expected"), [(None, [1, 2, 3]), (1767268800_000 + 1, [2, 3]), (-1, [])])
def test_initial_timestamp(database: Database, initial: int | None, expected: list[int]) -> None:
    insert(database, (1, "a", at(0)), (2, "b", at(1)), (3, "c", at(2)))
    more = {} if initial is None else {"timestamp_initial": str(initial)}
    assert copies(database, "timestamp", **STAMP, **more).run().ids() == expected


def test_initial_timestamp_now_is_kept_for_later_runs(database: Database) -> None:
    insert(database, (1, "a", at(0)))
    runs = copies(database, "timestamp", timestamp_initial="-1", **STAMP)
    first = runs.run()
    assert (first.records, first.notes) == ([], [])
    kept = runs.offset(ORDERS)
    assert kept is not None and kept["timestamp"] > 1_700_000_000_000
    # A row from just after that moment: the next run must not begin at its own time.
    moment = datetime.fromtimestamp(kept["timestamp"] / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    insert(database, (2, "b", moment + ".999"))
    database.execute("UPDATE orders SET changed = strftime('%Y-%m-%d %H:%M:%f', changed) WHERE id = 2")
    following = runs.run()
    assert following.ids() == [2] or following.records == []  # the second may not be over yet


def test_initial_timestamp_now_is_kept_although_the_run_dies_in_another_table(database: Database) -> None:
    """The next run began at its own time, and left out the rows in between."""
    runs = copies(database, "timestamp", timestamp_initial="-1", batch_max_rows="1", **STAMP)
    runs.commit(ORDERS, offset_at(0))
    insert(database, (1, "a", at(1)), (2, "b", at(2)))
    database.execute("CREATE TABLE others (id INTEGER PRIMARY KEY, changed TIMESTAMP NOT NULL)")
    run = runs.run(batches=1)
    assert run.topics == ["db-orders"]
    assert runs.offset({"protocol": "1", "table": "others"}) is not None
    (note,) = run.notes
    assert note.startswith("1 table has no offset, while others of the connector have one: others. ")
    assert runs.run().notes == []


def test_several_timestamp_columns_are_one_by_coalesce(database: Database) -> None:
    database.execute(
        "CREATE TABLE people (id INTEGER PRIMARY KEY, created TIMESTAMP NOT NULL, updated TIMESTAMP)",
        f"INSERT INTO people VALUES (1, '{at(0)}', NULL), (2, '{at(1)}', NULL), (3, '{at(2)}', '{at(9)}')",
    )
    runs = copies(database, "timestamp", timestamp_column_name="updated, created", table_whitelist="people")
    assert runs.run().ids() == [1, 2, 3]
    database.execute(f"UPDATE people SET updated = '{at(20)}' WHERE id = 1")
    assert runs.run().ids() == [1]
    assert runs.offset({"protocol": "1", "table": "people"}) == offset_at(20)


def test_bulk_copies_everything_in_each_run(database: Database) -> None:
    insert(database, (1, "a", NOON), (2, "b", NOON))
    runs = copies(database, "bulk")
    assert runs.run().ids() == [1, 2] and runs.run().ids() == [1, 2]


def test_empty_table_in_mode_bulk_has_no_records(database: Database) -> None:
    assert copies(database, "bulk").run().records == []


def test_query_with_suffix(database: Database) -> None:
    insert(database, (1, "a:b", at(0)), (2, "50%", at(1)), (3, "c", at(2)))
    query = (
        'SELECT id, name AS "the:name", changed FROM orders'
        " JOIN (SELECT 1 AS one) ON name LIKE '%%' OR name LIKE 'a:%'"
    )
    runs = copies(database, "incrementing", query=query, incrementing_column_name="id", query_suffix="LIMIT 2")
    first = runs.run()
    assert first.topics == ["db-"] and first.ids() == [1, 2]
    assert runs.offset({"query": "query"}) == {"incrementing": 2}
    assert [v["the:name"] for v in first.values + runs.run().values] == ["a:b", "50%", "c"]


def test_query_by_timestamp(database: Database) -> None:
    insert(database, (1, "a", at(0)), (2, "b", at(1)))
    runs = copies(database, "timestamp", query="SELECT id, changed FROM orders", **STAMP)
    assert runs.run().ids() == [1, 2]
    insert(database, (3, "c", at(2)))
    assert runs.run().ids() == [3]


def test_rows_with_null_are_counted_and_named(database: Database) -> None:
    database.execute(
        "CREATE TABLE loose (id INTEGER PRIMARY KEY, changed TIMESTAMP)",
        f"INSERT INTO loose VALUES (1, '{at(0)}'), (2, NULL), (3, NULL)",
    )
    run = copies(database, "timestamp", validate_non_null="false", table_whitelist="loose", **STAMP).run()
    assert run.ids() == [1]
    assert any("2 rows of loose have null in changed and are not copied" in note for note in run.notes)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"mode": "timestamp", "timestamp.column.name": "nosuch"},
            "Timestamp columns: nosuch does not exist in table loose",
        ),
        ({"mode": "incrementing", "incrementing.column.name": "nosuch"}, "Incrementing column: nosuch does not exist"),
        ({"mode": "timestamp", "timestamp.column.name": "changed"}, "all of these columns are nullable"),
        ({"mode": "incrementing", "incrementing.column.name": "number"}, "because this column is nullable"),
        ({"mode": "incrementing", "incrementing.column.name": "name"}, "which is not a whole number"),
        ({"mode": "incrementing"}, "no column that the database numbers itself"),
        ({"mode": "timestamp", "timestamp.column.name": "changed,day"}, "not all of one type"),
    ],
)
def test_column_that_does_not_fit_the_mode_is_refused(
    database: Database, more: Mapping[str, str], message: str
) -> None:
    database.execute("CREATE TABLE loose (name TEXT NOT NULL, number INT, changed TIMESTAMP, day DATE)")
    runs = Copies({"connection.url": database.jdbc_url, "table.whitelist": "loose", **more})
    with pytest.raises(ConfigError, match=message):
        runs.run()


def test_name_that_differs_in_case_only_is_found(database: Database) -> None:
    insert(database, (1, "a", at(0)))
    assert copies(database, "timestamp", timestamp_column_name="CHANGED").run().ids() == [1]


def test_columns_by_table(database: Database) -> None:
    database.execute(
        "CREATE TABLE people (nr INTEGER PRIMARY KEY, born TIMESTAMP NOT NULL)",
        f"INSERT INTO people VALUES (7, '{at(0)}')",
    )
    insert(database, (1, "a", at(0)))
    runs = copies(
        database, "timestamp+incrementing",
        timestamp_columns_mapping="orders:[changed],peop.*:[born]", incrementing_column_mapping="orders:id,.*:nr",
    )  # fmt: skip
    run = runs.run()
    assert run.topics == ["db-orders", "db-people"] and len(run.records) == 2


def test_offset_of_kafka_connect_is_continued(database: Database) -> None:
    insert(database, (1, "a", at(0)), (2, "b", at(1)), (3, "c", at(2)))
    # Protocol 0, as releases before 5.0 wrote it; protocol 1 takes precedence.
    old = copies(database, "timestamp+incrementing", incrementing_column_name="id", **STAMP)
    old.commit({"table": "orders"}, {"incrementing": 1, **offset_at(0)})
    assert old.run().ids() == [2, 3] and old.offset(ORDERS) == {"incrementing": 3, **offset_at(2)}
    new = copies(database, "timestamp+incrementing", incrementing_column_name="id", **STAMP)
    new.commit({"table": "orders"}, {"incrementing": 1, **offset_at(0)})
    new.commit(ORDERS, {"incrementing": 2, **offset_at(1)})
    assert new.run().ids() == [3]
    # Without nanoseconds, as the first releases wrote it.
    bare = copies(database, "timestamp", **STAMP)
    bare.commit(ORDERS, {"timestamp": offset_at(1)["timestamp"]})
    assert bare.run().ids() == [3]


@pytest.mark.parametrize("columnar", [False, True])
def test_late_rows_are_found_by_looking_back_and_nothing_is_sent_twice(database: Database, columnar: bool) -> None:
    runs = copies(database, "timestamp", columnar, timestamp_lookback_ms="60000", batch_max_rows="3", **STAMP)
    insert(database, *((n, "x", at(n)) for n in range(0, 100, 10)))
    assert runs.run().ids() == list(range(0, 100, 10))
    assert runs.run().records == []
    insert(database, (45, "late", at(45)), (5, "too late", at(5)))
    assert runs.run().ids() == [45]
    assert runs.run().records == []
    database.execute("UPDATE orders SET name = 'changed without a new time' WHERE id = 90")
    insert(database, (100, "new", at(100)))
    assert runs.run().ids() == [90, 100]
    kept = runs.offset(ORDERS)
    assert kept is not None and {key: kept[key] for key in ("timestamp", "timestamp_nanos")} == offset_at(100)


@pytest.mark.parametrize("columnar", [False, True])
def test_look_back_does_not_repeat_new_rows_after_a_batch_that_was_sent(database: Database, columnar: bool) -> None:
    """The batch with the old rows must not set the offset after the batch with the new ones."""
    runs = copies(database, "timestamp", columnar, timestamp_lookback_ms="60000", batch_max_rows="3", **STAMP)
    insert(database, *((n, "x", at(n)) for n in range(4)))
    assert runs.run().ids() == list(range(4))
    insert(database, *((n, "same time", at(5)) for n in range(10, 14)))
    assert runs.run().ids() == list(range(10, 14))
    assert runs.run().records == []


@pytest.mark.parametrize("columnar", [False, True])
def test_row_that_changes_back_without_a_new_time_is_sent_again(database: Database, columnar: bool) -> None:
    """The hash of the first state was remembered, so the topic kept the state in between."""
    runs = copies(database, "timestamp", columnar, timestamp_lookback_ms="60000", batch_max_rows="2", **STAMP)
    insert(database, (1, "five", at(1)), (2, "same time", at(1)), (3, "b", at(2)), (4, "c", at(3)))
    assert runs.run().ids() == [1, 2, 3, 4]
    size = len(str(runs.offset(ORDERS)))
    for name in ("six", "five", "six"):
        database.execute(f"UPDATE orders SET name = '{name}' WHERE id = 1")
        assert [(row["id"], row["name"]) for row in runs.run().values] == [(1, name)]
        assert runs.run().records == [] and len(str(runs.offset(ORDERS))) == size


def test_rows_that_a_replica_does_not_have_yet_are_not_sent_again(database: Database) -> None:
    runs = copies(database, "timestamp", timestamp_lookback_ms="60000", **STAMP)
    insert(database, (1, "a", at(1)), (2, "b", at(2)), (3, "c", at(2)))
    runs.run()
    database.execute("DELETE FROM orders WHERE id > 1")
    assert runs.run().records == []
    insert(database, (2, "b", at(2)), (3, "c", at(2)))
    assert runs.run().records == []


def test_look_back_that_is_switched_on_later_does_not_repeat_rows(database: Database) -> None:
    insert(database, (1, "a", at(0)), (2, "b", at(1)))
    runs = copies(database, "timestamp", **STAMP)
    runs.run()
    runs.config["timestamp.lookback.ms"] = "60000"
    begin = f"timestamp.lookback.ms finds no row of orders with a time up to {at(1).replace(' ', 'T')}"
    empty = runs.run()
    assert empty.records == [] and [note for note in empty.notes if note.startswith(begin)], empty.notes
    insert(database, (3, "c", at(2)))
    assert runs.run().ids() == [3]
    insert(database, (4, "late", at(1.5)), (5, "before it was switched on", at(0.5)))
    late = runs.run()
    assert late.ids() == [4] and [note for note in late.notes if note.startswith(begin)]
    insert(database, (6, "whole window", at(70)))
    runs.run()
    assert not [note for note in runs.run().notes if "lookback.ms finds" in note]


def test_look_back_that_is_made_longer_does_not_repeat_rows(database: Database) -> None:
    """It read the rows before the shorter window again, of which it had no hashes any more, and sent them again."""
    runs = copies(database, "timestamp", timestamp_lookback_ms="10000", **STAMP)
    insert(database, *((n, "x", at(n)) for n in range(0, 100, 5)))
    assert len(runs.run().ids()) == 20
    runs.config["timestamp.lookback.ms"] = "60000"
    insert(database, (101, "late", at(91)), (102, "before the window", at(81)))
    longer = runs.run()
    assert longer.ids() == [101]
    assert [note for note in longer.notes if f"with a time up to {at(85).replace(' ', 'T')}" in note]
    insert(database, (103, "new", at(100)), (104, "late", at(92)))
    assert sorted(runs.run().ids()) == [103, 104]


def test_look_back_forgets_the_oldest_rows_and_says_so(database: Database) -> None:
    insert(database, *((n, "x", at(n)) for n in range(20)))
    runs = copies(database, "timestamp", timestamp_lookback_ms="60000", timestamp_lookback_max_rows="5", **STAMP)
    run = runs.run()
    assert any("timestamp.lookback.max.rows is too small" in note for note in run.notes)
    insert(database, (101, "in what is remembered", at(17.5)), (102, "older", at(10.5)))
    assert runs.run().ids() == [101]


@pytest.mark.parametrize("columnar", [False, True])
@pytest.mark.parametrize("batch", ["1", "3", "100"])
def test_rows_that_are_before_the_window_at_the_end_are_not_called_forgotten(
    database: Database, batch: str, columnar: bool
) -> None:
    """Smaller batches forgot rows on the way, and the report warned although the last window was whole."""
    insert(database, *((n, "x", at(n)) for n in range(20)), (20, "x", at(3600)), (21, "x", at(3601)))
    limits = {"timestamp_lookback_ms": "60000", "timestamp_lookback_max_rows": "5", "batch_max_rows": batch}
    assert copies(database, "timestamp", columnar, **limits, **STAMP).run().notes == []


@pytest.mark.parametrize("killed_after", [1, 2, 3])
def test_look_back_of_a_run_that_dies_neither_loses_nor_repeats(database: Database, killed_after: int) -> None:
    insert(database, *((n, "x", at(n)) for n in range(10)))
    runs = copies(database, "timestamp", timestamp_lookback_ms="60000", batch_max_rows="3", **STAMP)
    runs.run()
    insert(database, *((n, "late", at(n - 99.5)) for n in range(100, 108)), *((n, "new", at(n)) for n in range(20, 24)))
    seen = runs.run(batches=killed_after).ids() + runs.run().ids()
    assert sorted(seen) == sorted([*range(100, 108), *range(20, 24)])


def test_table_without_primary_key_cannot_look_back(database: Database) -> None:
    database.execute("CREATE TABLE bare (changed TIMESTAMP NOT NULL)", f"INSERT INTO bare VALUES ('{at(0)}')")
    runs = copies(database, "timestamp", timestamp_lookback_ms="1000", table_whitelist="bare", **STAMP)
    with pytest.raises(ConfigError, match="needs a primary key"):
        runs.run()


def test_schema_change_between_runs_gives_a_new_schema(database: Database) -> None:
    runs = copies(database, "incrementing")
    insert(database, (1, "a", NOON))
    first = runs.run().records[0]
    database.execute("ALTER TABLE orders ADD COLUMN colour TEXT DEFAULT 'red'", "ALTER TABLE orders DROP COLUMN price")
    database.execute(f"INSERT INTO orders (id, name, changed) VALUES (2, 'b', '{NOON}')")
    second = runs.run().records[0]
    assert first.value_schema is not None and second.value_schema is not None
    assert [f.name for f in first.value_schema.fields] == ["id", "name", "price", "changed"]
    assert [f.name for f in second.value_schema.fields] == ["id", "name", "changed", "colour"]
    assert second.value["colour"] == "red"


def test_memory_of_a_large_table_is_bounded_by_batches(database: Database) -> None:
    with database.connected() as connection:
        connection.exec_driver_sql(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
            " INSERT INTO orders SELECT i, 'x', 1, '2026-01-01 00:00:00' FROM n"
        )
    run = copies(database, "incrementing", batch_max_rows="250").run()
    assert max(run.batches) == 250 and sum(run.batches) == 5000
