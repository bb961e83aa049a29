"""Where the reading of a table begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from airflow_connect.api.source import SourceOffset
from airflow_connect.connectors.jdbc.source.offsets.positions import Position
from airflow_connect.connectors.jdbc.source.settings import names
from airflow_connect.connectors.jdbc.source.settings.config import JdbcSourceConfig
from airflow_connect.connectors.jdbc.source.values.columns import Column, Kind
from airflow_connect.connectors.jdbc.source.values.local_times import SECOND_US, LocalTimes
from airflow_connect.counting import names as listed
from airflow_connect.counting import plural
from airflow_connect.errors import OffsetError


def start_position(config: JdbcSourceConfig, offset: SourceOffset | None, where: str) -> Position | None:
    """Where a table begins; None: at the run's upper bound (`timestamp.initial=-1` without an offset)."""
    position = Position.of(offset, where)
    if not config.uses_timestamps or position.timestamp_us is not None:
        return position
    if config.initial_ms is None:
        return position
    return None if config.initial_ms == -1 else position.changed(timestamp_us=config.initial_ms * 1000)


def note_initial(config: JdbcSourceConfig, clock_us: int, note: Callable[[str], None]) -> None:
    """Say if a table without an offset begins in the future, by the database's clock: its rows are never copied."""
    if config.uses_timestamps and config.initial_ms is not None and config.initial_ms * 1000 > clock_us:
        time = LocalTimes(UTC).aware(config.initial_ms * 1000).isoformat(timespec="milliseconds")
        note(
            f"timestamp.initial is {time}, which the database's clock has not reached yet. Rows of tables without an"
            " offset that are written until then are NOT copied, neither now nor later. If it is not what you want,"
            " correct it: it is in milliseconds since 1970."
        )


def note_later_tables(tables: Sequence[str], note: Callable[[str], None]) -> None:
    """Name tables that come after the first run of a connector with `timestamp.initial=-1`; `tables`: their names."""
    if tables:
        note(
            f"{plural(len(tables), 'table', 'have')} no offset, while others of the connector have one:"
            f" {listed(tables)}. With timestamp.initial=-1, rows that were written before this run are NOT copied, such"
            " as those since a table was created. To copy them, delete the offset of the table after this run, and set"
            " timestamp.initial to an earlier time for the next one."
        )


def closed_before(times: LocalTimes, stamps: Sequence[Column], end_us: int) -> datetime:
    """The time, as tracked columns without a zone have it, before which no more rows come.

    It is a whole second, because columns, or the functions that fill them, may have no fractions: a row that is
    written later in the same second would have the same time. For dates it is the current day for the same reason.

    Args:
        times: of `db.timezone`.
        stamps: the tracked columns with a time.
        end_us: upper bound of the run.
    """
    local = times.closed_before(end_us // SECOND_US * SECOND_US)
    is_date = any(column.kind is Kind.DATE for column in stamps)
    return local.replace(hour=0, minute=0, second=0, microsecond=0) if is_date else local


def read_before(times: LocalTimes, stamps: Sequence[Column], end_us: int) -> int:
    """The instant before which rows are read with the upper bound `end_us`, microseconds since the epoch.

    Args:
        times: of `db.timezone`.
        stamps: the tracked columns with a time.
        end_us: upper bound.
    """
    if stamps[0].kind is Kind.INSTANT:
        return end_us // SECOND_US * SECOND_US
    return times.instant_us(closed_before(times, stamps, end_us))


def position_at_end(times: LocalTimes, stamps: Sequence[Column], end_us: int) -> Position:
    """A position after which those rows are read that runs with the upper bound `end_us` leave to later ones.

    Args:
        times: of `db.timezone`.
        stamps: the tracked columns with a time.
        end_us: upper bound of the run.
    """
    if stamps[0].kind is Kind.INSTANT:
        return Position(timestamp_us=end_us // SECOND_US * SECOND_US - 1)
    last = closed_before(times, stamps, end_us) - timedelta(microseconds=1)
    skipped_us = times.skipped_us(last)
    return Position(timestamp_us=times.instant_us(last) if skipped_us is None else times.before_skipped_us(skipped_us))


def check_mode(config: JdbcSourceConfig, offset: SourceOffset | None, where: str, note: Callable[[str], None]) -> None:
    """Tell whether an offset is one of the configured mode; other modes leave other keys in it.

    Args:
        config: of the source.
        offset: committed.
        where: the table, or the query, for messages.
        note: adds a sentence to the report: rows are sent again.

    Raises:
        OffsetError: rows could be missed.
    """
    if not offset or config.mode == names.BULK:
        return
    position = Position.of(offset, where)
    number, time = position.incrementing is not None, position.timestamp_us is not None
    what = {(True, False): "a number", (False, True): "a timestamp", (True, True): "a timestamp and a number"}
    if number and time and not (config.uses_incrementing and config.uses_timestamps):
        raise OffsetError(
            f"The offset of {where} has a timestamp and a number, as mode {names.TIMESTAMP_INCREMENTING} writes it, but"
            f" the mode is {config.mode}. Either all rows up to the offset were copied, or a run has ended between rows"
            " of its timestamp or before rows with a smaller number, and these would be missed.",
            code="offset.refused",
            suggestion=f"Let mode {names.TIMESTAMP_INCREMENTING} copy all rows, then remove the key of the offset that"
            f" mode {config.mode} does not use. Or delete the offset to copy all rows again.",
        )
    if (config.uses_timestamps and not time) or (not config.uses_timestamps and not number):
        has = what.get((number, time), "neither a timestamp nor a number")
        note(
            f"The offset of {where} has {has}, so it is of another mode than {config.mode}: all rows are copied,"
            " including those that were copied before."
        )
    elif config.uses_incrementing and not number and (position.timestamp_us or 0) % SECOND_US != SECOND_US - 1:
        note(
            f"The offset of {where} has a timestamp but no number, as mode {names.TIMESTAMP} writes it: rows with this"
            " timestamp are copied again."
        )
