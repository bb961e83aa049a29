"""Rows that no position finds, and values that no offset holds: each is counted, or refused."""

from __future__ import annotations

import pytest

from airflow_connect.errors import ConfigError, DataError
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database

pytestmark = pytest.mark.integration
BOTH_PATHS = pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])


@pytest.fixture(params=["postgresql", "mariadb", "sqlite"])
def database(request: pytest.FixtureRequest) -> Database:
    made: Database = request.getfixturevalue(f"{request.param}_database")
    return made


def copies(database: Database, mode: str, columnar: bool = False, **more: str) -> Copies:
    config = {"connection.url": database.jdbc_url, "mode": mode, "incrementing.column.name": "id"}
    return Copies({**config, **{k.replace("_", "."): v for k, v in more.items()}}, columnar=columnar)


@BOTH_PATHS
def test_null_in_the_number_is_counted_by_later_runs(database: Database, columnar: bool) -> None:
    kind = {"postgresql": "timestamp", "mysql": "datetime", "sqlite": "timestamp"}[database.dialect]
    database.execute(
        f"CREATE TABLE orders (id int, changed {kind} NOT NULL)", "INSERT INTO orders VALUES (1, '2026-01-01')"
    )
    runs = copies(
        database, "timestamp+incrementing", columnar, timestamp_column_name="changed", validate_non_null="false"
    )
    assert runs.run().ids() == [1]
    database.execute("INSERT INTO orders VALUES (NULL, '2026-01-02'), (3, '2026-01-03')")
    run = runs.run()
    assert run.ids() == [3]
    assert any(note.startswith("1 row of ") and "has null in id and is not copied" in note for note in run.notes)


@BOTH_PATHS
def test_negative_numbers_are_counted_and_can_be_copied(database: Database, columnar: bool) -> None:
    database.execute("CREATE TABLE orders (id int NOT NULL PRIMARY KEY)", "INSERT INTO orders VALUES (-5), (-1)")
    runs = copies(database, "incrementing", columnar)
    named = "have a negative number in id and are not copied, because the first run begins at 0"
    run = runs.run()
    assert run.tasks == [] and any(note.startswith("2 rows of ") and named in note for note in run.notes)
    database.execute("INSERT INTO orders VALUES (0)")
    run = runs.run()
    assert run.ids() == [0] and any(named in note for note in run.notes)
    (partition,) = [partition for partition, _ in runs.committed() if "gaps" not in partition]
    runs.commit(partition, {"incrementing": -6})
    run = runs.run()
    assert run.ids() == [-5, -1, 0] and run.notes == []


@BOTH_PATHS
@pytest.mark.parametrize("value", ["NaN", "Infinity"])
def test_number_that_is_not_finite_is_refused(postgresql_database: Database, columnar: bool, value: str) -> None:
    kind = "numeric" if value == "Infinity" else "numeric(20,0)"
    postgresql_database.execute(
        f"CREATE TABLE orders (id {kind} NOT NULL)", f"INSERT INTO orders VALUES (1), ('{value}')"
    )
    with pytest.raises(DataError, match=rf"column id has the value {value}, which is not a whole number"):
        copies(postgresql_database, "incrementing", columnar).run()


@BOTH_PATHS
def test_oid_is_refused_as_incrementing_column(postgresql_database: Database, columnar: bool) -> None:
    """No row was found: PostgreSQL takes -1, after which the first run begins, for 4294967295."""
    postgresql_database.execute("CREATE TABLE orders (id oid NOT NULL PRIMARY KEY)", "INSERT INTO orders VALUES (1)")
    with pytest.raises(ConfigError, match=r"column id of table .* has type oid"):
        copies(postgresql_database, "incrementing", columnar).run()


