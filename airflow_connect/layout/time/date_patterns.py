"""Joda-Time's date patterns (`DateTimeFormat`), as Confluent's `path.format` uses them.

| letter | meaning | | letter | meaning |
|---|---|---|---|---|
| G | era, text | | a | AM or PM, text |
| C | century of era | | K, h | hour 0-11, 1-12 |
| Y | year of era (not the week-year) | | H, k | hour 0-23, 1-24 |
| y | year, negative before Christ | | m, s | minute, second |
| x, w, e | week-year, week, day of week (Monday 1) | | S | fraction of the second |
| D, d, M | day of year, of month, month (text from MMM) | | z | zone name, text |
| E | day of week, text | | Z | +0100, ZZ +01:00, ZZZ zone id |

Numbers are padded to the number of letters; `yy`, `YY` and `xx` are two digits; text is long from four letters on.
Other letters are illegal. Everything else, and text between single quotes, is literal; two single quotes are one.

Text follows Java: the whole locale string is a language, so `en_US`, which is not one, gets the language-neutral text
(English short names even for long ones, era CE). `z` prints the tz database's abbreviations. Java has its own names
for some zones without one (BRT for America/Sao_Paulo); here they are printed as offsets. `ZZZ` prints the configured
id; Joda-Time prints the id that it is an alias of.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from airflow_connect.errors import ConfigError
from airflow_connect.layout.time.calendar import date_of_days, days_of_date, week_date_of_days, weekday_of_days
from airflow_connect.layout.time.locale_texts import LocaleTexts, locale_texts
from airflow_connect.layout.time.time_zones import DAY_MS, HOUR_MS, MINUTE_MS, Zone

_TWO_DIGIT_YEARS = ("YY", "yy", "xx")


class _Moment:
    """An instant in a zone; its parts are computed lazily, because most patterns need only a few."""

    def __init__(self, instant_ms: int, zone: Zone) -> None:
        self.instant_ms = instant_ms
        self.offset_ms = zone.offset_ms(instant_ms)
        self.days, self.ms_of_day = divmod(instant_ms + self.offset_ms, DAY_MS)
        self.year, self.month, self.day = date_of_days(self.days)
        self.hour = self.ms_of_day // HOUR_MS

    @property
    def year_of_era(self) -> int:
        return self.year if self.year > 0 else 1 - self.year

    @cached_property
    def week(self) -> tuple[int, int]:
        return week_date_of_days(self.days)


class _Token(NamedTuple):
    """A letter and its count, or a literal (letter ""), and how it prints."""

    render: Callable[[_Moment], str]
    regex: str


_NUMBERS: dict[str, Callable[[_Moment], int]] = {
    "C": lambda m: m.year_of_era // 100,
    "Y": lambda m: m.year_of_era,
    "y": lambda m: m.year,
    "x": lambda m: m.week[0],
    "w": lambda m: m.week[1],
    "e": lambda m: weekday_of_days(m.days),
    "D": lambda m: m.days - days_of_date(m.year, 1, 1) + 1,
    "M": lambda m: m.month,
    "d": lambda m: m.day,
    "K": lambda m: m.hour % 12,
    "h": lambda m: (m.hour + 11) % 12 + 1,
    "H": lambda m: m.hour,
    "k": lambda m: m.hour or 24,
    "m": lambda m: m.ms_of_day // MINUTE_MS % 60,
    "s": lambda m: m.ms_of_day // 1000 % 60,
}


@dataclass(frozen=True)
class DatePattern:
    """A compiled pattern; call it with an instant in milliseconds.

    Attributes:
        regex: regular expression of the texts that the pattern can produce.
    """

    pattern: str
    zone: Zone
    tokens: tuple[_Token, ...]

    def __call__(self, instant_ms: int) -> str:
        """Text of the instant, in the pattern's zone."""
        moment = _Moment(instant_ms, self.zone)
        return "".join(token.render(moment) for token in self.tokens)

    @cached_property
    def regex(self) -> str:
        """Concatenation of the parts' expressions."""
        return "".join(token.regex for token in self.tokens)


def compile_pattern(pattern: str, locale: str, zone: Zone) -> DatePattern:
    """Compile a Joda-Time pattern.

    Args:
        pattern: `path.format`.
        locale: language of texts, `en`; see the module's documentation.
        zone: zone in which instants are printed.

    Raises:
        ConfigError: it is empty, or contains an unknown letter.
    """
    if not pattern:
        raise _illegal(pattern, "Invalid pattern specification: Pattern is null or empty")
    texts = _LazyTexts(locale)
    return DatePattern(pattern, zone, tuple(_token(pattern, part, zone, texts) for part in _parts(pattern)))


