"""The proleptic Gregorian calendar over integers of any size: days since 1970-01-01 to dates, and back.

Python's `datetime` ends in the year 9999 and begins in the year 1; timestamps in the wrong unit are far
outside, and Joda-Time formats them all the same. Years are astronomical: 0 is 1 BC.
"""

from __future__ import annotations

from typing import NamedTuple

_DAYS_TO_MARCH_0000 = 719_468  # from 0000-03-01 to 1970-01-01
_DAYS_PER_ERA = 146_097  # 400 years


class Date(NamedTuple):
    """A calendar date; `month` and `day` from 1."""

    year: int
    month: int
    day: int


def date_of_days(days: int) -> Date:
    """Date of the day `days` after 1970-01-01."""
    # Years begin in March here, so the leap day is the last day of the year.
    era, day_of_era = divmod(days + _DAYS_TO_MARCH_0000, _DAYS_PER_ERA)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    year = era * 400 + year_of_era + (month <= 2)
    return Date(year, month, day_of_year - (153 * month_from_march + 2) // 5 + 1)


def days_of_date(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to the date."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return (
        era * _DAYS_PER_ERA
        + year_of_era * 365
        + year_of_era // 4
        - year_of_era // 100
        + day_of_year
        - _DAYS_TO_MARCH_0000
    )


def is_leap_year(year: int) -> bool:
    """Whether the year has 366 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_in_month(year: int, month: int) -> int:
    """28 to 31."""
    return 28 + is_leap_year(year) if month == 2 else 30 if month in (4, 6, 9, 11) else 31


def weekday_of_days(days: int) -> int:
    """ISO day of the week, Monday 1 to Sunday 7."""
    return (days + 3) % 7 + 1


def week_date_of_days(days: int) -> tuple[int, int]:
    """ISO week-year and week, from 1."""
    year = date_of_days(days - weekday_of_days(days) + 4).year  # the week belongs to the year of its Thursday
    return year, (days - _first_week(year)) // 7 + 1


def days_of_week_date(week_year: int, week: int, weekday: int) -> int:
    """Days from 1970-01-01 to the day of an ISO week."""
    return _first_week(week_year) + (week - 1) * 7 + weekday - 1


def weeks_in_year(week_year: int) -> int:
    """52 or 53."""
    return (_first_week(week_year + 1) - _first_week(week_year)) // 7


def _first_week(week_year: int) -> int:
    """Days from 1970-01-01 to the Monday of the first week, the one with 4 January."""
    fourth = days_of_date(week_year, 1, 4)
    return fourth - weekday_of_days(fourth) + 1
