"""Mode incrementing: rows that come with a number below those that were copied are named by a later run."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event

from airflow_connect.connectors.jdbc.source.checks import late_rows
from airflow_connect.connectors.jdbc.source.connector import JdbcSourceConnector
from airflow_connect.connectors.jdbc.source.read import gaps as gaps_module
from airflow_connect.connectors.jdbc.source.read.gaps import (
    GapFinder,
    Gaps,
    gaps_of,
    gaps_partition,
    ranges_with,
    without,
)
from airflow_connect.errors import OffsetError
from tests.support.copies.jdbc_source import Copies, Run
from tests.support.servers.databases import Database

pytestmark = pytest.mark.integration
LATE = "at or below the offset that no row had when larger ones were copied"


@pytest.fixture(params=["postgresql", "mariadb", "sqlite"])
def database(request: pytest.FixtureRequest) -> Database:
    made: Database = request.getfixturevalue(f"{request.param}_database")
    made.execute("CREATE TABLE orders (id integer NOT NULL PRIMARY KEY, v integer)")
    return made


def copies(database: Database, columnar: bool, **more: str) -> Copies:
    config = {"connection.url": database.jdbc_url, "mode": "incrementing", "incrementing.column.name": "id"}
    return Copies({**config, **{k.replace("_", "."): v for k, v in more.items()}}, columnar=columnar)


def insert(database: Database, *ids: int) -> None:
    database.execute("INSERT INTO orders (id) VALUES " + ", ".join(f"({n})" for n in ids))


def late(run: Run) -> list[str]:
    return [note for note in run.notes if LATE in note]


def low(run: Run) -> list[str]:
    return [note for note in run.notes if "at or below 0" in note]


@contextmanager
def open_transaction(database: Database, *ids: int) -> Iterator[None]:
    """A transaction that takes numbers now and is committed at the end."""
    with database.connected() as connection:
        connection.exec_driver_sql("INSERT INTO orders (id) VALUES " + ", ".join(f"({n})" for n in ids))
        yield


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_rows_that_are_committed_late_are_named_once(request: pytest.FixtureRequest, kind: str, columnar: bool) -> None:
    """MariaDB does not tell of transactions that are open, so nothing had told of these rows."""
    database: Database = request.getfixturevalue(f"{kind}_database")
    database.execute("CREATE TABLE orders (id bigint NOT NULL PRIMARY KEY, v integer)")
    runs = copies(database, columnar, batch_max_rows="2")
    insert(database, 1, 2)
    assert runs.run().ids() == [1, 2]
    with open_transaction(database, 3, 5):
        insert(database, 4, 6, 7)
        assert runs.run().ids() == [4, 6, 7]
        assert late(runs.run()) == []
    run = runs.run()
    assert run.records == []
    (note,) = late(run)
    assert note.startswith("2 rows of ") and "orders have a number in id" in note and "(3, 5)" in note
    assert '{"incrementing": 2}' in note
    assert late(runs.run()) == []
    insert(database, 8)
    run = runs.run()
    assert run.ids() == [8] and late(run) == []
    partition = next(p for p, _ in runs.committed() if set(p) == {"protocol", "table"})
    runs.commit(partition, {"incrementing": 2})
    run = runs.run()
    assert sorted(run.ids()) == [3, 4, 5, 6, 7, 8] and late(run) == []
    assert late(runs.run()) == []


def test_first_row_of_a_table_that_comes_late_is_named(database: Database) -> None:
    runs = copies(database, False)
    insert(database, 2, 3)
    runs.run()
    insert(database, 1)
    (note,) = late(runs.run())
    assert note.startswith("1 row of ") and "(1)" in note


def test_rows_that_were_copied_and_deleted_are_no_gaps_and_dense_tables_have_no_more_offsets(
    database: Database,
) -> None:
    runs = copies(database, True)
    insert(database, 0, 1, 2, 3)
    runs.run()
    assert len(runs.committed()) == 2  # One says that the number 0 was copied, which few tables have.
    database.execute("DELETE FROM orders WHERE id < 3")
    insert(database, 4)
    assert runs.run().ids() == [4]
    insert(database, 1)  # Such as a backup of one row. Its number was copied.
    insert(database, 0)
    run = runs.run()
    assert late(run) == low(run) == []
    assert len(runs.committed()) == 2


def test_dense_table_has_no_offset_of_gaps(database: Database) -> None:
    runs = copies(database, False)
    insert(database, 1, 2, 3)
    runs.run()
    insert(database, 4)
    assert runs.run().ids() == [4]
    assert len(runs.committed()) == 1


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_each_late_row_of_many_histories_is_named_once(
    postgresql_database: Database, columnar: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after runs that die: they keep gaps with the rows, and what they have named is named again."""
    monkeypatch.setattr(late_rows, "_SHOWN", 1_000)
    database = postgresql_database
    database.execute("CREATE TABLE orders (id integer NOT NULL PRIMARY KEY, v integer)")
    random_ = random.Random(7)
    runs = copies(database, columnar, batch_max_rows="3")
    following, waiting, copied, named = 1, [], set(), []
    for _ in range(40):
        numbers = [following + n for n in range(random_.randint(1, 12))]
        following += len(numbers)
        held = [number for number in numbers if random_.random() < 0.3]
        coming = [number for number in waiting if random_.random() < 0.3]
        waiting = [number for number in waiting if number not in coming] + held
        if present := [number for number in numbers if number not in held] + coming:
            insert(database, *present)
        ends = random_.random() < 0.3
        run = runs.run(batches=1 if ends else None)
        copied.update(run.ids())
        for note in [] if ends else late(run):  # The report of a run that dies is lost.
            named += [int(number) for number in note.partition("copied (")[2].partition(")")[0].split(", ")]
    for _ in range(2):
        run = runs.run()
        copied.update(run.ids())
        for note in late(run):
            named += [int(number) for number in note.partition("copied (")[2].partition(")")[0].split(", ")]
    there = {number for (number,) in database.rows("SELECT id FROM orders")}
    assert len(named) == len(set(named)) > 20
    assert set(named) == there - copied


