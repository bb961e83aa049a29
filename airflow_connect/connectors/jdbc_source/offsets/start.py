"""Where the reading of a table begins."""

from __future__ import annotations

from airflow_connect.api.source import SourceOffset
from airflow_connect.connectors.jdbc_source.offsets.positions import Position
from airflow_connect.connectors.jdbc_source.settings.config import JdbcSourceConfig
from airflow_connect.connectors.jdbc_source.values.local_times import SECOND_US


def start_position(config: JdbcSourceConfig, offset: SourceOffset | None, where: str) -> Position | None:
    """Where a table begins; None: at the run's upper bound (`timestamp.initial=-1` without an offset)."""
    position = Position.of(offset, where)
    if not config.uses_timestamps or position.timestamp_us is not None:
        return position
    if config.initial_ms is None:
        return position
    return None if config.initial_ms == -1 else position.changed(timestamp_us=config.initial_ms * 1000)


def position_at_end(end_us: int) -> Position:
    """A position after which rows from the second of `end_us` on are read."""
    return Position(timestamp_us=end_us // SECOND_US * SECOND_US - 1)