def test_numbers_of_sqlite_that_are_texts_are_refused(sqlite_database: Database) -> None:
    sqlite_database.execute("CREATE TABLE orders (id INTEGER NOT NULL)", "INSERT INTO orders VALUES (1), ('12x')")
    runs = copies(sqlite_database, "incrementing")
    for _ in range(2):
        with pytest.raises(DataError, match="column id has a text, which is not a whole number"):
            runs.run()


def test_timestamps_that_sqlite_does_not_read_are_counted(sqlite_database: Database) -> None:
    sqlite_database.execute(
        "CREATE TABLE orders (id int, changed TEXT NOT NULL, other TEXT)",
        "INSERT INTO orders VALUES (1, '31/01/2026', NULL), (2, '1735689600', NULL)",
    )
    runs = copies(sqlite_database, "timestamp", timestamp_column_name="other,changed")
    named = "2 rows of orders have a value that SQLite does not read as a date and time"
    run = runs.run()
    assert run.tasks == [] and run.notes[0].startswith(named)
    sqlite_database.execute("INSERT INTO orders VALUES (3, '2026-01-01', NULL), (4, 'x', '2026-01-02')")
    run = runs.run()
    assert run.ids() == [3, 4] and run.notes[0].startswith(named)


@pytest.mark.parametrize("more", [{}, {"query": "SELECT * FROM orders"}], ids=["table", "query"])
def test_text_that_sqlite_takes_for_the_present_is_counted(sqlite_database: Database, more: dict[str, str]) -> None:
    """`DEFAULT 'now'`, as in PostgreSQL, stores the word, which is after the upper bound of every run."""
    sqlite_database.execute(
        "CREATE TABLE orders (id int, changed TIMESTAMP NOT NULL DEFAULT 'now')",
        "INSERT INTO orders VALUES (1, '2026-01-01'), (2, 'NOW')",
        "INSERT INTO orders (id) VALUES (3)",
    )
    runs = copies(sqlite_database, "timestamp", timestamp_column_name="changed", **more)
    run = runs.run()
    assert run.ids() == [1]
    assert run.notes[0].endswith("in changed and are not copied, because such rows cannot be found by position.")
    assert "2 rows of " in run.notes[0] and "a value that SQLite does not read as a date and time" in run.notes[0]


@pytest.mark.parametrize("more", [{}, {"query": "SELECT * FROM orders"}], ids=["table", "query"])
@pytest.mark.parametrize("kind", ["INTEGER", "TIMESTAMP"])
def test_numbers_of_sqlite_that_seem_to_be_seconds_are_named(
    sqlite_database: Database, kind: str, more: dict[str, str]
) -> None:
    """They are days of January 1970 in milliseconds: a row of a second that was copied in part was never found."""
    sqlite_database.execute(
        f"CREATE TABLE orders (id int, changed {kind} NOT NULL)",
        "INSERT INTO orders VALUES (1, unixepoch() - 60), (2, unixepoch() - 60), (3, 1767225600000), (4, 0)",
    )
    runs = copies(sqlite_database, "timestamp", timestamp_column_name="changed", **more)
    run = runs.run()
    assert sorted(run.ids()) == [1, 2, 3, 4]
    (note,) = [note for note in run.notes if "in seconds" in note]
    assert note.startswith("2 rows of ") and "a number in changed" in note


def test_key_of_sqlite_that_may_be_null_is_refused_or_its_rows_are_counted(sqlite_database: Database) -> None:
    """INTEGER PRIMARY KEY is the row id, but not with DESC: rows with null were gone without a word."""
    sqlite_database.execute(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY DESC)",
        "INSERT INTO orders VALUES (NULL), (2)",
        "CREATE TABLE lines (id INTEGER PRIMARY KEY DESC) WITHOUT ROWID",
        "INSERT INTO lines VALUES (3)",
        "CREATE TABLE parts (id INTEGER, PRIMARY KEY (id DESC))",
        "INSERT INTO parts VALUES (4)",
    )
    run = copies(sqlite_database, "incrementing").run()
    assert sorted(run.ids()) == [3, 4]
    ((name, error),) = run.left_out.items()
    assert name.endswith("orders") and error.code == "database.nullable"
    run = copies(sqlite_database, "incrementing", table_whitelist="orders", validate_non_null="false").run()
    assert run.ids() == [2] and any("1 row of orders has null in id and is not copied" in note for note in run.notes)
    sqlite_database.execute("INSERT INTO orders VALUES (4), (5), (6), (7)")
    run = copies(sqlite_database, "bulk", table_whitelist="orders", table_split_min_rows="2").run(tasks=2)
    assert run.ids() == [None, 2, 4, 5, 6, 7]  # No range of the key would have the row with null.