def test_column_may_be_written_in_another_case_or_renamed(mariadb_database: Database) -> None:
    mariadb_database.execute("CREATE TABLE orders (id bigint AUTO_INCREMENT NOT NULL PRIMARY KEY, v integer)")
    for name in ("ID", ""):
        runs = copies(mariadb_database, True, incrementing_column_name=name)
        insert(mariadb_database, 1, 3)
        runs.run()
        insert(mariadb_database, 2)
        assert len(late(runs.run())) == 1
        mariadb_database.execute("DELETE FROM orders")
    insert(mariadb_database, 4)
    mariadb_database.execute("ALTER TABLE orders RENAME COLUMN id TO number")
    run = runs.run()
    assert run.ids("number") == [4] and late(run) == []


def test_other_column_other_mode_and_damaged_gaps(database: Database) -> None:
    runs = copies(database, False)
    insert(database, 1, 3)
    runs.run()
    (partition,) = [p for p, _ in runs.committed() if "gaps" in p]
    assert gaps_of(runs.offset(partition), "") == Gaps("id", 3, [(2, 2)])
    runs.commit(partition, {"gaps": "[[1]]", "upto": 3, "column": "id"})
    with pytest.raises(OffsetError, match="has the gaps between its numbers is damaged"):
        runs.run()
    runs.config |= {"mode": "bulk"}
    runs.run()
    assert not any("gaps" in p for p, _ in runs.committed())


def test_gaps_of_rows_that_were_committed_are_kept_if_a_limit_ends_the_run(database: Database) -> None:
    """They were kept at the end of a table only, which such a run does not reach."""
    runs = copies(database, False, batch_max_rows="2")
    insert(database, 2, 3, 5, 7, 8, 9)
    run = runs.run(batches=2)
    insert(database, 1, 4)
    rest = runs.run()
    assert sorted(run.ids() + rest.ids()) == [2, 3, 5, 7, 8, 9]
    assert "(1, 4)" in "".join(late(rest))
    assert late(runs.run()) == []
    insert(database, 6)
    assert "(6)" in "".join(late(runs.run()))


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("interrupted", [False, True])
def test_gaps_of_a_first_load_in_ranges_are_those_of_the_table_afterwards(
    postgresql_database: Database, columnar: bool, interrupted: bool
) -> None:
    database = postgresql_database
    database.execute(
        "CREATE TABLE orders (id bigint NOT NULL PRIMARY KEY, v integer)",
        "INSERT INTO orders SELECT n FROM generate_series(0, 4000) n WHERE mod(n, 1000) <> 7",
        "ANALYZE orders",
    )
    runs = copies(database, columnar, table_split_min_rows="1000", batch_max_rows="100")
    copied: list[int] = []
    if interrupted:
        copied += runs.run(tasks=4, batches=1).ids()
    run = runs.run(tasks=4)
    copied += run.ids()
    assert len(run.tasks) > 1
    assert sorted(copied) == [n for n in range(4001) if n % 1000 != 7]
    assert [set(p) for p, _ in runs.committed()] == [{"protocol", "table"}, {"protocol", "table", "gaps"}]
    insert(database, 7, 1007, 2007, 3007, -1)
    run = runs.run(tasks=4)
    assert "(7, 1007, 2007, 3007)" in "".join(late(run)) and "(-1)" in "".join(low(run))
    assert run.records == [] and runs.run().notes == []


