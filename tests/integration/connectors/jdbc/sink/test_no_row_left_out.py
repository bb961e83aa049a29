"""A row that the database leaves out, or writes elsewhere, without an error is refused, or counted and named."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import event

from airflow_connect.api import schema as s
from airflow_connect.errors import DatabaseError
from airflow_connect.runtime.executor.sink.task_runner import SinkTaskRunner
from tests.support.copies.jdbc_sink_tasks import SinkRun, give, losing_commit, records
from tests.support.values.jdbc_columns import ColumnRun

pytestmark = pytest.mark.integration

ORDER = s.struct(("n", s.INT64), ("note", s.OPTIONAL_STRING))
TEXT_KEY = s.struct(("n", s.STRING), ("note", s.OPTIONAL_STRING))
KEYED = "CREATE TABLE orders (n BIGINT NOT NULL PRIMARY KEY, note VARCHAR(20))"
BY_N = {"pk_mode": "record_value", "pk_fields": "n"}
UPSERT = {"insert_mode": "upsert", **BY_N}
UPDATE = {"insert_mode": "update", **BY_N}
SKIP = "BEGIN IF NEW.note = 'x' THEN RETURN NULL; END IF; RETURN NEW; END"
SKIPS = (
    f"CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS $$ {SKIP} $$",
    "CREATE TRIGGER skip BEFORE INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION skip()",
)


def values(count: int, skipped: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    return [{"n": n, "note": "x" if n in skipped else "y"} for n in range(count)]


def told(runner: SinkTaskRunner, rows: list[Any]) -> tuple[int, int, tuple[str, ...]]:
    """Written and filtered records, and the notes."""
    report = give(runner, rows)
    return report.written, report.filtered, runner.notes.sentences


# --- updates ----------------------------------------------------------------------------------------------------------


def test_update_that_finds_no_row_counts_as_filtered_and_is_named(database):
    database.execute(KEYED, "INSERT INTO orders VALUES (1, 'old')")
    rows = records(*values(4), schema=ORDER)
    written, filtered, notes = told(SinkRun(database, **UPDATE).open(), rows)
    assert (written, filtered) == (1, 3)
    assert database.rows("SELECT n, note FROM orders") == [(1, "y")]
    (note,) = notes
    assert note.startswith("3 records were NOT written, because insert.mode=update changed no row of")
    assert "The first is orders-0@0." in note


def test_row_of_two_is_not_taken_for_those_of_two_records(database):
    database.execute("CREATE TABLE orders (n BIGINT, note VARCHAR(20))", "INSERT INTO orders VALUES (1, 'a'), (1, 'b')")
    written, filtered, notes = told(SinkRun(database, **UPDATE).open(), records(*values(2), schema=ORDER))
    assert (written, filtered) == (1, 1)
    assert database.rows("SELECT note FROM orders") == [("y",), ("y",)]
    assert "changed no row of" in notes[0]
    assert notes[1].startswith("1 record was written to more than one row of") and "no unique key" in notes[1]


@pytest.mark.parametrize("mode", ["insert", "update"])
def test_delete_of_two_rows_is_not_taken_for_those_of_two_records(database, mode):
    database.execute("CREATE TABLE orders (n BIGINT, note VARCHAR(20))", "INSERT INTO orders VALUES (1, 'a'), (1, 'b')")
    config = {"insert_mode": mode, "pk_mode": "record_key", "pk_fields": "n", "delete_enabled": "true"}
    rows = records(None, None, keys=[1, 2], key_schema=s.INT64)
    written, filtered, notes = told(SinkRun(database, **config).open(), rows)
    assert (written, filtered) == (2, 0)
    assert database.rows("SELECT * FROM orders") == []
    assert notes[0].startswith("1 record was without value, and deleted more than one row of orders")
    assert notes[1].startswith("1 record was without value, and deleted no row of orders")


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_updates_without_a_row_are_counted_once_if_the_answer_to_commit_is_lost(request, kind):
    database = request.getfixturevalue(f"{kind}_database")
    database.execute(KEYED, "INSERT INTO orders VALUES (1, 'old')")
    runner, lost = SinkRun(database, **UPDATE).open(), []
    engine = runner._task._database.engine
    event.listen(engine, "commit", losing_commit(database, lost, takes_effect=True))
    written, filtered, notes = told(runner, records(*values(4), schema=ORDER))
    assert lost and (written, filtered) == (1, 3) and notes[0].startswith("3 records were NOT written")


# --- triggers, rules, views, keys that the column takes for equal: PostgreSQL ----------------------------------------


@pytest.mark.parametrize("count", [3, 150, 1000])
def test_inserted_row_that_a_trigger_leaves_out_is_refused(postgresql_database, count):
    postgresql_database.execute(KEYED, *SKIPS)
    copied = ColumnRun(postgresql_database, ORDER, errors_tolerance="all").copy(values(count, (1,)))
    assert (copied.letters, copied.report.written, copied.report.dead_lettered) == ([1], count - 1, 1)
    assert postgresql_database.rows("SELECT COUNT(*) FROM orders WHERE n <> 1") == [(count - 1,)]


@pytest.mark.parametrize("count", [3, 150])
def test_upserted_row_that_a_trigger_leaves_out_is_counted_in_a_note(postgresql_database, count):
    postgresql_database.execute(KEYED, *SKIPS)
    runner = SinkRun(postgresql_database, **UPSERT).open()
    written, _, notes = told(runner, records(*values(count, (1, 2)), schema=ORDER))
    assert written == count
    assert notes[0].startswith("2 records were neither inserted into") and "a trigger leaves" in notes[0]


@pytest.mark.parametrize("count", [3, 150, 1000])
@pytest.mark.parametrize("kind", ["view", "rule"])
def test_rule_and_view_get_what_insert_would_give_them(postgresql_database, kind, count):
    base = KEYED.replace("orders", "base")
    view = ("CREATE VIEW orders AS SELECT * FROM base",)
    rule = (KEYED, "CREATE RULE r AS ON INSERT TO orders DO INSTEAD INSERT INTO base VALUES (NEW.n, NEW.note)")
    postgresql_database.execute(base, *(view if kind == "view" else rule))
    ColumnRun(postgresql_database, ORDER, table_types="TABLE,VIEW").copy(values(count))
    assert postgresql_database.rows("SELECT COUNT(*) FROM base") == [(count,)]
    assert kind == "view" or postgresql_database.rows("SELECT COUNT(*) FROM orders") == [(0,)]


@pytest.mark.parametrize("count", [20, 150, 1000])
def test_keys_that_a_column_takes_for_equal_are_one_row_with_the_last_value(postgresql_database, count):
    postgresql_database.execute(KEYED.replace("BIGINT", "NUMERIC"))
    pairs = [{"n": f"{n // 2}" + (".0" if n % 2 else ""), "note": f"{n}"} for n in range(count)]
    copied = ColumnRun(postgresql_database, TEXT_KEY, **UPSERT).copy(pairs)
    assert copied.report.written == count
    found = postgresql_database.rows("SELECT note::int FROM orders ORDER BY 1")
    assert found == [(n,) for n in range(1, count, 2)]


@pytest.mark.parametrize("count", [3, 150, 1000])
def test_key_keeps_its_first_form_whatever_the_number_of_rows(postgresql_database, count):
    """0.0 and -0.0 are one key: the second record updates the row of the first."""
    postgresql_database.execute("CREATE TABLE orders (n float8 PRIMARY KEY, note text)")
    values = [{"n": float(n), "note": "first"} for n in range(count)] + [{"n": -0.0, "note": "last"}]
    schema = s.struct(("n", s.FLOAT64), ("note", s.OPTIONAL_STRING))
    assert ColumnRun(postgresql_database, schema, **UPSERT).copy(values).report.written == count + 1
    found = postgresql_database.rows("SELECT n::text, note FROM orders WHERE n = 0")
    assert found == [("0", "last")]


# --- unique indexes: MariaDB ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [3, 1000])
def test_upsert_does_not_change_the_row_of_another_key(mariadb_database, count):
    mariadb_database.execute(KEYED[:-1] + ", UNIQUE (note))", "INSERT INTO orders VALUES (5000, 'taken')")
    rows = [{"n": n, "note": "taken" if n == 1 else f"{n}"} for n in range(count)]
    run = ColumnRun(mariadb_database, ORDER, errors_tolerance="all", **UPSERT)
    copied = run.copy(rows)
    assert (copied.letters, copied.report.written) == ([1], count - 1)
    assert mariadb_database.rows("SELECT note FROM orders WHERE n = 5000") == [("taken",)]
    again = ColumnRun(mariadb_database, ORDER, "again", **UPSERT).copy([row for row in rows if row["n"] != 1])
    assert again.report.written == count - 1
    assert mariadb_database.rows("SELECT COUNT(*) FROM orders") == [(count,)]


@pytest.mark.parametrize("index", ["", ", UNIQUE (n, note)"])
def test_upsert_without_a_unique_index_over_the_key_fails(mariadb_database, index):
    mariadb_database.execute(KEYED[:-1].replace(" PRIMARY KEY", "") + index + ")")
    with pytest.raises(DatabaseError, match="no unique index over n, so an upsert would insert a row") as caught:
        ColumnRun(mariadb_database, ORDER, **UPSERT).copy(values(3))
    assert caught.value.code == "jdbc.unique_key"
    assert mariadb_database.rows("SELECT COUNT(*) FROM orders") == [(0,)]


def test_table_that_was_dropped_between_two_runs_is_named_when_it_is_created_again(database):
    """The offsets of what it held are still there, so that the records are not written again."""
    rows = records(*values(3), schema=ORDER)
    assert told(SinkRun(database, auto_create="true").open(), rows[:2]) == (2, 0, ())
    database.execute("DROP TABLE orders")
    written, _, (_, note) = told(SinkRun(database, auto_create="true").open(), rows)
    assert written == 1 and database.rows("SELECT n FROM orders") == [(2,)]
    assert note.startswith("The table orders was missing and was created. This run writes orders-0 from offset 2 on,")


def test_unlogged_table_is_named(postgresql_database):
    """After a crash it is empty, and the offsets are not."""
    postgresql_database.execute(KEYED.replace("CREATE TABLE", "CREATE UNLOGGED TABLE"))
    written, _, (note,) = told(SinkRun(postgresql_database).open(), records(*values(2), schema=ORDER))
    assert written == 2 and note.startswith("The table orders is UNLOGGED, or a partition of it is:")


def test_record_without_any_column_is_a_dead_letter(database):
    """PostgreSQL and SQLite called it a syntax error, which ended every run; MySQL got a row without values."""
    database.execute(KEYED.replace("NOT NULL PRIMARY KEY", ""))
    run = SinkRun(database, errors_tolerance="all")
    give(run.open(), records({"missing": None}, {"n": 1}))
    ((offset, reason),) = run.errors.letters
    assert offset == 0 and reason.startswith("All fields of the record are null, and the table orders has no column")
    assert database.rows("SELECT n FROM orders") == [(1,)]


@pytest.mark.parametrize("creates", [False, True], ids=["found", "created"])
def test_fields_that_share_a_column_are_named(database, creates):
    """The database named the column, and every run ended there."""
    schema = s.struct(("n", s.INT64), ("Note", s.OPTIONAL_STRING), ("note", s.OPTIONAL_STRING))
    if not creates:
        database.execute(KEYED)
    run = SinkRun(database, errors_tolerance="all", auto_create="true")
    give(run.open(), records({"n": 1, "Note": "a", "note": "b"}, schema=schema))
    give(run.open(), records({"n": 2, "note": "c"}, first=1, schema=ORDER))
    keeps_case = creates and database.dialect == "postgresql"
    told = [text for _, text in run.errors.letters]
    assert len(told) == (0 if keeps_case else 1)
    assert all("The fields Note and note of the record belong to the same column note" in text for text in told)
    assert database.rows("SELECT n FROM orders ORDER BY n") == ([(1,), (2,)] if keeps_case else [(2,)])


def test_copy_of_rows_is_not_taken_for_one_that_left_some_out(postgresql_database):
    """A sequence also counts the rows of attempts that were rolled back."""
    database = postgresql_database
    database.execute(
        "CREATE SEQUENCE attempts",
        "CREATE TABLE orders (n INTEGER NOT NULL, attempt BIGINT NOT NULL DEFAULT nextval('attempts'))",
    )
    SinkRun(database, batch_size="200").write(records(*({"n": n} for n in range(400))))
    assert database.rows("SELECT count(*), max(attempt) FROM orders") == [(400, 400)]


@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_report_after_a_run_that_died_says_that_its_updates_are_not_counted(sqlite_database, tolerance):
    database = sqlite_database
    database.execute(KEYED)
    run = SinkRun(database, errors_tolerance=tolerance, **UPDATE)
    run.write(records(*values(3), schema=ORDER))  # Its report is lost.
    written, filtered, notes = told(run.claim().open(), records(*values(4), schema=ORDER))
    assert (written, filtered) == ((3, 1) if tolerance == "all" else (0, 1))
    assert any("has written the records of orders-0 from 0 up to 3. They are not written again" in n for n in notes)


# --- views: SQLite ----------------------------------------------------------------------------------------------------


def test_view_with_triggers_is_written_and_counted(sqlite_database):
    """SQLite counts no row of a view: inserts were refused, and updates called NOT written although they were."""
    sqlite_database.execute(
        "CREATE TABLE base (n INTEGER PRIMARY KEY, note TEXT)",
        "CREATE VIEW orders AS SELECT * FROM base",
        "CREATE TRIGGER i INSTEAD OF INSERT ON orders WHEN new.note IS NOT 'x' BEGIN"
        " INSERT INTO base VALUES (new.n, new.note); END",
        "CREATE TRIGGER u INSTEAD OF UPDATE ON orders BEGIN UPDATE base SET note = new.note WHERE n = old.n; END",
        "CREATE TRIGGER d INSTEAD OF DELETE ON orders BEGIN DELETE FROM base WHERE n = old.n; END",
    )
    view = {"table_types": "VIEW", "errors_tolerance": "all"}
    inserts = SinkRun(sqlite_database, "inserts", **view)
    assert told(inserts.open(), records(*values(4, skipped=(2,)), schema=ORDER)) == (3, 0, ())
    assert [offset for offset, _ in inserts.errors.letters] == [2]
    updates = SinkRun(sqlite_database, "updates", **view, **UPDATE).open()
    changes = [{"n": n, "note": "new"} for n in (0, 2)]
    written, filtered, (note,) = told(updates, records(*changes, schema=ORDER))
    assert (written, filtered) == (1, 1) and note.startswith("1 record was NOT written")
    deletes = SinkRun(sqlite_database, "deletes", pk_mode="record_key", pk_fields="n", delete_enabled="true", **view)
    written, filtered, (note,) = told(deletes.open(), records(None, None, keys=[1, 2], key_schema=s.INT64))
    assert (written, filtered) == (2, 0) and note.startswith("1 record was without value, and deleted no row")
    assert sqlite_database.rows("SELECT n, note FROM base ORDER BY n") == [(0, "new"), (3, "y")]


@pytest.mark.parametrize("count", [3, 700])
def test_upsert_into_a_table_of_mariadb_with_a_history(mariadb_database, count):
    """The server adds the end of a row's validity to the primary key, where the table names that column."""
    period = (
        "a TIMESTAMP(6) GENERATED ALWAYS AS ROW START, b TIMESTAMP(6) GENERATED ALWAYS AS ROW END,"
        " PERIOD FOR SYSTEM_TIME(a, b)"
    )
    mariadb_database.execute(f"CREATE TABLE orders (n BIGINT PRIMARY KEY, note TEXT, {period}) WITH SYSTEM VERSIONING")
    schema = s.struct(("n", s.INT64), ("note", s.OPTIONAL_STRING))
    for name in ("first", "second"):
        run = SinkRun(mariadb_database, name, insert_mode="upsert", pk_mode="record_value", pk_fields="n")
        run.write(records(*({"n": n, "note": name} for n in range(count)), schema=schema))
    assert mariadb_database.rows("SELECT COUNT(*), MIN(note) FROM orders") == [(count, "second")]
    assert mariadb_database.rows("SELECT COUNT(*) FROM orders FOR SYSTEM_TIME ALL") == [(2 * count,)]
