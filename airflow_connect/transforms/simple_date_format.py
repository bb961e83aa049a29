"""Patterns of java.text.SimpleDateFormat: writing and reading instants, in UTC and in English.

Reading is as lenient as Java's: numbers may be short or too large (month 13 rolls over), text after the end of the
pattern is ignored, and so are blanks before a number or zone; a missing field is that of 1970-01-01T00:00:00Z. Source:
the
documentation of SimpleDateFormat and GregorianCalendar (Java 17); the calendar is Julian before 1582-10-15.

Letters: G y M L d D E u a H k K h m s S z Z X, and for writing only Y w W F, whose meaning depends on a country's weeks
(here those of the United States, Java's default: a week begins on Sunday, the first one holds 1 January).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from airflow_connect.converters.java_text import MS_PER_DAY, Instant, calendar_fields, epoch_day
from airflow_connect.errors import ConfigError, DataError

_LETTERS = "GyMLdDEuaHkKhmsSzZXYwWF"
_WRITTEN_ONLY = "YwWF"
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_ERAS = ("BC", "AD")
_HALVES = ("AM", "PM")
_MS_PER_HOUR = 3_600_000
_MS_PER_MINUTE = 60_000
_CENTURY_YEARS = 100
_TWO_DIGIT_YEARS_BACK = 80
# Names that RFC 822 defines: standard offset from UTC and daylight saving in hours. Java knows hundreds more, in the
# tables of its own release.
_ZONES_HOURS = {
    "EST": (-5, 0), "EDT": (-5, 1), "CST": (-6, 0), "CDT": (-6, 1),
    "MST": (-7, 0), "MDT": (-7, 1), "PST": (-8, 0), "PDT": (-8, 1),
}  # fmt: skip
_UTC_NAMES = ("COORDINATED UNIVERSAL TIME", "UTC")
_UNITS_MS = {"S": 1, "s": 1000, "m": _MS_PER_MINUTE, "aHkKh": _MS_PER_HOUR}
_LONGEST_NUMBER = 100
_NUMBER = re.compile(r"-?\d+")
_RFC_822_OFFSET = re.compile(r"([+-])(\d\d)(\d\d)", re.ASCII)
_GMT_OFFSET = re.compile(r"GMT([+-])(\d\d?):(\d\d)", re.ASCII | re.IGNORECASE)
_GMT_SIGN = re.compile(r"GMT[+-]", re.ASCII | re.IGNORECASE)
_ISO_OFFSETS = (
    re.compile(r"([+-])(\d\d)()", re.ASCII),
    re.compile(r"([+-])(\d\d)(\d\d)", re.ASCII),
    re.compile(r"([+-])(\d\d):(\d\d)", re.ASCII),
)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A run of one letter (`count` times), or literal text (`count` is 0)."""

    text: str
    count: int

    @property
    def is_number(self) -> bool:
        """Whether it is written in digits."""
        return self.count > 0 and (self.text not in "GEazZX" if self.text not in "ML" else self.count <= 2)


class SimpleDateFormat:
    """A compiled pattern; immutable.

    Attributes:
        pattern: as given.
        unit_ms: milliseconds of the shortest unit that is written; from one multiple to the next, texts are equal.
    """

    def __init__(self, pattern: str, now_ms: int | None = None) -> None:
        """Compile `pattern`.

        Args:
            pattern: letters as above, other characters stand for themselves, text between single quotes too.
            now_ms: two-digit years are read as the 100 years that begin 80 years before this instant; the clock's
                when None.

        Raises:
            ConfigError: a letter that the pattern language does not know, or a quote without end.
        """
        self.pattern = pattern
        self._pieces = _compile(pattern)
        start = calendar_fields(int(time.time() * 1000) if now_ms is None else now_ms)
        letters = {piece.text for piece in self._pieces if piece.count}
        self.unit_ms = next((ms for one, ms in _UNITS_MS.items() if letters.intersection(one)), MS_PER_DAY)
        self._century_year = start.year - _TWO_DIGIT_YEARS_BACK
        self._century_ms = epoch_day(self._century_year, start.month, start.day) * MS_PER_DAY + _clock_ms(start)

    def runs(self) -> list[tuple[str, str]]:
        """What the pattern consists of, in order: (letters of a field, "") or ("", literal text)."""
        return [(p.text * p.count, "") if p.count else ("", p.text) for p in self._pieces]

    def format(self, instant_ms: int) -> str:
        """Text of an instant.

        Args:
            instant_ms: milliseconds since 1970-01-01T00:00:00Z.
        """
        instant = calendar_fields(instant_ms)
        day = instant_ms // MS_PER_DAY
        return "".join([_WRITERS[p.text](instant, day, p.count) if p.count else p.text for p in self._pieces])

    def parse(self, text: str) -> int | None:
        """Milliseconds since 1970-01-01T00:00:00Z, or None when `text` does not match.

        Raises:
            DataError: the pattern can be written but not read.
        """
        reading = _Reading(text, self._century_year)
        for index, piece in enumerate(self._pieces):
            if not piece.count:
                matches = reading.literal(piece.text)
            else:
                following = self._pieces[index + 1] if index + 1 < len(self._pieces) else None
                matches = reading.field(piece.text, piece.count, following is not None and following.is_number)
            if not matches:
                return None
        if not reading.position:
            return None
        found = reading.instant_ms()
        if reading.is_century_unsure and found < self._century_ms:
            reading.fields["y"] += _CENTURY_YEARS
            return reading.instant_ms()
        return found


