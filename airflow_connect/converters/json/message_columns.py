"""Schemaless JSON lines as the messages that `JsonConverter.from_connect` writes, without an object per message.

The lines are written by orjson. Jackson spells some values otherwise: large and small doubles, control characters, and
characters beyond the Basic Multilingual Plane. Lines in which one of these may be are parsed, and written again.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from airflow_connect.converters.decimal_columns import binary_parts
from airflow_connect.converters.json.text import may_overflow
from airflow_connect.converters.json.writer import schemaless_text
from airflow_connect.errors import DataError

_FIRST_OF_FOUR_BYTES: Final = 0xF0
"""UTF-8 of characters beyond the Basic Multilingual Plane begins with this, or more."""
_TEN: Final = np.uint8(10)
_LONGEST_PATTERN: Final = 20
_IS_OTHERWISE: Final = re.compile(
    rb"\\u|[\xf0-\xff]|(?:^|[:,\[])-?(?:[0-9.]+e|[0-9]{8}[0-9]*\.|0\.000|[0-9]{20}|9[2-9][0-9]{17})"
).search


def messages_of_lines(lines: Any) -> Any | None:
    """The messages of lines (binary[n], each with its line feed) as binary[n]; None if one is not vectorizable."""
    bounds, data = binary_parts(lines)
    text = data[bounds[0] : bounds[-1]] if len(lines) else data[:0]
    if not _may_be_otherwise(text):
        return pc.binary_slice(lines, 0, -1)
    try:
        return pa.array([_message(line[:-1]) for line in lines.to_pylist()], lines.type)
    except (ValueError, RecursionError, DataError):
        return None


def _may_be_otherwise(text: Any) -> bool:
    """Whether a value may be spelled otherwise than in the text; False is certain, and costs little."""
    if not len(text):
        return False
    # Room on both sides, so that every place has neighbours.
    data = np.pad(text, _LONGEST_PATTERN)
    is_digit = data - np.uint8(0x30) < _TEN
    return bool(
        data.max() >= _FIRST_OF_FOUR_BYTES
        or _is_at(data, _places(data, "\\"), 1, "u")
        or _has_exponent(data, is_digit)
        or _has_long_fraction(data, is_digit)
        or (_has_row(is_digit) and may_overflow(data.tobytes()))
    )


def _places(data: Any, character: str) -> Any:
    return np.flatnonzero(data == ord(character))


def _is_at(data: Any, places: Any, distance: int, character: str) -> bool:
    return bool((data[places + distance] == ord(character)).any())


def _has_exponent(data: Any, is_digit: Any) -> bool:
    """A digit, `e`, and a digit or a sign."""
    places = _places(data, "e")
    places = places[is_digit[places - 1]]
    return bool(is_digit[places + 1].any()) or any(_is_at(data, places, 1, sign) for sign in "+-")


def _has_long_fraction(data: Any, is_digit: Any) -> bool:
    """Eight digits before a point, or `0.000`."""
    points = _places(data, ".")
    large, small = points[is_digit[points - 8]], points[data[points - 1] == ord("0")]
    for distance in range(-7, 0):
        large = large[is_digit[large + distance]]
    for distance in (1, 2, 3):
        small = small[data[small + distance] == ord("0")]
    return bool(len(large) or len(small))


def _has_row(is_digit: Any) -> bool:
    """19 digits, as an integer of more than 64 bits has."""
    row = is_digit
    for distance in (1, 2, 4, 8, 3):  # rows of 2, 4, 8, 16 and 19
        row = row[:-distance] & row[distance:]
    return bool(row.any())


def _message(document: bytes) -> bytes:
    return schemaless_text(orjson.loads(document)).encode() if _IS_OTHERWISE(document) else document
