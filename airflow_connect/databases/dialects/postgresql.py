"""PostgreSQL."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_connect.databases.dialects.dialect import DatabaseDialect
from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from airflow_connect.databases.urls import DatabaseAddress


QUOTES_TYPES = "airflow_connect.quotes_types"
"""Key of a connection's `info`: whether other sessions write names of types with quotes."""
ZONE_SOURCE = "airflow_connect.zone_source"
"""Key of a connection's `info`: where the zone of its session came from, as `pg_settings` has it."""
_ZONE_SOURCE = "SELECT source FROM pg_catalog.pg_settings WHERE lower(name) = 'timezone'"
_REPLAYED = """
SELECT coalesce(pg_last_xact_replay_timestamp(), (SELECT checkpoint_time FROM pg_control_checkpoint()))
"""
_STATE = """
SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END::text
"""
_HAS_STATE = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
_RESET_ZONE = "(SELECT reset_val FROM pg_catalog.pg_settings WHERE name = 'TimeZone')"
"""The zone of new sessions. This one may have that of another client of a pooler."""
_AHEAD = f"extract(epoch FROM ({{0}} AT TIME ZONE {_RESET_ZONE}) - ({{0}} AT TIME ZONE 'UTC'))::int"
_WORD = re.compile(r"(?:\\.|[^\s\\])+", re.DOTALL)
"""A word of libpq's `options`, in which a backslash stands before a blank or another one."""
_IN_EFFECT = """
SELECT wanted.name, current_setting(wanted.name, true), settings.setting, settings.source
FROM unnest(%s::text[]) AS wanted(name) LEFT JOIN pg_settings AS settings
  ON lower(settings.name) = wanted.name
"""
_SEARCH_PATH = "search_path"


class PostgreSqlDialect(DatabaseDialect):
    """PostgreSQL, through psycopg."""

    name = "postgresql"
    session_settings: ClassVar[tuple[str, ...]] = (
        "SET TIME ZONE 'UTC'",
        "SET datestyle = 'ISO'",
        "SET extra_float_digits = 3",
        "SET array_nulls = on",
        "SET quote_all_identifiers = off",
    )
    """Values arrive whole, and times in UTC, whatever server, database or role are set to; pgjdbc does the same.

    Without the last two, null in an array that is written becomes the text NULL, and names of types have quotes.
    """
    # Inside a transaction, current_timestamp is the transaction's beginning, which may be long ago.
    clock_statement = "SELECT clock_timestamp()"
    offset_now = _AHEAD.format("clock_timestamp()")
    offset_then = _AHEAD.format("to_timestamp({0})")

    def connect_arguments(self, address: DatabaseAddress) -> dict[str, Any]:
        """Texts arrive in UTF-8, and no statement has a name.

        Otherwise texts of a database with the encoding SQL_ASCII would arrive as bytes. And a pooler that gives each
        transaction another session, such as PgBouncer with pool_mode=transaction, may give one where another client has
        prepared another statement under the same name: the rows of one table went into another one.
        """
        return {"client_encoding": "utf8", "prepare_threshold": None, **super().connect_arguments(address)}

    def streaming_cursor(self, connection: Connection) -> Any:
        """A named cursor, inside the transaction."""
        return _driver_connection(connection).cursor(name="airflow_connect")

    def prepare(self, connection: Connection) -> None:
        """See `session_settings`.

        Raises:
            ConfigError: a pooler has kept a setting of the address from the server.
        """
        self.note_zone(connection)
        connection.info[ZONE_SOURCE] = connection.exec_driver_sql(_ZONE_SOURCE).scalar()
        _refuse_lost_options(connection)
        connection.info[QUOTES_TYPES] = connection.exec_driver_sql("SHOW quote_all_identifiers").scalar_one() == "on"
        connection.exec_driver_sql("; ".join(self.session_settings))
        connection.commit()

    def replayed_until(self, connection: Connection) -> datetime | None:
        """The last transaction that was replayed, or the checkpoint from which the replica was started.

        The clock of a replica goes on while it waits for transactions, and these have earlier times.
        """
        if not connection.exec_driver_sql("SELECT pg_is_in_recovery()").scalar_one():
            return None
        return self.utc(connection.exec_driver_sql(_REPLAYED).scalar_one())

    def state(self, connection: Connection) -> str:
        """The end of its log of transactions."""
        return str(connection.exec_driver_sql(_STATE).scalar_one() or "")

    def has_state(self, connection: Connection, state: str) -> bool:
        """A replica has what it has replayed; any other server has all."""
        if not connection.exec_driver_sql("SELECT pg_is_in_recovery()").scalar_one():
            return True
        return bool(connection.exec_driver_sql(_HAS_STATE, (state,)).scalar_one())

    def prepare_reading(self, connection: Connection) -> None:
        """The transaction may be idle between two fetches for as long as the other side needs."""
        connection.exec_driver_sql("SET idle_in_transaction_session_timeout = 0")
        connection.commit()


def _refuse_lost_options(connection: Connection) -> None:
    """Poolers that do not pass `options` on are told to ignore it: without its search path, other tables are used.

    Such as PgBouncer, which refuses `options` unless `ignore_startup_parameters` has it.
    """
    options = _driver_connection(connection).info.get_parameters().get("options", "")
    wanted = _settings_of(options)
    if not wanted:
        return
    for name, shown, setting, source in connection.exec_driver_sql(_IN_EFFECT, (list(wanted),)):
        # The server may show another unit, 5s for 5000. A search path is shown as it was given: that of a session may
        # be one that another client of the pooler has left there.
        is_in_effect = wanted[name] in (shown, setting) or source == "client"
        if not is_in_effect and (name == _SEARCH_PATH or source != "session"):
            raise ConfigError(
                f"The server does not have the setting {name} of connection.url, because something between, such as"
                " PgBouncer with ignore_startup_parameters, has left it out. Without it, statements could use other"
                " tables, or behave in another way.",
                code="database.options",
                suggestion="Connect to the server itself, or remove currentSchema, readOnly and options from the"
                " address, and give the user the setting: ALTER ROLE ... SET. A table can have its schema in its name.",
                config_path="connection.url",
            )


def _settings_of(options: str) -> dict[str, str]:
    """The settings in libpq's `options`: `-c name=value`, `-cname=value` or `--name=value`; the last one counts."""
    settings: dict[str, str] = {}
    is_next = False
    for word in _WORD.findall(options):
        is_setting, is_next = is_next or word.startswith(("-c", "--")), word == "-c"
        name, equals, value = word.removeprefix("-c").removeprefix("--").partition("=")
        if is_setting and equals:
            settings[name.replace("-", "_").lower()] = re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL)
    return settings


def _driver_connection(connection: Connection) -> Any:
    return connection.connection.driver_connection
