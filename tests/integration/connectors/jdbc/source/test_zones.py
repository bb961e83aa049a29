"""Local times that the database's clock writes in another zone than `db.timezone`: their values are hours off."""

from __future__ import annotations

import contextlib
import datetime as dt
import time
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_connect.connectors.jdbc.source.read.zones import clock_of
from airflow_connect.databases.dialects.mysql import MySqlDialect
from airflow_connect.databases.dialects.postgresql import PostgreSqlDialect
from airflow_connect.databases.dialects.sqlite import SqliteDialect
from tests.devstack.mariadb import MariaDbServer
from tests.integration.connectors.jdbc.source.test_no_row_left_out import copies
from tests.support.servers.databases import Database, database_on

pytestmark = pytest.mark.integration
BOTH_PATHS = pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
FILLED = {
    "postgresql": "changed timestamptz NOT NULL DEFAULT now(), made timestamp DEFAULT now(), named timestamp DEFAULT"
    " (now() AT TIME ZONE 'UTC'), copied timestamp DEFAULT '2026-01-01', seen date DEFAULT CURRENT_DATE",
    "mysql": "changed timestamp NOT NULL DEFAULT now(), made datetime DEFAULT now(), named datetime DEFAULT"
    " (utc_timestamp()), copied datetime DEFAULT '2026-01-01', seen date DEFAULT (CURRENT_DATE)",
    "sqlite": "changed text NOT NULL, made datetime DEFAULT CURRENT_TIMESTAMP, named datetime"
    " DEFAULT (datetime('now', 'localtime')), copied datetime DEFAULT '2026-01-01 00:00:00'",
}


@pytest.fixture(params=["postgresql", "mariadb", "sqlite"])
def database(request: pytest.FixtureRequest) -> Database:
    made: Database = request.getfixturevalue(f"{request.param}_database")
    return made


@BOTH_PATHS
@pytest.mark.parametrize("mode", ["bulk", "incrementing", "timestamp"])
def test_columns_that_the_clock_of_another_zone_fills_are_named(database: Database, mode: str, columnar: bool) -> None:
    """Only tracked columns were compared with the zone of the server."""
    database.execute(f"CREATE TABLE orders (id int NOT NULL PRIMARY KEY, {FILLED[database.dialect]})")
    database.execute("INSERT INTO orders (id, changed) VALUES (1, '2026-01-01 00:00:00')")
    more = {"incrementing_column_name": "id"} if mode == "incrementing" else {}
    if mode == "timestamp":
        more = {"timestamp_column_name": "changed"}
    assert [n for n in copies(database, mode, columnar, **more).run().notes if "clock" in n] == []
    run = copies(database, mode, columnar, db_timezone="Asia/Tokyo", **more).run()
    notes = [n for n in run.notes if "clock" in n]
    if database.dialect == "sqlite" and mode == "timestamp":
        assert "If the tracked timestamps are written by the database's clock" in notes.pop(0)
    (note,) = [n for n in notes if n.startswith("Sessions")]
    assert "(made)" in note and "in UTC, but db.timezone is 9 hours ahead of UTC" in note, note


NAMED = {
    "postgresql": (
        "changed timestamp NOT NULL DEFAULT (now() AT TIME ZONE 'utc'), made timestamp DEFAULT timezone('UTC', now())"
    ),
    "mysql": "changed datetime NOT NULL DEFAULT (utc_timestamp()), made datetime(6) DEFAULT (utc_timestamp(6))",
    "sqlite": "changed datetime NOT NULL DEFAULT (datetime('now', 'localtime')),"
    " made datetime DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now', 'localtime'))",
}


@pytest.fixture
def machine_in_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


@BOTH_PATHS
@pytest.mark.usefixtures("machine_in_new_york")
def test_columns_whose_defaults_name_another_zone_are_named(database: Database, columnar: bool) -> None:
    """Values were hours off, and rows of the current second were missed, without a word."""
    database.execute(f"CREATE TABLE orders (id int NOT NULL PRIMARY KEY, {NAMED[database.dialect]})")
    database.execute("INSERT INTO orders VALUES (1, '2026-01-01 00:00:00', '2026-01-01 00:00:00')")
    zones = {"sqlite": ("America/New_York", "UTC")}.get(database.dialect, ("UTC", "America/New_York"))
    for mode, more, names in (
        ("bulk", {}, "(changed, made)"),
        ("timestamp", {"timestamp_column_name": "changed"}, "(changed, made) are hours off, and rows may be missed"),
    ):
        same, other = (
            [n for n in copies(database, mode, columnar, db_timezone=zone, **more).run().notes if n.startswith("Def")]
            for zone in zones
        )
        (note,) = other
        assert same == [] and names in note and "behind UTC" in note, note


