"""Values that the field of their column cannot hold, and what `values.out.of.range` makes of them.

Source: MySQL Connector/J "Configuration properties" for zeroDateTimeBehavior.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from airflow_connect.connectors.jdbc.source.settings.names import CLAMP, FAIL, NULL
from airflow_connect.connectors.jdbc.source.values.columns import Kind

ZERO_ACTIONS = {"null": NULL, "round": CLAMP}
"""What `zeroDateTimeBehavior` of a URL asks for; with `exception`, `values.out.of.range` counts."""

_DAYS_AND_TIMES = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.INSTANT})
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Beyond:
    """A date or time that Python has no object for, instead of the driver's value.

    Attributes:
        is_above: whether it is after all that Python has, else before.
        text: as the database writes it, or "".
    """

    is_above: bool
    text: str = ""


class UnfitError(ValueError):
    """A value does not fit its field; the message says why, without the value."""


class OutOfRangeError(UnfitError):
    """A field cannot hold a value.

    Attributes:
        nearest: the nearest value that the field holds; None: there is none.
        is_zero: whether it is MySQL's date 0000-00-00.
    """

    def __init__(self, reason: str, nearest: Any = None, *, is_zero: bool = False) -> None:
        """`reason`: a part of a sentence, of which `it` is the value."""
        super().__init__(reason)
        self.nearest, self.is_zero = nearest, is_zero


@dataclass(frozen=True, slots=True)
class Fitting:
    """What becomes of such values.

    Attributes:
        action: `values.out.of.range`.
        zero: what `zeroDateTimeBehavior` of the URL says.
        count: is told of a number of values: a sentence that ends before the number, and the number.
    """

    action: str
    zero: str
    count: Callable[[str, int], None]

    def chosen(self, error: OutOfRangeError) -> tuple[str, str]:
        """The action for a value, one of `values.out.of.range`, and the setting that asks for it."""
        if error.is_zero and self.zero in ZERO_ACTIONS:
            return ZERO_ACTIONS[self.zero], "zeroDateTimeBehavior"
        return self.action, "values.out.of.range"

    def fitted(self, error: OutOfRangeError) -> tuple[Any, str]:
        """The value that is written instead, and how a note describes it.

        Raises:
            OutOfRangeError: there is none.
        """
        action, setting = self.chosen(error)
        if action == FAIL:
            raise error
        if action == NULL:
            return None, f"written as null ({setting})"
        if error.nearest is None:
            raise OutOfRangeError(f"{error}, and {setting} finds no nearest value that fits")
        return error.nearest, f"written as the nearest value that fits ({setting})"


def double_of(value: Any) -> float:
    """A number with any number of digits as a double.

    Raises:
        OutOfRangeError: it is finite and larger than any double, so that it would become infinite.
    """
    found = float(value)
    if math.isinf(found) and isinstance(value, Decimal) and value.is_finite():
        raise OutOfRangeError("it is larger than any double", math.copysign(sys.float_info.max, found))
    return found


def guarded(convert: Callable[[Any], Any], kind: Kind) -> Callable[[Any], Any]:
    """A conversion of dates, or of dates and times, that also takes `Beyond`, and the texts of PyMySQL.

    PyMySQL returns the text of a date that does not exist, such as 0000-00-00 or 2020-00-15.
    """
    if kind not in _DAYS_AND_TIMES:
        return convert

    def guard(value: Any) -> Any:
        if isinstance(value, Beyond):
            reason = "it is not a date of the years 1 to 9999"
            raise OutOfRangeError(reason, _limit(convert, kind, is_above=value.is_above))
        if isinstance(value, str):
            is_zero = value.startswith("0000-00-00")
            nearest = _limit(convert, kind, is_above=False) if is_zero else None
            raise OutOfRangeError("it is a date with zeros, which no calendar has", nearest, is_zero=is_zero)
        return convert(value)

    return guard


def _limit(convert: Callable[[Any], Any], kind: Kind, *, is_above: bool) -> Any:
    """The first or the last value of a field."""
    if kind is Kind.DATE:
        return convert(date.max if is_above else date.min)
    limit = datetime.max if is_above else datetime.min  # noqa: DTZ901 (of the column's zone)
    if kind is Kind.INSTANT:
        limit = limit.replace(tzinfo=UTC)
    for moment in (limit, limit - _DAY if is_above else limit + _DAY):
        try:
            return convert(moment)
        except OutOfRangeError as error:
            if error.nearest is not None:  # of nanoseconds
                return error.nearest
        except OverflowError:
            pass
        # another zone's year is 0 or 10000 then
    return None
