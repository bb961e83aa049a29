"""What a plan sees of a table: whether there are rows after its offset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.connectors.jdbc.source.checks.set_back import Look, check_day, look_at_numbers, note_lower_numbers
from airflow_connect.connectors.jdbc.source.offsets.lookback import SentRows
from airflow_connect.connectors.jdbc.source.offsets.positions import Position
from airflow_connect.connectors.jdbc.source.offsets.start import position_at_end
from airflow_connect.connectors.jdbc.source.read.hidden import note_hidden
from airflow_connect.connectors.jdbc.source.settings import names

if TYPE_CHECKING:
    from airflow_connect.connectors.jdbc.source.read.criteria import Criteria, Source
    from airflow_connect.connectors.jdbc.source.read.reading import Reading
    from airflow_connect.databases.identifiers import TableId


def look(reading: Reading, table: TableId | None, position: Position, *, is_committed: bool) -> Look:
    """Whether there is a row after a position; always true in mode bulk.

    Args:
        reading: connected.
        table: None for the query.
        position: where reading begins.
        is_committed: whether it is that of an offset.

    Raises:
        ConfigError: the columns do not fit the mode.
        OffsetError: rows at or before the position would be missed.
    """
    config = reading.config
    if config.mode == names.BULK:
        return Look(has_rows=True)
    source = reading.source(table)
    criteria = reading.criteria(source)
    offset = position
    if config.lookback_ms and position.timestamp_us is not None:
        sent = SentRows(position, config.lookback_ms * 1000, config.lookback_rows)
        if is_committed and not sent.is_whole and sent.begin_us is not None:
            _name_begin(reading, source, sent.begin_us)
        position = sent.begin(position)
    if is_committed:
        check_day(reading, source, criteria.tracked.timestamps, offset, position)
    found = _look(reading, criteria, source, position)
    if not found.has_rows and not is_committed:
        # No task will look at the table, and no run has: whatever it has is left out.
        note_hidden(reading, criteria, source, position)
    return found


def position_at_bound(reading: Reading, table: TableId | None) -> Position:
    """Where a table or the query (None) begins with `timestamp.initial=-1`: before what later runs may still find.

    Raises:
        ConfigError: the columns do not fit the mode.
    """
    stamps = reading.criteria(reading.source(table)).tracked.timestamps
    return position_at_end(reading.times, stamps, reading.end_us)


def name_left_out(reading: Reading, table: TableId | None) -> None:
    """Name the rows that no run finds, of a table that is read from the upper bound on (`timestamp.initial=-1`).

    Raises:
        ConfigError: the columns do not fit the mode.
    """
    source = reading.source(table)
    note_hidden(reading, reading.criteria(source), source, Position())


def _look(reading: Reading, criteria: Criteria, source: Source, position: Position) -> Look:
    number = criteria.tracked.incrementing
    if source.table is not None and number is not None and not criteria.tracked.timestamps:
        return look_at_numbers(reading, source, number, position.incrementing)
    result = reading.execute(criteria.exists(position, reading.end_us))
    try:
        found = Look(result.fetchone() is not None)
    finally:
        result.close()
    offset = position.incrementing
    if not found.has_rows and number is not None and offset is not None and not criteria.tracked.timestamps:
        note_lower_numbers(reading, source, number.name, offset)
    return found


def _name_begin(reading: Reading, source: Source, begin_us: int) -> None:
    """Say from which time on late rows are found: before it, it is not known which rows were sent.

    Each run says so until the window is whole, because a row that is missed now is one that this run has missed: who
    reads the report of one run need not know those before.
    """
    begin = reading.times.aware(begin_us).isoformat(timespec="microseconds")
    reading.note(
        f"timestamp.lookback.ms finds no row of {source.name} with a time up to {begin} that is committed late, because"
        " which rows before were sent is not known: the look-back was switched on, or made longer, at this time, or"
        " timestamp.lookback.max.rows was reached. If rows are missing, set the offset of the table back to before"
        " them: all rows after it are sent again."
    )
