"""Rows that a run would leave out, change or repeat without a word: each is copied, counted and named, or refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from airflow_connect.errors import ConfigError, ConnectError, DataError, OffsetError
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database

pytestmark = pytest.mark.integration
BOTH_PATHS = pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])


@pytest.fixture(params=["postgresql", "mariadb", "sqlite"])
def database(request: pytest.FixtureRequest) -> Database:
    made: Database = request.getfixturevalue(f"{request.param}_database")
    return made


def copies(database: Database, mode: str, columnar: bool = False, **more: str) -> Copies:
    config = {"connection.url": database.jdbc_url, "mode": mode, "connection.backoff.ms": "50"}
    return Copies({**config, **{k.replace("_", "."): v for k, v in more.items()}}, columnar=columnar)


def stamp_type(database: Database) -> str:
    return {"postgresql": "timestamp", "mysql": "datetime(6)", "sqlite": "timestamp"}[database.dialect]


@BOTH_PATHS
def test_suffix_that_limits_the_rows_never_cuts_a_group_of_equal_timestamps(database: Database, columnar: bool) -> None:
    database.execute(f"CREATE TABLE orders (id int NOT NULL PRIMARY KEY, changed {stamp_type(database)} NOT NULL)")
    rows = ", ".join(f"({n}, '2026-01-01 00:00:{n // 10:02d}')" for n in range(100))
    database.execute(f"INSERT INTO orders VALUES {rows}")
    runs = copies(
        database, "timestamp", columnar, timestamp_column_name="changed", query_suffix="LIMIT 25", batch_max_rows="7"
    )
    found: list[int] = []
    sizes = []
    while ids := runs.run().ids():
        found += ids
        sizes.append(len(ids))
    assert sorted(found) == list(range(100))
    assert sizes == [30, 30, 30, 10]


@BOTH_PATHS
@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, name FROM a UNION ALL SELECT id, name FROM b",
        "SELECT id, name FROM (SELECT * FROM a UNION ALL SELECT * FROM b) AS c -- where id > 0",
        "SELECT id, name FROM a WHERE name = 'x' OR name = 'y' UNION ALL SELECT id, name FROM b; ",
    ],
    ids=["union", "comment", "where and union"],
)
def test_query_of_any_form_is_copied_once(database: Database, query: str, columnar: bool) -> None:
    for name, ids in (("a", (1, 2)), ("b", (3, 4))):
        database.execute(f"CREATE TABLE {name} (id int NOT NULL, name varchar(9) NOT NULL)")
        database.execute(f"INSERT INTO {name} VALUES ({ids[0]}, 'x'), ({ids[1]}, 'y')")
    runs = copies(
        database, "incrementing", columnar, query=query, incrementing_column_name="id", validate_non_null="false"
    )
    assert sorted(runs.run().ids()) == [1, 2, 3, 4]
    assert runs.run().records == []
    database.execute("INSERT INTO a VALUES (5, 'x')")
    assert runs.run().ids() == [5]


def test_plan_does_not_read_the_rows_of_a_query(postgresql_database: Database) -> None:
    """Only the last row cannot be computed: whoever reads the whole result would meet it."""
    query = "SELECT i AS id, 1 / (3 - i) AS part FROM generate_series(1, 3) i"
    source = copies(
        postgresql_database, "incrementing", query=query, incrementing_column_name="id", validate_non_null="false"
    )
    assert len(source.run(batches=0).tasks) == 1
    with pytest.raises(ConnectError, match="division by zero"):
        source.run()


@BOTH_PATHS
@pytest.mark.parametrize("mode", ["timestamp", "timestamp+incrementing", "timestamp, looking back"])
def test_rows_older_than_1970_are_copied(database: Database, mode: str, columnar: bool) -> None:
    """The first run with timestamp.lookback.ms began after 1970-01-01."""
    database.execute(f"CREATE TABLE orders (id int NOT NULL PRIMARY KEY, changed {stamp_type(database)} NOT NULL)")
    moments = ("1950-01-01 00:00:00", "1969-12-31 23:59:59.5", "1970-01-01 00:00:00", "2020-01-01 00:00:00")
    rows = ", ".join(f"({n}, '{moment}')" for n, moment in enumerate(moments))
    database.execute(f"INSERT INTO orders VALUES {rows}")
    more = {"incrementing_column_name": "id"} if "+" in mode else {}
    if "looking" in mode:
        more = {"timestamp_lookback_ms": "86400000"}
    mode = mode.partition(",")[0]
    runs = copies(database, mode, columnar, timestamp_column_name="changed", batch_max_rows="1", **more)
    died = runs.run(batches=2).ids()
    assert died + runs.run().ids() == [0, 1, 2, 3]
    assert runs.run().records == []


@BOTH_PATHS
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
@pytest.mark.parametrize("more", [{}, {"timestamp_lookback_ms": "86400000"}], ids=["", "looking back"])
def test_rows_of_the_first_day_of_the_calendar_are_copied_once(
    database: Database, zone: str, columnar: bool, more: dict[str, str]
) -> None:
    """The next run failed with an OverflowError: Go and .NET write 0001-01-01 for a time that is not set."""
    kind = "timestamptz" if database.dialect == "postgresql" else stamp_type(database)
    database.execute(
        f"CREATE TABLE orders (id int NOT NULL PRIMARY KEY, changed {kind} NOT NULL)",
        "INSERT INTO orders VALUES (1, '0001-01-01 00:00:00'), (2, '0001-01-01 00:00:01')",
    )
    runs = copies(database, "timestamp", columnar, timestamp_column_name="changed", db_timezone=zone, **more)
    assert runs.run().ids() == [1, 2]
    assert runs.run().records == []
    late = " (3, '0001-01-01 00:00:00')," if more else ""
    database.execute(f"INSERT INTO orders VALUES{late} (4, '2020-01-01 00:00:00')")
    assert runs.run().ids() == ([3, 4] if more else [4])
    assert runs.run().records == []


@BOTH_PATHS
def test_infinite_timestamps_are_counted_and_the_other_rows_copied(
    postgresql_database: Database, columnar: bool
) -> None:
    postgresql_database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, changed timestamp NOT NULL)",
        "INSERT INTO orders VALUES (1, '-infinity'), (2, '2020-01-01'), (3, 'infinity')",
    )
    run = copies(postgresql_database, "timestamp", columnar, timestamp_column_name="changed").run()
    assert run.ids() == [2]
    (note,) = run.notes
    assert note.startswith("2 rows of ") and "have an infinite timestamp in changed and are not copied" in note


def test_zero_timestamps_are_counted_and_the_other_rows_copied(mariadb_database: Database) -> None:
    with mariadb_database.connected() as connection:
        connection.exec_driver_sql("SET sql_mode = ''")
        connection.exec_driver_sql("CREATE TABLE orders (id int PRIMARY KEY, changed datetime NOT NULL)")
        connection.exec_driver_sql("INSERT INTO orders VALUES (1, '0000-00-00'), (2, '2020-01-01')")
    run = copies(mariadb_database, "timestamp", timestamp_column_name="changed").run()
    assert run.ids() == [2]
    (note,) = run.notes
    assert note.startswith("1 row of ") and "has a timestamp of zero in changed and is not copied" in note


@BOTH_PATHS
def test_fraction_in_the_incrementing_column_is_refused(postgresql_database: Database, columnar: bool) -> None:
    postgresql_database.execute(
        "CREATE TABLE orders (n numeric NOT NULL)", "INSERT INTO orders VALUES (1.5), (2.0), (3)"
    )
    more = {"incrementing_column_name": "n", "numeric_mapping": "best_fit_eager_double"}
    with pytest.raises(DataError, match=r"column n has the value 1\.5, which is not a whole number"):
        copies(postgresql_database, "incrementing", columnar, **more).run()


@BOTH_PATHS
def test_whole_number_with_a_point_in_the_incrementing_column_is_copied(
    postgresql_database: Database, columnar: bool
) -> None:
    """In columns, a run ended with an untyped error: the gaps between the numbers were looked for in texts."""
    postgresql_database.execute("CREATE TABLE orders (n numeric NOT NULL)", "INSERT INTO orders VALUES (1.0), (3.00)")
    runs = copies(postgresql_database, "incrementing", columnar, incrementing_column_name="n")
    assert runs.run().ids("n") == [Decimal(1), Decimal(3)]
    postgresql_database.execute("INSERT INTO orders VALUES (2.0), (4.000)")
    run = runs.run()
    assert run.ids("n") == [Decimal(4)]
    assert [note for note in run.notes if "larger ones were copied (2)" in note]


@BOTH_PATHS
def test_float_of_mysql_keeps_every_digit(mariadb_database: Database, columnar: bool) -> None:
    import struct

    exact = [struct.unpack("f", struct.pack("f", value))[0] for value in (16777217.0, 1 / 3, 123456.789, 3.4e38)]
    mariadb_database.execute("CREATE TABLE orders (id int PRIMARY KEY, `a b` float NOT NULL, c float)")
    rows = ", ".join(f"({n}, {value!r}, NULL)" for n, value in enumerate(exact))
    mariadb_database.execute(f"INSERT INTO orders VALUES {rows}")
    for more in ({}, {"query": "SELECT * FROM orders"}):
        run = copies(mariadb_database, "bulk", columnar, **more).run()
        assert [record.value["a b"] for record in run.records] == exact
        fields = {field.name: field.schema for field in run.records[0].value_schema.fields}
        assert (fields["a b"].type.name, fields["a b"].optional, fields["c"].optional) == ("FLOAT32", False, True)


@BOTH_PATHS
def test_money_is_read_whatever_the_locale_of_the_server_is(postgresql_database: Database, columnar: bool) -> None:
    """German money is `12,00 EUR`. Where the machine has no such locale, that of its C library is used."""
    locales = [
        name for (name,) in postgresql_database.rows("SELECT collname FROM pg_collation WHERE collname ~ 'de_DE.utf8'")
    ]
    ((database,),) = postgresql_database.rows("SELECT current_database()")
    with postgresql_database.connected() as connection:
        connection.exec_driver_sql("CREATE TABLE orders (id int, price money)")
        connection.exec_driver_sql("INSERT INTO orders VALUES (1, 12), (2, -1234567.89), (3, NULL)")
        connection.exec_driver_sql(f"ALTER DATABASE \"{database}\" SET lc_monetary = '{(locales or ['C'])[0]}'")
    run = copies(postgresql_database, "bulk", columnar).run()
    assert [record.value["price"] for record in run.records] == [12.0, -1234567.89, None]
    (note,) = run.notes
    assert "orders with the type money become FLOAT64" in note and ": price (money). Select them as numeric" in note
    query = "SELECT id, price::numeric(21,2) AS price FROM orders"
    run = copies(postgresql_database, "bulk", columnar, query=query, topic_prefix="q").run()
    assert run.records[1].value["price"] == Decimal("-1234567.89") and run.notes == []


def test_table_with_system_versions_is_copied(mariadb_database: Database) -> None:
    mariadb_database.execute("CREATE TABLE orders (id int PRIMARY KEY, v int) WITH SYSTEM VERSIONING")
    mariadb_database.execute("INSERT INTO orders VALUES (1, 1), (2, 2)", "UPDATE orders SET v = 3 WHERE id = 1")
    run = copies(mariadb_database, "incrementing", incrementing_column_name="id").run()
    assert sorted(run.ids()) == [1, 2] and run.notes == []


def test_capitals_that_are_not_quoted_are_refused(postgresql_database: Database) -> None:
    postgresql_database.execute('CREATE TABLE "Orders" (id int PRIMARY KEY)', 'INSERT INTO "Orders" VALUES (1)')
    runs = copies(postgresql_database, "incrementing", incrementing_column_name="id", quote_sql_identifiers="never")
    with pytest.raises(ConfigError, match="Orders has capitals in its name") as caught:
        runs.run()
    assert caught.value.config_path == "quote.sql.identifiers"
    postgresql_database.execute('ALTER TABLE "Orders" RENAME TO orders', 'ALTER TABLE orders RENAME id TO "Id"')
    with pytest.raises(ConfigError, match="column Id has capitals in its name"):
        runs.run()


SET_BACK: dict[str, tuple[str, ...]] = {
    "postgresql": ("TRUNCATE orders RESTART IDENTITY",),
    "mysql": ("TRUNCATE orders",),
    "sqlite": ("DELETE FROM orders", "DELETE FROM sqlite_sequence"),
}


def numbered(database: Database) -> str:
    return {
        "postgresql": "serial PRIMARY KEY",
        "mysql": "int AUTO_INCREMENT PRIMARY KEY",
        "sqlite": "INTEGER PRIMARY KEY AUTOINCREMENT",
    }[database.dialect]


def add(database: Database, count: int) -> None:
    for _ in range(count):
        database.execute("INSERT INTO orders (v) VALUES (1)")


def test_database_that_is_set_back_is_refused_with_both_readings(database: Database) -> None:
    database.execute(f"CREATE TABLE orders (id {numbered(database)}, v int)")
    add(database, 7)
    runs = copies(database, "incrementing", incrementing_column_name="id")
    assert len(runs.run().ids()) == 7
    database.execute(*SET_BACK[database.dialect])
    add(database, 2)
    with pytest.raises(OffsetError, match=r"The next id of .*orders is 3, but rows up to 7 were copied") as caught:
        runs.run()
    assert '{"incrementing": 2}' in caught.value.suggestion
    ((partition, _),) = runs.committed()
    runs.commit(partition, {"incrementing": 2})
    add(database, 1)
    assert runs.run().ids() == [3]


@pytest.mark.parametrize("declared", ["INTEGER PRIMARY KEY", "INTEGER PRIMARY KEY AUTOINCREMENT", "int PRIMARY KEY"])
def test_numbers_that_sqlite_gives_again_are_named_by_the_first_run(sqlite_database: Database, declared: str) -> None:
    """SQLite gives the number of the last row again; later runs say nothing, because they cannot know."""
    sqlite_database.execute(f"CREATE TABLE orders (id {declared} NOT NULL, v int)", "INSERT INTO orders VALUES (1, 1)")
    runs = copies(sqlite_database, "incrementing", incrementing_column_name="id")
    first = runs.run()
    assert first.ids() == [1]
    given_again = declared == "INTEGER PRIMARY KEY"
    assert [note[:56] for note in first.notes if "AUTOINCREMENT" in note] == (
        ["The column id of orders is not declared with AUTOINCREMENT"[:56]] if given_again else []
    )
    sqlite_database.execute("DELETE FROM orders")
    sqlite_database.execute(f"INSERT INTO orders ({'v' if 'INTEGER' in declared else 'id'}) VALUES (2)")
    again = runs.run()
    assert (again.ids(), again.notes) == ([] if given_again else [2], [])


def test_database_that_is_set_back_during_an_unfinished_load_is_refused(database: Database) -> None:
    """Ranges after those that are left would never see the new rows, whose numbers begin again."""
    kind = numbered(database)
    database.execute(f"CREATE TABLE orders (id {kind}, v int)")
    database.execute("INSERT INTO orders (v) VALUES " + ", ".join(["(1)"] * 60))
    if database.dialect == "mysql":
        database.rows("ANALYZE TABLE orders")
    more = {"table.split.min.rows": "20", "batch.max.rows": "5"}
    runs = copies(database, "incrementing", incrementing_column_name="id", table_whitelist="orders")
    runs.config |= more
    runs.run(tasks=3, batches=2)
    assert len(runs.committed()) > 1
    database.execute(*SET_BACK[database.dialect])
    database.execute("INSERT INTO orders (v) VALUES (2), (2)")
    with pytest.raises(
        OffsetError, match=r"The next id of .*orders is 3, but .* unfinished load .* up to \d+"
    ) as caught:
        runs.run(tasks=3)
    assert '{"incrementing": -1}' in caught.value.suggestion
    name = str(runs.committed()[0][0]["table"])
    runs.commit({"protocol": "1", "table": name}, {"incrementing": -1})
    assert runs.run(tasks=3).ids() == [1, 2]
    assert [offset for _, offset in runs.committed()] == [{"incrementing": 2}]


def test_rows_that_are_deleted_after_they_were_copied_are_no_reason_for_concern(database: Database) -> None:
    """As in an outbox."""
    database.execute(f"CREATE TABLE orders (id {numbered(database)}, v int)")
    add(database, 3)
    runs = copies(database, "incrementing", incrementing_column_name="id")
    assert runs.run().ids() == [1, 2, 3]
    database.execute("DELETE FROM orders")
    second = runs.run()
    assert (second.records, second.notes) == ([], [])
    add(database, 1)
    assert runs.run().ids() == [4]


def test_table_whose_numbers_come_from_elsewhere_is_named_if_it_may_have_been_set_back(database: Database) -> None:
    database.execute("CREATE TABLE orders (id int NOT NULL, v int)", "INSERT INTO orders VALUES (4, 0), (9, 0)")
    runs = copies(database, "incrementing", incrementing_column_name="id")
    assert runs.run().ids() == [4, 9]
    database.execute("DELETE FROM orders WHERE id = 9")
    (note,) = runs.run().notes
    assert note.startswith("The largest id of ") and "is 4, but rows up to 9 were copied" in note


@BOTH_PATHS
def test_query_is_named_if_its_tables_may_have_been_set_back(database: Database, columnar: bool) -> None:
    """No run told: the sequence of a table says nothing of a query."""
    database.execute(f"CREATE TABLE orders (id {numbered(database)}, v int)")
    add(database, 7)
    query = "SELECT id, v FROM orders WHERE v > 0"
    runs = copies(database, "incrementing", columnar, incrementing_column_name="id", query=query)
    assert len(runs.run().ids()) == 7
    assert [note for note in runs.run().notes if "largest" in note] == []
    database.execute("UPDATE orders SET v = 0")
    assert [note for note in runs.run().notes if "largest" in note] == []
    database.execute(*SET_BACK[database.dialect])
    add(database, 2)
    again = runs.run()
    assert again.records == []
    (note,) = [note for note in again.notes if "largest" in note]
    assert note.startswith("The largest id of the query is 2, but rows up to 7 were copied.")
    runs.commit({"query": "query"}, {"incrementing": 0})
    assert runs.run().ids() == [1, 2]


@pytest.mark.parametrize("kind", ["date", "timestamp"])
@pytest.mark.parametrize("more", [{}, {"timestamp_lookback_ms": "5"}, {"query": "SELECT * FROM orders"}], ids=str)
def test_rows_of_the_day_of_a_first_run_that_begins_at_the_present_are_copied(
    database: Database, kind: str, more: dict[str, str]
) -> None:
    """With `timestamp.initial=-1`, the offset had a time of this day, and all rows of a DATE were before it."""
    declared = "date" if kind == "date" else stamp_type(database)
    database.execute(f"CREATE TABLE orders (id int NOT NULL PRIMARY KEY, changed {declared} NOT NULL)")
    # A bound of some days ago stands for a run that was made then.
    runs = copies(
        database, "timestamp", timestamp_column_name="changed", timestamp_initial="-1", validate_non_null="false",
        timestamp_delay_interval_ms=str(3 * 86_400_000), **more,
    )  # fmt: skip
    assert runs.run().records == []
    ((_, offset),) = runs.committed()
    first = dt.datetime.fromtimestamp((offset["timestamp"] + 1) / 1000, dt.UTC)
    has_type = database.dialect != "sqlite" or "query" not in more  # There, columns of a query have none.
    assert first.microsecond == 0 and (first.strftime("%T") == "00:00:00" or kind != "date" or not has_type)
    if not has_type and kind == "date":
        return
    stamps = [first + dt.timedelta(days=days) for days in (-1, 0, 1)]
    rows = ", ".join(f"({n}, '{stamp.strftime('%Y-%m-%d %H:%M:%S')}')" for n, stamp in enumerate(stamps))
    database.execute(f"INSERT INTO orders VALUES {rows}")
    runs.config.pop("timestamp.delay.interval.ms")
    assert runs.run().ids() == [1, 2]


@pytest.mark.parametrize("mode", ["timestamp", "timestamp+incrementing"])
def test_clock_of_the_database_that_is_before_the_offset_is_refused(database: Database, mode: str) -> None:
    """After a failover to a server whose clock is behind, rows get times that were passed already."""
    database.execute(
        f"CREATE TABLE orders (id int NOT NULL PRIMARY KEY, changed {stamp_type(database)} NOT NULL)",
        "INSERT INTO orders VALUES (1, '2026-01-01 00:00:00')",
    )
    more = {"timestamp_column_name": "changed", "incrementing_column_name": "id"}
    runs = copies(database, mode, timestamp_delay_interval_ms="3600000", **more)
    assert runs.run().ids() == [1]
    ((partition, offset),) = runs.committed()
    runs.commit(partition, {**offset, "timestamp": 4102444800000, "timestamp_nanos": 0})
    with pytest.raises(OffsetError, match=r"up to 2100-01-01T00:00:00.000\+00:00 were copied, but the clock") as caught:
        runs.run()
    assert caught.value.code == "database.set_back" and '{"timestamp": 1' in caught.value.suggestion


def test_table_of_sqlite_without_row_ids_is_no_set_back(sqlite_database: Database) -> None:
    """Its numbers come from elsewhere: the next one is unknown."""
    sqlite_database.execute(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, v int) WITHOUT ROWID", "INSERT INTO orders VALUES (1, 0), (7, 0)"
    )
    runs = copies(sqlite_database, "incrementing", incrementing_column_name="id")
    assert runs.run().ids() == [1, 7]
    sqlite_database.execute("DELETE FROM orders WHERE id = 7")
    (note,) = runs.run().notes
    assert note.startswith("The largest id of orders is 1, but rows up to 7 were copied.")


@BOTH_PATHS
def test_invisible_columns_are_named(mariadb_database: Database, columnar: bool) -> None:
    mariadb_database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, v int INVISIBLE)", "INSERT INTO orders VALUES (1)"
    )
    run = copies(mariadb_database, "bulk", columnar).run()
    assert run.values == [{"id": 1}]
    assert [note for note in run.notes if "because they are INVISIBLE: v." in note]


def test_generated_columns_of_sqlite_have_their_types(sqlite_database: Database) -> None:
    sqlite_database.execute(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, a REAL, twice REAL AS (a * 2), half DOUBLE AS (a / 2) STORED)",
        "INSERT INTO orders (id, a) VALUES (1, 3.0)",
    )
    (record,) = copies(sqlite_database, "bulk").run().records
    assert record.value == {"id": 1, "a": 3.0, "twice": 6.0, "half": 1.5}


def test_last_millisecond_of_a_minute_of_sqlite_is_not_the_next_one(sqlite_database: Database) -> None:
    sqlite_database.execute(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, changed TIMESTAMP NOT NULL)",
        "INSERT INTO orders VALUES (1, '2026-01-01 00:00:58.9997'), (2, '2026-01-01 00:00:59.9997')",
    )
    runs = copies(sqlite_database, "timestamp", timestamp_column_name="changed")
    assert runs.run().ids() == [1, 2]
    sqlite_database.execute("INSERT INTO orders VALUES (3, '2026-01-01 00:01:00.000')")
    assert runs.run().ids() == [3]


@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
def test_zone_of_the_server_that_is_not_db_timezone_is_named(request: pytest.FixtureRequest, server: str) -> None:
    database: Database = request.getfixturevalue(f"{server}_database")
    database.execute(
        f"CREATE TABLE orders (id int PRIMARY KEY, changed {stamp_type(database)} NOT NULL)",
        "INSERT INTO orders VALUES (1, '2026-01-01 00:00:00')",
    )
    more = {"timestamp_column_name": "changed"}
    assert copies(database, "timestamp", **more).run().notes == []
    (note,) = copies(database, "timestamp", db_timezone="Asia/Tokyo", **more).run().notes
    assert note.startswith("Sessions of the database are in UTC, but db.timezone is 9 hours ahead of UTC.")
    if server == "postgresql":
        ((name,),) = database.rows("SELECT current_database()")
        database.execute(f"ALTER DATABASE \"{name}\" SET timezone = 'America/Phoenix'")
        (note,) = copies(database, "timestamp", **more).run().notes
        assert note.startswith("Sessions of the database are 7 hours behind UTC, but db.timezone is in UTC.")
        assert copies(database, "timestamp", db_timezone="America/Phoenix", **more).run().notes == []
    # A day of the server that is not over when that of db.timezone is, which no run said of a DATE.
    database.execute("ALTER TABLE orders ADD COLUMN day date", "UPDATE orders SET day = '2026-01-01'")
    more = {"timestamp_column_name": "day", "validate_non_null": "false", "db_timezone": "Asia/Tokyo"}
    (note,) = copies(database, "timestamp", **more).run().notes
    assert "(CURRENT_DATE)" in note and "rows of the current day are missed" in note


@BOTH_PATHS
@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
def test_rows_of_the_current_day_of_a_date_wait_for_the_next_one(
    request: pytest.FixtureRequest, server: str, columnar: bool
) -> None:
    """Rows of today may still come: a position at today would skip them, and one before it would repeat the others."""
    database: Database = request.getfixturevalue(f"{server}_database")
    today = "CURRENT_DATE" if server == "postgresql" else "UTC_DATE()"
    database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, day date NOT NULL)",
        f"INSERT INTO orders VALUES (1, '2026-01-01'), (2, '2026-01-02'), (3, {today})",
    )
    runs = copies(database, "timestamp", columnar, timestamp_column_name="day")
    assert runs.run().ids() == [1, 2]
    database.execute(f"INSERT INTO orders VALUES (4, {today}), (5, '2026-01-03')")
    assert runs.run().ids() == [5]
    database.execute("UPDATE orders SET day = '2026-01-04' WHERE id > 2 AND id <> 5")
    assert sorted(runs.run().ids()) == [3, 4]
    assert runs.run().ids() == []


@BOTH_PATHS
def test_position_is_the_latest_timestamp_and_not_that_of_the_last_key(database: Database, columnar: bool) -> None:
    database.execute(f"CREATE TABLE orders (id int NOT NULL PRIMARY KEY, changed {stamp_type(database)} NOT NULL)")
    rows = ", ".join(f"({n}, '2026-01-01 00:{59 - n:02d}:00')" for n in range(50))
    database.execute(f"INSERT INTO orders VALUES {rows}")
    runs = copies(database, "timestamp", columnar, timestamp_column_name="changed", batch_max_rows="7")
    first = runs.run(batches=3).ids()
    assert 0 < len(first) < 50 and first + runs.run().ids() == list(reversed(range(50)))
    database.execute("INSERT INTO orders VALUES (50, '2026-01-01 01:00:00')")
    assert runs.run().ids() == [50]
