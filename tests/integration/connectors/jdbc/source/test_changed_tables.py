"""Tables that are changed between runs, and those of PostgreSQL between plan and task, or within an unfinished load."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import pytest

from airflow_connect.errors import OffsetError
from tests.support.copies.jdbc_source import Copies, Run
from tests.support.servers.databases import Database

pytestmark = pytest.mark.integration
BOTH_PATHS = pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])


class ChangedAfterPlan(Copies):
    """Something happens between plan and tasks."""

    change: Callable[[], None] | None = None

    def _task(
        self, run: Run, config: Mapping[str, str], batches: int | None, meanwhile: Callable[[int], None] | None
    ) -> None:
        change, self.change = self.change, None
        if change is not None:
            change()
        super()._task(run, config, batches, meanwhile)


@pytest.fixture
def database(postgresql_database: Database) -> Database:
    postgresql_database.execute(
        "CREATE TABLE a (id int PRIMARY KEY, v int)", "INSERT INTO a SELECT n, n FROM generate_series(0, 11) n"
    )
    return postgresql_database


def copies(database: Database, columnar: bool, **more: str) -> ChangedAfterPlan:
    config = {"connection.url": database.jdbc_url, "mode": "bulk", "table.split.min.rows": "4", **more}
    return ChangedAfterPlan(config, columnar=columnar)


@BOTH_PATHS
def test_divided_table_that_is_dropped_does_not_disturb_the_next_table(database: Database, columnar: bool) -> None:
    database.execute("CREATE TABLE b (id int PRIMARY KEY)", "INSERT INTO b VALUES (1)")
    runs = copies(database, columnar)
    runs.change = lambda: database.execute("DROP TABLE a")
    # Of two tasks one reads ranges of `a`, then `b`.
    run = runs.run(tasks=2)
    assert run.topics == ["db-b"] and any("a does not exist any more and is skipped" in note for note in run.notes)


@BOTH_PATHS
def test_divided_table_that_was_away_for_a_moment_is_loaded_by_the_next_run(database: Database, columnar: bool) -> None:
    """Its range counted as complete: if a later one was read, none of the rows was ever copied."""
    runs = copies(database, columnar, **{"mode": "incrementing", "incrementing.column.name": "id"})
    back = ["ALTER TABLE away RENAME TO a"]

    def rename_back(_: int) -> None:
        database.execute(*back)
        back.clear()

    runs.change = lambda: database.execute("ALTER TABLE a RENAME TO away")
    found = runs.run(tasks=2, meanwhile=rename_back).ids()
    assert 0 < len(found) < 12
    assert sorted([*found, *runs.run(tasks=2).ids()]) == list(range(12))


@BOTH_PATHS
@pytest.mark.parametrize(
    "change",
    [
        ["ALTER TABLE a RENAME COLUMN id TO number"],
        ["ALTER TABLE a DROP CONSTRAINT a_pkey", "ALTER TABLE a ALTER COLUMN id TYPE text"],
    ],
    ids=["renamed", "a text"],
)
def test_load_whose_key_was_changed_begins_again(database: Database, columnar: bool, change: list[str]) -> None:
    runs = copies(database, columnar, **{"batch.max.rows": "2"})
    runs.run(tasks=2, batches=2)
    assert len(runs.committed()) > 1
    database.execute(*change)
    run = runs.run(tasks=2)
    assert sorted(value["v"] for value in run.values) == list(range(12))
    assert any("begins again, because the primary key of the table was changed" in note for note in run.notes)


def test_rows_that_policies_hide_are_named(database: Database) -> None:
    ((name,),) = database.rows("SELECT current_database()")
    role = f"reader_{name}"
    database.execute(
        f"CREATE ROLE {role} LOGIN", f"GRANT SELECT ON a TO {role}", "ALTER TABLE a ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY few ON a USING (id < 2)",
    )  # fmt: skip
    try:
        runs = copies(database, False, **{"connection.user": role})
        runs.config["connection.url"] = database.jdbc_url.partition("?")[0]
        run = runs.run()
        assert run.ids() == [0, 1]
        assert any(note.startswith("Row level security is active") and ".public.a, only" in note for note in run.notes)
    finally:
        database.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_interrupted_load_whose_key_was_changed_begins_again_once(database: Database) -> None:
    """The next run copies all rows again, as mode bulk does, but no load is interrupted any more."""
    for change, tasks in (("ALTER TABLE a RENAME COLUMN id TO number", 2), ("ALTER TABLE a DROP COLUMN number", 1)):
        runs = copies(database, False, **{"batch.max.rows": "2"})
        runs.run(tasks=2, batches=2)
        database.execute(change)
        assert any("begins again" in note for note in runs.run(tasks=tasks).notes)
        again = runs.run(tasks=tasks)
        assert len(again.records) == 12 and not any("begins again" in note for note in again.notes), again.notes
        ((partition, _),) = runs.committed()
        assert set(partition) == {"protocol", "table"}


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_tracked_column_that_has_become_a_date_is_refused_until_the_offset_is_at_the_end_of_a_day(
    request: pytest.FixtureRequest, kind: str
) -> None:
    """Rows of the day of the offset have midnight as their time: no run found them."""
    database: Database = request.getfixturevalue(f"{kind}_database")
    moment = "timestamp" if kind == "postgresql" else "datetime"
    database.execute(
        f"CREATE TABLE a (id int, at {moment} NOT NULL)", "INSERT INTO a VALUES (1, '2026-02-03 10:00:00')"
    )
    config = {"connection.url": database.jdbc_url, "mode": "timestamp", "timestamp.column.name": "at"}
    runs = Copies({**config, "db.timezone": "Europe/Berlin"})
    assert runs.run().ids() == [1]
    changed = "ALTER COLUMN at TYPE date" if kind == "postgresql" else "MODIFY at date NOT NULL"
    database.execute(f"ALTER TABLE a {changed}", "INSERT INTO a VALUES (2, '2026-02-03')")
    with pytest.raises(
        OffsetError, match=r"has a time of day, 2026-02-03 10:00:00\.000, and its tracked column at"
    ) as e:
        runs.run()
    suggested = re.findall(r'"timestamp": (\d+)', e.value.suggestion)
    ((partition, _),) = runs.committed()
    runs.commit(partition, {"timestamp": int(suggested[1])})
    assert runs.run().ids() == []
    runs.commit(partition, {"timestamp": int(suggested[0])})
    assert sorted(runs.run().ids()) == [1, 2]
    assert runs.run().ids() == []


@pytest.mark.parametrize("look_back", ["0", "5000"])
@pytest.mark.parametrize("begins", ["at the first row", "at the present"])
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_tracked_column_that_has_become_a_date_is_refused_however_its_offset_came_about(
    request: pytest.FixtureRequest, kind: str, begins: str, look_back: str
) -> None:
    """The offset of `timestamp.initial=-1`, and one before a look-back of some seconds, lost the rows of their day."""
    database: Database = request.getfixturevalue(f"{kind}_database")
    moment = "timestamp" if kind == "postgresql" else "datetime"
    database.execute(f"CREATE TABLE a (id int NOT NULL PRIMARY KEY, at {moment} NOT NULL)")
    days = 3 * 86_400_000  # A bound of some days ago stands for a run that was made then.
    config = {"connection.url": database.jdbc_url, "mode": "timestamp", "timestamp.column.name": "at"}
    runs = Copies({**config, "timestamp.lookback.ms": look_back, "timestamp.delay.interval.ms": str(days)})
    if begins == "at the present":
        runs.config["timestamp.initial"] = "-1"
    else:
        database.execute("INSERT INTO a VALUES (1, '2026-02-03 10:00:00')")
    runs.run()
    ((partition, offset),) = runs.committed()
    day = datetime.fromtimestamp(offset["timestamp"] / 1000, UTC)
    if (day.hour, day.minute) in ((0, 0), (23, 59)):  # A run at midnight loses no row: take another moment of the day.
        runs.commit(partition, {**offset, "timestamp": offset["timestamp"] // 86_400_000 * 86_400_000 + 43_199_999})
    changed = "ALTER COLUMN at TYPE date" if kind == "postgresql" else "MODIFY at date NOT NULL"
    database.execute(f"ALTER TABLE a {changed}", f"INSERT INTO a VALUES (2, '{day:%Y-%m-%d}')")
    with pytest.raises(OffsetError, match=r"has a time of day, .*, and its tracked column at is a DATE") as e:
        runs.run()
    runs.commit(partition, {"timestamp": int(re.findall(r'"timestamp": (\d+)', e.value.suggestion)[0])})
    runs.config["timestamp.delay.interval.ms"] = "0"
    assert 2 in runs.run().ids()
    assert runs.run().ids() == []


@pytest.mark.parametrize("mode", ["incrementing", "bulk"])
def test_tables_that_begin_in_the_topics_of_vanished_ones_are_named(database: Database, mode: str) -> None:
    """A schema or database has another name: all rows are sent again, and a note only called the former table gone."""
    runs = copies(database, True, **{"mode": mode, "incrementing.column.name": "id", "table.split.min.rows": "1000"})
    assert len(runs.run().records) == 12
    database.execute(
        "CREATE SCHEMA archive", "ALTER TABLE a SET SCHEMA archive", "CREATE TABLE public.b AS SELECT 1 AS id"
    )
    run = runs.run()
    (name,) = database.rows("SELECT current_database()")[0]
    told = [note for note in run.notes if note.startswith("Tables without an offset are copied from their beginning")]
    if mode == "bulk":
        assert told == []
        return
    assert [record.topic for record in run.records].count("db-a") == 12
    assert len(told) == 1 and f" not exist any more: {name}.archive.a (before: {name}.public.a). If" in told[0]
    assert not [note for note in runs.run().notes if note in told]


def test_database_with_the_same_name_in_capitals_is_another_one(mariadb_database: Database) -> None:
    """information_schema takes both names for equal, so tables of the other one were copied, too."""
    (name,) = mariadb_database.rows("SELECT database()")[0]
    other = name.upper()
    mariadb_database.execute(
        "CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1)", f"CREATE DATABASE `{other}`",
        f"CREATE TABLE `{other}`.secret (id int PRIMARY KEY)", f"INSERT INTO `{other}`.secret VALUES (2)",
    )  # fmt: skip
    try:
        for more in ({}, {"catalog.pattern": name}):
            assert copies(mariadb_database, True, **more).run().topics == ["db-a"]
        assert copies(mariadb_database, True, **{"catalog.pattern": other}).run().topics == ["db-secret"]
    finally:
        mariadb_database.execute(f"DROP DATABASE `{other}`")
