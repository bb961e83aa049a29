"""The first load of a table by several tasks: every row once, in ranges, with the offsets that one task would leave."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from airflow_connect.connectors.jdbc.source.offsets import ranges
from airflow_connect.connectors.jdbc.source.work import items_of
from airflow_connect.errors import OffsetError
from tests.support.copies.jdbc_source import Copies, Run
from tests.support.servers.databases import Database
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

ROWS, TASKS = 300, 3
DATABASES = ["postgresql", "mysql", "sqlite"]
MODES = ["incrementing", "timestamp", "timestamp+incrementing", "bulk"]
CASES = [(d, m) for d in DATABASES for m in MODES if d != "sqlite" or "timestamp" not in m]
PATHS = [(d, m, columnar) for d, m in CASES for columnar in ([True, False] if d == "postgresql" else [True])]
"""Only PostgreSQL is read in two ways."""


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue({"mysql": "mariadb"}.get(request.param, request.param) + "_database")
    return found


def numbers(mode: str) -> list[int]:
    """Keys with large gaps, most of them close together; negative ones are not for mode incrementing."""
    found = [*range(1, ROWS - 49), *(10**6 + n * 1000 for n in range(48)), 2**62, 2**63 - 1]
    return [-(2**63), -5, *found[2:]] if mode in ("bulk", "timestamp") else found


def filled(database: Database, mode: str, key: str = "PRIMARY KEY") -> Database:
    kind = {"postgresql": "timestamptz", "mysql": "datetime(6)", "sqlite": "timestamp"}[database.dialect]
    database.execute(
        f"CREATE TABLE orders (id bigint NOT NULL {key}, name varchar(30), changed {kind} NOT NULL)",
        *(["CREATE INDEX orders_changed ON orders (changed)"] if "timestamp" in mode else []),
    )
    with database.connected() as connection:
        statement = text("INSERT INTO orders VALUES (:id, :name, :changed)")
        # Groups of four equal timestamps, and one group that is a third of the table.
        times = [f"2026-01-01 00:{min(n // 4, 50) // 60:02d}:{min(n // 4, 50) % 60:02d}" for n in range(ROWS)]
        rows = [{"id": i, "name": f"row {i}", "changed": t} for i, t in zip(numbers(mode), times, strict=True)]
        connection.execute(statement, rows)
    if database.dialect == "mysql":
        database.rows("ANALYZE TABLE orders")
    return database


def copies(database: Database, mode: str, columnar: bool = True, **more: str) -> Copies:
    config = {"connection.url": database.jdbc_url, "mode": mode, "table.split.min.rows": "100", "batch.max.rows": "20"}
    if "timestamp" in mode:
        config["timestamp.column.name"] = "changed"
    if "incrementing" in mode:
        config["incrementing.column.name"] = "id"
    return Copies({**config, **{k.replace("_", "."): v for k, v in more.items()}}, columnar=columnar)


def own_offset(runs: Copies) -> Mapping[str, Any]:
    """The offset of the table, which must be the only one."""
    ((partition, offset),) = [one for one in runs.committed() if "gaps" not in one[0]]
    assert set(partition) == {"protocol", "table"}
    return {name: value for name, value in offset.items() if name != "bulk_run"}


def parts_of(run: Run) -> list[list[Any]]:
    """The ids of each range, in the order of ranges."""
    found: dict[str, list[Any]] = {}
    for record in run.records:
        found.setdefault(record.source_partition["after"], []).append(record.value["id"])
    begins = [item.partition["after"] for task in run.tasks for item in items_of(task)]
    in_order = sorted(begins, key=lambda begin: ranges._order(ranges.position_from(begin, "")))
    return [found.get(begin, []) for begin in in_order]


@pytest.mark.parametrize(("database", "mode", "columnar"), PATHS, indirect=["database"])
def test_ranges_together_are_what_one_task_copies(database: Database, mode: str, columnar: bool) -> None:
    filled(database, mode)
    alone, divided = copies(database, mode, columnar), copies(database, mode, columnar)
    expected = alone.run()

    run = divided.run(tasks=TASKS)

    assert len(run.tasks) == TASKS, run.notes
    parts = parts_of(run)
    joined = list(chain.from_iterable(parts))
    if mode in ("incrementing", "timestamp+incrementing"):
        assert joined == expected.ids()
    else:
        assert sorted(joined) == sorted(expected.ids())
    # The group of equal timestamps stays together in mode timestamp; everything else is divided evenly.
    largest = 150 if mode == "timestamp" else 110
    assert len(parts) >= TASKS and max(len(part) for part in parts) <= largest, [len(part) for part in parts]
    assert own_offset(divided) == own_offset(alone)
    assert any(f"is read in {len(parts)} ranges of" in note for note in run.notes), run.notes
    if mode != "bulk":
        assert divided.run(tasks=TASKS).tasks == []


@pytest.mark.parametrize(("database", "mode"), [c for c in CASES if c[0] != "sqlite"], indirect=["database"])
def test_interrupted_load_is_continued_without_repetition(database: Database, mode: str) -> None:
    filled(database, mode)
    alone, runs = copies(database, mode), copies(database, mode)
    alone.run()

    first = runs.run(tasks=TASKS, batches=2)
    complete = [p for p, offset in runs.committed() if "until" in offset]
    # Nothing that Confluent's connector, or an older release, would continue at.
    assert all("after" in partition for partition, _ in runs.committed())
    second = runs.run(tasks=2, batches=2)
    third = runs.run(tasks=4)

    copied = [record for run in (first, second, third) for record in run.records]
    ids = [record.value["id"] for record in copied]
    assert sorted(set(ids)) == sorted(numbers(mode))
    if mode == "bulk":
        # A range that was interrupted is sent again; a complete one is not.
        again = [record.source_partition for record in second.records + third.records]
        assert not [partition for partition in complete if partition in again]
    else:
        assert len(ids) == len(set(ids))
    if first.records:
        assert any("interrupted load of the table" in note for note in second.notes), second.notes
    assert own_offset(runs) == own_offset(alone)


@pytest.mark.parametrize(
    ("database", "mode"), [("postgresql", "timestamp"), ("mysql", "incrementing")], indirect=["database"]
)
def test_interrupted_load_of_a_table_that_is_emptied_for_a_while_waits_for_its_rows(
    database: Database, mode: str
) -> None:
    """Each range that was left counted as complete, and its rows were never sent when they were there again."""
    filled(database, mode)
    database.execute("CREATE TABLE kept AS SELECT * FROM orders")
    runs = copies(database, mode, **{"table.whitelist": "orders"})
    found = runs.run(tasks=TASKS, batches=1).ids()
    database.execute("DELETE FROM orders")
    run = runs.run(tasks=TASKS)
    assert (run.records, run.tasks) == ([], [])
    database.execute("INSERT INTO orders SELECT * FROM kept")
    assert sorted(found + runs.run(tasks=TASKS).ids()) == sorted(numbers(mode))
    assert own_offset(runs)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("key", "more", "reason"),
    [
        ("", {}, "its primary key does not begin with a column of whole numbers"),
        ("PRIMARY KEY", {"query_suffix": "LIMIT 1000"}, "query.suffix applies to whole tables"),
        ("PRIMARY KEY", {"bulk_changed_only": "true"}, "bulk.changed.only compares rows in order"),
    ],
)
def test_table_that_cannot_be_divided_is_read_by_one_task_and_the_plan_says_why(
    database: Database, key: str, more: dict[str, str], reason: str
) -> None:
    filled(database, "bulk", key)
    run = copies(database, "bulk", **more).run(tasks=TASKS)
    assert len(run.tasks) == 1 and sorted(run.ids()) == sorted(numbers("bulk"))
    assert any(reason in note and "rows and is read by one task" in note for note in run.notes), run.notes


@pytest.mark.parametrize("database", ["mysql", "sqlite"], indirect=True)
def test_table_without_an_index_is_read_by_one_task(database: Database) -> None:
    filled(database, "incrementing", "")
    run = copies(database, "incrementing").run(tasks=TASKS)
    assert len(run.tasks) == 1 and run.ids() == numbers("incrementing")
    assert any("it has no index that begins with id" in note for note in run.notes), run.notes


def test_equal_timestamps_only_are_read_by_one_task(postgresql_database: Database) -> None:
    filled(postgresql_database, "timestamp")
    postgresql_database.execute("UPDATE orders SET changed = '2026-01-01'")
    run = copies(postgresql_database, "timestamp").run(tasks=TASKS)
    assert len(run.tasks) == 1 and len(run.records) == ROWS
    assert any("changed has too few different values" in note for note in run.notes), run.notes


@pytest.mark.parametrize("database", DATABASES, indirect=True)
def test_composite_key_is_divided_by_its_first_column(database: Database) -> None:
    database.execute("CREATE TABLE orders (name varchar(9), region int NOT NULL, id int NOT NULL,"
                     " PRIMARY KEY (region, id))")  # fmt: skip
    with database.connected() as connection:
        rows = [{"region": n % 7 - 3, "id": n} for n in range(ROWS)]
        connection.execute(text("INSERT INTO orders VALUES ('x', :region, :id)"), rows)
    if database.dialect == "mysql":
        database.rows("ANALYZE TABLE orders")
    run = copies(database, "bulk").run(tasks=TASKS)
    assert len(run.tasks) == TASKS and sorted(run.ids()) == list(range(ROWS))
    assert any("ranges of region" in note for note in run.notes), run.notes


def test_rows_that_arrive_during_a_load_are_for_the_next_run(postgresql_database: Database) -> None:
    """They are in no task's snapshot, although two of three tasks begin after they were written."""
    filled(postgresql_database, "bulk")
    late = "INSERT INTO orders SELECT -n, 'late', now() FROM generate_series(10, 40) n"
    for columnar in (True, False):
        runs = copies(postgresql_database, "bulk", columnar)
        done = []

        def insert(batch: int, done: list[int] = done) -> None:
            if not done:
                postgresql_database.execute(late, "DELETE FROM orders WHERE id = -5")
            done.append(batch)

        run = runs.run(tasks=TASKS, meanwhile=insert)
        assert sorted(run.ids()) == sorted(numbers("bulk"))
        postgresql_database.execute("DELETE FROM orders WHERE name = 'late'",
                                    "INSERT INTO orders VALUES (-5, 'row -5', '2026-01-01')")  # fmt: skip
    # A session ends a moment after its client has left, and the server has its own, such as those of autovacuum.
    others = "datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    count = f"SELECT count(*) FROM pg_stat_activity WHERE {others}"
    wait_until(lambda: postgresql_database.rows(count) == [(0,)], "no session is left")