@pytest.mark.parametrize("value", ["2458849.5", "'2020-01-01 24:00:00'", "'10:00'", "'2020-02-30'"])
def test_timestamps_of_sqlite_that_no_offset_holds_are_refused(sqlite_database: Database, value: str) -> None:
    sqlite_database.execute(
        "CREATE TABLE orders (id int, changed TIMESTAMP NOT NULL)", f"INSERT INTO orders VALUES (1, {value})"
    )
    with pytest.raises(DataError, match=r"A tracked timestamp has the value .* SQLite reads it as a time"):
        copies(sqlite_database, "timestamp", timestamp_column_name="changed").run()


@pytest.mark.parametrize("value", ["1767225600000", "'2026-01-01T10:30:00+01:00'", "'2026-01-01T10:30:00Z'"])
@pytest.mark.parametrize("more", [{}, {"query": "SELECT * FROM orders"}], ids=["table", "query"])
def test_instants_of_sqlite_need_utc(sqlite_database: Database, value: str, more: dict[str, str]) -> None:
    """SQLite takes 10:30+01:00 for 09:30, which is before the last local time: the row was never found."""
    sqlite_database.execute(
        "CREATE TABLE orders (id int, changed TIMESTAMP NOT NULL)", "INSERT INTO orders VALUES (1, '2026-01-01 10:00')"
    )
    stamp = {"timestamp_column_name": "changed", **more}
    runs = copies(sqlite_database, "timestamp", db_timezone="Europe/Berlin", **stamp)
    assert runs.run().ids() == [1]
    sqlite_database.execute(f"INSERT INTO orders VALUES (2, {value})")
    with pytest.raises(DataError, match="is another zone: rows would be missed or repeated"):
        runs.run()
    if not more:
        assert sorted(copies(sqlite_database, "timestamp", db_timezone="Etc/UTC", **stamp).run().ids()) == [1, 2]


@BOTH_PATHS
def test_key_above_64_bits_is_refused_by_bulk_changed_only(mariadb_database: Database, columnar: bool) -> None:
    mariadb_database.execute(
        "CREATE TABLE orders (id bigint unsigned PRIMARY KEY)", "INSERT INTO orders VALUES (5), (18446744073709551610)"
    )
    runs = copies(mariadb_database, "bulk", columnar, bulk_changed_only="true", values_out_of_range="clamp")
    with pytest.raises(DataError, match="a value that is not a whole number of 64 bits, which bulk"):
        runs.run()


@BOTH_PATHS
@pytest.mark.parametrize("kind", ["interval", "interval[]"])
def test_interval_that_python_has_not_does_not_stop_the_table(
    postgresql_database: Database, columnar: bool, kind: str
) -> None:
    value = "{5000000 years}" if kind.endswith("]") else "5000000 years"
    postgresql_database.execute(
        f"CREATE TABLE orders (id int, length {kind})", f"INSERT INTO orders VALUES (1, '{value}')"
    )
    for more in ({}, {"bulk_changed_only": "true"}):
        assert copies(postgresql_database, "bulk", columnar, **more).run().values == [{"id": 1}]