def test_rows_of_a_range_that_were_deleted_before_it_was_read_leave_gaps_at_its_end(mariadb_database: Database) -> None:
    database = mariadb_database
    database.execute("CREATE TABLE orders (id bigint NOT NULL PRIMARY KEY, v integer)")
    insert(database, *range(1, 4001))
    database.execute("ANALYZE TABLE orders")
    runs = copies(database, False, table_split_min_rows="1000", batch_max_rows="10")

    def delete(batches: int) -> None:
        if batches == 1:  # Ranges of MariaDB are read as they are.
            database.execute("DELETE FROM orders WHERE mod(id, 50) > 0")

    run = runs.run(tasks=4, meanwhile=delete)
    assert len(run.tasks) > 1
    coming = sorted(set(range(1, 4001)) - set(run.ids()))
    insert(database, *coming)
    (note,) = late(runs.run())
    assert len(coming) > 2_000 and note.startswith("At least 1,000 rows of ")
    named = [note]
    while found := late(runs.run()):
        named += found
    assert named[-1].startswith(f"{len(coming) % 1_000} rows of ") and len(named) == len(coming) // 1_000 + 1


def test_late_rows_that_are_more_than_a_run_names_are_named_by_the_next_ones(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_rows, "MOST_FOUND", 3)
    runs = copies(database, True)
    insert(database, 10, 20)
    runs.run()
    insert(database, 2, 3, 4, 6, 9, 11, 15)
    found = [late(runs.run()) for _ in range(4)]
    assert [note.partition("copied (")[2].partition(")")[0] for (note,) in found[:3]] == ["2, 3, 4", "6, 9, 11", "15"]
    assert [note.startswith("At least 3 rows of ") for (note,) in found[:3]] == [True, True, False]
    assert found[3] == []


def test_gaps_that_are_forgotten_are_counted_and_named_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gaps_module, "MOST_GAPS", 2)

    def forgotten() -> list[str]:
        return [note for note in runs.run().notes if "gaps between their numbers" in note]

    runs = copies(database, False, batch_max_rows="2")
    insert(database, 2, 4, 6, 8)
    assert forgotten() == []
    insert(database, 10)
    (note,) = forgotten()
    assert "2 gaps were forgotten" in note and "before the number 5 are forgotten" in note
    (note,) = forgotten()
    assert "1 gap was forgotten" in note and "before the number 7 are forgotten" in note
    assert forgotten() == []


def test_offset_that_is_set_back_keeps_the_gaps_below_it(database: Database) -> None:
    """All gaps were dropped, so late rows below the offset were never named."""
    runs = copies(database, False)
    insert(database, 1, 3, 5, 7)
    runs.run()
    partition = next(p for p, _ in runs.committed() if set(p) == {"protocol", "table"})
    runs.commit(partition, {"incrementing": 3})
    assert runs.run().ids() == [5, 7]
    insert(database, 2, 4, 6)
    assert "(2, 4, 6)" in "".join(late(runs.run()))


def test_rows_at_or_below_zero_that_are_added_later_are_named_once(database: Database) -> None:
    runs = copies(database, False)
    insert(database, -7, 1, 2)
    run = runs.run()
    assert run.ids() == [1, 2] and "1 row of " in "".join(n for n in run.notes if "a negative number in id" in n)
    assert runs.run().notes == []
    insert(database, -5, 0, 3)
    run = runs.run()
    (note,) = low(run)
    assert run.ids() == [3] and note.startswith("2 rows of ") and "were not there at the last run (-5, 0)" in note
    assert '{"incrementing": -6}' in note
    assert runs.run().notes == []
    partition = next(p for p, _ in runs.committed() if set(p) == {"protocol", "table"})
    runs.commit(partition, {"incrementing": -6})
    assert runs.run().ids() == [-5, 0, 1, 2, 3]
    insert(database, -6, -3)
    run = runs.run()
    assert "(-6)" in "".join(low(run)) and "(-3)" in "".join(late(run))
    assert runs.run().notes == []