@pytest.mark.parametrize("columnar", [True, False])
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("ALTER TABLE orders ALTER COLUMN name TYPE char(40)", "was rewritten after"),
        ("TERMINATE", "does not exist"),
    ],
)
def test_snapshot_that_does_not_help_any_more_is_left_and_no_row_is_lost(
    postgresql_database: Database, columnar: bool, change: str, reason: str
) -> None:
    """A rewritten table looks empty in an older snapshot; one whose owner has gone cannot be imported."""
    filled(postgresql_database, "incrementing")
    runs = copies(postgresql_database, "incrementing", columnar)
    changed = []

    def apply(batch: int) -> None:
        if changed or batch < 2:
            return
        changed.append(batch)
        if change == "TERMINATE":
            assert postgresql_database.end_other_sessions()
            return
        with psycopg.connect(postgresql_database.url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute("SET lock_timeout = '20s'")
            # The first task holds a lock: it is the others' table that is rewritten.
            connection.execute("SELECT pg_terminate_backend(l.pid) FROM pg_locks l WHERE relation ="
                               " 'orders'::regclass AND l.pid <> pg_backend_pid()")  # fmt: skip
            connection.execute(change)

    run = runs.run(tasks=TASKS, meanwhile=apply)

    assert sorted(run.ids()) == numbers("incrementing")
    assert any("not in the snapshot of the run" in note and reason in note for note in run.notes), run.notes
    assert own_offset(runs) == {"incrementing": 2**63 - 1}


def test_offset_of_the_table_itself_ends_an_interrupted_load(postgresql_database: Database) -> None:
    """Confluent's connector has copied the table, or somebody has set its offset: ranges do not count any more."""
    filled(postgresql_database, "incrementing")
    runs = copies(postgresql_database, "incrementing")
    runs.run(tasks=TASKS, batches=1)
    (partition, _), *_ = runs.committed()
    runs.commit({"protocol": "1", "table": partition["table"]}, {"incrementing": 10**6})

    run = runs.run(tasks=TASKS)

    assert run.ids() == [n for n in numbers("incrementing") if n > 10**6]
    assert own_offset(runs) == {"incrementing": 2**63 - 1}


def test_other_mode_begins_an_interrupted_load_again(postgresql_database: Database) -> None:
    filled(postgresql_database, "timestamp")
    runs = copies(postgresql_database, "incrementing")
    runs.run(tasks=TASKS, batches=1)
    runs.config = copies(postgresql_database, "timestamp").config

    run = runs.run(tasks=TASKS)

    assert sorted(run.ids()) == sorted(numbers("timestamp"))
    assert any("begins again, because the mode" in note for note in run.notes), run.notes
    assert "timestamp" in own_offset(runs)


def test_empty_and_small_tables_are_not_divided(postgresql_database: Database) -> None:
    postgresql_database.execute(
        "CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY)", "INSERT INTO b VALUES (1)"
    )
    run = copies(postgresql_database, "bulk").run(tasks=TASKS)
    assert run.ids() == [1] and not any("ranges" in note for note in run.notes)


def test_large_tables_share_the_tasks_by_their_sizes(postgresql_database: Database) -> None:
    for name, rows in (("a", 1200), ("b", 400), ("c", 10)):
        postgresql_database.execute(
            f"CREATE TABLE {name} (id int PRIMARY KEY)",
            f"INSERT INTO {name} SELECT i FROM generate_series(1, {rows}) i",
        )
    with psycopg.connect(postgresql_database.url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("ANALYZE")
    run = copies(postgresql_database, "incrementing").run(tasks=4)
    tables = [sorted({item.table.table for item in items_of(task) if item.table}) for task in run.tasks]
    assert len(run.records) == 1610 and len(tables) == 4
    ranges_of_a = sum(1 for task in run.tasks for item in items_of(task) if item.table and item.table.table == "a")
    assert ranges_of_a == 3


@pytest.mark.parametrize("database", DATABASES, indirect=True)
@pytest.mark.parametrize("mode", ["bulk", "incrementing"])
def test_names_with_any_character_are_quoted_where_a_table_is_divided(database: Database, mode: str) -> None:
    mark = "`" if database.dialect == "mysql" else '"'
    table, key = "a\"b`c'd %s:e", "k\"e`y' %s:z"
    table_sql, key_sql = (mark + name.replace(mark, mark * 2) + mark for name in (table, key))
    with database.connected() as connection:
        cursor = connection.connection.driver_connection.cursor()
        cursor.execute(f"CREATE TABLE {table_sql} ({key_sql} bigint NOT NULL PRIMARY KEY)")
        cursor.execute(f"INSERT INTO {table_sql} VALUES {', '.join(f'({n})' for n in range(ROWS))}")
        if database.dialect == "mysql":
            cursor.execute(f"ANALYZE TABLE {table_sql}")
    run = copies(database, mode, incrementing_column_name=key).run(tasks=TASKS)
    assert len(run.tasks) == TASKS and sorted(run.ids(key)) == list(range(ROWS)), run.notes


@pytest.mark.parametrize("columnar", [True, False])
def test_partitioned_table_and_materialized_view_are_divided_and_views_are_not(
    postgresql_database: Database, columnar: bool
) -> None:
    postgresql_database.execute(
        "CREATE TABLE parts (id bigint PRIMARY KEY, text text) PARTITION BY RANGE (id)",
        "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (100)",
        "CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (100) TO (MAXVALUE)",
        f"INSERT INTO parts SELECT i, repeat('x', 50) FROM generate_series(1, {ROWS}) i",
        "CREATE MATERIALIZED VIEW kept AS SELECT * FROM parts",
        "CREATE VIEW shown AS SELECT * FROM parts",
    )
    for kind, table in (("PARTITIONED TABLE", "parts"), ("MATERIALIZED VIEW", "kept"), ("VIEW", "shown")):
        config = {"table_types": kind, "table_whitelist": table, "validate_non_null": "false"}
        run = copies(postgresql_database, "incrementing", columnar, **config).run(tasks=TASKS)
        assert sorted(run.ids()) == list(range(1, ROWS + 1)), run.notes
        assert len(run.tasks) == (1 if kind == "VIEW" else TASKS), run.notes
        assert not any("not in the snapshot" in note for note in run.notes), run.notes


@pytest.mark.parametrize(
    ("database", "mode", "columnar"),
    [("postgresql", "timestamp", True), ("postgresql", "incrementing", False), ("mysql", "timestamp", True)],
    indirect=["database"],
)
def test_suffix_does_not_cut_what_is_left_of_a_load(database: Database, mode: str, columnar: bool) -> None:
    """Each range was read up to its LIMIT, and counted as complete."""
    filled(database, mode)
    runs = copies(database, mode, columnar)
    first = runs.run(tasks=TASKS, batches=2)
    runs.config["query.suffix"] = "LIMIT 10"
    second = runs.run(tasks=TASKS)
    assert sorted(first.ids() + second.ids()) == sorted(numbers(mode))
    (note,) = [note for note in second.notes if "interrupted load" in note]
    assert note.endswith("ranges are left. query.suffix has no effect on it.")


@pytest.mark.parametrize("change", [{"query.suffix": "LIMIT 10"}, {"bulk.changed.only": "true"}], ids=str)
def test_load_of_mode_bulk_begins_again_if_tables_are_no_longer_divided(
    postgresql_database: Database, change: Mapping[str, str]
) -> None:
    filled(postgresql_database, "bulk")
    runs = copies(postgresql_database, "bulk")
    runs.run(tasks=TASKS, batches=2)
    runs.config |= change
    run = runs.run(tasks=TASKS)
    assert len(run.tasks) == 1 and len(run.ids()) == (10 if "query.suffix" in change else ROWS)
    assert any("begins again, because" in note and next(iter(change)) in note for note in run.notes), run.notes


@pytest.mark.parametrize(
    ("database", "columnar"), [("postgresql", True), ("postgresql", False), ("mysql", True)], indirect=["database"]
)
def test_range_that_ends_after_the_bound_of_a_run_is_not_complete(database: Database, columnar: bool) -> None:
    """The delay was raised after the load had begun: rows between the bound and the end of the range were lost."""
    filled(database, "timestamp")
    ago = "120 * (300 - id) / 300 + 5"
    moved = {"postgresql": f"now() - interval '1 second' * ({ago})", "mysql": f"NOW(6) - INTERVAL ({ago}) SECOND"}
    database.execute(
        "DELETE FROM orders WHERE id NOT BETWEEN 1 AND 300", f"UPDATE orders SET changed = {moved[database.dialect]}"
    )
    expected = [row[0] for row in database.rows("SELECT id FROM orders ORDER BY id")]
    runs = copies(database, "timestamp", columnar)
    first = runs.run(tasks=TASKS, batches=2)
    runs.config["timestamp.delay.interval.ms"] = "60000"
    second = runs.run(tasks=TASKS)
    assert any("ends after the upper bound of this run" in note for note in second.notes), second.notes
    runs.config["timestamp.delay.interval.ms"] = "0"
    third, fourth = runs.run(tasks=TASKS), runs.run(tasks=TASKS)
    assert sorted(first.ids() + second.ids() + third.ids() + fourth.ids()) == expected
    assert runs.run(tasks=TASKS).ids() == [] and "timestamp" in own_offset(runs)


def test_load_whose_tracked_column_becomes_a_date_is_refused(postgresql_database: Database) -> None:
    """Ranges ended within a day: its rows were in no range, or in two."""
    filled(postgresql_database, "timestamp")
    postgresql_database.execute(
        "UPDATE orders SET changed = timestamptz '2026-01-01' + interval '15 minutes' * mod(id, 300)"
    )
    runs = copies(postgresql_database, "timestamp")
    runs.run(tasks=TASKS, batches=2)
    postgresql_database.execute("ALTER TABLE orders ALTER changed TYPE date")
    with pytest.raises(OffsetError, match=r"has a range that ends at a time of day, .* is a DATE"):
        runs.run(tasks=TASKS)
    runs.stored.clear()
    assert sorted(runs.run(tasks=TASKS).ids()) == sorted(numbers("timestamp"))