@BOTH_PATHS
@pytest.mark.usefixtures("machine_in_new_york")
def test_tracked_column_whose_default_names_the_zone_is_right(database: Database, columnar: bool) -> None:
    """Each run said that rows may be late or missed, if the server has another zone."""
    database.execute(f"CREATE TABLE orders (id int NOT NULL PRIMARY KEY, {NAMED[database.dialect]})")
    database.execute(
        "CREATE TABLE others (id int NOT NULL PRIMARY KEY, changed {} NOT NULL)".format(
            "timestamp" if database.dialect == "postgresql" else "datetime"
        )
    )
    for table in ("orders", "others"):
        database.execute(f"INSERT INTO {table} (id, changed) VALUES (1, '2026-01-01 00:00:00')")
    zone = "America/New_York" if database.dialect == "sqlite" else "UTC"
    more = {"timestamp_column_name": "changed", "db_timezone": zone}
    with server_in_phoenix(database):
        runs = copies(database, "timestamp", columnar, table_whitelist="orders", **more)
        for _ in range(2):
            assert runs.run().notes == []
        # Another table, of which nothing is known, gets the note even if it is not the first one.
        notes = copies(database, "timestamp", columnar, table_whitelist="orders,others", **more).run().notes
    (note,) = notes
    assert "If the tracked timestamps are written by the database's clock" in note


@contextlib.contextmanager
def server_in_phoenix(database: Database) -> Iterator[None]:
    """Sessions that begin have the zone; nothing to set for SQLite, whose clock is in UTC."""
    if database.dialect == "postgresql":
        ((name,),) = database.rows("SELECT current_database()")
        database.execute(f"ALTER DATABASE \"{name}\" SET timezone = 'America/Phoenix'")
    with pytest.MonkeyPatch.context() as patched:
        if database.dialect == "mysql":
            own = MySqlDialect.connect_arguments

            def in_phoenix(self: MySqlDialect, address: Any) -> dict[str, Any]:
                return {**own(self, address), "init_command": "SET time_zone = '-07:00'"}

            patched.setattr(MySqlDialect, "connect_arguments", in_phoenix)
        yield


@pytest.mark.parametrize(
    ("default", "database", "zone"),
    [
        ("(now() AT TIME ZONE 'Europe/Berlin'::text)", "postgresql", "Europe/Berlin"),
        ("timezone('utc'::text, now())", "postgresql", "UTC"),
        ("((now() AT TIME ZONE 'utc'::text) + '01:00:00'::interval)", "postgresql", "UTC"),
        ("(now() AT TIME ZONE '02:00:00'::interval)", "postgresql", None),
        ("((now() AT TIME ZONE 'utc'::text) AT TIME ZONE 'CET'::text)", "postgresql", None),
        ("(LOCALTIMESTAMP AT TIME ZONE 'utc'::text)", "postgresql", None),
        ("('2026-01-01 00:00:00+00'::timestamp with time zone AT TIME ZONE 'utc'::text)", "postgresql", None),
        ("(now())::timestamp without time zone", "postgresql", ""),
        ("(at AT TIME ZONE 'Europe/Berlin'::text)", "postgresql", "Europe/Berlin"),
        ("(CURRENT_TIMESTAMP AT TIME ZONE 'utc'::text)", "postgresql", "UTC"),
        ("utc_timestamp()", "mysql", "UTC"),
        ("utc_timestamp() on update current_timestamp()", "mysql", ""),
        ("convert_tz(now(),'SYSTEM','UTC')", "mysql", None),
        ("'2026-01-01 00:00:00'", "mysql", None),
        ("datetime('now', 'localtime')", "sqlite", "localtime"),
        ("datetime(CURRENT_TIMESTAMP, 'localtime')", "sqlite", "localtime"),
        ("strftime('%Y-%m-%dT%H:%M:%fZ', 'now')", "sqlite", None),
        ("strftime('%Y-%m-%d %H:%M:%S+00:00', 'now')", "sqlite", None),
        ("datetime('now', '+02:00')", "sqlite", None),
        ("'2026-01-01 00:00:00'", "sqlite", None),
    ],
)
def test_zone_of_a_default(default: str, database: str, zone: str | None) -> None:
    assert clock_of(default, database) == zone


