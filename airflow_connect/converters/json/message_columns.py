"""Schemaless JSON lines as the messages that `JsonConverter.from_connect` writes, without an object per message.

The lines are written by orjson. Jackson spells some values otherwise: large and small doubles, control characters, and
characters beyond the Basic Multilingual Plane. Lines in which one of these may be are parsed, and written again.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from airflow_connect.converters.decimal_columns import binary_parts
from airflow_connect.converters.json.writer import schemaless_text
from airflow_connect.errors import DataError

_FIRST_OF_FOUR_BYTES: Final = 0xF0
"""UTF-8 of characters beyond the Basic Multilingual Plane begins with this, or more."""
_ROOM: Final = 40
"""Longer than any number that orjson writes."""
_ZERO: Final = np.uint8(ord("0"))
_TEN: Final = np.uint8(10)
_IS_OF_NUMBER: Final = np.array([chr(code) in "0123456789.-" for code in range(256)])
_IS_BEFORE_NUMBER: Final = np.array([chr(code) in ":,[\n" for code in range(256)])


def messages_of_lines(lines: Any) -> Any | None:
    """The messages of lines (binary[n], each with its line feed) as binary[n]; None if one is not vectorizable."""
    messages = pc.binary_slice(lines, 0, -1)
    rows = _rows_to_write(lines) if len(lines) else ()
    if not len(rows):
        return messages
    found: list[Any] = messages.to_pylist()
    try:
        for row in rows:
            found[row] = schemaless_text(orjson.loads(found[row])).encode()
    except (ValueError, RecursionError, DataError):
        return None
    return pa.array(found, lines.type)


def _rows_to_write(lines: Any) -> Any:
    """The rows in which a value may be spelled otherwise."""
    bounds, data = binary_parts(lines)
    # Room on both sides, so that every place has neighbours; a line begins as if another one had ended before it.
    text = np.pad(data[bounds[0] : bounds[-1]], _ROOM, constant_values=ord("\n"))
    is_digit = text - _ZERO < _TEN  # what is below wraps
    escapes = _places(text == ord("\\"))
    places = np.concatenate(
        [
            _places(text >= _FIRST_OF_FOUR_BYTES) if text.max() >= _FIRST_OF_FOUR_BYTES else escapes[:0],
            escapes[text[escapes + 1] == ord("u")],
            _of_numbers(text, _exponents(text, is_digit)),
            _of_numbers(text, _long_fractions(text, is_digit)),
            _large_integers(text, is_digit),
        ]
    )
    return np.unique(np.searchsorted(bounds - bounds[0] + _ROOM, places, "right") - 1).tolist()


def _places(is_one: Any) -> Any:
    return np.flatnonzero(is_one)


def _of_numbers(text: Any, places: Any) -> Any:
    """The places that belong to a number, not to a string that looks like one from within."""
    starts = places - 1
    for _ in range(_ROOM - 10):
        is_inside = _IS_OF_NUMBER[text[starts]]
        if not is_inside.any():
            break
        starts = starts - is_inside
    return places[_IS_BEFORE_NUMBER[text[starts]] | _IS_OF_NUMBER[text[starts]]]


def _exponents(text: Any, is_digit: Any) -> Any:
    """A digit, `e`, and a digit or a sign."""
    places = _places(text == ord("e"))
    places = places[is_digit[places - 1]]
    after = text[places + 1]
    return places[is_digit[places + 1] | (after == ord("+")) | (after == ord("-"))]


def _long_fractions(text: Any, is_digit: Any) -> Any:
    """Eight digits before a point, or `0.000`."""
    points = _places(text == ord("."))
    large, small = points[is_digit[points - 8]], points[text[points - 1] == ord("0")]
    for distance in range(-7, 0):
        large = large[is_digit[large + distance]]
    for distance in (1, 2, 3):
        small = small[text[small + distance] == ord("0")]
    return np.concatenate([large, small])


def _large_integers(text: Any, is_digit: Any) -> Any:
    """20 digits, or 19 from 9 on: the integer may need more than 64 bits."""
    row = is_digit
    for distance in (1, 2, 4, 8, 3):  # rows of 2, 4, 8, 16 and 19
        row = row[:-distance] & row[distance:]
    starts = _places(row)
    return starts[(text[starts] == ord("9")) | is_digit[starts + 19]]
