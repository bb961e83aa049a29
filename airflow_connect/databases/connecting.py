"""Connections to a database: attempts with pauses, and errors that users can act on."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from airflow_connect.databases.dialects.lookup import dialect_of
from airflow_connect.databases.failures import Failure, kind_of, typed
from airflow_connect.databases.identifiers import Quoting
from airflow_connect.databases.settings import ConnectionSettings
from airflow_connect.errors import ConfigError, ConnectError
from airflow_connect.retrying import REAL_TIME, Backoff, Retry, Timing

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from airflow_connect.databases.dialects.dialect import DatabaseDialect

log = logging.getLogger(__name__)
_WORTH_ANOTHER_ATTEMPT = frozenset(
    {
        Failure.UNKNOWN_HOST,
        Failure.UNREACHABLE,
        Failure.TOO_MANY_CONNECTIONS,
        Failure.CONNECTION_LOST,
        Failure.CONFLICT,
        Failure.OTHER,
    }
)


class Database:
    """A database that a connector uses; opens connections, each for one user. Not thread-safe.

    Attributes:
        settings: how to reach it.
        dialect: what differs from other databases.
        quoting: how names are quoted in statements.
    """

    def __init__(self, settings: ConnectionSettings, timing: Timing = REAL_TIME) -> None:
        """Does not connect yet."""
        self.settings = settings
        self.dialect: DatabaseDialect = dialect_of(settings.address.database)
        self._timing = timing

    def __enter__(self) -> Self:
        """Return the database."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close what is open."""
        self.close()

    @cached_property
    def engine(self) -> Engine:
        """SQLAlchemy's engine, without a pool: a run ends soon, and each connection has one user."""
        from sqlalchemy import create_engine, pool
        from sqlalchemy.exc import SQLAlchemyError

        address = self.settings.address
        options: dict[str, Any] = self.dialect.engine_options(address)
        if self.settings.isolation:
            options["isolation_level"] = self.settings.isolation
        try:
            # hide_parameters: an exception's text must not repeat the values of rows.
            engine = create_engine(
                address.url,
                connect_args=self.dialect.connect_arguments(address),
                poolclass=pool.NullPool,
                hide_parameters=True,
                **options,
            )
        except (SQLAlchemyError, TypeError, ValueError, ImportError) as error:
            raise ConfigError(
                f"The database {address.display} cannot be used: {address.scrub(str(error))}.",
                code="database.url",
                suggestion="Correct connection.url and the other connection.* keys.",
                config_path="connection.url",
            ) from None
        self.dialect.prepare_engine(engine)
        return engine

    @cached_property
    def quoting(self) -> Quoting:
        """How names are quoted."""
        return Quoting(self.engine.dialect, quotes=self.settings.quotes)

    def connect(self, execution_options: Mapping[str, Any] | None = None) -> Connection:
        """A new connection; the caller closes it.

        `connection.attempts` and `connection.backoff.ms` apply to failures that may pass.

        Raises:
            AccessError, ConfigError: the database refused it.
            UnavailableError: it could not be reached in all attempts.
        """
        settings = self.settings
        tries = Retry(Backoff(settings.backoff_ms / 1000, settings.backoff_ms / 1000), retries=settings.attempts - 1,
                      timing=self._timing)  # fmt: skip
        while True:
            try:
                connection = self.engine.connect()
                connection = connection.execution_options(**(execution_options or {}))
                self.dialect.prepare(connection)
                return connection
            except Exception as error:
                if isinstance(error, ConnectError) or not is_of_a_driver(error):
                    raise
                if kind_of(error) not in _WORTH_ANOTHER_ATTEMPT or not tries.pause():
                    # `from None`: the traceback of the original would show the address with its password.
                    raise typed(error, "connect", settings.address) from None

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """A connection of `connect` that is closed at the end, also if the server has closed it meanwhile."""
        connection = self.connect()
        try:
            yield connection
        finally:
            close_quietly(connection)

    @contextmanager
    def failures(self, what: str) -> Iterator[None]:
        """Turn exceptions of the driver into errors for users.

        Args:
            what: what is being done: `read the table "a"."b"`.
        """
        try:
            yield
        except Exception as error:
            if isinstance(error, ConnectError) or not is_of_a_driver(error):
                raise
            raise typed(error, what, self.settings.address) from None

    def close(self) -> None:
        """Close pooled connections; those handed out are closed by their users."""
        if "engine" in self.__dict__:
            self.engine.dispose()


def close_quietly(connection: Connection) -> None:
    """Close a connection. The server may have closed it: what was not committed is undone all the same."""
    try:
        connection.close()
    except Exception as error:
        if not is_of_a_driver(error):
            raise
        log.debug("A connection was lost before it was closed: %s", type(error).__name__)


def is_of_a_driver(error: BaseException) -> bool:
    """Whether an exception comes from SQLAlchemy or a database driver, not from our own code."""
    modules = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return bool(modules & {"sqlalchemy", "psycopg", "pymysql", "sqlite3", "pymssql", "oracledb", "adbc_driver_manager"})