def test_column_of_a_domain_is_named(postgresql_database: Database) -> None:
    postgresql_database.execute(
        "CREATE DOMAIN moment AS timestamp",
        "CREATE TABLE orders (id int PRIMARY KEY, at moment DEFAULT LOCALTIMESTAMP)",
        "INSERT INTO orders VALUES (1)",
    )
    (note,) = copies(postgresql_database, "bulk", db_timezone="Asia/Tokyo").run().notes
    assert "(at)" in note


def test_column_that_updates_fill_is_named(mariadb_database: Database) -> None:
    mariadb_database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, at datetime ON UPDATE CURRENT_TIMESTAMP)",
        "INSERT INTO orders VALUES (1, '2026-01-01')",
    )
    (note,) = copies(mariadb_database, "bulk", db_timezone="Asia/Tokyo").run().notes
    assert "(at)" in note


@pytest.mark.parametrize("zone", ["Europe/London", "America/Phoenix", "America/Denver", "Etc/GMT+7"])
def test_zone_that_differs_in_a_part_of_the_year_is_named(postgresql_database: Database, zone: str) -> None:
    """In winter, London has the clock of UTC: times of July were an hour off, and the first note came in spring."""
    database = postgresql_database
    database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, changed timestamp NOT NULL)",
        "INSERT INTO orders VALUES (1, '2026-07-01')",
    )
    ((name,),) = database.rows("SELECT current_database()")
    server = {"America/Denver": "America/Phoenix", "Etc/GMT+7": "America/Phoenix"}.get(zone, "UTC")
    database.execute(f"ALTER DATABASE \"{name}\" SET timezone = '{server}'")
    run = copies(database, "timestamp", timestamp_column_name="changed", db_timezone=zone).run()
    if zone == "Etc/GMT+7":  # As in Phoenix, all year
        assert run.notes == []
        return
    (note,) = run.notes
    found = {"Europe/London": "1 hour ahead of UTC", "America/Denver": "6 hours behind UTC"}
    assert f"db.timezone is {found.get(zone, '7 hours behind UTC')}" in note


def test_zone_of_mariadb_that_differs_in_a_part_of_the_year_is_named(mariadb_database: Database) -> None:
    mariadb_database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, changed datetime NOT NULL)",
        "INSERT INTO orders VALUES (1, '2026-07-01')",
    )
    run = copies(mariadb_database, "timestamp", timestamp_column_name="changed", db_timezone="Europe/London").run()
    (note,) = run.notes
    assert "essions of the database are in UTC, but db.timezone is 1 hour ahead of UTC" in note


def test_zone_that_init_connect_of_mariadb_gives_to_other_users_is_named() -> None:
    """It is not executed for users with certain privileges, such as the one of the connector."""
    with MariaDbServer.start(None) as server, database_on(server, "zones") as database:
        database.execute(
            "CREATE TABLE orders (id int PRIMARY KEY, changed datetime NOT NULL)",
            "INSERT INTO orders VALUES (1, '2026-07-01')",
        )
        for statement, found in (
            ("SET time_zone = '-05:30'", "init_connect of the server applies are 5.5 hours behind UTC, but"),
            ("SET SESSION time_zone='+00:00'", ""),
            ("SET NAMES utf8mb4; SET time_zone = 'Asia/Tokyo'", "init_connect of the server applies is not"),
            ("SET time_zone = shop.zone()", "init_connect of the server applies is not known"),
            ("SET NAMES utf8mb4", ""),
        ):
            database.execute(f'SET GLOBAL init_connect = "{statement}"')
            notes = copies(database, "timestamp", timestamp_column_name="changed").run().notes
            assert [found in note for note in notes] == ([True] if found else []), (statement, notes)


