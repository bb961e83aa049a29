"""Columns of Arrow as the literals of `values/row_text.py`, without a Python object per value where that is possible.

A function returns parts: arrays of texts, and texts that are the same for all rows, which are joined row by row later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_connect.connectors.jdbc.source.values.local_times import DAY_US, SECOND_US

Parts = Sequence[Any]
Literal = Callable[[Any], str]
"""The literal of one value of an array, for those that the fast way does not know."""

_PLAIN = bytes(n for n in range(0x20, 0x7F) if n not in b"'\\")
"""Bytes that a literal of Python has as they are."""
_IS_SPECIAL = np.isin(np.arange(256), np.frombuffer(_PLAIN, np.uint8), invert=True)
_WITH_EXPONENT = r"^-?0\.000000\d"
"""Texts of PostgreSQL of numbers that Python may write with an exponent: those below 0.000001."""
_NULL = "None"
_NO_PLACES = np.array([], np.int64)


def joined(parts: Parts) -> Any:
    """The texts of all rows: parts one after the other."""
    if len(parts) == 1:
        return parts[0]
    strings: list[Any] = [pa.scalar(part) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*strings, "")


def of_booleans(array: Any) -> Parts:
    """`True`, `False`."""
    return _finished([pc.if_else(array, "True", "False")], array)


def of_integers(array: Any) -> Parts:
    """Digits."""
    return _finished([array.cast(pa.string())], array)


def of_texts(array: Any, literal: Callable[[Any], str] = repr) -> Parts:
    """Texts in quotes; `literal`: of a text with other characters than printable ASCII."""
    return _finished(["'", array, "'"], array, _with_special_bytes(array), literal)


def of_numbers(array: Any, literal: Callable[[Any], str]) -> Parts:
    """Texts of PostgreSQL's numerics as Decimals; `literal`: of a text that is a number close to zero."""
    small = pc.match_substring_regex(array, pattern=_WITH_EXPONENT).fill_null(False)
    places = np.flatnonzero(small.to_numpy(zero_copy_only=False)) if small.true_count else _NO_PLACES
    return _finished(["Decimal('", array, "')"], array, places, literal)


def of_dates(days: Any, beyond: Any, literals: Sequence[str], array: Any) -> Parts:
    """Dates.

    Args:
        days: since the epoch, int64[n]; any date for a null, or for one that Python has not.
        beyond: places of those that Python has not.
        literals: theirs.
        array: of the column.
    """
    return _replaced(["datetime.date(", *_of_days(days), ")"], array, beyond, literals)


def of_times(micros: Any, beyond: Any, literals: Sequence[str], array: Any) -> Parts:
    """Times of a day without a zone, in microseconds since midnight; other arguments: see `of_dates`."""
    hours_and_minutes, *rest = _of_micros(micros)
    # Without the comma before the hour, which follows the date in a timestamp.
    parts = ["datetime.time(", pc.utf8_slice_codeunits(hours_and_minutes, 2), *rest, ")"]
    return _replaced(parts, array, beyond, literals)


def of_timestamps(micros: Any, zone: str, beyond: Any, literals: Sequence[str], array: Any) -> Parts:
    """Dates with times, in microseconds since the epoch.

    Args:
        micros: int64[n].
        zone: the literal of their zone; "": they have none.
        beyond, literals, array: see `of_dates`.
    """
    days = micros // DAY_US
    end = f", tzinfo={zone})" if zone else ")"
    parts = ["datetime.datetime(", *_of_days(days), *_of_micros(micros - days * DAY_US), end]
    return _replaced(parts, array, beyond, literals)


def _of_days(days: Any) -> Parts:
    """`2026, 1` and `, 31`."""
    dates = days.astype("M8[D]")
    months = dates.astype("M8[M]")
    # All months of a table are few, unless it has a long history.
    encoded = pa.array(months.astype(np.int64)).dictionary_encode()
    names = [f"{1970 + month // 12}, {month % 12 + 1}" for month in encoded.dictionary.to_pylist()]
    day_of_month = (dates - months.astype("M8[D]")).astype(np.int64)
    return [pa.array(names, pa.string()).take(encoded.indices), _day_names().take(pa.array(day_of_month))]


def _of_micros(micros: Any) -> Parts:
    """`, 12, 30`, and if they are not zero, or something follows, `, 5` and `, 123456`."""
    seconds, fractions = micros // SECOND_US, micros % SECOND_US
    minutes, second = seconds // 60, seconds % 60
    has_fraction = fractions != 0
    parts = [_minute_names().take(pa.array(minutes))]
    if has_fraction.any():
        second = np.where((second == 0) & has_fraction, 60, second)
    if second.any():
        parts.append(_second_names().take(pa.array(second)))
    if has_fraction.any():
        texts = joined([", ", pa.array(fractions).cast(pa.string())])
        parts.append(texts if has_fraction.all() else pc.if_else(pa.array(has_fraction), texts, ""))
    return parts


@cache
def _day_names() -> Any:
    return pa.array([f", {day}" for day in range(1, 32)])


@cache
def _minute_names() -> Any:
    return pa.array([f", {minute // 60}, {minute % 60}" for minute in range(24 * 60)])


@cache
def _second_names() -> Any:
    """Nothing for 0; the last one is the 0 before a fraction."""
    return pa.array(["", *(f", {second}" for second in range(1, 60)), ", 0"])


def _with_special_bytes(array: Any) -> Any:
    """Places of the texts with a byte that a literal does not have as it is."""
    _, offsets_buffer, data_buffer = array.buffers()
    if data_buffer is None:
        return _NO_PLACES
    offsets = np.frombuffer(offsets_buffer, np.int32)[array.offset : array.offset + len(array) + 1]
    data = memoryview(data_buffer)[offsets[0] : offsets[-1]]
    if not bytes(data).translate(None, _PLAIN):
        return _NO_PLACES
    found = np.flatnonzero(_IS_SPECIAL[np.frombuffer(data, np.uint8)]) + offsets[0]
    return np.unique(np.searchsorted(offsets, found, side="right") - 1)


def _finished(parts: Parts, array: Any, places: Any = _NO_PLACES, literal: Literal = repr) -> Parts:
    """With the literals of nulls, and of values at `places`."""
    if not len(places):
        return _replaced(parts, array, places, [])
    return _replaced(parts, array, places, [literal(value) for value in array.take(pa.array(places)).to_pylist()])


def _replaced(parts: Parts, array: Any, places: Any, literals: Sequence[str]) -> Parts:
    if not len(places) and not array.null_count:
        return parts
    texts = joined(parts)
    if len(places):
        mask = np.zeros(len(array), bool)
        mask[places] = True
        texts = pc.replace_with_mask(texts, pa.array(mask), pa.array(literals, pa.string()))
    return [pc.if_else(array.is_valid(), texts, _NULL) if array.null_count else texts]
