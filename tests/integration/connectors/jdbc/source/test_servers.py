"""The modes on PostgreSQL and MariaDB: time zones, schemas, connections that die."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from airflow_connect.connectors.jdbc.source.read import changed
from airflow_connect.connectors.jdbc.source.split.plan import Division
from airflow_connect.databases import connecting, keys
from airflow_connect.databases.settings import ConnectionSettings
from airflow_connect.errors import AccessError, ConfigError, DatabaseError
from tests.devstack.mariadb import INITIAL_DATABASE, MariaDbServer
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.certificates import self_signed
from tests.support.servers.databases import Database

pytestmark = pytest.mark.integration


@pytest.fixture(params=["postgresql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    made: Database = request.getfixturevalue(f"{request.param}_database")
    return made


def copies(database: Database, mode: str, columnar: bool = False, **more: str) -> Copies:
    config = {"connection.url": database.jdbc_url, "mode": mode, "connection.backoff.ms": "50"}
    return Copies({**config, **{k.replace("_", "."): v for k, v in more.items()}}, columnar=columnar)


def fill(database: Database, first: int, count: int, stamp: str = "timestamp '2026-01-01 00:00:00'") -> None:
    values = ", ".join(f"({n}, {stamp} + interval '{n // 3}' second)" for n in range(first, first + count))
    database.execute(f"INSERT INTO orders (id, changed) VALUES {values}")


def table(database: Database, kind: str = "", key: str = "PRIMARY KEY") -> None:
    kind = kind or ("timestamp" if database.dialect == "postgresql" else "datetime(6)")
    database.execute(f"CREATE TABLE orders (id bigint {key}, changed {kind} NOT NULL)")


@pytest.mark.parametrize("columnar", [False, True])
@pytest.mark.parametrize("mode", ["incrementing", "timestamp", "timestamp+incrementing"])
def test_killed_runs_copy_each_row_once(database: Database, mode: str, columnar: bool) -> None:
    table(database)
    fill(database, 0, 21)
    id_column, time_column = "id" if "inc" in mode else "", "changed" if "time" in mode else ""
    runs = copies(
        database, mode, columnar, batch_max_rows="2", incrementing_column_name=id_column,
        timestamp_column_name=time_column,
    )  # fmt: skip
    found: list[Any] = []
    for died_after in (1, 2, 1):
        found += runs.run(batches=died_after).ids()
    fill(database, 21, 9)
    found += runs.run().ids()
    # Nothing orders the rows of one timestamp in mode timestamp.
    assert (sorted(found) if mode == "timestamp" else found) == list(range(30))
    assert runs.run().tasks == []


@pytest.mark.parametrize("kind", ["without zone", "instant"])
def test_time_zone_of_the_database(database: Database, kind: str) -> None:
    kinds = {"postgresql": ("timestamp", "timestamptz"), "mysql": ("datetime(6)", "timestamp(6)")}[database.dialect]
    table(database, kinds[kind == "instant"])
    # Europe/Berlin is two hours ahead of UTC in July.
    if kind == "instant" and database.dialect == "postgresql":
        literal = "timestamptz '2026-07-01 10:00:00Z'"
    else:
        literal = f"'2026-07-01 {'10' if kind == 'instant' else '12'}:00:00'"
    with database.connected() as connection:
        if database.dialect == "mysql":
            connection.exec_driver_sql("SET time_zone = '+00:00'")
        connection.exec_driver_sql(f"INSERT INTO orders VALUES (1, {literal})")
    runs = copies(database, "timestamp", timestamp_column_name="changed", db_timezone="Europe/Berlin")
    (record,) = runs.run().records
    ten_utc = 1_782_900_000_000
    assert record.value["changed"] == ten_utc
    assert record.source_offset == {"timestamp": ten_utc, "timestamp_nanos": 0}
    assert runs.run().tasks == []
    with database.connected() as connection:
        if database.dialect == "mysql":
            connection.exec_driver_sql("SET time_zone = '+00:00'")
        connection.exec_driver_sql("INSERT INTO orders SELECT 2, changed + interval '1' second FROM orders")
    assert runs.run().ids() == [2]


def test_upper_bound_is_the_database_s_clock(database: Database) -> None:
    table(database)
    now = "clock_timestamp() AT TIME ZONE 'UTC'" if database.dialect == "postgresql" else "utc_timestamp(6)"
    database.execute(f"INSERT INTO orders VALUES (1, {now} - interval '1' minute), (2, {now} + interval '1' hour)")
    assert copies(database, "timestamp", timestamp_column_name="changed").run().ids() == [1]


def test_auto_increment_is_found(database: Database) -> None:
    keys = {"postgresql": "GENERATED ALWAYS AS IDENTITY", "mysql": "AUTO_INCREMENT PRIMARY KEY"}
    table(database, key=keys[database.dialect])
    database.execute("INSERT INTO orders (changed) VALUES ('2026-01-01 00:00:00'), ('2026-01-01 00:00:00')")
    runs = copies(database, "incrementing")
    assert runs.run().ids() == [1, 2] and runs.run().tasks == []


@pytest.mark.parametrize("columnar", [False, True])
def test_connection_that_dies_during_a_fetch_is_replaced(database: Database, columnar: bool) -> None:
    """Every session of this database is ended by the server after the second batch; the task continues after it."""
    table(database)
    fill(database, 0, 30)
    killed = []

    def kill(done: int) -> None:
        if done == 2:
            killed.extend(database.end_other_sessions())

    runs = copies(database, "timestamp+incrementing", columnar, batch_max_rows="4", timestamp_column_name="changed")
    runs.config["incrementing.column.name"] = "id"
    assert runs.run(meanwhile=kill).ids() == list(range(30))
    assert killed


LARGE_ROWS = 900
"""54 MB of rows of 60 kB: what one batch leaves is more than both sockets can hold (32 MB and 4 MB where Linux lets
them grow). Otherwise a client may find all rows in its buffer after its session has ended."""


@pytest.mark.parametrize("columnar", [False, True])
def test_bulk_that_never_gets_further_ends_instead_of_sending_rows_forever(database: Database, columnar: bool) -> None:
    large = "repeat('x', 60000)"
    table(database)
    fill(database, 0, LARGE_ROWS)
    runs = copies(database, "bulk", columnar, batch_max_rows="90", query=f"SELECT id, {large} AS t FROM orders")
    done: list[int] = []

    def meanwhile(number: int) -> None:
        done.append(number)
        database.end_other_sessions()

    with pytest.raises(DatabaseError, match="never came further than before") as caught:
        runs.run(meanwhile=meanwhile)
    assert caught.value.code == "database.retries" and not caught.value.retriable and len(done) < 20


def test_rows_that_bulk_sends_again_are_counted(database: Database) -> None:
    table(database)
    fill(database, 0, LARGE_ROWS)
    runs = copies(database, "bulk", batch_max_rows="150", query="SELECT id, repeat('x', 60000) AS t FROM orders")
    run = runs.run(meanwhile=lambda done: database.end_other_sessions() if done == 1 else None)
    assert len(run.records) == LARGE_ROWS + 150 and sorted(set(run.ids())) == list(range(LARGE_ROWS))
    ((sentence, number),) = run.numbers.items()
    assert number == 150 and sentence.startswith("Rows of the query that are sent again, because the connection was")


def test_server_waits_for_rows_to_be_fetched(database: Database) -> None:
    if database.dialect == "postgresql":
        name = database.rows("SELECT current_database()")[0][0]
        database.execute(f"ALTER DATABASE {name} SET idle_in_transaction_session_timeout TO '1s'")
        query = "SELECT current_setting('idle_in_transaction_session_timeout')::int AS seconds"
    else:
        query = "SELECT @@session.net_write_timeout AS seconds"
    expected = {"postgresql": 0, "mysql": 3600}[database.dialect]
    assert copies(database, "bulk", query=query).run().values == [{"seconds": expected}]


def test_attempts_are_limited_where_that_is_configured(database: Database) -> None:
    table(database)
    fill(database, 0, 3)
    with pytest.raises(ConfigError, match="does not exist in table"):
        copies(database, "timestamp", timestamp_column_name="nosuch", query_retry_attempts="0").run()


def test_wrong_password_is_an_access_error_without_the_password(database: Database) -> None:
    runs = copies(database, "bulk", connection_user="nobody_here", connection_password="hush1")
    with pytest.raises(AccessError) as caught:
        runs.run()
    assert caught.value.code == "database.authentication" and "hush1" not in str(caught.value)


def test_unknown_database_is_named(database: Database) -> None:
    name = database.url.rpartition("/")[2].partition("?")[0]
    runs = copies(database, "bulk")
    runs.config["connection.url"] = database.jdbc_url.replace(f"/{name}", "/nosuch_database")
    with pytest.raises(ConfigError, match="nosuch_database") as caught:
        runs.run()
    assert caught.value.code == "database.unknown_database"


def test_large_result_is_streamed(database: Database) -> None:
    """The first batch is there although the database has not produced the last row, which cannot be produced."""
    series = (
        "SELECT 1000 / (5000 - i) AS x, i AS id FROM generate_series(1, 5000) AS s(i)"
        if database.dialect == "postgresql"
        else "SELECT seq AS id FROM seq_1_to_2000000"
    )
    run = copies(database, "bulk", query=series, batch_max_rows="100").run(batches=3)
    assert run.batches == [100, 100, 100]


def test_schemas_and_forms_of_names(postgresql_database: Database) -> None:
    postgresql_database.execute(
        "CREATE TABLE public.a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1)", "CREATE SCHEMA sales",
        "CREATE TABLE sales.b (id int PRIMARY KEY)", "INSERT INTO sales.b VALUES (2)",
        "CREATE VIEW sales.v AS SELECT 3 AS id",
    )  # fmt: skip
    name = postgresql_database.rows("SELECT current_database()")[0][0]
    runs = copies(postgresql_database, "incrementing", incrementing_column_name="id")
    run = runs.run()
    assert run.topics == ["db-a", "db-b"]
    assert [r.source_partition["table"] for r in run.records] == [f"{name}.public.a", f"{name}.sales.b"]
    for more, topics in (
        ({"schema_pattern": "sal%"}, ["db-b"]),
        ({"table_whitelist": f"{name}.public.a"}, ["db-a"]),
        ({"table_whitelist": '"sales"."b"'}, ["db-b"]),
        ({"table_include_list": ".*sales.*", "table_types": "TABLE,VIEW"}, ["db-b", "db-v"]),
        ({"catalog_pattern": "nosuch"}, []),
    ):
        assert copies(postgresql_database, "bulk", **more).run().topics == topics
    # Offsets of an older driver, which names no database.
    old = copies(postgresql_database, "incrementing", incrementing_column_name="id")
    old.commit({"protocol": "1", "table": "public.a"}, {"incrementing": 1})
    assert old.run().topics == ["db-b"]


def test_pattern_of_schemas_is_named_where_databases_have_none(mariadb_database: Database) -> None:
    """The tables of another database were meant, which users of MariaDB call a schema."""
    mariadb_database.execute("CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1)")
    name = mariadb_database.rows("SELECT database()")[0][0]
    for pattern, said in (("other", True), (name, False)):
        run = copies(mariadb_database, "bulk", schema_pattern=pattern).run()
        assert run.topics == ["db-a"]
        assert [note for note in run.notes if "schema.pattern has no effect" in note] == run.notes[:said]


def test_late_commit_is_found_by_looking_back(postgresql_database: Database) -> None:
    """A transaction that began before a run and commits after it: its rows are older than the run's bound."""
    database = postgresql_database
    database.execute("CREATE TABLE orders (id int PRIMARY KEY, changed timestamptz NOT NULL DEFAULT now())")
    engine = database.engine()
    with engine.connect() as slow:
        slow.exec_driver_sql("INSERT INTO orders VALUES (1, now() - interval '10 minutes')")
        database.execute("INSERT INTO orders VALUES (2, now() - interval '5 minutes')")
        plain = copies(database, "timestamp", timestamp_column_name="changed")
        looking = copies(database, "timestamp", timestamp_column_name="changed", timestamp_lookback_ms="3600000")
        assert plain.run().ids() == looking.run().ids() == [2]
        slow.commit()
    engine.dispose()
    assert plain.run().ids() == []  # as in Kafka Connect: lost
    assert looking.run().ids() == [1]
    assert looking.run().records == []