def _compile(pattern: str) -> list[_Piece]:
    pieces: list[_Piece] = []
    literal, position = "", 0
    while position < len(pattern):
        char = pattern[position]
        if char == "'":
            text, position = _quoted(pattern, position)
            literal += text
        elif char.isascii() and char.isalpha():
            end = position
            while end < len(pattern) and pattern[end] == char:
                end += 1
            if literal:
                pieces.append(_Piece(literal, 0))
            literal = ""
            pieces.append(_field(pattern, char, end - position))
            position = end
        else:
            literal, position = literal + char, position + 1
    return [*pieces, _Piece(literal, 0)] if literal else pieces


def _quoted(pattern: str, opening: int) -> tuple[str, int]:
    """Literal text from the quote at `opening` on, and where the pattern continues; two quotes are one."""
    if pattern.startswith("''", opening):
        return "'", opening + 2
    text, position = "", opening + 1
    while (end := pattern.find("'", position)) >= 0:
        text += pattern[position:end]
        if not pattern.startswith("''", end):
            return text, end + 1
        text, position = text + "'", end + 2
    raise ConfigError(
        f"Unterminated quote in the date pattern {pattern}.",
        suggestion="Close the quoted text with a single quote, or write two single quotes for one.",
    )


def _field(pattern: str, letter: str, count: int) -> _Piece:
    if letter not in _LETTERS:
        raise ConfigError(
            f"Illegal pattern character '{letter}' in the date pattern {pattern}.",
            suggestion=f"Use the letters {' '.join(_LETTERS)} of SimpleDateFormat, and put text between single quotes.",
        )
    if letter == "X" and count > len(_ISO_OFFSETS):
        raise ConfigError(
            f"Invalid ISO 8601 format: length={count} in the date pattern {pattern}.",
            suggestion="Write the zone as X (+01), XX (+0100) or XXX (+01:00).",
        )
    return _Piece(letter, count)


# Writing

_Writer = Callable[[Instant, int, int], str]


def _padded(number: Callable[[Instant, int], int]) -> _Writer:
    return lambda instant, day, count: f"{number(instant, day):0{count}}"


def _year_of_era(instant: Instant) -> int:
    return instant.year if instant.year > 0 else 1 - instant.year


def _year_text(year: int, count: int) -> str:
    if count != 2:
        return f"{'-' if year < 0 else ''}{abs(year):0{count}}"
    return f"{'-' if year < 0 else ''}{abs(year) % _CENTURY_YEARS:02}"


def _month_text(instant: Instant, _day: int, count: int) -> str:
    if count <= 2:
        return f"{instant.month:0{count}}"
    name = _MONTHS[instant.month - 1]
    return name[:3] if count == 3 else name


def _weekday(day: int) -> int:
    """0 is Sunday; 1970-01-01 was a Thursday."""
    return (day + 4) % 7


def _day_of_year(instant: Instant, day: int) -> int:
    return day - epoch_day(instant.year, 1, 1) + 1


def _week_date(instant: Instant, day: int) -> tuple[int, int]:
    """Year and week, from 1, in which the day lies; the week that holds 1 January is the first one."""
    saturday = day + 6 - _weekday(day)
    year = calendar_fields(saturday * MS_PER_DAY).year
    year = max(instant.year, year)
    return year, (saturday - epoch_day(year, 1, 1)) // 7 + 1


def _days_into_month(instant: Instant, day: int) -> int:
    """0 on the first day; October 1582 lacks ten days, which do not count."""
    return day - epoch_day(instant.year, instant.month, 1)


def _week_of_month(instant: Instant, day: int) -> int:
    passed = _days_into_month(instant, day)
    return (passed + _weekday(day - passed)) // 7 + 1


def _clock_ms(instant: Instant) -> int:
    seconds = instant.hour * 3600 + instant.minute * 60 + instant.second
    return seconds * 1000 + instant.ms


