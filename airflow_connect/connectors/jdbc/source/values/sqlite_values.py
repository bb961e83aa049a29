"""Values of SQLite, whose columns hold values of any type, as those of fields."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any

from airflow_connect.connectors.jdbc.source.values.local_times import LocalTimes, days_of
from airflow_connect.connectors.jdbc.source.values.out_of_range import UnfitError

_ABOVE_INT64 = 2.0**63
_DIGITS = 15
"""Of a whole number above 64 bits, as SQLite promises them."""


def sqlite_boolean(value: Any) -> bool:
    """0, 1, or a word for them."""
    if value in (0, 1):
        return bool(value)
    words = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
    if str(value).lower() not in words:
        raise UnfitError("it is neither 0 nor 1, true nor false")
    return words[str(value).lower()]


def sqlite_bytes(value: Any) -> bytes:
    """A BLOB, or what else the column has as a text in UTF-8."""
    return value if isinstance(value, bytes) else str(value).encode()


def sqlite_double(value: Any) -> float:
    """A number; a column of REAL, or of a query, may have a text, or a whole number that no double holds."""
    if not isinstance(value, int | float):
        raise UnfitError("it is not a number")
    found = float(value)
    if isinstance(value, int) and int(found) != value:
        raise UnfitError("it is a whole number with more digits than a double keeps")
    return found


def check_digits(value: float, number: Decimal) -> None:
    """Refuse a REAL in a DECIMAL or NUMERIC that was a whole number above 64 bits when it was inserted.

    SQLite has none, so it keeps about 15 digits of it, and the others that are shown are not those that were written.

    Args:
        value: as it is stored.
        number: what it is shown as.
    """
    if abs(value) >= _ABOVE_INT64 and len(number.normalize().as_tuple().digits) > _DIGITS:
        raise UnfitError(
            "it is a REAL that has lost digits, because SQLite has no whole numbers above 64 bits. Declare the column"
            " as TEXT to keep them, or as REAL"
        )


def sqlite_digits(value: Any) -> str:
    """The digits of a number. Python takes more texts for numbers than SQL: 1_000, or digits of other scripts."""
    text = str(value)
    if isinstance(value, str) and ("_" in text or not text.isascii()):
        raise UnfitError("it is not a number")
    return text


def sqlite_text(value: Any) -> str:
    """A text, a BLOB that is one in UTF-8, or the digits of a number."""
    try:
        return value if isinstance(value, str) else value.decode() if isinstance(value, bytes) else str(value)
    except UnicodeDecodeError:
        raise UnfitError("it is not a text in UTF-8") from None


def sqlite_moment(times: LocalTimes) -> Callable[[Any], int]:
    """SQLite's texts are local times; its integers milliseconds since the epoch, as sqlite-jdbc writes them."""
    is_utc = are_utc(times)

    def instant(value: Any) -> int:
        if isinstance(value, int):
            if not is_utc:
                raise UnfitError("numbers in a timestamp column of SQLite need db.timezone=UTC")
            return value * 1000
        moment = datetime.fromisoformat(str(value))
        return times.instant_us(moment.astimezone(UTC) if moment.tzinfo is not None else moment)

    return instant


def are_utc(times: LocalTimes) -> bool:
    """Whether local times are those of UTC, in January and in July."""
    return times.local(0) == datetime(1970, 1, 1) and times.local(15_552_000_000_000).hour == 0  # noqa: DTZ001


def as_strftime(instant_us: int) -> int:
    """The milliseconds that SQLite compares: it rounds, but never to the next minute."""
    minute, rest = divmod(instant_us, 60_000_000)
    return minute * 60_000_000 + min((rest + 500) // 1000 * 1000, 59_999_000)


def sqlite_date(times: LocalTimes) -> Callable[[Any], int]:
    """The conversion of a text, or of milliseconds since the epoch, to days since the epoch."""

    def days(value: Any) -> int:
        if isinstance(value, int):
            day = times.local(value * 1000)
        else:
            day = datetime.fromisoformat(str(value)).replace(tzinfo=None)
        if day.time() != time.min:
            raise UnfitError("it has a time of day, which a date has not: declare the column as TIMESTAMP")
        return days_of(day)

    return days
