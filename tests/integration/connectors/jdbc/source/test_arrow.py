"""Tables of PostgreSQL in Arrow batches: what the row path copies, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import psycopg
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from airflow_connect.connectors.jdbc.source import task as task_module
from airflow_connect.connectors.jdbc.source.arrow.reader import ArrowReader
from airflow_connect.databases import arrow_stream as stream_module
from airflow_connect.databases.arrow_stream import ArrowStream
from airflow_connect.errors import ConfigError, DatabaseError, DataError
from tests.devstack.postgresql import PostgresServer
from tests.support.copies.jdbc_source import Copies, Run
from tests.support.servers.databases import Database, database_on
from tests.support.session.searching import examples
from tests.support.values.jdbc_random import POSTGRESQL_VALUES, placeholder
from tests.support.values.jdbc_types import POSTGRESQL_TYPES
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

SETTINGS = st.fixed_dictionaries(
    {
        "numeric.mapping": st.sampled_from(["none", "precision_only", "best_fit", "best_fit_eager_double"]),
        "timestamp.granularity": st.sampled_from(
            ["connect_logical", "micros_long", "micros_string", "micros_iso_datetime_string", "nanos_string"]
        ),
        "db.timezone": st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]),
    }
)


@pytest.fixture(scope="module")
def typed(postgresql: PostgresServer) -> Iterator[Database]:
    with database_on(postgresql, "arrow_types") as database:
        database.execute(*POSTGRESQL_TYPES)
        yield database


def compared(run: Run) -> list[str]:
    """What was copied; `repr`, because NaN does not equal itself."""
    return [f"{record.topic} {record.value_schema} {record.value!r}" for record in run.records]


@settings(max_examples=examples(24), deadline=None, phases=set(Phase) - {Phase.shrink, Phase.explain})
@given(st.data(), SETTINGS)
# Each example makes a table with up to eight columns, and copies it twice.
@pytest.mark.budget(30)
def test_every_type_is_copied_as_row_by_row(typed: Database, data: st.DataObject, config: dict[str, str]) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(POSTGRESQL_VALUES)), min_size=1, max_size=8))
    row = st.tuples(*(POSTGRESQL_VALUES[kind] | st.none() for kind in kinds))
    rows = data.draw(st.lists(row, min_size=1, max_size=5))
    columns = ", ".join(f'"c:{n}%" {kind}' for n, kind in enumerate(kinds))
    with psycopg.connect(typed.url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS every_type")
        connection.execute(f"CREATE TABLE every_type ({columns})")
        places = ", ".join(placeholder(kind) for kind in kinds)
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO every_type VALUES ({places})", rows)
    query = data.draw(st.sampled_from([{}, {"query": "SELECT * FROM every_type"}]))
    runs = Copies({"connection.url": typed.jdbc_url, "mode": "bulk", **config, **query}, columnar=True)
    by_arrow = compared(runs.run())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task_module, "arrow_stream", lambda connection, isolation: None)
        by_row = compared(runs.run())

    assert by_arrow == by_row


def table(database: Database, rows: int = 40, more: str = "") -> None:
    database.execute(
        f"CREATE TABLE orders (id bigint PRIMARY KEY, changed timestamptz NOT NULL{more})",
        f"INSERT INTO orders (id, changed) SELECT i, timestamptz '2026-01-01' + i / 3 * interval '1 second'"
        f" FROM generate_series(1, {rows}) i",
    )


def copies(database: Database, mode: str = "bulk", **more: str) -> Copies:
    config = {"connection.url": database.jdbc_url, "mode": mode, "connection.backoff.ms": "10"}
    if "timestamp" in mode:
        config["timestamp.column.name"] = "changed"
    if "incrementing" in mode:
        config["incrementing.column.name"] = "id"
    return Copies({**config, **{k.replace("_", "."): v for k, v in more.items()}}, columnar=True)


@pytest.fixture
def readers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Tables that were read in Arrow batches."""
    found: list[str] = []
    begin = ArrowReader.__init__

    def noted(self: ArrowReader, *arguments: Any) -> None:
        found.append("query" if arguments[1] is None else arguments[1].table)
        begin(self, *arguments)

    monkeypatch.setattr(ArrowReader, "__init__", noted)
    return found


@pytest.mark.parametrize("mode", ["bulk", "incrementing", "timestamp", "timestamp+incrementing"])
def test_tables_and_queries_are_read_in_arrow_batches(
    postgresql_database: Database, mode: str, readers: list[str]
) -> None:
    table(postgresql_database)
    assert copies(postgresql_database, mode).run().ids() == list(range(1, 41))
    assert readers == ["orders"]
    query = 'WITH chosen AS (SELECT * FROM orders) SELECT *, id % 2 AS "a:b%" FROM chosen -- all'
    run = copies(postgresql_database, mode, query=query).run()
    assert run.ids() == list(range(1, 41)) and readers == ["orders", "query"]


