"""Mode incrementing: rows that come with a number below those that were copied are named by a later run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from airflow_connect.connectors.jdbc.source.read import gaps as gaps_module
from airflow_connect.connectors.jdbc.source.read.gaps import GapFinder, Gaps, gaps_of, gaps_partition
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
    assert len(runs.committed()) == 1
    database.execute("DELETE FROM orders WHERE id < 3")
    insert(database, 4)
    assert runs.run().ids() == [4]
    insert(database, 1)  # Such as a backup of one row. Its number was copied.
    assert late(runs.run()) == []
    assert len(runs.committed()) == 1


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_each_late_row_of_many_histories_is_named_once(
    postgresql_database: Database, columnar: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that die in between do not know what they have read; the runs after them do."""
    monkeypatch.setattr(gaps_module, "_SHOWN", 1_000)
    database = postgresql_database
    database.execute("CREATE TABLE orders (id integer NOT NULL PRIMARY KEY, v integer)")
    random_ = random.Random(7)
    runs = copies(database, columnar, batch_max_rows="3")
    following, waiting, copied, named = 0, [], set(), []
    for _ in range(40):
        numbers = [following + n for n in range(random_.randint(1, 12))]
        following += len(numbers)
        held = [number for number in numbers if random_.random() < 0.3]
        coming = [number for number in waiting if random_.random() < 0.3]
        waiting = [number for number in waiting if number not in coming] + held
        if present := [number for number in numbers if number not in held] + coming:
            insert(database, *present)
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


def test_gaps_are_the_latest_ones_and_rows_and_columns_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    monkeypatch.setattr(gaps_module, "MOST_GAPS", 3)
    numbers = [5, 5, 6, 9, 11, 12, 20]
    for begin in (None, 4, 2):
        by_row, by_column = GapFinder(begin), GapFinder(begin)
        by_row.add(numbers)
        by_column.add_array(pa.array(numbers[:3], pa.int32()))
        by_column.add_array(pa.array(numbers[3:], pa.int32()))
        before = None if begin is None else Gaps("id", begin, [(0, 1)])
        found = by_row.offset("id", before)
        assert found == by_column.offset("id", before)
        assert gaps_of(found, "") == Gaps("id", 20, [(7, 8), (10, 10), (13, 19)])
    assert gaps_partition({"protocol": "1", "table": "a"}) == {"protocol": "1", "table": "a", "gaps": "numbers"}
    assert GapFinder(3).offset("id", None) is None
