"""Up to when a run reads: by the clock of the database, and on a replica by what it has of its primary.

The driver of a run sets the bound. An address may lead to several servers, such as those behind a balancer or a
failover, and a task may reach one that is behind: rows with times before the bound are still to come there. So each
task looks at its own server, too.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_connect.connectors.jdbc.source.offsets.ranges import BULK_PREFIX
from airflow_connect.connectors.jdbc.source.offsets.start import read_before
from airflow_connect.connectors.jdbc.source.values.local_times import LocalTimes
from airflow_connect.databases.arrow_stream import is_to_same_server
from airflow_connect.databases.connecting import Database, is_of_a_driver
from airflow_connect.databases.failures import Failure, kind_of
from airflow_connect.databases.reasons import reason_of
from airflow_connect.errors import UnavailableError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from airflow_connect.connectors.jdbc.source.offsets.ranges import TableRange
    from airflow_connect.connectors.jdbc.source.read.reading import Reading
    from airflow_connect.connectors.jdbc.source.settings.config import JdbcSourceConfig
    from airflow_connect.connectors.jdbc.source.work import Item
    from airflow_connect.databases.arrow_stream import ArrowStream

_LONGEST_STEP_US = 2 * 86_400_000_000
"""A tracked column may have days only, and a zone."""
_NOT_TOLD = (Failure.OTHER, Failure.PERMISSION, Failure.MISSING_OBJECT)

Note = Callable[[str], None]


def bounds(config: JdbcSourceConfig, database: Database, connection: Connection, note: Note) -> tuple[int, int]:
    """The database's own clock, and the run's upper bound: that clock, less the configured delay, in microseconds.

    On a replica, the bound is the time up to which it has the transactions of its primary, less the delay.
    """
    times, delay_us = LocalTimes(config.connection.zone), config.delay_ms * 1000
    clock = database.dialect.current_time(connection)
    until = _replayed_until(config, database, connection, note)
    if until is None or until >= clock:
        return times.instant_us(clock), times.instant_us(clock) - delay_us
    note(
        f"The database is a replica that has the transactions of its primary up to {_shown(until)}, and its clock says"
        f" {_shown(clock)}. Rows with a timestamp after the former are copied by a later run."
    )
    return times.instant_us(clock), times.instant_us(until) - delay_us


def bound_of_task(config: JdbcSourceConfig, database: Database, connection: Connection, end_us: int, note: Note) -> int:
    """The upper bound for what is read on a connection: that of the run, or less on a replica that is behind it.

    Args:
        config, database: of the source.
        connection: newly opened.
        end_us: upper bound of the run.
        note: adds a sentence to the report.
    """
    until = _replayed_until(config, database, connection, note)
    connection.rollback()
    if until is None:
        return end_us
    own_us = LocalTimes(config.connection.zone).instant_us(until) - config.delay_ms * 1000
    if own_us >= end_us:
        return end_us
    note(
        "connection.url leads to several servers: a task has reached a replica that has the transactions of its"
        f" primary up to {_shown(until)} only, and the run began on another server. Rows with a timestamp after that"
        " are copied by a later run. Name one server to copy them sooner."
    )
    return own_us


def state_of(config: JdbcSourceConfig, database: Database, connection: Connection) -> str:
    """What the server of the driver has, for `has_state` of a task; "": it does not tell, or times tell it."""
    if config.uses_timestamps and database.dialect.name == "postgresql":
        return ""  # See `bound_of_task`.
    try:
        return database.dialect.state(connection)
    except Exception as error:
        if not is_of_a_driver(error) or kind_of(error) not in _NOT_TOLD:
            raise
        connection.rollback()
        return ""


def has_state(config: JdbcSourceConfig, database: Database, connection: Connection, state: str, note: Note) -> bool:
    """Whether the server that a task has reached has what that of the driver has had.

    Args:
        config, database: of the source.
        connection: newly opened.
        state: as `state_of` wrote it.
        note: adds a sentence to the report, if rows with timestamps may be missed.
    """
    found = not state or database.dialect.has_state(connection, state)
    connection.rollback()
    if not found and config.uses_timestamps and database.dialect.name == "mysql":
        note(
            "connection.url leads to several servers: a task has reached another one than the run began on. MySQL and"
            " MariaDB do not tell how far a replica is behind. If it is, rows may be missed: name one server."
        )
    return found


def of_same_server(connection: Connection, stream: ArrowStream | None, note: Note) -> ArrowStream | None:
    """A second connection if it has reached the server of the first one; one of them may be behind.

    Args:
        connection: the first one, outside a transaction.
        stream: newly opened; it is closed if it has reached another server. None: there is none.
        note: adds a sentence to the report.
    """
    if stream is None or is_to_same_server(connection, stream):
        return stream
    stream.close()
    note(
        "Rows are read one by one, which is slower, because connection.url leads to several servers, and a second"
        " connection has reached another one than the first. Name one server in it."
    )
    return None


def check_part(item: Item, reading: Reading, end_us: int, *, has_state: bool) -> bool:
    """`check_range` for what is to be read on a connection.

    Args:
        item: the table, or a range of it.
        reading: connected; has the upper bound of the connection.
        end_us: that of the run.
        has_state: see `check_range`.

    Returns:
        Whether a range is read to its end. It is not if the run reads up to an earlier time than the one that has
        begun the load, such as after `timestamp.delay.interval.ms` was raised.
    """
    bound_us, part = reading.end_us, item.part
    last_us = None if part is None or part.upto is None else part.upto.timestamp_us
    if last_us is not None and last_us >= bound_us - _LONGEST_STEP_US:
        stamps = reading.criteria(reading.source(item.table)).tracked.timestamps
        bound_us = read_before(reading.times, stamps, bound_us)
    check_range(part, bound_us if reading.end_us < end_us else end_us, end_us, item.name, has_state=has_state)
    return last_us is None or last_us < bound_us


def check_range(part: TableRange | None, bound_us: int, end_us: int, name: str, *, has_state: bool = True) -> None:
    """Refuse to read a range on a server that does not have all of its rows yet: it would count as complete.

    Args:
        part: that is to be read; None: a whole table.
        bound_us: rows before it are read on the connection.
        end_us: upper bound of the run.
        name: of the table.
        has_state: whether the server has what the run has found, as far as it tells.

    Raises:
        UnavailableError: the range ends after what the server has for certain.
    """
    if part is None or part.upto is None or part.by.startswith(BULK_PREFIX):  # A later run copies all rows again.
        return
    last = part.upto.timestamp_us
    is_late = last is not None and bound_us < end_us and last >= bound_us
    if has_state and not is_late:
        return
    raise UnavailableError(
        f"A range of {name} cannot be read from the server that was reached: it may not yet have all rows that the run"
        " has found on another one.",
        code="database.behind",
        suggestion="Name one server in connection.url. Nothing is lost; the next run continues.",
        config_path="connection.url",
    )


def _replayed_until(
    config: JdbcSourceConfig, database: Database, connection: Connection, note: Note
) -> datetime | None:
    """Up to when a replica has the transactions of its primary; None: it is none, or does not tell."""
    if not config.uses_timestamps:
        return None
    try:
        until = database.dialect.replayed_until(connection)
    except Exception as error:
        if not is_of_a_driver(error) or kind_of(error) is not Failure.OTHER:
            raise
        connection.rollback()
        note(
            "The database is a replica that does not say up to when it has the transactions of its primary"
            f" ({reason_of(error).rstrip('.')}). If it is behind, rows may be missed: set"
            " timestamp.delay.interval.ms to more than it may be behind, or read from the primary."
        )
        return None
    if until is None and database.dialect.refuses_writes(connection):
        note(
            "The database is set to read only, so it may be a replica. If it is behind, rows may be missed: set"
            " timestamp.delay.interval.ms to more than it may be behind, or read from the primary."
        )
    return until


def _shown(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
