"""Names of months, days, eras and time zones in the languages that Java knows, from CLDR through Babel."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from babel import Locale

    from airflow_connect.layout.time.time_zones import Zone

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Java renamed these ISO 639 codes back and forth; it accepts both spellings.
_RENAMED = {"iw": "he", "in": "id", "ji": "yi"}


@dataclass(frozen=True)
class LocaleTexts:
    """Texts of one language. Months begin with January, days with Monday, eras with the one before Christ."""

    language: str
    months_short: tuple[str, ...]
    months_long: tuple[str, ...]
    days_short: tuple[str, ...]
    days_long: tuple[str, ...]
    half_days: tuple[str, ...]
    eras: tuple[str, ...]

    def zone_name(self, zone: Zone, instant_ms: int, is_long: bool) -> str:
        """Name of a time zone at an instant, or "" if it has only an offset."""
        if zone.id == "UTC" and not is_long:
            return "UTC"
        abbreviation = zone.abbreviation(instant_ms)
        if self.language != "en" or is_long:
            return _babel_zone_name(self.language, zone, instant_ms, is_long) or abbreviation
        return abbreviation


_ENGLISH = LocaleTexts(
    "en",
    tuple(month[:3] for month in _MONTHS),
    _MONTHS,
    tuple(day[:3] for day in _DAYS),
    _DAYS,
    ("AM", "PM"),
    ("BC", "AD"),
)
# What Java 17 prints for an unknown language, such as `en_US`.
_NEUTRAL = LocaleTexts(
    "en",
    _ENGLISH.months_short,
    _ENGLISH.months_short,
    _ENGLISH.days_short,
    _ENGLISH.days_short,
    ("AM", "PM"),
    ("BCE", "CE"),
)


@lru_cache(maxsize=16)
def locale_texts(locale: str) -> LocaleTexts:
    """Texts for Java's `new Locale(locale)`: the whole string is the language, upper or lower case."""
    language = _RENAMED.get(locale.lower(), locale.lower())
    if language == "en":
        return _ENGLISH
    found = _babel_locale(language)
    if found is None:
        return _NEUTRAL
    months, days, periods = found.months["format"], found.days["format"], found.day_periods["format"]
    return LocaleTexts(
        language,
        tuple(months["abbreviated"][month] for month in range(1, 13)),
        tuple(months["wide"][month] for month in range(1, 13)),
        tuple(days["abbreviated"][day] for day in range(7)),
        tuple(days["wide"][day] for day in range(7)),
        (periods["abbreviated"]["am"], periods["abbreviated"]["pm"]),
        tuple(found.eras["abbreviated"][era] for era in range(2)),
    )


def _babel_locale(language: str) -> Locale | None:
    if not re.fullmatch("[a-z]{2,3}", language):
        return None
    from babel import Locale, UnknownLocaleError

    try:
        return Locale(language)
    except UnknownLocaleError:
        return None


def _babel_zone_name(language: str, zone: Zone, instant_ms: int, is_long: bool) -> str:
    if zone.is_fixed and zone.id != "UTC":
        return ""
    from datetime import UTC, datetime, timedelta

    from babel.dates import get_timezone_name

    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=instant_ms)
    except OverflowError:
        return ""
    name = get_timezone_name(
        moment.astimezone(zone.tzinfo or UTC), width="long" if is_long else "short", locale=language
    )
    # If CLDR has no short name, Babel creates one from city or offset; Java does not.
    return name if is_long or re.fullmatch(r"[A-Z]{3,5}", name) else ""