def test_rows_below_zero_that_are_too_many_to_know_are_not_taken_for_new_ones(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_rows, "MOST_FOUND", 3)
    runs = copies(database, False)
    insert(database, -9, -7, -5, -3, 1)
    (note,) = [note for note in runs.run().notes if "too many to know each" in note]
    assert note.startswith("At least 3 rows of ") and "a number from -9 to -1, is neither copied nor named" in note
    assert runs.run().notes == []
    insert(database, -8, -11, 0)
    assert "(-11, 0)" in "".join(low(runs.run()))
    assert runs.run().notes == []


def test_row_zero_that_comes_between_plan_and_reading_is_copied_and_not_named(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = copies(database, True)
    insert(database, 1, 2)
    plan = JdbcSourceConnector.task_configs

    def planned(self: JdbcSourceConnector, max_tasks: int) -> Sequence[Mapping[str, str]]:
        found = plan(self, max_tasks)
        insert(database, 0)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(JdbcSourceConnector, "task_configs", planned)
        assert runs.run().ids() == [0, 1, 2]
    assert runs.run().notes == []


def test_rows_at_or_below_zero_are_named_by_the_first_run_of_a_release_that_looks_for_them(database: Database) -> None:
    runs = copies(database, False)
    insert(database, -1, 0, 1)
    runs.run()
    runs.kept = {key: value for key, value in runs.kept.items() if key != "low_rows"}
    runs.stored = {who: stored for who, stored in runs.stored.items() if "gaps" not in stored[0]}
    (note,) = low(runs.run())
    assert "(-1, 0), which are NOT copied now. Whether earlier runs have copied them is not known" in note
    assert runs.run().notes == []


def test_gaps_of_many_tables_cost_one_short_statement_each(database: Database) -> None:
    tables, numbers = 20, range(2, 1002, 2)
    with database.connected() as connection:
        for table in range(tables):
            rows = ", ".join(f"({n})" for n in numbers)
            connection.exec_driver_sql(f"CREATE TABLE t_{table} (id integer PRIMARY KEY)")
            connection.exec_driver_sql(f"INSERT INTO t_{table} VALUES {rows}")
    runs = copies(database, False)
    assert len(runs.run().records) == tables * len(numbers)
    asked: list[str] = []

    def note(*arguments: Any) -> None:
        asked.append(arguments[2])

    event.listen(Engine, "before_cursor_execute", note)
    try:
        assert runs.run().tasks == []
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    looks = [statement for statement in asked if " IN (3, 5, 7, " in statement]
    assert len(looks) == tables and max(map(len, looks)) < 5_000
    assert len(asked) <= 4 * tables + 25  # Some are those of the run itself.


def test_gaps_are_the_latest_ones_and_rows_and_columns_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    monkeypatch.setattr(gaps_module, "MOST_GAPS", 3)
    numbers = [5, 5, 6, 9, 11, 12, 20]
    for begin, forgotten in ((None, 1), (4, 3), (2, 3)):
        before = None if begin is None else Gaps("id", begin, [(0, 1), (4, 9)], forgotten=1)
        by_row, by_column = (GapFinder(begin, "id", before) for _ in range(2))
        by_row.add(numbers)
        by_column.add_array(pa.array(numbers[:3], pa.int32()))
        by_column.add_array(pa.array(numbers[3:], pa.int32()))
        found = by_row.offset()
        assert found == by_column.offset()
        assert gaps_of(found, "") == Gaps("id", 20, [(7, 8), (10, 10), (13, 19)], forgotten=forgotten)
        assert by_row.offset() is None
    assert gaps_partition({"protocol": "1", "table": "a"}) == {"protocol": "1", "table": "a", "gaps": "numbers"}
    assert GapFinder(3, "id", None).offset() is None
    assert GapFinder(3, "id", Gaps("id", 3, [(1, 1)])).offset() is None
    for finder in (GapFinder(-5, "id", None), GapFinder(-1, "id", Gaps("id", 9, [(-3, -2), (4, 4)], first=-9))):
        finder.add([0, 2])
        found = gaps_of(finder.offset(), "")
        assert found is not None and found.first in (-5, -9)
        assert found.ranges in ([(-4, -1), (1, 1)], [(-3, -2), (1, 1)])


def test_ranges_without_others() -> None:
    assert without([(1, 9), (12, 12), (20, 30)], [(0, 1), (3, 4), (9, 21), (25, 25)]) == [
        (2, 2), (5, 8), (22, 24), (26, 30),
    ]  # fmt: skip
    assert without([(1, 3)], []) == [(1, 3)] and without([(1, 3)], [(0, 5)]) == []
    assert ranges_with([5, 1, 2, 2, 4]) == [(1, 2), (4, 5)]
