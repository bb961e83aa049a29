"""Whether a table was set back: its next rows have numbers or times at or below the offset, so no run would find them.

That follows a restored backup, a failover to a replica that was behind, `TRUNCATE ... RESTART IDENTITY`, and a table
of SQLite without AUTOINCREMENT whose last rows were deleted. Rows that are deleted after they were copied, as in an
outbox, do no harm: the database continues with the next number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.jdbc.source.offsets.positions import NO_ID, Position
from airflow_connect.connectors.jdbc.source.read.criteria import Source
from airflow_connect.connectors.jdbc.source.read.identities import PG_SEQUENCES
from airflow_connect.connectors.jdbc.source.values.columns import SQLITE_KEY_INDEX, Column, Kind
from airflow_connect.errors import OffsetError

if TYPE_CHECKING:
    from airflow_connect.connectors.jdbc.source.read.reading import Reading
    from airflow_connect.databases.identifiers import TableId

_PG_COUNTER = f"""
SELECT CASE WHEN has_sequence_privilege(seq, 'SELECT') THEN seq::regclass::text END
FROM ({PG_SEQUENCES.format(table="to_regclass(%(table)s)")}) numbered WHERE attname = %(column)s
"""
_MYSQL_COUNTER = """
SELECT auto_increment FROM information_schema.tables WHERE table_schema = %(schema)s AND table_name = %(table)s
"""
_HIDDEN = "which the user in connection.user may not read: GRANT SELECT ON the sequence, and such a run fails."
_LEAST = -(1 << 63)
_SQLITE_COUNTER = "SELECT seq + 1 FROM sqlite_sequence WHERE name = ?"


def check_unfinished(reading: Reading, table: TableId | None, largest: int) -> None:
    """Look at a table in mode incrementing whose load in ranges is unfinished.

    Args:
        reading: connected.
        table: the table.
        largest: the largest number that the offsets of its ranges have.

    Raises:
        OffsetError: the numbers that the database gives to new rows are not larger.
    """
    source = reading.source(table)
    column = reading.criteria(source).tracked.incrementing
    assert column is not None
    found = reading.execute(source.largest(column.name)).scalar_one()
    if found is None or (not isinstance(found, str | bytes) and found < largest):
        _check_not_set_back(reading, source, column, largest, found, unfinished=True)


@dataclass(frozen=True, slots=True)
class Look:
    """What a plan has seen of a table.

    Attributes:
        has_rows: whether there are rows after the offset.
        column: the incrementing column, in mode incrementing; otherwise None.
        smallest: its smallest number; None: there is no row.
    """

    has_rows: bool
    column: Column | None = None
    smallest: int | None = None


def look_at_numbers(reading: Reading, source: Source, column: Column, offset: int | None) -> Look:
    """Whether a table has a row after the offset, in mode incrementing.

    Args:
        reading: connected.
        source: a table.
        column: the incrementing one.
        offset: the largest number that was copied; None: none was.

    Raises:
        OffsetError: there is none, and the numbers that the database gives to new rows are not larger than the offset.
    """
    row = reading.execute(source.bounds(column.name, reading.name)).mappings().one()
    largest, smallest = row.values()
    if offset is None and largest is not None:
        _note_given_again(reading, source, column)
    return Look(_has_larger(reading, source, column, offset, largest), column, _floor(smallest))


def note_lower_numbers(reading: Reading, source: Source, column: str, offset: int) -> None:
    """Name a query without a row after its offset, in mode incrementing, whose numbers are all lower.

    No sequence says what number the next row gets, because a query is not one table.

    Args:
        reading: connected.
        source: the query.
        column: the incrementing one.
        offset: the largest number that was copied.
    """
    name = reading.database.quoting.text(column)
    # First a statement that finds the last row in an index as fast as the one for new rows finds none.
    if reading.execute(source.any(f"{name} >= :offset", {"offset": offset})).fetchone() is not None:
        return
    largest = reading.execute(source.largest(column)).scalar_one()
    if largest is None or isinstance(largest, str | bytes):
        return
    reading.note(
        f"The largest {column} of the query is {largest}, but rows up to {offset} were copied. If rows were deleted, or"
        " have left the result, nothing is missing. If the database was set back (a restored backup, a truncated"
        f" table), new rows with a {column} up to {offset} are not found: set the offset of the query to {largest}, or"
        " delete it to copy all rows again."
    )


def _floor(smallest: Any) -> int | None:
    whole: int
    if smallest is None or isinstance(smallest, str | bytes):
        return None
    try:
        whole = math.floor(smallest)
    except ValueError:  # NaN, of a numeric column of PostgreSQL
        return None
    except OverflowError:  # infinity
        return _LEAST if smallest < 0 else None
    return whole


def _has_larger(reading: Reading, source: Source, column: Column, offset: int | None, largest: Any) -> bool:
    if isinstance(largest, str | bytes):
        return True  # SQLite sorts texts last; the task that reads it names the value
    # NaN, which PostgreSQL sorts last, is equal to nothing.
    if largest is not None and (largest != largest or largest > (NO_ID if offset is None else offset)):
        return True
    if offset is None or (largest is not None and largest == offset):
        return False
    _check_not_set_back(reading, source, column, offset, largest)
    return False


def check_clock(reading: Reading, name: str, offset_us: int | None) -> None:
    """Look at the database's clock in a mode with timestamps.

    Args:
        reading: connected; has the clock.
        name: of the table or query.
        offset_us: the latest timestamp that its offsets have, microseconds since the epoch; None: they have none.

    Raises:
        OffsetError: the clock is before it, by more than `timestamp.lookback.ms`.
    """
    config, clock_us = reading.config, reading.clock_us
    if offset_us is None or offset_us - config.lookback_ms * 1000 <= clock_us:
        return
    offset, clock = (reading.times.aware(moment).isoformat(timespec="milliseconds") for moment in (offset_us, clock_us))
    raise OffsetError(
        f"Rows of {name} up to {offset} were copied, but the clock of the database says {clock}: rows that are written"
        " before it has reached that time would not be found. Either the clock was set back, or this is another server"
        " whose clock is behind, or the offset was set to a time that is still to come.",
        code="database.set_back",
        suggestion=f'Set the offset to {{"timestamp": {clock_us // 1000}}}, or earlier if rows were written'
        " since the clock was set back: rows after it are copied again. If nothing is written before the clock has"
        " reached the offset, wait until then.",
    )


def check_day(reading: Reading, source: Source, stamps: Sequence[Column], position: Position, begin: Position) -> None:
    """Look at an offset with a time of day, if the tracked column is a DATE by now.

    Rows of that day have its beginning as their time, which is before the offset: no run would find them.

    Args:
        reading: connected.
        source: the table or query.
        stamps: the tracked columns with a time.
        position: of the offset.
        begin: where reading begins, which is earlier with `timestamp.lookback.ms`.

    Raises:
        OffsetError: the offset is within a day of `db.timezone`.
    """
    own = _time_of_day(reading, stamps, position)
    if own is None:
        return
    day = own.replace(hour=0, minute=0, second=0, microsecond=0)
    if begin.timestamp_us is None or reading.times.own_time(begin.timestamp_us, begin.local_us) < day:
        return  # The window of the look-back has all rows of the day.
    before, at = ((reading.times.instant_us(moment) // 1000) for moment in (day - timedelta(days=1), day))
    names = ", ".join(column.name for column in stamps)
    raise OffsetError(
        f"The offset of {source.name} has a time of day, {own.isoformat(' ', 'milliseconds')}, and its tracked column"
        f" {names} is a DATE: rows of that day are before the offset, and would not be copied. Either the type of the"
        " column was changed, or db.timezone was.",
        code="offset.refused",
        suggestion=f'Set the offset to {{"timestamp": {before}}} to copy all rows of that day, also those that were'
        f' copied before, or to {{"timestamp": {at}}} to copy none of them.',
    )


def check_days(reading: Reading, table: TableId | None, positions: Iterable[Position], name: str) -> None:
    """The same for the ranges of an unfinished load.

    Args:
        reading: connected.
        table: that is loaded.
        positions: where its ranges begin and end.
        name: of the table, for the message.

    Raises:
        OffsetError: one of them is within a day of `db.timezone`.
    """
    with reading.database.failures(f"look at the tracked columns of {name}"):
        stamps = reading.criteria(reading.source(table)).tracked.timestamps
    found = (_time_of_day(reading, stamps, position) for position in positions)
    own = next((moment for moment in found if moment is not None), None)
    if own is not None:
        raise OffsetError(
            f"The interrupted load of {name} has a range that ends at a time of day,"
            f" {own.isoformat(' ', 'milliseconds')}, and its tracked column is a DATE: other rows of that day are in no"
            " range, or in two. Either the type of the column was changed, or db.timezone was.",
            code="offset.refused",
            suggestion="Delete the offsets of the table's ranges: the next run loads the table again.",
        )


def _time_of_day(reading: Reading, stamps: Sequence[Column], position: Position) -> datetime | None:
    """The time of a position on the clock of `db.timezone`, if the column has days only and it is within a day."""
    is_date = any(column.kind is Kind.DATE for column in stamps) and reading.name != "sqlite"  # DATE has times there.
    if not is_date or position.timestamp_us is None:
        return None
    own = reading.times.own_time(position.timestamp_us, position.local_us)
    day = own.replace(hour=0, minute=0, second=0, microsecond=0)
    # With `timestamp.initial=-1`, a first run leaves the last microsecond of a day.
    return None if own == day or own + timedelta(microseconds=1) == day + timedelta(days=1) else own


def _check_not_set_back(
    reading: Reading, source: Source, column: Column, offset: int, largest: int | None, *, unfinished: bool = False
) -> None:
    """`unfinished`: `offset` is the largest number that an unfinished load knows, which may not have been copied."""
    following = _next_number(reading, source, column.name) if column.numbers_itself else None
    if following is None and reading.name == "sqlite" and column.numbers_itself and _has_row_ids(reading, source):
        following = int(largest or 0) + 1
    known = f"the ranges of its unfinished load have numbers up to {offset}" if unfinished else (
        f"rows up to {offset} were copied")  # fmt: skip
    again = f'to {{"incrementing": {NO_ID}}}' if unfinished else ""
    if following is None:
        hidden = column.numbers_itself and _is_hidden(reading, source, column.name)
        if largest is not None:
            again = f"set it {again} to copy the table again" if unfinished else "delete it to copy the table again"
            told = f" Whether it was is told by the sequence of {column.name}, {_HIDDEN}" if hidden else ""
            reading.note(
                f"The largest {column.name} of {source.name} is {largest}, but {known}. If rows"
                " were deleted, nothing is missing. If the database was set back (a restored backup, a truncated"
                f" table), new rows with a {column.name} up to {offset} are not found: set the offset of the table to"
                f" {largest}, or {again}.{told}"
            )
        elif hidden:
            reading.note(
                f"{source.name} has no row, but {known}. If rows were deleted, nothing is missing. If the database was"
                f" set back (a restored backup, a truncated table), new rows with a {column.name} up to {offset} will"
                f" not be found: delete the offset of the table. Whether it was is told by the sequence of"
                f" {column.name}, {_HIDDEN}"
            )
        return
    if following <= offset:
        again = f"{again} to copy the table again" if unfinished else "delete the offset to copy the table again"
        raise OffsetError(
            f"The next {column.name} of {source.name} is {following}, but {known}: new rows"
            " would not be found. Either the database was set back (a restored backup, a failover to a replica that was"
            " behind, a truncated table), or its last rows were deleted and it gives their numbers again.",
            code="database.set_back",
            suggestion=f'Set the offset of the table to {{"incrementing": {largest or following - 1}}} to copy only'
            f" what is written from now on, {again}, or have the database go on after"
            f" {offset}.",
        )


def _note_given_again(reading: Reading, source: Source, column: Column) -> None:
    """Name a table of SQLite whose deleted rows give their numbers to new ones; for its first run, which is enough."""
    numbers_rows = reading.name == "sqlite" and column.numbers_itself and _has_row_ids(reading, source)
    if not numbers_rows or _next_number(reading, source, column.name) is not None:
        return
    reading.note(
        f"The column {column.name} of {source.name} is not declared with AUTOINCREMENT, so SQLite gives the number of"
        " its last row again after that row was deleted. If that happens between two runs, the new row is NOT copied,"
        " and no run names it. Declare the column with AUTOINCREMENT, or use a mode with a timestamp, unless rows are"
        " never deleted."
    )


def _has_row_ids(reading: Reading, source: Source) -> bool:
    """Whether SQLite numbers the rows of a table by its INTEGER PRIMARY KEY, which then has no index of its own."""
    assert source.table is not None
    return reading.connection.exec_driver_sql(SQLITE_KEY_INDEX, (source.table.table,)).scalar() is None


def _next_number(reading: Reading, source: Source, column: str) -> int | None:
    """The number that the database gives to the next row; None: it does not say."""
    table = source.table
    assert table is not None
    connection = reading.connection
    if reading.name == "postgresql":
        found = _sequences(reading, source, column)
        if not any(found):
            return None
        name = str(found[0]).replace("%", "%%")
        last, was_given = connection.exec_driver_sql(f"SELECT last_value, is_called FROM {name}").one()
        return int(last) + (1 if was_given else 0)
    if reading.name == "mysql":
        # MySQL 8 keeps the number for a day; MariaDB does not know the variable.
        if not getattr(connection.dialect, "is_mariadb", False):
            connection.exec_driver_sql("SET @@session.information_schema_stats_expiry = 0")
        return _number(connection.exec_driver_sql(_MYSQL_COUNTER, {"schema": table.catalog, "table": table.table}))
    if connection.exec_driver_sql("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'").scalar() is None:
        return None
    return _number(connection.exec_driver_sql(_SQLITE_COUNTER, (table.table,)))


def _sequences(reading: Reading, source: Source, column: str) -> Sequence[str | None]:
    """The sequence of PostgreSQL that numbers a column, None if the user may not read it; (): there is none."""
    # As a value, a name has no % that is doubled for statements with parameters.
    asked = {"table": source.quoted.replace("%%", "%"), "column": column}
    return reading.connection.exec_driver_sql(_PG_COUNTER, asked).scalars().all()


def _is_hidden(reading: Reading, source: Source, column: str) -> bool:
    """Whether the user may not read the sequence of PostgreSQL that numbers a column: often it may only read tables."""
    return reading.name == "postgresql" and None in _sequences(reading, source, column)


def _number(result: Any) -> int | None:
    value = result.scalar_one_or_none()
    return None if value is None else int(value)