def test_query_with_two_columns_of_one_name_is_refused(postgresql_database: Database) -> None:
    table(postgresql_database)
    query = "SELECT a.id, b.id FROM orders a JOIN orders b ON a.id = b.id"
    with pytest.raises(ConfigError, match="field name duplication id"):
        copies(postgresql_database, query=query).run()


def test_groups_of_equal_timestamps_stay_together_over_batches(postgresql_database: Database) -> None:
    table(postgresql_database, 40)
    run = copies(postgresql_database, "timestamp", batch_max_rows="2").run()
    moments = [[r.value["changed"] for r in part] for part in batches_of(run)]
    for before, after in pairwise(moments):
        assert before[-1] != after[0]
    assert len(moments) > 5 and sorted(run.ids()) == list(range(1, 41))


def batches_of(run: Run) -> list[list[Any]]:
    bounds = [sum(run.batches[:n]) for n in range(len(run.batches) + 1)]
    parts = [run.records[a:b] for a, b in pairwise(bounds)]
    return [part for part in parts if part]


def test_columns_with_the_names_of_results_are_ordered_by_their_own_values(postgresql_database: Database) -> None:
    postgresql_database.execute(
        'CREATE TABLE n ("connect_0" numeric(9) PRIMARY KEY, "connect_1" int)',
        "INSERT INTO n SELECT 12 - i, i FROM generate_series(1, 11) i",
    )
    runs = Copies(
        {"connection.url": postgresql_database.jdbc_url, "mode": "incrementing",
         "incrementing.column.name": "connect_0"}, columnar=True,
    )  # fmt: skip
    assert runs.run().ids("connect_0") == list(range(1, 12))


def test_waiting_alter_table_does_not_block_the_reader(postgresql_database: Database) -> None:
    """A lock that is requested between the description of the table and its reading: neither waits forever."""
    table(postgresql_database)
    changed = threading.Event()

    def alter() -> None:
        postgresql_database.execute("ALTER TABLE orders ADD COLUMN later int")
        changed.set()

    begin, waiting = ArrowStream.batches, threading.Thread(target=alter)

    def batches(self: ArrowStream, sql: str, size: int) -> Iterator[Any]:
        if not waiting.ident:
            waiting.start()
        assert changed.wait(20)
        return begin(self, sql, size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ArrowStream, "batches", batches)
        assert len(copies(postgresql_database).run().records) == 40
    waiting.join()


@pytest.mark.parametrize("mode", ["timestamp", "bulk"])
def test_column_that_a_migration_adds_and_fills_while_a_table_is_opened_is_copied(
    postgresql_database: Database, mode: str
) -> None:
    """Its transaction had begun before the run, so no later run would have found the rows again."""
    table(postgresql_database)
    begin, done = ArrowStream.batches, []

    def batches(self: ArrowStream, sql: str, size: int) -> Iterator[Any]:
        if not done:
            done.append(sql)
            postgresql_database.execute("ALTER TABLE orders ADD COLUMN later int", "UPDATE orders SET later = id")
        return begin(self, sql, size)

    runs = copies(postgresql_database, mode)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ArrowStream, "batches", batches)
        assert sorted(value["later"] for value in runs.run().values) == list(range(1, 41))
    if mode != "bulk":
        assert runs.run().records == []


def test_table_that_is_retyped_while_it_is_opened_is_read_with_its_new_type(postgresql_database: Database) -> None:
    table(postgresql_database, more=", more int")
    begin, done = ArrowStream.batches, []

    def batches(self: ArrowStream, sql: str, size: int) -> Iterator[Any]:
        if not done:
            done.append(sql)
            postgresql_database.execute("ALTER TABLE orders ALTER COLUMN more TYPE bigint")
        return begin(self, sql, size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ArrowStream, "batches", batches)
        run = copies(postgresql_database, "incrementing").run()
    assert run.ids() == list(range(1, 41))
    schema = run.records[0].value_schema
    assert schema is not None and schema.fields_by_name["more"].schema.type.name == "INT64"