def _parts(pattern: str) -> list[str]:
    """Runs of one letter (`yyyy`), and literals with a leading quote (`'T`)."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        if _is_letter(pattern[at]):
            run = re.match(rf"{pattern[at]}+", pattern[at:])
            parts.append(run.group() if run else "")
            at += len(parts[-1])
        else:
            literal, at = _literal(pattern, at)
            parts.append("'" + literal)
    return parts


def _literal(pattern: str, at: int) -> tuple[str, int]:
    """Literal text from `at` on, and where it ends. An open quote runs to the end, as in Joda-Time."""
    text, quoted = "", False
    while at < len(pattern):
        if pattern[at] == "'":
            if pattern[at + 1 : at + 2] == "'":
                text += "'"
                at += 1
            else:
                quoted = not quoted
        elif not quoted and _is_letter(pattern[at]):
            break
        else:
            text += pattern[at]
        at += 1
    return text, at


def _is_letter(char: str) -> bool:
    return char.isascii() and char.isalpha()


def _token(pattern: str, part: str, zone: Zone, texts: _LazyTexts) -> _Token:
    letter, count = part[0], len(part)
    if letter == "'":
        literal = part[1:]
        return _Token(lambda _moment: literal, re.escape(literal))
    if letter in "GaE" or (letter == "M" and count >= 3):
        return _text_token(letter, count, texts)
    if letter in "zZ":
        return _zone_token(letter, count, zone, texts)
    if letter == "S":
        return _Token(lambda m: f"{m.ms_of_day % 1000:03d}".ljust(count, "0")[:count], rf"[0-9]{{{count}}}")
    number = _NUMBERS.get(letter)
    if number is None:
        raise _illegal(pattern, f"Illegal pattern component: {part}")
    if part in _TWO_DIGIT_YEARS:
        # Joda-Time prints YY from the year, not from the year of era.
        year = _NUMBERS["x" if letter == "x" else "y"]
        return _Token(lambda m: f"{abs(year(m)) % 100:02d}", "[0-9]{2}")
    return _Token(lambda m: _padded(number(m), count), rf"-?[0-9]{{{count},}}")


def _text_token(letter: str, count: int, texts: _LazyTexts) -> _Token:
    found = texts.found
    if letter == "G":
        return _Token(lambda m: found.eras[m.year > 0], _any_of(found.eras))
    if letter == "a":
        return _Token(lambda m: found.half_days[m.hour >= 12], _any_of(found.half_days))
    if letter == "E":
        days = found.days_long if count >= 4 else found.days_short
        return _Token(lambda m: days[weekday_of_days(m.days) - 1], _any_of(days))
    months = found.months_long if count >= 4 else found.months_short
    return _Token(lambda m: months[m.month - 1], _any_of(months))


def _zone_token(letter: str, count: int, zone: Zone, texts: _LazyTexts) -> _Token:
    if letter == "z":
        found = texts.found
        return _Token(lambda m: found.zone_name(zone, m.instant_ms, count >= 4) or _offset(m.offset_ms, ":"), ".+?")
    if count >= 3:
        return _Token(lambda _moment: zone.id, re.escape(zone.id))
    separator = ":" if count == 2 else ""
    return _Token(lambda m: _offset(m.offset_ms, separator), rf"[+-][0-9]{{2}}{separator}[0-9]{{2}}")


def _offset(offset_ms: int, separator: str) -> str:
    hours, minutes = divmod(abs(offset_ms) // MINUTE_MS, 60)
    return f"{'-' if offset_ms < 0 else '+'}{hours:02d}{separator}{minutes:02d}"


def _padded(number: int, width: int) -> str:
    """Zero-padded to `width` digits, the sign not counted."""
    return f"-{-number:0{width}d}" if number < 0 else f"{number:0{width}d}"


def _any_of(texts: tuple[str, ...]) -> str:
    return "(?:" + "|".join(re.escape(text) for text in sorted(set(texts), key=len, reverse=True)) + ")"


class _LazyTexts:
    """Texts of a locale, loaded when a pattern needs any: loading takes longer than planning an empty run."""

    def __init__(self, locale: str) -> None:
        self.locale = locale

    @cached_property
    def found(self) -> LocaleTexts:
        return locale_texts(self.locale)


def _illegal(pattern: str, why: str) -> ConfigError:
    return ConfigError(
        f"Invalid value {pattern} for configuration path.format: {why}",
        code="layout.illegal_pattern",
        suggestion="Quote literal text with single quotes: 'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH.",
        config_path="path.format",
    )