_WRITERS: dict[str, _Writer] = {
    "G": lambda instant, _day, _count: _ERAS[instant.year > 0],
    "y": lambda instant, _day, count: _year_text(_year_of_era(instant), count),
    "Y": lambda instant, day, count: _year_text(_week_date(instant, day)[0], count),
    "M": _month_text,
    "L": _month_text,
    "E": lambda _instant, day, count: _WEEKDAYS[_weekday(day)][: None if count > 3 else 3],
    "a": lambda instant, _day, _count: _HALVES[instant.hour >= 12],
    "z": lambda _instant, _day, count: "UTC" if count < 4 else "Coordinated Universal Time",
    "Z": lambda _instant, _day, _count: "+0000",
    "X": lambda _instant, _day, _count: "Z",
    "d": _padded(lambda instant, _day: instant.day),
    "D": _padded(_day_of_year),
    "F": _padded(lambda instant, day: _days_into_month(instant, day) // 7 + 1),
    "w": _padded(lambda instant, day: _week_date(instant, day)[1]),
    "W": _padded(_week_of_month),
    "u": _padded(lambda _instant, day: (_weekday(day) + 6) % 7 + 1),
    "H": _padded(lambda instant, _day: instant.hour),
    "k": _padded(lambda instant, _day: instant.hour or 24),
    "K": _padded(lambda instant, _day: instant.hour % 12),
    "h": _padded(lambda instant, _day: instant.hour % 12 or 12),
    "m": _padded(lambda instant, _day: instant.minute),
    "s": _padded(lambda instant, _day: instant.second),
    "S": _padded(lambda instant, _day: instant.ms),
}


# Reading


@dataclass(slots=True)
class _Reading:
    """Fields read so far, in the order of their last appearance.

    Attributes:
        century_year: first of the 100 years that a two-digit year may mean.
        fields: by letter; M and L are one, H and k, h and K, E and u; `a` and `G` are 0 or 1, `E` counts from Sunday
            on, `Z` is an offset from UTC that was written in digits, in milliseconds.
        zone_ms: standard offset of the last zone that was named.
        daylight_ms: what daylight saving adds to either.
        is_century_unsure: a two-digit year may lie at either end of the 100 years.
    """

    text: str
    century_year: int
    position: int = 0
    fields: dict[str, int] = field(default_factory=dict)
    is_century_unsure: bool = False
    zone_ms: int = 0
    daylight_ms: int = 0

    def literal(self, expected: str) -> bool:
        """Skip literal text."""
        if not self.text.startswith(expected, self.position):
            return False
        self.position += len(expected)
        return True

    def field(self, letter: str, count: int, adjacent: bool) -> bool:
        """Read one field; False when it does not match.

        Args:
            letter, count: the field.
            adjacent: a number follows at once, so this one ends after `count` characters.
        """
        if letter in _WRITTEN_ONLY:
            raise DataError(
                f"Dates cannot be read with the pattern letter {letter}, only written.",
                suggestion="Read days by their month or by their number in the year, M and d or D.",
            )
        start = self.position
        limit = start + count if adjacent else len(self.text)
        while self.position < len(self.text) and self.text[self.position] in " \t":
            self.position += 1
        if self.position >= len(self.text):
            return False
        if letter in "zZ":
            return self._zone()
        if letter == "X":
            return self._iso_zone(count)
        if letter in "EaG" or (letter in "ML" and count > 2):
            # Blanks are skipped before numbers and zones only.
            self.position = start
        if letter in "ML" and count > 2:
            return self._name("M", _MONTHS, first=1)
        if letter == "E":
            return self._name(letter, _WEEKDAYS, first=0)
        if letter == "a":
            return self._name(letter, _HALVES, first=0)
        if letter == "G":
            return self._name(letter, _ERAS, first=0)
        return limit <= len(self.text) and self._number(letter, count, limit)

    def _set(self, letter: str, value: int) -> bool:
        # If two fields contradict each other, the later one counts: a key that is set again moves to the end.
        self.fields.pop(letter, None)
        self.fields[letter] = value
        return True

    def _name(self, letter: str, names: tuple[str, ...], first: int) -> bool:
        """Full name or its first three letters, in any case."""
        rest = self.text[self.position :].lower()
        for index, name in enumerate(names):
            for spelling in (name, name[:3]):
                if rest.startswith(spelling.lower()):
                    self.position += len(spelling)
                    return self._set(letter, index + first)
        return False

    def _number(self, letter: str, count: int, limit: int) -> bool:
        match = _NUMBER.match(self.text, self.position, limit)
        if match is None:
            return False
        self.position = match.end()
        value = _java_int(_whole(match.group()))
        if letter == "y" and count <= 2 and len(match.group()) == 2 and match.group().isdigit():
            in_century = self.century_year % _CENTURY_YEARS
            self.is_century_unsure = value == in_century
            value += self.century_year - in_century + (_CENTURY_YEARS if value < in_century else 0)
        if (letter, value) in (("k", 24), ("h", 12)):
            value = 0
        if letter == "u":
            # 1 is Monday, but beyond 7 Java takes the number as its own, where 1 is Sunday.
            value = value if 1 <= value <= 7 else value - 1
        return self._set({"L": "M", "k": "H", "K": "h", "u": "E"}.get(letter, letter), value)

    def _zone(self) -> bool:
        found = _RFC_822_OFFSET.match(self.text, self.position) or _GMT_OFFSET.match(self.text, self.position)
        if found is not None:
            return self._offset(found)
        if _GMT_SIGN.match(self.text, self.position):
            return False  # As in Java, GMT-3 is not a zone, and is never read as GMT.
        rest = self.text[self.position :].upper()
        for name in _UTC_NAMES:
            if rest.startswith(name):
                # Standard and daylight time have the same name, so that Java leaves both as an earlier zone had them.
                self.zone_ms = 0
                self.position += len(name)
                return True
        if rest.startswith("GMT"):
            self.position += len("GMT")
            return self._set_offset(0)
        hours, saving = _ZONES_HOURS.get(rest[:3], (None, 0))
        if hours is None:
            return False
        self.position += 3
        self.fields.pop("Z", None)
        self.zone_ms, self.daylight_ms = hours * _MS_PER_HOUR, saving * _MS_PER_HOUR
        return True

    def _iso_zone(self, count: int) -> bool:
        if self.text[self.position] == "Z":
            self.position += 1
            return self._set_offset(0)
        found = _ISO_OFFSETS[count - 1].match(self.text, self.position)
        return found is not None and self._offset(found)

    def _offset(self, found: re.Match[str]) -> bool:
        sign, hours, minutes = found.group(1), int(found.group(2)), int(found.group(3) or 0)
        if hours > 23 or minutes > 59:
            return False
        self.position = found.end()
        offset_ms = hours * _MS_PER_HOUR + minutes * _MS_PER_MINUTE
        return self._set_offset(-offset_ms if sign == "-" else offset_ms)

    def _set_offset(self, offset_ms: int) -> bool:
        self.daylight_ms = 0
        return self._set("Z", offset_ms)

    def instant_ms(self) -> int:
        """The instant that the fields mean."""
        get = self.fields.get
        year = get("y", 1970)
        if get("G") == 0:
            year = 1 - year
        seconds = (self._hour() * 60 + get("m", 0)) * 60 + get("s", 0)
        days, clock_ms = divmod(seconds * 1000 + get("S", 0), MS_PER_DAY)
        # Java counts in 64 bits and does not look whether they are enough.
        offset_ms = get("Z", self.zone_ms) + self.daylight_ms
        return _wrapped(self._day(year, days) * MS_PER_DAY + clock_ms - offset_ms, bits=64)

    def _day(self, year: int, carried: int) -> int:
        """Day since 1970-01-01, `carried` days after the one that the fields say; 31 April is 1 May."""
        month = self.fields.get("M", 1)
        for letter in reversed(self.fields):
            if letter == "D":
                return epoch_day(year, 1, self.fields["D"] + carried)
            if letter == "d":
                return epoch_day(year, month, self.fields["d"] + carried)
        first_day = 1
        if "E" in self.fields:
            # A weekday alone is the first one of the month.
            first_day += (self.fields["E"] - _weekday(epoch_day(year, month, 1))) % 7
        return epoch_day(year, month, first_day + carried)

    def _hour(self) -> int:
        for letter in reversed(self.fields):
            if letter == "H" or (letter in "ha" and not ({"h", "a"} <= self.fields.keys()) and "H" in self.fields):
                return self.fields["H"]
            if letter in "ha":
                return self.fields.get("h", 0) + 12 * self.fields.get("a", 0)
        return 0


def _whole(digits: str) -> int:
    """The number; one far beyond a long where Python would refuse to read so many digits."""
    if len(digits.lstrip("-0")) > _LONGEST_NUMBER:
        return -(1 << 64) if digits.startswith("-") else 1 << 64
    number = int(digits.lstrip("-0") or "0")
    return -number if digits.startswith("-") else number


def _java_int(number: int) -> int:
    """`Number.intValue()` of what Java's NumberFormat reads: a long's low 32 bits, the nearest int beyond a long."""
    if not -(1 << 63) <= number < 1 << 63:
        return (1 << 31) - 1 if number > 0 else -(1 << 31)
    return _wrapped(number, bits=32)


def _wrapped(number: int, bits: int) -> int:
    half = 1 << bits - 1
    return (number + half) % (1 << bits) - half
