"""What the server refuses for a reason of its own fails the run; only what a record is the reason for is errant."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from airflow_connect.api import schema as s
from airflow_connect.errors import ConfigError, ConnectError, DatabaseError, RetriableError
from tests.support.copies.jdbc_sink_tasks import SinkRun, records, written

pytestmark = pytest.mark.integration

NUMBER = s.struct(("n", s.INT64))
MANY = 700
"""Records: enough for COPY and for columns."""


def rows(count: int = 3) -> list[object]:
    return records(*({"n": n} for n in range(count)), schema=NUMBER)


@pytest.mark.parametrize("count", [3, MANY])
def test_statement_timeout_is_no_fault_of_the_records(postgresql_database, count):
    postgresql_database.execute(
        "CREATE TABLE orders (n BIGINT)",
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN IF NEW.n = 2 THEN PERFORM pg_sleep(10); END IF; RETURN NEW; END'",
        "CREATE TRIGGER waiting BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION wait()",
    )
    ((name,),) = postgresql_database.rows("SELECT current_database()")
    postgresql_database.execute(f'ALTER DATABASE "{name}" SET statement_timeout = 300')
    run = SinkRun(postgresql_database, errors_tolerance="all", max_retries="1", retry_backoff_ms="1")
    with pytest.raises(RetriableError) as caught:
        run.write(rows(count))
    assert caught.value.code == "database.statement_timeout"
    assert run.errors.letters == [] and written(postgresql_database) == []


@pytest.mark.parametrize("count", [3, MANY])
@pytest.mark.parametrize("server", ["postgresql", "sqlite", "mariadb"])
def test_missing_unique_constraint_is_no_fault_of_the_records(request, server, count):
    database = request.getfixturevalue(f"{server}_database")
    database.execute("CREATE TABLE orders (n BIGINT)")
    run = SinkRun(
        database, errors_tolerance="all", insert_mode="upsert", pk_mode="record_value", pk_fields="n",
        max_retries="1", retry_backoff_ms="1",
    )  # fmt: skip
    with pytest.raises(DatabaseError, match=r"The table \S*orders\S* has no .*unique index over .*n\b") as caught:
        run.write(rows(count))
    assert caught.value.code == "jdbc.unique_key"
    assert run.errors.letters == [] and written(database) == []


@pytest.mark.parametrize(
    ("server", "parameters"),
    [
        ("postgresql", "sslmode=require"),
        ("postgresql", "sslmode=verify-full&sslrootcert=/nowhere/ca.pem"),
        ("mariadb", "sslMode=VERIFY_CA"),
        ("mariadb", "sslMode=VERIFY_CA&serverSslCert=/nowhere/ca.pem"),
    ],
)
def test_tls_that_does_not_fit_is_a_matter_of_the_configuration(request, server, parameters):
    """It was called a lost connection, which may pass."""
    database = request.getfixturevalue(f"{server}_database")
    url = f"{database.jdbc_url}{'&' if '?' in database.jdbc_url else '?'}{parameters}"
    with pytest.raises(ConfigError) as caught:
        SinkRun(replace(database, jdbc_url=url)).claim()
    assert (caught.value.code, caught.value.retriable) == ("database.tls", False)
    if server == "mariadb":
        assert ("serverSslCert=/nowhere/ca.pem" in str(caught.value)) == ("nowhere" in parameters)


def test_parameter_that_the_server_refuses_is_no_lost_connection(postgresql_database):
    url = f"{postgresql_database.jdbc_url}&options=-c%20statement_timeout%3Dabc"
    with pytest.raises(DatabaseError, match='invalid value for parameter "statement_timeout"') as caught:
        SinkRun(replace(postgresql_database, jdbc_url=url), connection_attempts="1").claim()
    assert caught.value.code == "database.failed"


def test_read_only_database_is_no_fault_of_the_records(postgresql_database):
    """As after a failover, when the address leads to a replica."""
    postgresql_database.execute("CREATE TABLE orders (n BIGINT)")
    run = SinkRun(postgresql_database, errors_tolerance="all", max_retries="0", offsets_table_name="")
    ((name,),) = postgresql_database.rows("SELECT current_database()")
    postgresql_database.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    with pytest.raises(ConnectError, match="read-only"):
        run.write(rows())
    assert run.errors.letters == []
    with pytest.raises(ConnectError) as caught:  # also where the table of the offsets is created
        SinkRun(postgresql_database, "other", max_retries="0").write(rows())
    assert caught.value.code == "database.read_only"


@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
def test_record_that_a_trigger_refuses_is_errant(request, server):
    database = request.getfixturevalue(f"{server}_database")
    database.execute("CREATE TABLE orders (n BIGINT)")
    if server == "postgresql":
        database.execute(
            "CREATE FUNCTION check_n() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN IF NEW.n = 1 THEN RAISE ''not one''; END IF; RETURN NEW; END'",
            "CREATE TRIGGER checking BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION check_n()",
        )
    else:
        database.execute(
            "CREATE TRIGGER checking BEFORE INSERT ON orders FOR EACH ROW BEGIN NOT ATOMIC"
            " IF NEW.n = 1 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not one'; END IF; END"
        )
    run = SinkRun(database, errors_tolerance="all")
    run.write(rows())
    assert written(database) == [0, 2]
    ((offset, message),) = run.errors.letters
    assert offset == 1 and "not one" in message


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize("count", [2, MANY])
@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
def test_points_in_time_are_exact_in_columns_that_hold_such(request, server, count, zone):
    """Also in the hour that occurs twice, and whatever the zone of the server is."""
    database = request.getfixturevalue(f"{server}_database")
    local, instant = ("timestamp", "timestamptz") if server == "postgresql" else ("datetime(3)", "timestamp(3) NULL")
    database.execute(f"CREATE TABLE orders (n BIGINT PRIMARY KEY, a {local}, b {instant}, c {instant})")
    schema = s.struct(("n", s.INT64), ("a", s.timestamp()), ("b", s.timestamp()), ("c", s.INT64))
    winter, first, second = (
        int(dt.datetime(*parts, tzinfo=dt.UTC).timestamp() * 1000)
        for parts in ((2020, 1, 1, 12), (2020, 10, 25, 0, 30), (2020, 10, 25, 1, 30))
    )  # Both of the last two are 2:30 in Berlin.
    moments = [winter, first, second]
    values = [{"n": n, "a": m, "b": m, "c": m * 1000} for n, m in enumerate(moments * (count // 2))]
    run = SinkRun(
        database,
        db_timezone=zone,
        timestamp_fields_list="c",
        insert_mode="upsert",
        pk_mode="record_value",
        pk_fields="n",
    )
    run.write(records(*values, schema=schema))
    utc = "to_char({} AT TIME ZONE 'UTC', 'HH24:MI')" if server == "postgresql" else "DATE_FORMAT({}, '%%H:%%i')"
    wall = "to_char({}, 'HH24:MI')" if server == "postgresql" else utc
    with database.connected() as connection:
        if server == "mariadb":
            connection.exec_driver_sql("SET time_zone = '+00:00'")
        asked = f"SELECT n %% 3, {wall.format('a')}, {utc.format('b')}, {utc.format('c')} FROM orders"
        found = set(map(tuple, connection.exec_driver_sql(asked)))
    in_zone = ["12:00", "00:30", "01:30"] if zone == "UTC" else ["13:00", "02:30", "02:30"]
    expected = ["12:00", "00:30", "01:30"]
    assert found == {(n, in_zone[n], expected[n], expected[n]) for n in range(3)}


def test_point_in_time_as_a_key_finds_its_row(postgresql_database):
    postgresql_database.execute("CREATE TABLE orders (t timestamptz PRIMARY KEY, n BIGINT)")
    schema, key = s.struct(("n", s.INT64)), s.struct(("t", s.timestamp()))
    moment = 1_577_880_000_000
    run = SinkRun(
        postgresql_database, db_timezone="Europe/Berlin", insert_mode="upsert", pk_mode="record_key", pk_fields="t",
        delete_enabled="true",
    )  # fmt: skip
    run.write(records({"n": 1}, {"n": 2}, None, schema=schema, keys=[{"t": moment}, {"t": moment + 1}, {"t": moment}],
                      key_schema=key))  # fmt: skip
    assert postgresql_database.rows("SELECT n FROM orders") == [(2,)]


@pytest.mark.parametrize("count", [3, 250])
def test_points_of_the_hour_that_clocks_show_twice_are_two_keys(postgresql_database, count):
    """Python takes them for equal in a zone: of many rows that COPY takes at once, only the last one was written."""
    postgresql_database.execute("CREATE TABLE orders (t timestamptz PRIMARY KEY, n BIGINT)")
    half_past_two = 1_792_888_200_000  # 2026-10-25 00:30 UTC, the first time of that day in Berlin
    moments = [half_past_two, half_past_two + 3_600_000, *range(count)]
    schema = s.struct(("t", s.timestamp()), ("n", s.INT64))
    run = SinkRun(
        postgresql_database, db_timezone="Europe/Berlin", insert_mode="upsert", pk_mode="record_value", pk_fields="t"
    )
    run.write(records(*({"t": moment, "n": n} for n, moment in enumerate(moments)), schema=schema))
    found = postgresql_database.rows("SELECT (extract(epoch FROM t) * 1000)::bigint, n FROM orders ORDER BY n")
    assert found == [(moment, n) for n, moment in enumerate(moments)]


@pytest.mark.parametrize("mode", ["insert", "upsert"])
@pytest.mark.parametrize("count", [3, 250, MANY])
def test_what_a_column_accepts_does_not_depend_on_the_number_of_records(postgresql_database, count, mode):
    """COPY takes numbers for booleans, and values for an identity column; INSERT takes neither."""
    postgresql_database.execute(
        "CREATE TABLE orders (n BIGINT PRIMARY KEY, yes BOOLEAN)",
        "CREATE TABLE numbered (n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, yes BIGINT)",
    )
    more = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "n"} if mode == "upsert" else {}
    schema = s.struct(("n", s.INT64), ("yes", s.OPTIONAL_INT64))
    values = records(*({"n": n, "yes": n % 2 or None} for n in range(count)), schema=schema)
    run = SinkRun(postgresql_database, errors_tolerance="all", max_retries="0", **more)
    with pytest.raises(DatabaseError, match='"yes" is of type boolean but expression is of type smallint'):
        run.write(values)
    assert postgresql_database.rows("SELECT COUNT(*) FROM orders") == [(0,)]
    fixed = SinkRun(postgresql_database, "numbered", table_name_format="numbered", max_retries="0", **more)
    with pytest.raises(DatabaseError, match="non-DEFAULT value into column"):
        fixed.write(values)
    assert postgresql_database.rows("SELECT COUNT(*) FROM numbered") == [(0,)]
