"""Which position each row of a table leads to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

from airflow_connect.connectors.jdbc.source.offsets.positions import Position
from airflow_connect.connectors.jdbc.source.read.criteria import Tracked
from airflow_connect.connectors.jdbc.source.values.columns import Column, Kind
from airflow_connect.connectors.jdbc.source.values.local_times import LocalTimes
from airflow_connect.connectors.jdbc.source.values.mapping import moment_of
from airflow_connect.connectors.jdbc.source.values.out_of_range import Beyond
from airflow_connect.errors import DataError

Row = Sequence[Any]
_INT64 = (-(1 << 63), (1 << 63) - 1)


class Moment(NamedTuple):
    """The timestamp of a row. Two are equal only if their column has the same time.

    Attributes:
        instant_us: microseconds since the epoch.
        local_us, before_us: if clocks skip the time, as in `Position`; otherwise None.
    """

    instant_us: int
    local_us: int | None = None
    before_us: int | None = None

    @property
    def in_order_us(self) -> int:
        """An instant in the order of the rows, for the look-back: that of the change for times that clocks skip."""
        return self.instant_us if self.before_us is None else self.before_us + 1

    def position(self, number: int | None = None) -> Position:
        """The position after a row, or after its group."""
        return Position(number, self.instant_us, local_us=self.local_us, before_us=self.before_us)


class Moves:
    """Positions of rows.

    Attributes:
        has_fractions: whether the incrementing column may hold fractions: a NUMERIC without precision and scale.
        repeated: of the last groups, how many rows have the number of another row, where a position is a number only.
    """

    def __init__(self, columns: Sequence[Column], tracked: Tracked, database: str, times: LocalTimes) -> None:
        names_in_order = [column.name for column in columns]
        self._id = -1 if tracked.incrementing is None else names_in_order.index(tracked.incrementing.name)
        self.repeated = 0
        self._id_name = "" if tracked.incrementing is None else tracked.incrementing.name
        self.has_fractions = tracked.incrementing is not None and tracked.incrementing.scale is None
        self._times = [
            (names_in_order.index(column.name), moment_of(database, column.kind, times))
            for column in tracked.timestamps
        ]
        # In SQLite, texts have any form, and are read as such.
        self._parses = database == "sqlite"
        self._zone = times
        self._may_skip = self._parses or any(column.kind is not Kind.INSTANT for column in tracked.timestamps)

    def _skipped(self, value: Any) -> int | None:
        if self._parses:
            return None if isinstance(value, int) else self._zone.skipped_us(datetime.fromisoformat(str(value)))
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)  # noqa: DTZ001
        return self._zone.skipped_us(value)

    def moment(self, row: Row) -> Moment:
        """The first timestamp that is not null."""
        for index, convert in self._times:
            value = row[index]
            if value is not None:
                if isinstance(value, Beyond) or (isinstance(value, str) and not self._parses):
                    raise no_moment(value.text if isinstance(value, Beyond) else value)
                try:
                    local_us = self._skipped(value) if self._may_skip else None
                    instant_us = convert(value)
                except (TypeError, ValueError, OverflowError):
                    if not self._parses:
                        raise
                    raise _no_text(value) from None
                if local_us is None:
                    return Moment(instant_us)
                return Moment(instant_us, local_us, self._zone.before_skipped_us(local_us))
        raise ValueError("a row without a timestamp was selected")

    def positions(self, rows: Sequence[Row]) -> list[Position]:
        """The position of each row: its timestamp, its number, or both."""
        if not self._times:
            return [Position(self._number(row[self._id])) for row in rows]
        if self._id < 0:
            return [self.moment(row).position() for row in rows]
        return [self.moment(row).position(self._number(row[self._id])) for row in rows]

    def check_whole(self, numbers: Iterable[Any]) -> None:
        """Refuse values of the incrementing column that a position cannot hold."""
        for number in numbers:
            self._number(number)

    def _number(self, value: Any) -> int:
        number: int | None
        try:
            number = int(value)
        except (TypeError, ValueError, OverflowError):  # NaN, infinity, and in SQLite texts
            number = None
        # A REAL of SQLite, which compares numbers above 64 bits as such.
        is_inexact = isinstance(value, float) and number is not None and not _INT64[0] <= number <= _INT64[1]
        if number is None or number != value or is_inexact:
            limit = " of 64 bits" if is_inexact else ""
            # A column of SQLite may have any text, and errors have no texts of rows.
            shown = "a text" if isinstance(value, (str, bytes)) else f"the value {value}"
            raise DataError(
                f"The incrementing column {self._id_name} has {shown}, which is not a whole number{limit}: an"
                " offset cannot hold it, and every run would copy its row again.",
                code="database.column",
                suggestion="Use another column, or declare this one with scale 0.",
                config_path="incrementing.column.name",
            )
        return number

    def group_positions(self, rows: Sequence[Row], before: Position) -> list[Position]:
        """The position after each row, where only the last row of a group moves it.

        A group are the rows with the same timestamp, and with the same number if there is one.
        """
        own = self.positions(rows)
        positions, last = [], before
        if not self._times:
            self.repeated = len(own) - len(set(own))
        for index, at in enumerate(own):
            if index + 1 == len(own) or own[index + 1] != at:
                last = at
            positions.append(last)
        return positions


def _no_text(value: Any) -> DataError:
    return DataError(
        f"A tracked timestamp has the value {value!r}. SQLite reads it as a time, but it is neither a text such as"
        " 2026-01-31 13:00:00 nor a number of milliseconds since 1970 (which needs db.timezone=UTC), so no offset can"
        " hold it.",
        code="database.value",
        suggestion="Correct the row, or use another column.",
    )


def no_moment(text: str = "") -> DataError:
    """The error for a tracked timestamp that no position can hold; `text`: as the database writes it, or ""."""
    return DataError(
        f"A tracked timestamp has a value that is not a date of the years 1 to 9999{f': {text}' if text else ''}. No"
        " offset can hold it, and values.out.of.range does not apply to tracked columns.",
        code="database.value",
        suggestion="Correct the row, or use another column.",
    )