def test_zone_is_that_of_new_sessions_whatever_another_client_of_a_pooler_has_set(
    postgresql_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pooler gives a session to one client after the other, and some keep what the last one has set, such as UTC."""
    database = postgresql_database
    ((name,),) = database.rows("SELECT current_database()")
    database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, changed timestamp NOT NULL)",
        "INSERT INTO orders VALUES (1, '2026-01-01')",
        f"ALTER DATABASE \"{name}\" SET timezone = 'Asia/Tokyo'",
    )
    prepare = PostgreSqlDialect.prepare

    def prepared(self: PostgreSqlDialect, connection: Any) -> None:
        connection.exec_driver_sql("SET TIME ZONE 'UTC'")
        prepare(self, connection)

    monkeypatch.setattr(PostgreSqlDialect, "prepare", prepared)
    (note,) = copies(database, "timestamp", timestamp_column_name="changed").run().notes
    assert note.startswith("Sessions of the database are 9 hours ahead of UTC, but db.timezone is in UTC.")


def test_functions_are_named_if_the_zone_of_the_database_is_utc_in_winter_only(postgresql_database: Database) -> None:
    database = postgresql_database
    ((name,),) = database.rows("SELECT current_database()")
    database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, at timestamptz)", "INSERT INTO orders VALUES (1, '2026-07-01')",
        f"ALTER DATABASE \"{name}\" SET timezone = 'Europe/London'",
    )  # fmt: skip
    (note,) = copies(database, "bulk", query="SELECT id, at::date AS day FROM orders").run().notes
    assert "functions that depend on the time zone of the session" in note


WRITTEN_IN_TOKYO = {
    "postgresql": "at timestamptz DEFAULT now(), changed timestamp NOT NULL GENERATED ALWAYS AS"
    " (at AT TIME ZONE 'Asia/Tokyo') STORED",
    "mysql": "at timestamp DEFAULT now(), changed datetime NOT NULL",
    "sqlite": "at datetime DEFAULT CURRENT_TIMESTAMP, changed datetime NOT NULL DEFAULT (datetime('now', '+9 hours'))",
}


@BOTH_PATHS
def test_rows_that_wait_for_hours_are_named_whoever_writes_their_times(database: Database, columnar: bool) -> None:
    """Computed columns, triggers and programs with another zone than the server: no run said that rows come late."""
    database.execute(f"CREATE TABLE orders (id int NOT NULL PRIMARY KEY, {WRITTEN_IN_TOKYO[database.dialect]})")
    if database.dialect == "mysql":
        database.execute(
            "CREATE TRIGGER changes BEFORE INSERT ON orders FOR EACH ROW"
            " SET NEW.changed = CONVERT_TZ(NEW.at, '+00:00', '+09:00')"
        )
    runs = copies(database, "timestamp", columnar, timestamp_column_name="changed")
    for first in (True, False):
        database.execute(f"INSERT INTO orders (id) VALUES ({2 - first})")
        run = runs.run()
        assert run.records == []
        (note,) = [n for n in run.notes if n.startswith(f"{2 - first} row")]
        assert "a timestamp in changed that is more than 10 minutes ahead" in note
        assert "in another zone than db.timezone" in note


def test_rows_that_were_written_since_the_run_began_are_not_ahead(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqlite_database.execute(
        "CREATE TABLE orders (id int, changed datetime NOT NULL)",
        "INSERT INTO orders VALUES (1, datetime('now', '-1 day')), (2, datetime('now', '-30 minutes'))",
    )
    current = SqliteDialect.current_time
    began = iter([dt.timedelta(hours=1)])

    def an_hour_ago_first(self: SqliteDialect, connection: Any) -> dt.datetime:
        return current(self, connection) - next(began, dt.timedelta(0))

    monkeypatch.setattr(SqliteDialect, "current_time", an_hour_ago_first)
    run = copies(sqlite_database, "timestamp", timestamp_column_name="changed").run()
    assert run.ids() == [1]
    assert run.notes == []


@pytest.mark.parametrize("how", ["role", "options", "PGTZ"])
@pytest.mark.parametrize("mode", ["bulk", "timestamp"])
def test_zone_of_the_user_that_hides_the_one_of_the_server_is_named(
    postgresql_database: Database, monkeypatch: pytest.MonkeyPatch, how: str, mode: str
) -> None:
    """Only the session of the connector was in UTC: rows came hours late, or were missed, without a word."""
    database = postgresql_database
    ((name, user),) = database.rows("SELECT current_database(), current_user")
    database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, changed timestamp NOT NULL DEFAULT now())",
        "INSERT INTO orders VALUES (1, '2026-01-01')",
    )
    more = {"timestamp_column_name": "changed"} if mode == "timestamp" else {}
    assert copies(database, mode, **more).run().notes == []
    if how == "role":
        database.execute(f'ALTER ROLE "{user}" IN DATABASE "{name}" SET timezone = \'UTC\'')
    elif how == "PGTZ":
        monkeypatch.setenv("PGTZ", "UTC")
    else:
        more["connection_url"] = f"{database.jdbc_url}&options=-c%20TimeZone%3DUTC"
    (note,) = copies(database, mode, **more).run().notes
    assert "so that of sessions of other users of the database is not known" in note
    database.execute(f"ALTER DATABASE \"{name}\" SET timezone = 'Asia/Tokyo'")
    (note,) = copies(database, mode, **more).run().notes
    assert note.startswith("Sessions of other users of the database are 9 hours ahead of UTC, but db.timezone is in")
    assert "(changed) may be hours off" in note or mode == "timestamp"
    database.execute(f"ALTER DATABASE \"{name}\" SET timezone = 'UTC'")
    assert copies(database, mode, **more).run().notes == []


@pytest.mark.parametrize(("what", "zone"), [("table", "America/Phoenix"), ("view", "-7"), ("query", "-7")])
@pytest.mark.parametrize("mode", ["bulk", "timestamp"])
def test_zone_of_a_role_that_writes_rows_is_named(
    postgresql_database: Database, mode: str, what: str, zone: str
) -> None:
    database = postgresql_database
    role = database.url.rpartition("/")[2]
    database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, changed timestamp NOT NULL DEFAULT now())",
        "INSERT INTO orders VALUES (1, '2026-01-01')",
        f"CREATE ROLE {role} LOGIN",
        f"ALTER ROLE {role} SET timezone = '{zone}'",
    )
    try:
        more = {"timestamp_column_name": "changed"} if mode == "timestamp" else {}
        if what == "view":
            database.execute("CREATE VIEW seen AS SELECT * FROM orders")
            more |= {"table_types": "VIEW"}
        more |= {"query": "SELECT * FROM orders"} if what == "query" else {}
        more |= {} if what == "table" else {"validate_non_null": "false"}
        runs = copies(database, mode, **more)
        assert runs.run().notes == []  # It may not write.
        database.execute(f"GRANT INSERT (changed) ON orders TO {role}")
        if mode == "timestamp":
            database.execute("INSERT INTO orders VALUES (2, '2026-01-02')")
        notes = runs.run().notes
        if mode == "bulk" and what != "table":  # Which columns the clock fills is known of tables only.
            assert notes == []
            return
        (note,) = notes
        assert note.startswith(f"Sessions of the role {role} (ALTER ROLE ... SET timezone) are 7 hours behind UTC")
        database.execute(f"ALTER ROLE {role} SUPERUSER")
        assert runs.run().notes == []
        database.execute(f"ALTER ROLE {role} NOSUPERUSER")
        database.execute(f"ALTER ROLE {role} SET timezone = 'Etc/UTC'")
        assert runs.run().notes == []
    finally:
        database.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
def test_tracked_day_whose_default_names_another_zone_is_named(request: pytest.FixtureRequest, server: str) -> None:
    """Rows of a day that was over in UTC, and not yet in New York, were missed without a word."""
    database: Database = request.getfixturevalue(f"{server}_database")
    default, zones = {
        "postgresql": ("(now() AT TIME ZONE 'America/New_York')::date", ("America/New_York", "UTC")),
        "mariadb": ("(UTC_DATE())", ("UTC", "America/New_York")),
    }[server]
    database.execute(
        f"CREATE TABLE orders (id int PRIMARY KEY, day date NOT NULL DEFAULT {default})",
        "INSERT INTO orders VALUES (1, '2026-01-01')",
    )
    same, other = (
        copies(database, "timestamp", db_timezone=zone, timestamp_column_name="day").run().notes for zone in zones
    )
    assert same == []
    (note,) = [n for n in other if n.startswith("Defaults that name the zone")]
    assert "(day) are hours off, and rows may be missed" in note
    assert copies(database, "bulk", db_timezone=zones[1]).run().notes == []


def test_column_that_is_computed_in_another_zone_is_named(postgresql_database: Database) -> None:
    postgresql_database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(),"
        " local timestamp GENERATED ALWAYS AS (at AT TIME ZONE 'Asia/Tokyo') STORED)",
        "INSERT INTO orders VALUES (1)",
    )
    (note,) = copies(postgresql_database, "bulk").run().notes
    assert (
        "the zone Asia/Tokyo are 9 hours ahead of UTC" in note and "an expression, fills (local) are hours off" in note
    )
    assert copies(postgresql_database, "bulk", db_timezone="Asia/Tokyo").run().notes == []
