"""ISO-8601 texts to instants, as Joda-Time's `ISODateTimeFormat.dateTimeParser()` reads them.

Accepted: `2024`, `2024-12`, `2024-12-30`, `2024-365`, `2024-W52-1`, each followed by `T12`, `T12:34`,
`T12:34:56`, a fraction of the last unit (`.5` or `,5`) and an offset (`Z`, `+02`, `+0200`, `+02:00`); or a
time alone, `T12:34`. Missing parts are the smallest ones. Text without an offset means UTC: Kafka Connect
takes the JVM's default time zone there, which is UTC in its containers, and a result that depends on the
machine would differ between executors.
"""

from __future__ import annotations

import re

from airflow_connect.errors import DataError
from airflow_connect.layout.time.calendar import (
    days_in_month,
    days_of_date,
    days_of_week_date,
    is_leap_year,
    weeks_in_year,
)

_DATE = (
    r"(?P<year>[+-]?\d{1,9})"
    r"(?:-[Ww](?P<week>\d{1,2})(?:-(?P<weekday>\d))?|-(?P<ordinal>\d{3})|-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?)?"
)
_FRACTION = r"(?:[.,](?P<{}>\d{{1,9}}))"
_TIME = (
    rf"(?P<hour>\d{{1,2}})(?:{_FRACTION.format('hour_part')}"
    rf"|:(?P<minute>\d{{1,2}})(?:{_FRACTION.format('minute_part')}"
    rf"|:(?P<second>\d{{1,2}}){_FRACTION.format('second_part')}?)?)?"
)
_OFFSET = (
    r"(?P<offset>[Zz]|(?P<sign>[+-])(?P<oh>[01]\d|2[0-3])"
    r"(?:(?P<colon>:?)(?P<om>[0-5]\d)(?:(?P=colon)(?P<os>[0-5]\d)(?:[.,](?P<of>\d{1,3}))?)?)?)"
)
_TIME_ALONE, _ITS_OFFSET = (part.replace("?P<", "?P<t_").replace("?P=", "?P=t_") for part in (_TIME, _OFFSET))
_ISO = re.compile(rf"(?:{_DATE}(?:[Tt](?:{_TIME})?{_OFFSET}?)?|[Tt](?P<only>{_TIME_ALONE}){_ITS_OFFSET}?)", re.ASCII)

_HOUR_MS, _MINUTE_MS, _SECOND_MS, _DAY_MS = 3_600_000, 60_000, 1_000, 86_400_000
_MAX_YEAR = 292_278_993  # Joda's limit: the years that fit into 64 bits of milliseconds


def parse_iso_ms(text: str) -> int:
    """Milliseconds since the epoch.

    Raises:
        DataError: `Invalid format: ...` or `Cannot parse ...: Value 13 for monthOfYear must be in the range
        [1,12]`.
    """
    match = _ISO.match(text)
    if match is None:
        raise DataError(f'Invalid format: "{text}"')
    if match.end() != len(text):
        raise DataError(f'Invalid format: "{text}" is malformed at "{text[match.end() :]}"')
    parts = match.groupdict()
    if parts["only"] is not None:
        parts = {**parts, **{name[2:]: value for name, value in parts.items() if name.startswith("t_")}}
    return _days(text, parts) * _DAY_MS + _time_ms(text, parts) - _offset_ms(parts)


def _days(text: str, parts: dict[str, str | None]) -> int:
    if parts["year"] is None:
        return 0
    year = _in_range(text, "year", parts["year"], -_MAX_YEAR, _MAX_YEAR)
    if parts["week"] is not None:
        week = _in_range(text, "weekOfWeekyear", parts["week"], 1, weeks_in_year(year))
        return days_of_week_date(year, week, _in_range(text, "dayOfWeek", parts["weekday"], 1, 7))
    if parts["ordinal"] is not None:
        return (
            days_of_date(year, 1, 1) - 1 + _in_range(text, "dayOfYear", parts["ordinal"], 1, 365 + is_leap_year(year))
        )
    month = _in_range(text, "monthOfYear", parts["month"], 1, 12)
    return days_of_date(year, month, _in_range(text, "dayOfMonth", parts["day"], 1, days_in_month(year, month)))


def _time_ms(text: str, parts: dict[str, str | None]) -> int:
    hour = _in_range(text, "hourOfDay", parts["hour"], 0, 23)
    minute = _in_range(text, "minuteOfHour", parts["minute"], 0, 59)
    second = _in_range(text, "secondOfMinute", parts["second"], 0, 59)
    whole = hour * _HOUR_MS + minute * _MINUTE_MS + second * _SECOND_MS
    for part, unit_ms in (("hour_part", _HOUR_MS), ("minute_part", _MINUTE_MS), ("second_part", _SECOND_MS)):
        digits = parts[part]
        if digits is not None:
            whole += int(digits) * unit_ms // 10 ** len(digits)
    return whole


def _offset_ms(parts: dict[str, str | None]) -> int:
    if parts["sign"] is None:
        return 0
    hours, minutes, seconds = (int(parts[name] or 0) for name in ("oh", "om", "os"))
    offset = hours * _HOUR_MS + minutes * _MINUTE_MS + seconds * _SECOND_MS + int((parts["of"] or "").ljust(3, "0"))
    return -offset if parts["sign"] == "-" else offset


def _in_range(text: str, name: str, digits: str | None, low: int, high: int) -> int:
    """The number, or `low` when it is not given."""
    value = max(low, 0) if digits is None else int(digits)
    if not low <= value <= high:
        raise DataError(f'Cannot parse "{text}": Value {value} for {name} must be in the range [{low},{high}]')
    return value
