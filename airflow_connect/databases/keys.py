"""The keys with which the connectors for databases reach their database, and quote its names.

Source: io.confluent.connect.jdbc.source.JdbcSourceConnectorConfig and io.confluent.connect.jdbc.sink.JdbcSinkConfig for
names, types, defaults and valid values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow_connect.api.config.config_def import (
    REQUIRED,
    ConfigDef,
    ConfigKey,
    Importance,
    KeyFamily,
    Problem,
    Type,
)
from airflow_connect.api.config.validators import EnumString, Lambda, Range
from airflow_connect.api.config.values import Password, invalid
from airflow_connect.documentation import page_url
from airflow_connect.errors import ConfigError

URL, USER, PASSWORD = "connection.url", "connection.user", "connection.password"
ATTEMPTS, BACKOFF_MS = "connection.attempts", "connection.backoff.ms"
CREDENTIALS_CLASS = "jdbc.credentials.provider.class"
DIALECT, QUOTE, QUOTE_OLD = "dialect.name", "quote.sql.identifiers", "quote.identifiers"
DB_TIMEZONE, DATE_CALENDAR = "db.timezone", "date.calendar.system"
ALWAYS, NEVER = "always", "never"
DIALECTS = {
    "PostgreSqlDatabaseDialect": "postgresql",
    "MySqlDatabaseDialect": "mysql",
    "SqliteDatabaseDialect": "sqlite",
    "SqlServerDatabaseDialect": "mssql",
    "OracleDatabaseDialect": "oracle",
}
"""Confluent's names of dialects, and SQLAlchemy's names of the databases."""

DEFAULT_CREDENTIALS = "io.confluent.connect.jdbc.util.DefaultJdbcCredentialsProvider"
DEFAULT_OFFSETS_TABLE = "airflow_connect_offsets"
"""Where the sink keeps its offsets; the source does not copy it."""
GROUP = "Database"


def connection_keys() -> ConfigDef:
    """The keys that both connectors have, with the rule that checks the address."""
    high, medium, low = Importance.HIGH, Importance.MEDIUM, Importance.LOW
    return (
        ConfigDef()
        .define(
            ConfigKey(
                URL, Type.STRING, REQUIRED,
                "Where the database is: a JDBC URL (jdbc:postgresql:, jdbc:mysql:, jdbc:mariadb:, jdbc:sqlite:,"
                " jdbc:sqlserver:, jdbc:oracle:thin:), or a URL of SQLAlchemy such as"
                f" postgresql+psycopg://host/database. The parameters of each: {page_url('connectors/databases')}",
                None, high, GROUP,
            ),
            ConfigKey(USER, Type.STRING, None, "User name of the database.", None, high, GROUP),
            ConfigKey(PASSWORD, Type.PASSWORD, None, "Password of the user.", None, high, GROUP),
            ConfigKey(
                CREDENTIALS_CLASS, Type.CLASS, DEFAULT_CREDENTIALS,
                "Class that provides user name and password. Only the default is supported, which reads connection.user"
                " and connection.password; config providers and Airflow connections can supply both.",
                Lambda(_check_credentials, DEFAULT_CREDENTIALS), low, GROUP,
            ),
            ConfigKey(
                ATTEMPTS, Type.INT, 3, "How often to try to connect before giving up.", Range(1), low, GROUP,
            ),
            ConfigKey(
                BACKOFF_MS, Type.LONG, 10000, "Milliseconds between two attempts to connect.", Range(0), low, GROUP,
            ),
            ConfigKey(
                DIALECT, Type.STRING, "",
                "Dialect of the database, by Confluent's name. Empty: the one that belongs to connection.url.",
                Lambda(_check_dialect, ", ".join(DIALECTS)), low, GROUP,
            ),
            ConfigKey(
                QUOTE, Type.STRING, ALWAYS,
                "Whether names of tables and columns are quoted in statements: always, or never. Unquoted, a database"
                " may fold upper and lower case, and names with other characters than letters, digits, _ and $ are"
                " refused.",
                EnumString(ALWAYS, NEVER), medium, GROUP,
            ),
            ConfigKey(
                QUOTE_OLD, Type.STRING, None,
                "Old name of quote.sql.identifiers, which takes precedence if both are set.",
                Lambda(_check_quote, f"{ALWAYS}, {NEVER}"), low, GROUP,
            ),
            ConfigKey(
                DB_TIMEZONE, Type.STRING, "UTC",
                "Time zone of the values in columns that have a date and a time without a zone, such as Europe/Berlin.",
                Lambda(_check_zone, "name of a time zone"), medium, GROUP,
            ),
            ConfigKey(
                DATE_CALENDAR, Type.STRING, "LEGACY",
                "Calendar of dates before 1582. Python's drivers return the dates of the proleptic Gregorian calendar,"
                " which is also that of the databases, so both values give the same.",
                EnumString("legacy", "proleptic_gregorian"), low, GROUP,
            ),
        )
        .define_family(
            KeyFamily("connection.", "A parameter of the JDBC driver, such as connection.sslmode: see connection.url."),
        )
        .define_rule((URL, DIALECT), _check_address)
    )  # fmt: skip


def quotes_of(parsed: Mapping[str, Any], raw: Mapping[str, Any]) -> bool:
    """Whether names are quoted: `quote.sql.identifiers`, or its old name."""
    value = parsed[QUOTE_OLD] if parsed[QUOTE_OLD] is not None and QUOTE not in raw else parsed[QUOTE]
    return bool(value.lower() == ALWAYS)


def properties_of(raw: Mapping[str, Any], defined: Iterable[str]) -> dict[str, str]:
    """The `connection.*` keys that are passed to the driver, without the prefix."""
    known = set(defined)
    return {
        name.removeprefix("connection."): value.value if isinstance(value, Password) else str(value)
        for name, value in raw.items()
        if name.startswith("connection.") and name not in known and value is not None
    }


def _check_address(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    from airflow_connect.databases.urls import parse_url

    try:
        address = parse_url(parsed[URL])
    except ConfigError as error:
        yield Problem(URL, error.message, error.suggestion)
        return
    named = DIALECTS.get(parsed[DIALECT])
    if named is not None and named != address.database:
        yield Problem(
            DIALECT,
            f"{DIALECT}={parsed[DIALECT]} does not belong to the database {address.database} of {URL}.",
            f"Remove {DIALECT}: the dialect follows from {URL}.",
        )


def _check_dialect(name: str, value: Any) -> None:
    if value and value not in DIALECTS:
        raise invalid(name, value, f"It must be empty or one of {', '.join(DIALECTS)}")


def _check_quote(name: str, value: Any) -> None:
    if value is not None:
        EnumString(ALWAYS, NEVER).check(name, value)


def _check_credentials(name: str, value: Any) -> None:
    if value != DEFAULT_CREDENTIALS:
        raise invalid(
            name, value, f"Only {DEFAULT_CREDENTIALS} is supported; use a config provider or an Airflow connection"
        )


def _check_zone(name: str, value: Any) -> None:
    from airflow_connect.layout.time.time_zones import Zone  # costs milliseconds, and most configurations use UTC

    try:
        if value is None or value != "UTC":
            Zone.of(value or "", name)
    except ConfigError:
        raise invalid(
            name, value, "It is not the name of a time zone; write one such as UTC or Europe/Berlin"
        ) from None
