"""Columns are written as rows would be, and each record once: bad rows, upserts, deletes, lost commits, attempts."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from sqlalchemy import event

from airflow_connect.api import schema as s
from airflow_connect.connectors.jdbc.sink import task as jdbc_task
from airflow_connect.databases.dialects.mysql import MySqlDialect
from airflow_connect.errors import DataError, FencedError
from tests.support.copies.jdbc_sink_tasks import SinkRun, give, losing_commit, put, records, stored, written
from tests.support.servers.databases import Database
from tests.support.values.columns import to_columns
from tests.support.values.jdbc_columns import ColumnRun

pytestmark = pytest.mark.integration

ORDER = s.struct(("n", s.INT64), ("note", s.OPTIONAL_STRING))
CREATE = "CREATE TABLE orders (n INTEGER NOT NULL CHECK (n <> 13), note VARCHAR(5))"
KEYED = CREATE[:-1] + ", PRIMARY KEY (n))"
UPSERT = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "n"}


@pytest.fixture(params=["postgresql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    """An empty database on a server that takes columns."""
    found: Database = request.getfixturevalue(f"{request.param}_database")
    return found


def numbers(first: int, end: int) -> list[dict[str, Any]]:
    return [{"n": 1000 + n, "note": None if n % 3 else f"n{n % 7}"} for n in range(first, end)]


def test_insert_in_columns_writes_what_rows_would(database):
    database.execute(CREATE)
    copied = ColumnRun(database, ORDER).copy(numbers(0, 2000))
    assert (copied.in_columns, copied.report.written, copied.report.commit_offset) == (2000, 2000, 2000)
    assert stored(database) == (2000, None)
    found = database.rows("SELECT n, note FROM orders ORDER BY n")
    assert found == [(value["n"], value["note"]) for value in numbers(0, 2000)]


def test_next_run_starts_after_columns(database):
    database.execute(CREATE)
    ColumnRun(database, ORDER).copy(numbers(0, 1000))
    again = ColumnRun(database, ORDER).copy(numbers(0, 2000))
    assert again.report.written == 1000
    assert written(database) == list(range(1000, 3000))


def test_tolerant_run_reads_columns_again_without_writing_them(database):
    database.execute(CREATE)
    ColumnRun(database, ORDER, errors_tolerance="all").copy(numbers(0, 1000))
    again = ColumnRun(database, ORDER, errors_tolerance="all").copy(numbers(0, 2200), batch=1500)
    assert (again.report.written, again.in_columns) == (2200, 2200)
    assert written(database) == list(range(1000, 3200))


def test_dead_letter_of_a_run_that_died_is_reported_again_if_a_batch_has_two_schemas(database):
    """Each schema is a piece of the batch. No record is in all of them."""
    database.execute(CREATE)
    values = numbers(0, 1200)
    values[700]["n"] = 13
    rows = records(*values, schema=ORDER)
    SinkRun(database, errors_tolerance="all").write(rows)
    again = SinkRun(database, errors_tolerance="all")
    runner = again.open()
    pieces = [to_columns(rows[:600]), to_columns(rows[600:])]
    if not runner.put_columns(pieces, np.arange(1200)):
        put(runner, rows)
    report = give(runner, [])
    assert [offset for offset, _ in again.errors.letters] == [700]
    assert (report.written, report.dead_lettered) == (1199, 1)
    assert len(written(database)) == 1199


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_bad_rows_of_columns_are_found_and_their_neighbours_arrive(database, mode):
    database.execute(CREATE if mode == "insert" else KEYED)
    values = numbers(0, 4000)
    bad = {0: {"n": 13, "note": None}, 1700: {"n": 1, "note": "too long"}, 3999: {"n": 2**40, "note": None}}
    for offset, value in bad.items():
        values[offset] = value
    run = ColumnRun(database, ORDER, errors_tolerance="all", **(UPSERT if mode == "upsert" else {}))
    copied = run.copy(values)
    assert copied.letters == [0, 1700, 3999]
    assert (copied.report.written, copied.report.dead_lettered) == (3997, 3)
    assert copied.in_columns > 1000
    assert written(database) == [1000 + n for n in range(4000) if n not in bad]


def test_bad_row_of_columns_fails_the_run_without_tolerance(database):
    database.execute(CREATE)
    values = numbers(0, 2000)
    values[900]["n"] = 13
    with pytest.raises(DataError, match="The database refused orders-0@900"):
        ColumnRun(database, ORDER).copy(values)
    end = stored(database)[0]
    assert end <= 900
    assert written(database) == list(range(1000, 1000 + end))


def test_upsert_keeps_the_last_row_of_each_key(database):
    database.execute(KEYED, "INSERT INTO orders VALUES (1005, 'old')")
    values = [{"n": 1000 + n % 700, "note": f"{n // 700}"} for n in range(2000)]
    copied = ColumnRun(database, ORDER, **UPSERT).copy(values)
    assert (copied.in_columns, copied.report.written) == (2000, 2000)
    expected = {value["n"]: value["note"] for value in values}
    assert dict(database.rows("SELECT n, note FROM orders")) == expected


def test_values_among_ignored_nulls_go_in_columns(database):
    database.execute(CREATE)
    values: list[Any] = [None if n % 4 == 1 else value for n, value in enumerate(numbers(0, 2000))]
    copied = ColumnRun(database, ORDER, behavior_on_null_values="ignore").copy(values)
    report = copied.report
    assert (copied.in_columns, report.read, report.written, report.filtered) == (2000, 2000, 1500, 500)
    assert report.commit_offset == 2000
    assert written(database) == [1000 + n for n in range(2000) if n % 4 != 1]


def test_nulls_that_are_no_rows_go_record_by_record(database):
    database.execute(CREATE)
    values: list[Any] = [None if n == 700 else value for n, value in enumerate(numbers(0, 2000))]
    copied = ColumnRun(database, ORDER, errors_tolerance="all").copy(values)
    assert (copied.letters, copied.report.written) == ([700], 1999)
    assert 1000 < copied.in_columns < 2000


def test_deletes_between_columns_keep_their_order(database):
    database.execute("CREATE TABLE orders (n INTEGER NOT NULL PRIMARY KEY, note VARCHAR(5))")
    schema = s.struct(("note", s.OPTIONAL_STRING))
    run = ColumnRun(
        database, schema, insert_mode="upsert", pk_mode="record_key", pk_fields="n", delete_enabled="true",
    )  # fmt: skip
    run.config |= {"key.converter": "org.apache.kafka.connect.converters.IntegerConverter"}
    values: list[Any] = [{"note": "a"}] * 1200 + [None] * 3 + [{"note": "b"}] * 1200
    keys = [n % 1000 for n in range(1200)] + [1, 2, 3] + [n % 1000 + 2 for n in range(1200)]
    copied = run.copy(values, keys=[key.to_bytes(4, "big") for key in keys])
    assert copied.report.written == 2403 and copied.in_columns > 500
    expected: dict[int, str] = {}
    for key, value in zip(keys, values, strict=True):
        expected.pop(key, None)
        if value is not None:
            expected[key] = value["note"]
    assert dict(database.rows("SELECT n, note FROM orders")) == expected


def test_kafka_coordinates_and_text_values_are_columns(database):
    run = ColumnRun(database, ORDER, pk_mode="kafka", auto_create="true", string_output_value_column_name="line")
    run.config |= {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}
    copied = run.copy(["ü'\\\n\"%s", *("x" for _ in range(1, 800))], first=7)
    assert copied.in_columns == 800
    columns = "__connect_topic, __connect_partition, __connect_offset, line"
    found = database.rows(f"SELECT {columns} FROM orders ORDER BY __connect_offset")
    assert found[0] == ("orders", 0, 7, '"\\u00fc\'\\\\\\n\\"%s"')
    assert [row[2] for row in found] == list(range(7, 807))


def test_any_name_is_quoted_in_columns(database):
    mark = {"postgresql": '"', "mysql": "`"}[database.dialect]
    name = "we\"ir`d %s%% x'; DROP"
    quoted = mark + name.replace(mark, mark * 2) + mark
    schema = s.struct((name, s.INT64), ("v", s.OPTIONAL_STRING))
    more = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": name}
    run = ColumnRun(database, schema, auto_create="true", table_name_format=quoted, **more)
    assert run.copy([{name: n, "v": "%s"} for n in range(600)]).in_columns == 600
    with database.connected() as connection:
        found = connection.exec_driver_sql(f"SELECT COUNT(*) FROM {quoted.replace('%', '%%')}").scalar_one()
    assert found == 600


def test_missing_columns_are_added_for_columns(database):
    database.execute(CREATE)
    wider = s.struct(("n", s.INT64), ("extra", s.OPTIONAL_FLOAT64))
    assert ColumnRun(database, wider, auto_evolve="true").copy([{"n": n + 99, "extra": 0.5} for n in range(600)])
    assert database.rows("SELECT COUNT(*), SUM(extra) FROM orders") == [(600, 300.0)]
    refused = ColumnRun(database, s.struct(("other", s.INT64)), "refused", errors_tolerance="all")
    copied = refused.copy([{"other": n} for n in range(600)])
    assert (copied.report.dead_lettered, copied.in_columns) == (600, 0)


def test_column_that_is_retyped_during_a_run_gets_its_own_binary_form(postgresql_database):
    """BIGINT and DOUBLE PRECISION have the same length: the wrong one would be written without an error."""
    postgresql_database.execute("CREATE TABLE orders (n BIGINT, note TEXT)")
    run = ColumnRun(postgresql_database, ORDER)
    put_columns, calls = jdbc_task.JdbcSinkTask.put_columns, []

    def put_and_retype(task: Any, batches: Any) -> bool:
        if calls:
            postgresql_database.execute("ALTER TABLE orders ALTER n TYPE DOUBLE PRECISION")
        calls.append(batches)
        return put_columns(task, batches)

    with patch.object(jdbc_task.JdbcSinkTask, "put_columns", put_and_retype):
        copied = run.copy(numbers(0, 1800), batch=600)
    assert (len(calls), copied.in_columns) == (3, 1800)
    assert written(postgresql_database) == list(range(1000, 2800))


def test_user_who_may_only_insert_writes_rows(postgresql_database):
    postgresql_database.execute(CREATE, "DROP ROLE IF EXISTS only_inserts", "CREATE ROLE only_inserts LOGIN")
    ColumnRun(postgresql_database, ORDER).copy(numbers(0, 1))  # creates the offsets table
    postgresql_database.execute(
        "GRANT INSERT ON orders TO only_inserts",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON airflow_connect_offsets TO only_inserts",
    )
    run = ColumnRun(postgresql_database, ORDER)
    run.config["connection.url"] = run.config["connection.url"].replace("user=postgres", "user=only_inserts")
    copied = run.copy(numbers(0, 2000))
    assert (copied.report.written, copied.in_columns) == (1999, 0)
    assert written(postgresql_database) == list(range(1000, 3000))
    postgresql_database.execute("DROP OWNED BY only_inserts", "DROP ROLE only_inserts")


def test_texts_are_escaped_in_the_mode_of_the_session(mariadb_database):
    mariadb_database.execute("CREATE TABLE orders (n INT, note VARCHAR(40))")
    texts = ["\\", "a\\'b", "'); DROP TABLE orders -- ", '"', "\n\r\x1a%s", "ü😀"]
    values = [{"n": n, "note": texts[n % len(texts)]} for n in range(600)]
    prepare = MySqlDialect.prepare
    for mode in ("", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES"):

        def in_mode(dialect: Any, connection: Any, mode: str = mode) -> None:
            connection.exec_driver_sql(f"SET SESSION sql_mode = '{mode}'")
            prepare(dialect, connection)

        with patch.object(MySqlDialect, "prepare", in_mode):
            assert ColumnRun(mariadb_database, ORDER, f"sink{mode}").copy(values).in_columns == 600
        found = mariadb_database.rows("SELECT n, note FROM orders ORDER BY n")
        assert found == [(value["n"], value["note"]) for value in values], mode
        mariadb_database.execute("DELETE FROM orders")


# --- exactly once -----------------------------------------------------------------------------------------------------


def lose_commit(database: Database, *, takes_effect: bool) -> list[str]:
    """The next COMMIT of this process that has written rows loses its connection, before or after it took effect."""
    lost: list[str] = []
    before_commit = losing_commit(database, lost, takes_effect=takes_effect)
    start = jdbc_task.JdbcSinkTask.start

    def started(task: Any, config: Any) -> None:
        start(task, config)
        event.listen(task._database.engine, "commit", before_commit)

    with_listener = patch.object(jdbc_task.JdbcSinkTask, "start", started)
    with_listener.start()
    return lost


@pytest.fixture(autouse=True)
def _patches():
    yield
    patch.stopall()


@pytest.mark.parametrize("takes_effect", [True, False])
def test_commit_of_columns_without_an_answer_is_looked_up(database, takes_effect):
    database.execute(CREATE)
    lost = lose_commit(database, takes_effect=takes_effect)
    copied = ColumnRun(database, ORDER).copy(numbers(0, 2000), batch=700)
    assert lost == ["yes"]
    assert (copied.report.written, copied.in_columns) == (2000, 2000)
    assert written(database) == list(range(1000, 3000))
    assert stored(database)[0] == 2000


def test_lost_commit_and_bad_rows_in_columns_together(database):
    database.execute(CREATE)
    values = numbers(0, 3000)
    values[2500]["n"] = 13
    lost = lose_commit(database, takes_effect=True)
    copied = ColumnRun(database, ORDER, errors_tolerance="all").copy(values)
    assert lost == ["yes"]
    assert copied.letters == [2500]
    assert written(database) == [n for n in range(1000, 4000) if n != 3500]


def test_columns_of_an_earlier_run_are_refused(database):
    database.execute(CREATE)
    zombie = ColumnRun(database, ORDER)
    zombie.claim()
    opened = zombie.open

    def open_then_lose(*arguments: Any, **more: Any) -> Any:
        runner = opened(*arguments, **more)
        SinkRun(database).write(records({"n": 1}))
        return runner

    zombie.open = open_then_lose  # type: ignore[method-assign]
    with pytest.raises(FencedError, match="A later run of sink writes orders-0"):
        zombie.copy(numbers(0, 1000))
    assert written(database) == [1]


@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_two_attempts_of_a_task_write_columns_once(database, tolerance):
    """The other attempt is ahead by a part of a batch, one record of which is errant."""
    database.execute(CREATE)
    values = numbers(0, 2000)
    if tolerance == "all":
        values[900]["n"] = 13
    run = ColumnRun(database, ORDER, errors_tolerance=tolerance)
    run.claim()
    other = ColumnRun(database, ORDER, errors_tolerance=tolerance)
    other._configs = run._configs
    opened = run.open

    def open_while_other_is_ahead(*arguments: Any, **more: Any) -> Any:
        runner = opened(*arguments, **more)
        assert other.copy(values[:1200]).report.read == 1200
        return runner

    run.open = open_while_other_is_ahead  # type: ignore[method-assign]
    copied = run.copy(values)
    assert written(database) == [value["n"] for value in values if value["n"] != 13]
    assert (copied.report.read, copied.letters) == (2000, [900] if tolerance == "all" else [])
    assert stored(database)[0] == 2000