@BOTH_PATHS
def test_table_without_columns_is_left_out(postgresql_database: Database, columnar: bool) -> None:
    postgresql_database.execute(
        "CREATE TABLE a ()", "INSERT INTO a DEFAULT VALUES", "CREATE TABLE b (id int)", "INSERT INTO b VALUES (1)"
    )
    run = copies(postgresql_database, "bulk", columnar).run()
    assert run.topics == ["db-b"]
    (error,) = run.left_out.values()
    assert isinstance(error, ConfigError) and "No column of the table a" in error.message


@BOTH_PATHS
@pytest.mark.parametrize("mode", ["timestamp", "incrementing"])
def test_null_that_a_join_makes_is_counted_before_the_first_run(database: Database, mode: str, columnar: bool) -> None:
    """PostgreSQL tells of a column of a query that it is NOT NULL in its table: the rows were gone without a word."""
    kind = "datetime" if database.dialect == "mysql" else "timestamp"
    database.execute(
        "CREATE TABLE orders (id int NOT NULL)",
        f"CREATE TABLE changes (n int NOT NULL, changed {kind} NOT NULL)",
        "INSERT INTO orders VALUES (1), (2), (3)",
        "INSERT INTO changes VALUES (1, '2026-01-01 00:00:00')",
    )
    query = "SELECT id, n, changed FROM orders LEFT JOIN changes ON n = id"
    more = {"query": query, "incrementing_column_name": "n", "validate_non_null": "false"}
    if mode == "timestamp":
        more = {**more, "timestamp_column_name": "changed"}
    runs = copies(database, mode, columnar, **more)
    run = runs.run()
    assert run.ids() == [1]
    assert any(
        note.startswith("2 rows of query have null in ") and "are not copied, because" in note for note in run.notes
    )
    assert not [note for note in runs.run().notes if "have null" in note]  # Counting would read all rows.


@pytest.mark.parametrize("kind", ["not valid", "no inherit"])
@pytest.mark.parametrize("more", [{}, {"query": "SELECT * FROM orders"}], ids=["table", "query"])
def test_constraint_that_does_not_hold_for_all_rows_is_no_not_null(
    postgresql_database: Database, kind: str, more: dict[str, str]
) -> None:
    """NOT NULL may be NOT VALID since PostgreSQL 18, and NO INHERIT: rows with null were gone without a word."""
    statements = {
        "not valid": (
            "CREATE TABLE orders (id int PRIMARY KEY, changed timestamp)",
            "INSERT INTO orders VALUES (1, '2026-01-01'), (2, NULL)",
            "ALTER TABLE orders ADD CONSTRAINT there NOT NULL changed NOT VALID",
        ),
        "no inherit": (
            "CREATE TABLE orders (id int PRIMARY KEY, changed timestamp, CONSTRAINT there NOT NULL changed NO INHERIT)",
            "CREATE TABLE older () INHERITS (orders)",
            "INSERT INTO orders VALUES (1, '2026-01-01')",
            "INSERT INTO older VALUES (2, NULL)",
        ),
    }[kind]
    postgresql_database.execute(*statements)
    chosen = {"timestamp_column_name": "changed", "table_whitelist": "" if more else "orders", **more}
    with pytest.raises(ConfigError, match="all of these columns are nullable"):
        copies(postgresql_database, "timestamp", **chosen).run()
    run = copies(postgresql_database, "timestamp", validate_non_null="false", **chosen).run()
    assert run.ids() == [1] and any("has null in changed and is not copied" in note for note in run.notes)
    assert copies(postgresql_database, "bulk", **{**chosen, "timestamp_column_name": ""}).run().ids() == [1, 2]
    if kind == "not valid":
        postgresql_database.execute("DELETE FROM orders WHERE id = 2", "ALTER TABLE orders VALIDATE CONSTRAINT there")
        assert copies(postgresql_database, "timestamp", **chosen).run().ids() == [1]


