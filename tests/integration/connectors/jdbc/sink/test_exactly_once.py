"""Each record is written once: after lost commits, by zombies, by two attempts, after a crash of the database."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import event

from airflow_connect.api import schema as s
from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.sink import Delivery
from airflow_connect.connectors.jdbc.sink import task as jdbc_task
from airflow_connect.connectors.jdbc.sink.config import JdbcSinkConfig
from airflow_connect.connectors.jdbc.sink.connector import JdbcSinkConnector
from airflow_connect.connectors.jdbc.sink.offsets import OffsetsTable
from airflow_connect.connectors.jdbc.sink.sessions import prepare, single_statements
from airflow_connect.databases import connecting
from airflow_connect.errors import AccessError, DataError, FencedError, UnavailableError
from airflow_connect.runtime.executor.sink.task_runner import SinkTaskRunner
from tests.devstack.mariadb import MariaDbServer
from tests.devstack.postgresql import PostgresServer
from tests.support.copies.jdbc_sink_tasks import (
    TOPIC,
    SinkRun,
    give,
    losing_commit,
    put,
    record,
    records,
    stored,
    written,
)
from tests.support.servers.databases import Database, database_on
from tests.support.values.columns import to_columns
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

CREATE = "CREATE TABLE orders (n INTEGER NOT NULL CHECK (n <> 13), note VARCHAR(5))"


@pytest.fixture(params=["postgresql", "mariadb"])
def server_database(request: pytest.FixtureRequest) -> Database:
    """An empty database on a server."""
    found: Database = request.getfixturevalue(f"{request.param}_database")
    return found


NUMBER = s.struct(("n", s.INT64))
WIDE = s.struct(("n", s.INT64), ("note", s.STRING))


def numbers(first: int, end: int) -> list:
    return records(*({"n": 1000 + n} for n in range(first, end)), first=first)


# --- resuming ---------------------------------------------------------------------------------------------------------


def test_next_run_starts_after_what_is_written_although_nothing_was_committed_to_kafka(database):
    database.execute(CREATE)
    SinkRun(database).write(numbers(0, 5))
    again = SinkRun(database).write(numbers(0, 8))
    assert again.written == 3
    assert written(database) == list(range(1000, 1008))
    assert stored(database) == (8, None)


def test_offsets_of_two_connectors_are_apart(sqlite_database):
    sqlite_database.execute(CREATE)
    for name in ("one", "One"):
        SinkRun(sqlite_database, name).write(numbers(0, 2))
    assert written(sqlite_database) == [1000, 1000, 1001, 1001]


def test_tables_that_another_connector_has_created_are_not_told(mariadb_database):
    """MariaDB takes the names for equal, so that the report of the wrong connector had the sentence."""
    config = {"name": "n", "topics": "t", "connection.url": mariadb_database.jdbc_url}
    settings = JdbcSinkConfig.from_config({**config, "connector.class": "JdbcSink"}).connection
    with connecting.Database(settings) as database, database.connected() as connection:
        prepare(connection)
        one, other = (OffsetsTable(database, "airflow_connect_offsets", name) for name in ("one", "One"))
        with single_statements(connection):
            one.ensure(connection)
        one.created(connection, "t", "created", ("first", 1))
        with single_statements(connection):
            assert other.untold(connection, "second", "") == []
            assert one.untold(connection, "third", "") == ["created"]


def test_topic_that_was_created_again_begins_anew(sqlite_database):
    sqlite_database.execute(CREATE)
    SinkRun(sqlite_database).write(numbers(0, 5), topic_id="first")
    SinkRun(sqlite_database).write(records({"n": 1}, {"n": 2}), topic_id="second")
    assert written(sqlite_database) == [1, 2, *range(1000, 1005)]


def test_altered_offsets_hold_in_the_database(sqlite_database):
    sqlite_database.execute(CREATE)
    run = SinkRun(sqlite_database)
    run.write(numbers(0, 5))
    partition = TopicPartition(TOPIC, 0)
    assert JdbcSinkConnector().alter_offsets(run.config, {partition: 3}, {})
    SinkRun(sqlite_database).write(numbers(0, 5))
    assert written(sqlite_database) == [1000, 1001, 1002, 1003, 1003, 1004, 1004]
    assert JdbcSinkConnector().alter_offsets(run.config, {partition: None}, {})
    SinkRun(sqlite_database, start=4).write(numbers(4, 6))
    assert written(sqlite_database)[-3:] == [1004, 1004, 1005]


def test_offsets_of_the_same_connector_on_another_cluster_are_not_altered(sqlite_database):
    """Both have a topic with the same name, and another id."""
    sqlite_database.execute(CREATE)
    run = SinkRun(sqlite_database)
    for topic_id in ("one", "other"):
        run.claim().write(numbers(0, 3), topic_id=topic_id)
    JdbcSinkConnector().alter_offsets(run.config, {TopicPartition(TOPIC, 0): 5}, {TOPIC: "one"})
    for topic_id, skipped in (("one", 2), ("other", 0)):
        assert run.claim().write(numbers(0, 6), topic_id=topic_id).written == 3 - skipped


def test_offsets_of_a_group_that_is_ahead_count(sqlite_database):
    sqlite_database.execute(CREATE)
    SinkRun(sqlite_database).write(numbers(0, 5))
    SinkRun(sqlite_database, start=7).write(numbers(7, 9))
    assert written(sqlite_database) == [*range(1000, 1005), 1007, 1008]
    assert stored(sqlite_database) == (9, None)


# --- zombies and attempts ---------------------------------------------------------------------------------------------


def test_task_of_an_earlier_run_cannot_write_any_more(database):
    database.execute(CREATE)
    zombie = SinkRun(database).open()
    put(zombie, numbers(0, 5))
    SinkRun(database).write(numbers(0, 3))
    with pytest.raises(FencedError, match="A later run of sink writes orders-0"):
        zombie.complete()
    zombie.abort()
    assert written(database) == [1000, 1001, 1002]


def test_task_of_an_earlier_run_that_starts_late_is_refused(database):
    database.execute(CREATE)
    early = SinkRun(database).claim()
    SinkRun(database).write(numbers(0, 3))
    with pytest.raises(FencedError):
        early.open()
    assert stored(database) == (3, None)


def test_two_attempts_of_a_task_write_each_record_once(database):
    database.execute(CREATE)
    run = SinkRun(database, errors_tolerance="all").claim()
    bad = record(2, {"n": 13})
    rows = [*numbers(0, 2), bad, *numbers(3, 8)]
    slow, fast = run.open(), run.open()
    put(slow, rows)
    slow.deliver()
    give(fast, rows[:5])
    assert run.errors.letters[0][0] == 2
    run.errors.letters.clear()
    report = give(slow, [])
    assert written(database) == [1000, 1001, *range(1003, 1008)]
    # The attempt that wins reports all records, whoever wrote them, and the letters are in its own report.
    assert (report.written, report.dead_lettered) == (7, 1)
    assert [offset for offset, _ in run.errors.letters] == [2]
    assert stored(database) == (8, "[2]")


@pytest.mark.parametrize("is_columnar", [False, True], ids=["rows", "columns"])
def test_attempt_that_is_behind_by_several_transactions_writes_nothing_twice(server_database, monkeypatch, is_columnar):
    """Only its present transaction left out what the other attempt had written; the next ones wrote it again."""
    monkeypatch.setattr(jdbc_task, "ROWS_PER_TRANSACTION", 3)
    monkeypatch.setattr(jdbc_task, "FEWEST_IN_COLUMNS", 3)
    server_database.execute(CREATE)
    run = SinkRun(server_database).claim()
    slow, fast = run.open(), run.open()
    give(fast, numbers(0, 11))
    for first in range(0, 12, 3):
        rows = [row.changed(value_schema=NUMBER) for row in numbers(first, first + 3)]
        batch = to_columns(rows)
        if not (is_columnar and slow.put_columns([batch], batch.offsets)):
            put(slow, rows)
            slow.deliver()
    report = give(slow, [])
    assert written(server_database) == list(range(1000, 1012))
    assert (report.written, stored(server_database)) == (12, (12, None))


# --- commits without an answer ----------------------------------------------------------------------------------------


def lose_commit(runner, database: Database, *, takes_effect: bool) -> list[str]:
    """The next COMMIT that writes rows loses its connection, before or after it took effect."""
    engine, lost = runner._task._database.engine, []
    before_commit = losing_commit(database, lost, takes_effect=takes_effect)
    event.listen(engine, "commit", before_commit)
    return lost


@pytest.mark.parametrize("takes_effect", [True, False])
def test_commit_without_an_answer_is_looked_up(server_database, takes_effect):
    server_database.execute(CREATE)
    runner = SinkRun(server_database).open()
    lost = lose_commit(runner, server_database, takes_effect=takes_effect)
    report = give(runner, numbers(0, 150))
    assert lost == ["yes"]
    assert (report.written, report.commit_offset) == (150, 1_000_000)
    assert written(server_database) == list(range(1000, 1150))
    assert stored(server_database)[0] == 150


def test_commit_without_an_answer_does_not_lose_dead_letters(server_database):
    server_database.execute(CREATE)
    run = SinkRun(server_database, errors_tolerance="all")
    runner = run.open()
    lose_commit(runner, server_database, takes_effect=True)
    report = give(runner, [*numbers(0, 3), record(3, {"n": 13}), *numbers(4, 6)])
    assert (report.written, report.dead_lettered) == (5, 1)
    assert [offset for offset, _ in run.errors.letters] == [3]
    assert written(server_database) == [1000, 1001, 1002, 1004, 1005]


@pytest.mark.budget(40)  # Starts a server of its own, and crashes it three times.
@pytest.mark.parametrize("kind", [PostgresServer, MariaDbServer])
def test_crashes_of_the_database_while_rows_and_columns_are_written(kind):
    with kind.start() as server, database_on(server, "crashed") as database:
        database.execute(CREATE)
        run = SinkRun(database, max_retries="600", retry_backoff_ms="100", connection_attempts="1")
        done, progress = threading.Event(), [0]

        def crash() -> None:
            for _ in range(3):
                seen = progress[0]
                wait_until(lambda seen=seen: progress[0] >= seen + 5 or done.is_set(), "some transactions")
                server.kill()
                server.restart()

        crashing = threading.Thread(target=crash)
        crashing.start()
        runner = run.open()
        total = 0
        while crashing.is_alive() or total == 0:
            put(runner, numbers(total, total + 40))
            runner.deliver()
            runner._task.flush()
            in_columns = to_columns([row.changed(value_schema=NUMBER) for row in numbers(total + 40, total + 640)])
            assert runner.put_columns([in_columns], in_columns.offsets)
            total += 640
            progress[0] += 1
        done.set()
        crashing.join()
        report = give(runner, [])
        assert report.written == total
        assert written(database) == list(range(1000, 1000 + total))
        assert stored(database)[0] == total


def test_full_disk_keeps_rows_and_offsets_together(tmp_path):
    flags = ("--innodb-file-per-table=0", "--innodb-data-file-path=ibdata1:12M:autoextend:max:14M")
    with MariaDbServer.start(tmp_path / "data", *flags) as server, database_on(server, "full") as database:
        database.execute(CREATE.replace("VARCHAR(5)", "VARCHAR(500)"))
        rows = [
            row.changed(value_schema=WIDE)
            for row in records(*({"n": 1000 + n, "note": "x" * 500} for n in range(12_000)))
        ]
        runner = SinkRun(database, max_retries="0").open()
        with pytest.raises(UnavailableError, match="could not be used to write rows") as full:
            put_in_columns(runner, rows)
        runner.abort()
        assert full.value.code == "database.disk_full"
        end = stored(database)[0]
        assert 0 < end < len(rows)
        assert written(database) == list(range(1000, 1000 + end))


def put_in_columns(runner: SinkTaskRunner, rows: list) -> None:
    """A thousand in each transaction."""
    for start in range(0, len(rows), 1000):
        batch = to_columns(rows[start : start + 1000])
        assert runner.put_columns([batch], batch.offsets)


# --- records that cannot be written -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_bad_rows_are_found_and_their_neighbours_arrive(database, mode):
    key = "" if mode == "insert" else ", PRIMARY KEY (n)"
    database.execute(CREATE[:-1] + key + ")")
    run = SinkRun(
        database, errors_tolerance="all", insert_mode=mode, pk_mode="none" if mode == "insert" else "record_value",
        pk_fields="" if mode == "insert" else "n",
    )  # fmt: skip
    rows = numbers(0, 400)
    # SQLite gives a null primary key a number.
    missing = 13 if database.dialect == "sqlite" else None
    for offset, value in ((0, {"n": 13}), (7, {"n": 13}), (250, {"n": missing}), (399, {"n": 2**70})):
        rows[offset] = record(offset, value)
    report = run.write(rows)
    assert [offset for offset, _ in run.errors.letters] == [0, 7, 250, 399]
    assert (report.written, report.dead_lettered) == (396, 4)
    assert written(database) == [n for n in range(1000, 1400) if n - 1000 not in (0, 7, 250, 399)]
    assert all("orders-0@" in text for _, text in run.errors.letters)


def test_text_that_is_too_long_is_never_cut(server_database):
    server_database.execute(CREATE)
    run = SinkRun(server_database, errors_tolerance="all")
    run.write(records({"n": 1, "note": "short"}, {"n": 2, "note": "too long"}))
    assert server_database.rows("SELECT n, note FROM orders") == [(1, "short")]
    assert run.errors.letters[0][0] == 1


def test_mysql_session_is_strict_even_if_the_server_is_not(mariadb_database):
    mariadb_database.execute(CREATE)
    run = SinkRun(mariadb_database, errors_tolerance="all")
    runner = run.open()
    engine = runner._task._database.engine
    assert runner._task._writer._connected().exec_driver_sql("SELECT @@sql_mode").scalar().count("STRICT_TRANS_TABLES")
    assert engine.dialect.name in ("mysql", "mariadb")
    runner.abort()


def test_without_tolerance_nothing_of_a_transaction_is_written(database):
    database.execute(CREATE)
    SinkRun(database).write(numbers(0, 3))
    rows = numbers(0, 9)
    rows[7] = record(7, {"n": 13})
    with pytest.raises(DataError, match="The database refused orders-0@7"):
        SinkRun(database).write(rows)
    assert written(database) == [1000, 1001, 1002]
    assert stored(database) == (3, None)


def test_dead_letters_of_a_run_that_died_are_reported_again(database):
    """Its rows and offsets were committed, its dead letters died with it."""
    database.execute(CREATE)
    rows = numbers(0, 6)
    rows[1], rows[4] = record(1, {"n": 13}), record(4, {"n": [1]})
    died = SinkRun(database, errors_tolerance="all")
    died.write(rows)
    assert stored(database) == (6, "[1,4]")
    again = SinkRun(database, errors_tolerance="all")
    report = again.write([*rows, *numbers(6, 8)])
    assert [offset for offset, _ in sorted(again.errors.letters)] == [1, 4]
    assert (report.written, report.dead_lettered) == (6, 2)
    assert written(database) == [1000, 1002, 1003, 1005, 1006, 1007]
    SinkRun(database, errors_tolerance="all", start=8).write(numbers(8, 9))  # Kafka has committed up to 8
    assert stored(database) == (9, None)


def test_dead_letter_of_a_run_that_died_fails_the_next_one_if_errors_are_not_tolerated_any_more(database):
    database.execute(CREATE)
    rows = numbers(0, 8)
    rows[1] = record(1, {"n": 13})
    SinkRun(database, errors_tolerance="all").write(rows[:6])
    for _ in range(2):
        with pytest.raises(DataError, match="The database refused orders-0@1"):
            SinkRun(database).write(rows)
    rows[1] = record(1, {"n": 1001})  # As if the table took it now.
    assert SinkRun(database).write(rows).written == 8
    assert written(database) == list(range(1000, 1008))
    assert stored(database) == (8, None)


def test_constraint_that_is_checked_by_commit_names_its_row(postgresql_database):
    postgresql_database.execute(
        "CREATE TABLE known (n INT PRIMARY KEY)", "INSERT INTO known VALUES (1000), (1002)",
        "CREATE TABLE orders (n INT REFERENCES known DEFERRABLE INITIALLY DEFERRED)",
    )  # fmt: skip
    run = SinkRun(postgresql_database, errors_tolerance="all")
    run.write(numbers(0, 3))
    assert written(postgresql_database) == [1000, 1002]
    assert [offset for offset, _ in run.errors.letters] == [1]


def test_deadlock_is_repeated(mariadb_database):
    mariadb_database.execute(
        "CREATE TABLE orders (n INT PRIMARY KEY, note VARCHAR(5))",
        "INSERT INTO orders SELECT seq, 'a' FROM seq_1_to_50",
    )
    run = SinkRun(mariadb_database, insert_mode="upsert", pk_mode="record_value", pk_fields="n", max_retries="50")
    engine = mariadb_database.engine()
    with engine.connect() as other:
        other.exec_driver_sql("UPDATE orders SET note = 'other' WHERE n > 1")  # the larger transaction wins
        rows = records({"n": 1, "note": "mine"}, {"n": 2, "note": "mine"})
        sink = threading.Thread(target=lambda: run.write(rows))
        sink.start()
        wait_until(
            lambda: mariadb_database.has_statement_waiting_for(0.5), "the sink holds 1 and waits for 2", every_s=0.3
        )
        other.exec_driver_sql("UPDATE orders SET note = 'other' WHERE n = 1")
        other.commit()
        sink.join()
    assert mariadb_database.rows("SELECT note FROM orders WHERE n < 4 ORDER BY n") == [("mine",), ("mine",), ("other",)]


def test_database_that_does_not_answer_fails_after_the_retries(tmp_path):
    with PostgresServer.start() as server, database_on(server, "gone") as database:
        database.execute(CREATE)
        run = SinkRun(database, connection_attempts="1", max_retries="2")
        runner = run.open()
        put(runner, numbers(0, 3))
        server.kill()
        with pytest.raises(UnavailableError):
            runner.complete()
        runner.abort()


# --- the offsets table ------------------------------------------------------------------------------------------------


def test_user_who_may_not_create_the_table_gets_the_statement(postgresql_database):
    postgresql_database.execute(
        CREATE,
        "DROP ROLE IF EXISTS writer_only",
        "CREATE ROLE writer_only LOGIN",
        "GRANT INSERT ON orders TO writer_only",
    )
    limited = postgresql_database.jdbc_url.replace("user=postgres", "user=writer_only")
    run = SinkRun(postgresql_database, connection_url=limited)
    with pytest.raises(AccessError, match="the user may not create it") as refused:
        run.claim()
    assert 'CREATE TABLE "airflow_connect_offsets" ( place VARCHAR(64) NOT NULL' in refused.value.suggestion
    statement = refused.value.suggestion.partition("execute: ")[2].partition("; and")[0]
    postgresql_database.execute(
        statement, "GRANT SELECT, INSERT, UPDATE, DELETE ON airflow_connect_offsets TO writer_only"
    )
    SinkRun(postgresql_database, connection_url=limited).write(numbers(0, 2))
    assert written(postgresql_database) == [1000, 1001]
    postgresql_database.execute("DROP OWNED BY writer_only", "DROP ROLE writer_only")


def test_table_may_have_another_name_and_schema(postgresql_database):
    postgresql_database.execute(CREATE, "CREATE SCHEMA state")
    SinkRun(postgresql_database, offsets_table_name='state."My Offsets"').write(numbers(0, 2))
    assert postgresql_database.rows('SELECT COUNT(*) FROM state."My Offsets"') == [(2,)]


@pytest.mark.parametrize(
    ("config", "delivery"),
    [
        ({}, Delivery.TRANSACTIONAL),
        ({"offsets.table.name": "mine"}, Delivery.TRANSACTIONAL),
        ({"offsets.table.name": ""}, Delivery.AT_LEAST_ONCE),
        ({"offsets.table.name": " ", "insert.mode": "upsert"}, Delivery.AT_LEAST_ONCE),
        ({"offsets.table.name": "", "insert.mode": "UPSERT", "pk.mode": "record_key"}, Delivery.IDEMPOTENT),
    ],
)
def test_what_a_configuration_promises(config, delivery):
    assert JdbcSinkConnector.delivery_for(config) is delivery


def test_without_the_table_upserts_write_the_same_rows_again(database):
    database.execute("CREATE TABLE orders (n INT PRIMARY KEY)")
    for _ in range(2):
        run = SinkRun(database, offsets_table_name="", insert_mode="upsert", pk_mode="record_value", pk_fields="n")
        run.write(numbers(0, 150))
    assert written(database) == list(range(1000, 1150))
