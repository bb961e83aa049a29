"""Which texts and numbers a column of MySQL takes for a date or a time.

An insert refuses what is none. A condition does not: it compares with zero, or drops what follows, such as a zone.
Forms that no program writes, such as `2026@01@02`, count as none.
Source: "Date and Time Literals" of MySQL and MariaDB.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import Any

_CLOCK = r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.\d*)?)?)?"
_DATE = re.compile(rf"\s*(\d{{1,4}})[-/.](\d{{1,2}})[-/.](\d{{1,2}})(?:[T ]+{_CLOCK})?\s*")
_DATE_DIGITS = re.compile(r"\s*(\d{2}|\d{4})(\d{2})(\d{2})(?:(\d{2})(\d{2})(\d{2})(?:\.\d*)?)?\s*")
_TIME = re.compile(r"\s*-?(?:\d{1,2} +)?\d{1,3}:(\d{1,2})(?::(\d{1,2})(?:\.\d*)?)?\s*")
_TIME_DIGITS = re.compile(r"\s*-?(\d{1,7})(?:\.\d*)?\s*")
_LENGTHS = (6, 8, 12, 14)
"""Digits of a date, and of a date and time, with two or four of the year."""
_HOURS, _SIXTY = 24, 60
_LEAP_YEAR = 2000


def is_date(value: Any) -> bool:
    """Whether a column takes a text, bytes or a number for a date, or for a date and time."""
    text = _text_of(value)
    if not isinstance(value, str | bytes | bytearray | memoryview):
        length = next((length for length in _LENGTHS if length >= len(text)), 0)
        text = text if "." in text or "-" in text else text.zfill(length)
    found = _DATE.fullmatch(text) or _DATE_DIGITS.fullmatch(text)
    return found is not None and _is_valid(*(int(part or 0) for part in found.groups()))


def is_time(value: Any) -> bool:
    """The same for a time."""
    text = _text_of(value)
    if found := _TIME.fullmatch(text):
        return all(int(part or 0) < _SIXTY for part in found.groups())
    if found := _TIME_DIGITS.fullmatch(text):
        return int(found[1]) % 100 < _SIXTY and int(found[1]) // 100 % 100 < _SIXTY
    return _DATE.fullmatch(text) is not None and ":" in text and is_date(text)


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("latin-1")
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    return str(int(number)) if number == number.to_integral_value() else f"{number:f}"


def _is_valid(year: int, month: int, day: int, hour: int, minute: int, second: int) -> bool:
    if hour >= _HOURS or minute >= _SIXTY or second >= _SIXTY:
        return False
    if not (year or month or day):
        return True
    try:
        date(year or _LEAP_YEAR, month, day)
    except ValueError:
        return False
    return True