def test_bulk_sends_only_ranges_that_have_changed(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed, "RANGE_ROWS", 10)
    table(database, key="PRIMARY KEY" if database.dialect == "postgresql" else "UNSIGNED PRIMARY KEY")
    fill(database, 0, 30)
    runs = copies(database, "bulk", columnar=True, bulk_changed_only="true", batch_max_rows="7")
    assert runs.run().ids() == list(range(30))
    assert runs.run().ids() == []
    database.execute(
        "UPDATE orders SET changed = '2026-02-01 00:00:00' WHERE id = 15", "DELETE FROM orders WHERE id = 1"
    )
    run = runs.run()
    assert run.ids() == [0, *range(2, 20)]
    assert any("At least 1 row of the table" in note for note in run.notes)


@pytest.mark.parametrize("kind", ["postgresql", "sqlite"])
def test_statements_of_a_plan_grow_with_the_tables_and_no_faster(kind: str, request: pytest.FixtureRequest) -> None:
    """Three for each table that might have new rows, whatever the number of tables: 5,000 of them take seconds."""
    database: Database = request.getfixturevalue(f"{kind}_database")
    tables = 60
    with database.connected() as connection:
        for number in range(tables):
            connection.exec_driver_sql(f"CREATE TABLE t_{number} (id integer PRIMARY KEY)")
            connection.exec_driver_sql(f"INSERT INTO t_{number} VALUES (1)")
    runs = Copies({"connection.url": database.jdbc_url, "mode": "incrementing", "incrementing.column.name": "id"})
    assert len(runs.run(tasks=4).records) == tables
    statements: list[str] = []

    def note(*arguments: Any) -> None:
        statements.append(arguments[2])

    event.listen(Engine, "before_cursor_execute", note)
    try:
        assert runs.run(tasks=4).tasks == []
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert tables < len(statements) <= 3 * tables + 15, statements[:12]  # Some are those of the run itself.


