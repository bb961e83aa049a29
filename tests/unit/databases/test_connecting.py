"""Attempts to connect, and what becomes of the driver's exceptions."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from airflow_connect.databases import keys
from airflow_connect.databases.connecting import Database
from airflow_connect.databases.failures import Failure, kind_of
from airflow_connect.databases.settings import ConnectionSettings
from airflow_connect.errors import (
    AccessError,
    ConfigError,
    ConnectError,
    DatabaseError,
    DataError,
    RetriableError,
    UnavailableError,
)
from airflow_connect.retrying import Timing


def database(url: str, pauses: list[float] | None = None, **more: str) -> Database:
    raw = {"connection.url": url, "connection.backoff.ms": "250", **more}
    settings = ConnectionSettings.from_parsed(keys.connection_keys().parse(raw), raw)
    waited: list[float] = [] if pauses is None else pauses
    return Database(settings, Timing(sleep=waited.append))


def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
def test_unreachable_server_is_tried_as_often_as_configured(kind: str) -> None:
    pauses: list[float] = []
    target = database(
        f"jdbc:{kind}://127.0.0.1:{closed_port()}/shop", pauses,
        **{"connection.attempts": "4", "connection.user": "u", "connection.password": "hush1"},
    )  # fmt: skip
    with pytest.raises(UnavailableError) as caught:
        target.connect()
    assert caught.value.code == "database.unreachable"
    assert pauses == [0.25, 0.25, 0.25]
    assert "hush1" not in str(caught.value) and "127.0.0.1" in str(caught.value)


@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
def test_unknown_host_is_named(kind: str) -> None:
    with pytest.raises(UnavailableError, match=r"db\.invalid") as caught:
        database(f"jdbc:{kind}://db.invalid/shop", **{"connection.attempts": "1"}).connect()
    assert caught.value.code == "database.unknown_host"


def test_statement_and_values_are_not_in_a_message(tmp_path: Path) -> None:
    target = database(f"jdbc:sqlite:{tmp_path}/a.db")
    with target.connect() as connection, pytest.raises(DatabaseError) as caught, target.failures("read a table"):
        connection.exec_driver_sql("select 'hush1' from nowhere where 1 = ?", ("hush2",))
    assert caught.value.code == "database.missing_object"
    assert "hush" not in str(caught.value) and "no such table: nowhere" in str(caught.value)
    target.close()


def test_constraint_is_an_error_of_the_record(tmp_path: Path) -> None:
    target = database(f"jdbc:sqlite:{tmp_path}/a.db")
    with target.connect() as connection:
        connection.exec_driver_sql("create table t (id integer primary key)")
        with pytest.raises(DataError) as caught, target.failures("write a row"):
            connection.exec_driver_sql("insert into t values (1), (1)")
    assert caught.value.code == "database.constraint"


def test_errors_of_our_own_code_are_not_translated(tmp_path: Path) -> None:
    target = database(f"jdbc:sqlite:{tmp_path}/a.db")
    with pytest.raises(ZeroDivisionError), target.failures("read"):
        raise ZeroDivisionError
    with pytest.raises(ConfigError, match="as it was"), target.failures("read"):
        raise ConfigError("as it was")


class SqlstateError(Exception):
    def __init__(self, sqlstate: str | None, text: str = "") -> None:
        super().__init__(text)
        self.sqlstate = sqlstate


@pytest.mark.parametrize(
    ("state", "text", "kind"),
    [
        ("28P01", "", Failure.AUTHENTICATION),
        ("3D000", "", Failure.UNKNOWN_DATABASE),
        ("42501", "", Failure.PERMISSION),
        ("40001", "", Failure.CONFLICT),
        ("40P01", "", Failure.CONFLICT),
        ("53100", "", Failure.DISK_FULL),
        ("53300", "", Failure.TOO_MANY_CONNECTIONS),
        ("57P01", "", Failure.CONNECTION_LOST),
        ("23505", "", Failure.CONSTRAINT),
        ("22003", "", Failure.VALUE),
        ("42804", "", Failure.TYPE),
        ("42846", "", Failure.TYPE),
        ("42P01", "", Failure.MISSING_OBJECT),
        ("42601", "", Failure.OTHER),
        (None, 'FATAL:  password authentication failed for user "u"', Failure.AUTHENTICATION),
        (None, 'FATAL:  database "x" does not exist', Failure.UNKNOWN_DATABASE),
        (None, "FATAL:  the database system is starting up", Failure.CONNECTION_LOST),
        (None, "server closed the connection unexpectedly", Failure.CONNECTION_LOST),
        (None, "connection timeout expired", Failure.UNREACHABLE),
    ],
)
def test_kind_of_a_postgresql_error(state: str | None, text: str, kind: Failure) -> None:
    assert kind_of(SqlstateError(state, text)) is kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (1045, Failure.AUTHENTICATION),
        (1049, Failure.UNKNOWN_DATABASE),
        (1142, Failure.PERMISSION),
        (1213, Failure.CONFLICT),
        (1205, Failure.CONFLICT),
        (2013, Failure.CONNECTION_LOST),
        (1114, Failure.DISK_FULL),
        (1146, Failure.MISSING_OBJECT),
        (1062, Failure.CONSTRAINT),
        (1406, Failure.VALUE),
        (4078, Failure.TYPE),
        (9999, Failure.OTHER),
    ],
)
def test_kind_of_a_mysql_error(code: int, kind: Failure) -> None:
    from pymysql.err import OperationalError

    assert kind_of(OperationalError(code, "text")) is kind


@pytest.mark.parametrize(
    ("raw", "error", "part"),
    [
        ({"connection.url": "jdbc:sqlite:/x", "connection.nosuch": "1"}, ConfigError, "nosuch"),
        ({"connection.url": "jdbc:sqlite:/x", "dialect.name": "MySqlDatabaseDialect"}, ConfigError, "does not belong"),
        (
            {"connection.url": "jdbc:sqlite:/x", "dialect.name": "Db2DatabaseDialect"},
            ConfigError,
            "must be empty or one of",
        ),
        ({"connection.url": "jdbc:sqlite:/x", "db.timezone": "Mars"}, ConfigError, "time zone"),
        ({"connection.url": "jdbc:sqlite:/x", "quote.sql.identifiers": "maybe"}, ConfigError, "must be one of"),
        ({"connection.url": "jdbc:sqlite:/x", "jdbc.credentials.provider.class": "x.Y"}, ConfigError, "is supported"),
        ({"connection.url": "jdbc:nosuch:/x"}, ConfigError, "not supported"),
        ({}, ConfigError, "connection.url"),
    ],
)
def test_wrong_connection_keys_are_refused(raw: Mapping[str, str], error: type[ConnectError], part: str) -> None:
    with pytest.raises(error, match=part):
        ConnectionSettings.from_parsed(keys.connection_keys().parse(raw), raw)


@pytest.mark.parametrize(
    ("raw", "quotes"),
    [
        ({}, True),
        ({"quote.sql.identifiers": "NEVER"}, False),
        ({"quote.identifiers": "never"}, False),
        ({"quote.identifiers": "never", "quote.sql.identifiers": "always"}, True),
    ],
)
def test_old_name_of_quoting_counts_without_the_new_one(raw: Mapping[str, str], quotes: bool) -> None:
    raw = {"connection.url": "jdbc:sqlite:/x", **raw}
    assert ConnectionSettings.from_parsed(keys.connection_keys().parse(raw), raw).quotes is quotes


def test_kinds_that_pass_are_retriable() -> None:
    assert AccessError.retriable is False and RetriableError.retriable and UnavailableError.retriable
