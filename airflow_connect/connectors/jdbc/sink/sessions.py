"""Database sessions of a sink: what holds for them, and the end of those that a frozen process holds open.

A process that is frozen, or whose machine is gone, must not hold locks forever: others wait for them. Three things keep
their wait short.

1. Outside the transactions that write rows, each statement is a transaction of its own (`single_statements`).
2. Timeouts of the server end a transaction while the server waits for its next statement. PostgreSQL has none for a
   client that stops in the middle of a COPY, MySQL none for transactions at all.
3. Transactions that write rows carry a mark with the epoch of their run, and a later run that waits for one with a
   lower epoch ends its session (`Marks`).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_connect.databases.connecting import is_of_a_driver
from airflow_connect.databases.failures import Failure, kind_of
from airflow_connect.databases.reasons import reason_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

log = logging.getLogger(__name__)
IDLE_TRANSACTION_S, IDLE_CONNECTION_S = 30, 120
LOCK_WAIT_S = 5
"""How long a run waits for a lock before it looks whether an earlier run holds it."""
EARLIER_EPOCHS = 500
"""How many epochs a run of MySQL or MariaDB looks back for the holder of a lock."""
_EPOCHS = 1 << 31
_MYSQL = ("mysql", "mariadb")
_MARKED, _LEVEL = "airflow_connect.marked", "airflow_connect.isolation_level"
_UNKNOWN_THREAD, _NOT_ITS_OWNER = 1094, 1095
"""Error codes of KILL."""


def prepare(connection: Connection) -> None:
    """Apply the settings of a sink to a new session.

    Raises:
        Exception: of the driver.
    """
    for setting in _session_settings(connection):
        connection.exec_driver_sql(setting)
    level = _isolation_level(connection)
    connection.commit()
    connection.info[_LEVEL] = level
    if connection.dialect.name in _MYSQL:
        _set_isolation_level(connection, level)


def _session_settings(connection: Connection) -> list[str]:
    dialect = connection.dialect
    if dialect.name == "postgresql":
        return [f"SET idle_in_transaction_session_timeout = {IDLE_TRANSACTION_S * 1000}"]
    if dialect.name not in _MYSQL:
        return []
    # The first as Connector/J does: otherwise a server may cut values off, or store zeros, and call it a warning.
    # The second: the same for tables without transactions, from the second row of a statement on.
    # The third: 0 in an AUTO_INCREMENT column would become the next number. What is taken out would make texts NULL.
    modes = "CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES,STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO')"
    # The last: without it, InnoDB may find a duplicate late, or not at all, and MariaDB names no row.
    settings = [f"SET SESSION sql_mode = REPLACE({modes}, 'EMPTY_STRING_IS_NULL', ''), unique_checks = 1"]
    if getattr(dialect, "is_mariadb", False) and (dialect.server_version_info or ()) >= (10, 3):
        # The first one overrides the second one for transactions that have changed a row.
        settings += [
            f"SET SESSION {name} = {IDLE_TRANSACTION_S}"
            for name in ("idle_write_transaction_timeout", "idle_transaction_timeout")
        ]
    else:
        # MySQL has no limit for transactions, only one for connections, 8 hours by default. A connection that is idle
        # between two transactions ends, too; the next transaction then opens another one.
        settings.append(f"SET SESSION wait_timeout = {IDLE_CONNECTION_S}")
    return settings


def _isolation_level(connection: Connection) -> str:
    """The level of transactions that write rows.

    MySQL's REPEATABLE READ also locks the gap where a statement finds no row, such as a DELETE of a key that is not
    there, and who inserts into the gap waits. READ COMMITTED does not. A statement-based binary log cannot record it.
    """
    default = connection.default_isolation_level or "READ COMMITTED"
    if connection.dialect.name not in _MYSQL:
        return default
    chosen = "SHOW VARIABLES WHERE variable_name IN ('log_bin', 'binlog_format')"
    found = {name.lower(): value for name, value in connection.exec_driver_sql(chosen)}
    is_statements = found.get("log_bin") == "ON" and found.get("binlog_format") == "STATEMENT"
    return default if is_statements else "READ COMMITTED"


def _set_isolation_level(connection: Connection, level: str) -> None:
    # Not by SQLAlchemy's execution options: those are undone by more statements when the connection is closed.
    connection.dialect.set_isolation_level(connection.connection.dbapi_connection, level)  # type: ignore[arg-type]


@contextmanager
def single_statements(connection: Connection) -> Iterator[None]:
    """Each statement is a transaction of its own: who is frozen between two of them holds no lock.

    Args:
        connection: after `prepare`, outside a transaction.
    """
    _set_isolation_level(connection, "AUTOCOMMIT")
    yield
    # Not after an exception: whoever gets one closes the connection.
    _set_isolation_level(connection, connection.info[_LEVEL])


@contextmanager
def limited_waiting(connection: Connection) -> Iterator[None]:
    """Statements fail after `LOCK_WAIT_S` instead of waiting on for a lock; never inside a transaction."""
    kind = connection.dialect.name
    if kind == "postgresql":
        setting, value = "lock_timeout", LOCK_WAIT_S * 1000
    elif kind in _MYSQL:
        setting, value = "innodb_lock_wait_timeout", LOCK_WAIT_S
    else:
        yield
        return
    _set(connection, setting, value)
    try:
        yield
    finally:
        if not connection.invalidated:
            _set(connection, setting, "DEFAULT")


def _set(connection: Connection, name: str, value: object) -> None:
    with connection.begin():
        connection.exec_driver_sql(f"SET SESSION {name} = {value}")


class Marks:
    """Marks of transactions that write rows: which connector, and the epoch of its run.

    PostgreSQL: a shared advisory lock (connector, epoch) for each transaction. MySQL, MariaDB: a user lock of the
    session for each partition that it writes, because a user lock has one holder and can only be looked up by its name.
    Neither ever waits. With other databases, nothing happens.
    """

    def __init__(self, connector: str, table: str) -> None:
        """`connector`, `table`: name of the connector and of its offsets table."""
        self._table = table
        digest = hashlib.sha256(f"{table}\0{connector}".encode()).digest()
        self._key = int.from_bytes(digest[:4], "big", signed=True)
        self._has_user_locks = True

    def mark(self, connection: Connection, epoch: int, places: Collection[str]) -> None:
        """Mark the transaction that has begun, before it takes locks.

        Args:
            connection: in the transaction.
            epoch: of the run.
            places: of the rows of the offsets table that it will change.
        """
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock_shared({self._key}, {epoch % _EPOCHS})")
        elif connection.dialect.name in _MYSQL and self._has_user_locks:
            self._lock(connection, [self._lock_name(connection, place, epoch) for place in places])

    def end_earlier(self, connection: Connection, epoch: int, place: str) -> int:
        """End the sessions whose transactions have a lower epoch; returns how many.

        They could not commit anything more after their present transaction, and that is rolled back. A user may end
        only sessions of the same user.

        Args:
            connection: outside a transaction.
            epoch: of this run.
            place: of the row that this run waits for.
        """
        with connection.begin():
            if connection.dialect.name == "postgresql":
                return self._end_in_postgresql(connection, epoch)
            if connection.dialect.name in _MYSQL:
                return self._end_in_mysql(connection, epoch, place)
        return 0

    def _end_in_postgresql(self, connection: Connection, epoch: int) -> int:
        ended = connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            f" AND classid = {self._key % (1 << 32)} AND objid < {epoch % _EPOCHS}"
        ).scalars()
        return sum(map(bool, ended))

    # --- MySQL and MariaDB ----------------------------------------------------------------------------------------

    def _lock_name(self, connection: Connection, place: str, epoch: int) -> str:
        """At most 64 characters. The names of user locks are those of a whole server."""
        parts = f"{connection.engine.url.database}\0{self._table}\0{place}"
        return f"airflow_connect:{hashlib.sha256(parts.encode()).hexdigest()[:32]}:{epoch}"

    def _lock(self, connection: Connection, names: list[str]) -> None:
        held: set[str] = connection.info.setdefault(_MARKED, set())
        missing = [name for name in names if name not in held]
        if not missing:
            return
        wanted = ", ".join(f"GET_LOCK('{name}', 0)" for name in missing)
        try:
            taken = connection.exec_driver_sql(f"SELECT {wanted}").one()
        except Exception as error:
            if not is_of_a_driver(error) or kind_of(error) not in (Failure.OTHER, Failure.PERMISSION):
                raise
            self._has_user_locks = False  # Some clusters forbid them.
            log.info("The database has no user locks, so only its timeouts end frozen runs: %s.", reason_of(error))
            return
        # Another attempt of this task may have the mark of its partition; then that one is found.
        held.update(name for name, is_taken in zip(missing, taken, strict=True) if is_taken)

    def _end_in_mysql(self, connection: Connection, epoch: int, place: str) -> int:
        earlier = range(max(0, epoch - EARLIER_EPOCHS), epoch)
        if not earlier:
            return 0
        holders = ", ".join(f"IS_USED_LOCK('{self._lock_name(connection, place, each)}')" for each in earlier)
        found = connection.exec_driver_sql(f"SELECT {holders}").one()
        return sum(_kill(connection, int(session)) for session in found if session is not None)


def _kill(connection: Connection, session: int) -> bool:
    """Whether a session of MySQL was ended, or has ended."""
    try:
        connection.exec_driver_sql(f"KILL CONNECTION {session}")
    except Exception as error:
        code = next(iter(getattr(getattr(error, "orig", None), "args", ())), None)
        if code not in (_UNKNOWN_THREAD, _NOT_ITS_OWNER):
            raise
        return bool(code == _UNKNOWN_THREAD)
    return True