def test_large_table_is_streamed_and_its_rest_is_not_read(postgresql_database: Database) -> None:
    """The first batches are there although the server has not produced the last row, which it cannot produce."""
    postgresql_database.execute(
        "CREATE VIEW big AS SELECT 1000 / (3000000 - i) AS x, i AS id, repeat('x', 100) AS text"
        " FROM generate_series(1, 3000000) AS s(i)"
    )
    runs = copies(postgresql_database, table_types="VIEW")
    run = runs.run(batches=2)
    assert len(run.batches) == 2 and 10_000 < run.batches[0] < 100_000
    sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    wait_until(lambda: postgresql_database.rows(sessions) == [(1,)], "the sessions of the task are gone")


def test_statement_that_fails_in_the_middle_is_a_typed_error(postgresql_database: Database) -> None:
    postgresql_database.execute(
        "CREATE VIEW broken AS SELECT 1000 / (500 - i) AS x FROM generate_series(1, 1000) AS s(i)"
    )
    with pytest.raises(DataError, match="division by zero") as caught:
        copies(postgresql_database, table_types="VIEW").run()
    assert "broken" in caught.value.message


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("numeric(5,2)", "'NaN'", "not a finite number"),
        ("numeric", "1.5", "numeric.mapping=best_fit_eager_double"),
        ("date", "'infinity'", "Date"),
        ("timestamp", "'4714-11-24 BC'", "Timestamp"),
        ("timestamptz", "'294276-01-01Z'", "Timestamp"),
        ("time", "'24:00'", "Time"),
    ],
)
def test_value_that_does_not_fit_names_its_column(
    postgresql_database: Database, kind: str, value: str, reason: str
) -> None:
    postgresql_database.execute(f"CREATE TABLE n (fits int, wrong {kind})", f"INSERT INTO n VALUES (1, {value})")
    with pytest.raises(DataError, match=rf"column wrong .*n cannot be written as .*{reason}"):
        copies(postgresql_database).run()


def test_infinite_time_fails_on_both_paths(postgresql_database: Database) -> None:
    postgresql_database.execute("CREATE TABLE n (a timestamp)", "INSERT INTO n VALUES ('infinity')")
    for columnar in (False, True):
        runs = copies(postgresql_database)
        runs.columnar = columnar
        with pytest.raises((DataError, DatabaseError), match="timestamp"):
            runs.run()


def test_isolation_level_applies_to_the_statement(postgresql_database: Database) -> None:
    postgresql_database.execute("CREATE VIEW level AS SELECT current_setting('transaction_isolation') AS name")
    for isolation, name in (("DEFAULT", "read committed"), ("SERIALIZABLE", "serializable"),
                            ("REPEATABLE_READ", "repeatable read")):  # fmt: skip
        runs = copies(postgresql_database, table_types="VIEW", transaction_isolation_mode=isolation)
        assert runs.run().values == [{"name": name}]


def test_session_has_the_time_zone_of_the_other_connection(postgresql_database: Database) -> None:
    name = postgresql_database.rows("SELECT current_database()")[0][0]
    postgresql_database.execute(
        f"ALTER DATABASE {name} SET timezone TO 'Asia/Tokyo'",
        "CREATE VIEW zone AS SELECT current_setting('timezone') AS name",
    )
    assert copies(postgresql_database, table_types="VIEW").run().values == [{"name": "UTC"}]


def test_missing_package_is_named(
    postgresql_database: Database, readers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table(postgresql_database, 3)
    monkeypatch.setattr(stream_module, "find_spec", lambda name: None)
    run = copies(postgresql_database, "incrementing").run()
    assert run.ids() == [1, 2, 3] and readers == []
    assert run.notes == [
        "Rows are read one by one, which is slower, because the package adbc-driver-postgresql is not installed."
    ]


def test_database_with_texts_of_any_encoding_is_read_row_by_row(
    postgresql: PostgresServer, unique_name: str, readers: list[str]
) -> None:
    with database_on(postgresql, unique_name) as first:
        name = f"{unique_name}_ascii".replace("-", "_")
        with psycopg.connect(first.url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
        try:
            made = Database(
                "postgresql", postgresql.url_of(name) + "?client_encoding=utf8", postgresql.jdbc_url_of(name)
            )
            made.execute("CREATE TABLE orders (id int, t text)", "INSERT INTO orders VALUES (1, 'é'), (2, 'a')")
            for query in ({}, {"query": "SELECT * FROM orders"}):
                run = copies(made, **query).run()
                assert run.values == [{"id": 1, "t": "é"}, {"id": 2, "t": "a"}]
                assert [note for note in run.notes if "one by one" in note and "SQL_ASCII" in note], run.notes
            assert readers == []
            made.execute("UPDATE orders SET t = convert_from('\\xe9', 'SQL_ASCII') WHERE id = 2")
            with pytest.raises(DataError, match="invalid byte sequence"):
                copies(made).run()
        finally:
            postgresql.drop_database(name)