def test_connection_without_tls_settings_is_encrypted_where_it_can_be_and_loads_no_certificates(
    mariadb: MariaDbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("nothing is compared with the system's certificates")

    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", refuse)
    pem = self_signed(tmp_path)
    with MariaDbServer.start(None, "--ssl", f"--ssl-cert={pem}", f"--ssl-key={pem}") as encrypting:
        assert cipher_of(encrypting)
    assert not cipher_of(mariadb)


def cipher_of(server: MariaDbServer) -> str:
    raw = {"connection.url": server.jdbc_url_of(INITIAL_DATABASE)}
    settings = ConnectionSettings.from_parsed(keys.connection_keys().parse(raw), raw)
    with connecting.Database(settings) as target, target.connect() as connection:
        _, cipher = connection.exec_driver_sql("SHOW STATUS LIKE 'Ssl_cipher'").one()
    return str(cipher)


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_connection_that_is_lost_when_the_plan_is_complete_is_no_failure(
    request: pytest.FixtureRequest, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rollback at its end failed with the driver's own exception, instead of the tasks or of a typed error."""
    database: Database = request.getfixturevalue(f"{kind}_database")
    database.execute("CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1), (2)")
    add, lost = Division.add, list[int]()

    def then_lost(self: Division, *arguments: Any, **named: Any) -> None:
        add(self, *arguments, **named)
        lost.extend(database.end_other_sessions())

    monkeypatch.setattr(Division, "add", then_lost)
    config = {"connection.url": database.jdbc_url, "mode": "incrementing", "incrementing.column.name": "id"}
    assert Copies(config).run().ids() == [1, 2]
    assert lost