@BOTH_PATHS
@pytest.mark.parametrize("first", ["2026-01-01 10:00:00", "2099-01-01 10:00:00"], ids=["copied", "none"])
def test_rows_of_a_query_that_are_far_ahead_are_counted_by_its_first_run(
    database: Database, columnar: bool, first: str
) -> None:
    kind = {"postgresql": "timestamp", "mysql": "datetime", "sqlite": "timestamp"}[database.dialect]
    database.execute(
        f"CREATE TABLE orders (id int NOT NULL, changed {kind} NOT NULL)",
        f"INSERT INTO orders VALUES (1, '{first}'), (2, '2099-01-02 10:00:00')",
    )
    query = {"query": "SELECT * FROM orders", "timestamp_column_name": "changed"}
    runs = copies(database, "timestamp+incrementing", columnar, **query)
    run = runs.run()
    count = 2 if first.startswith("2099") else 1
    assert run.ids() == [1, 2][: 2 - count]
    (note,) = run.notes
    rows = "2 rows of query have" if count == 2 else "1 row of query has"
    assert note.startswith(f"{rows} a timestamp in changed that is more than 10 minutes ahead")


@pytest.mark.parametrize("initial", ["-1", "1767261600000"], ids=["the present", "a time"])
def test_null_is_counted_by_a_first_run_that_begins_later(database: Database, initial: str) -> None:
    """With `timestamp.initial`, no run named rows that have null in the timestamp until others were copied."""
    kind = {"postgresql": "timestamp", "mysql": "datetime", "sqlite": "timestamp"}[database.dialect]
    database.execute(
        f"CREATE TABLE orders (id int PRIMARY KEY, changed {kind})",
        "INSERT INTO orders VALUES (1, NULL), (2, '2020-01-01')",
    )
    more = {"timestamp_column_name": "changed", "validate_non_null": "false", "timestamp_initial": initial}
    run = copies(database, "timestamp", **more).run()
    assert run.records == []
    assert [note for note in run.notes if note.startswith("1 row of ") and "has null in changed and is not" in note]


@pytest.mark.parametrize("query", ["", "SELECT * FROM orders"], ids=["table", "query"])
@pytest.mark.parametrize("declared", ["DATE", "TIMESTAMP"])
def test_days_of_sqlite_in_a_column_that_may_have_times_are_named(
    sqlite_database: Database, declared: str, query: str
) -> None:
    """Rows of the current day were copied at once, and those that were written later with the same day never."""
    sqlite_database.execute(
        f"CREATE TABLE orders (id int PRIMARY KEY, changed {declared} NOT NULL)",
        "INSERT INTO orders VALUES (1, '2026-01-01'), (2, CURRENT_DATE), (3, '2026-01-01 10:00:00')",
    )
    if declared == "DATE":
        sqlite_database.execute("DELETE FROM orders WHERE id = 3")  # No DATE has a time of day.
    waits = declared == "DATE" and not query
    run = copies(sqlite_database, "timestamp", timestamp_column_name="changed", query=query).run()
    assert run.ids()[-1] == (1 if waits else 2)
    found = [note for note in run.notes if "a date without a time in changed" in note]
    assert [note[:6] for note in found] == ([] if waits else ["2 rows"])


def test_beginning_that_the_clock_has_not_reached_is_named(sqlite_database: Database) -> None:
    """No run copied a row, or said so."""
    sqlite_database.execute(
        "CREATE TABLE orders (id int NOT NULL, changed datetime NOT NULL)",
        "INSERT INTO orders VALUES (1, '2026-01-01')",
    )
    more = {"timestamp_column_name": "changed", "timestamp_initial": "4102444800000"}
    run = copies(sqlite_database, "timestamp", **more).run()
    assert run.records == []
    (note,) = [n for n in run.notes if n.startswith("timestamp.initial")]
    assert "is 2100-01-01T00:00:00.000+00:00, which the database's clock has not reached" in note
