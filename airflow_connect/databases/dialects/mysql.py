"""MySQL and MariaDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from airflow_connect.databases.dialects.dialect import DatabaseDialect
from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from ssl import SSLContext

    from sqlalchemy import Connection, Engine

_FETCH_TIMEOUT_S = 3600
_EVERY_ROW = (1 << 64) - 1
_WARNINGS = 64
"""How many warnings of a statement MySQL and MariaDB keep by default."""


class MySqlDialect(DatabaseDialect):
    """MySQL and MariaDB, through PyMySQL."""

    name = "mysql"
    clock_statement = "SELECT UTC_TIMESTAMP(6)"
    offset_now = "TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), NOW())"
    offset_then = "TIMESTAMPDIFF(SECOND, '1970-01-01' + INTERVAL {0} SECOND, FROM_UNIXTIME({0}))"

    def prepare_engine(self, engine: Engine) -> None:
        """Connections of our own class."""
        from sqlalchemy import event

        event.listen(engine, "do_connect", _connect)

    def streaming_cursor(self, connection: Connection) -> Any:
        """PyMySQL's unbuffered cursor: no other statement can run on the connection until it is closed."""
        driver_connection: Any = connection.connection.driver_connection
        return driver_connection.cursor(_streaming_cursor())

    def prepare(self, connection: Connection) -> None:
        """TIMESTAMP columns, which are instants, arrive in UTC, and results whole, whatever the server's settings.

        Errors are in English: `reason_of` knows where they have values of rows.
        """
        self.note_zone(connection)
        # With another completion_type, a COMMIT would end the session, or begin another transaction.
        # Nor does a CHAR get spaces that were not written. A server that keeps no warnings does not count them either.
        connection.exec_driver_sql(
            f"SET completion_type = 0, time_zone = '+00:00', lc_messages = 'en_US', sql_select_limit = {_EVERY_ROW},"
            f" max_error_count = GREATEST(@@max_error_count, {_WARNINGS}),"
            " sql_mode = REPLACE(@@sql_mode, 'PAD_CHAR_TO_FULL_LENGTH', '')"
        )
        connection.commit()

    def refuses_writes(self, connection: Connection) -> bool:
        """`read_only`. How far behind a replica is, only users with a privilege of their own may ask."""
        return str(connection.exec_driver_sql("SELECT @@global.read_only").scalar_one()).upper() not in ("0", "OFF")

    def state(self, connection: Connection) -> str:
        """The server itself: what it has of its primary, only users with a privilege of their own may ask."""
        return str(connection.exec_driver_sql("SELECT CONCAT_WS(' ', @@hostname, @@port, @@server_id)").scalar_one())

    def has_state(self, connection: Connection, state: str) -> bool:
        """Only the same server has it for certain."""
        return self.state(connection) == state

    def prepare_reading(self, connection: Connection) -> None:
        """The server waits longer than a minute for rows to be fetched, as Connector/J asks it to."""
        connection.exec_driver_sql(f"SET SESSION net_write_timeout = {_FETCH_TIMEOUT_S}")
        connection.commit()


def _connect(_dialect: Any, _record: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    return _connection()(*arguments, **named)


@cache
def _connection() -> type:
    """PyMySQL's connection, without the system's certificates where none is compared with them.

    Without TLS settings PyMySQL encrypts if the server can, and verifies nothing. It would still load all certificate
    authorities of the system for each connection, 30 ms of CPU time.
    """
    import ssl

    from pymysql.connections import Connection

    class UnverifiedByDefault(Connection):  # type: ignore[misc]
        def _create_ssl_ctx(self, sslp: Any) -> SSLContext:
            if sslp:
                try:
                    return super()._create_ssl_ctx(sslp)  # type: ignore[no-any-return]
                except (OSError, ValueError) as error:  # Neither names the file.
                    raise _unusable_files(sslp, error) from None
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            return context

    return UnverifiedByDefault


_FILES = {"ca": "serverSslCert", "cert": "ssl_cert", "key": "ssl_key"}
"""PyMySQL's name of each file, and that of the parameter."""


def _unusable_files(given: Mapping[str, Any], error: Exception) -> ConfigError:
    files = ", ".join(f"{name}={given[key]}" for key, name in _FILES.items() if given.get(key))
    return ConfigError(
        f"The certificates for TLS with the database cannot be used ({files or 'those of the system'}):"
        f" {getattr(error, 'strerror', None) or error}.",
        code="database.tls",
        suggestion="Correct the parameters. The files must be on the driver's machine and on all executors, readable"
        " and in PEM format.",
        config_path="connection.url",
    )


@cache
def _streaming_cursor() -> type:
    """PyMySQL's unbuffered cursor, which can also be closed after its connection was lost.

    The original would read the rest of its result, from a connection that has no socket any more: AttributeError.
    """
    from pymysql.cursors import SSCursor

    class StreamingCursor(SSCursor):  # type: ignore[misc]
        connection: Any
        _result: Any

        def close(self) -> None:
            lost = self.connection
            if lost is not None and not lost.open and self._result is not None:
                self._result.unbuffered_active = False  # Or its finalizer would read, too.
                self._result = self.connection = None
            super().close()

        __del__ = close

    return StreamingCursor
