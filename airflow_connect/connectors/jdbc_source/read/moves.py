"""Which position each row of a table leads to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from airflow_connect.connectors.jdbc_source.offsets.positions import Position
from airflow_connect.connectors.jdbc_source.read.criteria import Tracked
from airflow_connect.connectors.jdbc_source.values.columns import Column
from airflow_connect.connectors.jdbc_source.values.local_times import LocalTimes
from airflow_connect.connectors.jdbc_source.values.mapping import moment_of
from airflow_connect.errors import DataError

Row = Sequence[Any]


class Moves:
    """Positions of rows.

    Attributes:
        has_fractions: whether the incrementing column may hold fractions: a NUMERIC without precision and scale.
    """

    def __init__(self, columns: Sequence[Column], tracked: Tracked, database: str, times: LocalTimes) -> None:
        names_in_order = [column.name for column in columns]
        self._id = -1 if tracked.incrementing is None else names_in_order.index(tracked.incrementing.name)
        self._id_name = "" if tracked.incrementing is None else tracked.incrementing.name
        self.has_fractions = tracked.incrementing is not None and tracked.incrementing.scale is None
        self._times = [
            (names_in_order.index(column.name), moment_of(database, column.kind, times))
            for column in tracked.timestamps
        ]

    def moment(self, row: Row) -> int:
        """The first timestamp that is not null, microseconds since the epoch."""
        for index, convert in self._times:
            if row[index] is not None:
                return convert(row[index])
        raise ValueError("a row without a timestamp was selected")

    def positions(self, rows: Sequence[Row]) -> list[Position]:
        """The position after each row, where each row moves it."""
        if not self._times:
            return [Position(self._number(row[self._id])) for row in rows]
        return [Position(self._number(row[self._id]), self.moment(row)) for row in rows]

    def check_whole(self, numbers: Iterable[Any]) -> None:
        """Refuse values of the incrementing column that a position cannot hold."""
        for number in numbers:
            self._number(number)

    def _number(self, value: Any) -> int:
        number = int(value)
        if number != value:
            raise DataError(
                f"The incrementing column {self._id_name} has the value {value}, which is not a whole number: an"
                " offset cannot hold it, and every run would copy its row again.",
                code="database.column",
                suggestion="Use another column, or declare this one with scale 0.",
                config_path="incrementing.column.name",
            )
        return number

    def group_positions(self, rows: Sequence[Row], before: Position) -> list[Position]:
        """The position after each row, where only the last row of a group moves it."""
        moments = [self.moment(row) for row in rows]
        positions, last = [], before
        for index, at in enumerate(moments):
            if index + 1 == len(moments) or moments[index + 1] != at:
                last = Position(timestamp_us=at)
            positions.append(last)
        return positions
