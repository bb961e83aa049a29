"""Java's `toString()` of the values that Connect knows, and the calendar that `java.util.Date` uses.

Numbers follow JDK 19 and later (the shortest decimal that reads back as the same number); JDK 17 prints a
few doubles with one digit more. Time zone is UTC everywhere.
"""

from __future__ import annotations

import base64
import datetime
import math
from decimal import Decimal
from typing import Any, NamedTuple

from airflow_connect.api.schema import DATE, TIME, TIMESTAMP, Schema, Type
from airflow_connect.java.numbers import integer_text, to_float32

MS_PER_DAY = 86_400_000
# 1582-10-15: java.util.GregorianCalendar counts earlier days by the Julian calendar.
_CUTOVER_DAY = -141_427
_CUTOVER_JULIAN_DAY_NUMBER = 2_440_588
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_WEEKDAYS = ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Instant(NamedTuple):
    """Calendar fields of an instant in UTC; `year` <= 0 is before Christ (0 is 1 BC)."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    ms: int
    weekday: str


def calendar_fields(instant_ms: int) -> Instant:
    """Fields of `instant_ms` (milliseconds since 1970-01-01T00:00:00Z) as in Java's GregorianCalendar."""
    days, rest = divmod(instant_ms, MS_PER_DAY)
    year, month, day = _civil(days)
    hour, rest = divmod(rest, 3_600_000)
    minute, rest = divmod(rest, 60_000)
    second, ms = divmod(rest, 1000)
    return Instant(year, month, day, hour, minute, second, ms, _WEEKDAYS[days % 7])


def _civil(days: int) -> tuple[int, int, int]:
    # Richards' algorithm on the Julian day number; the Gregorian correction applies from the cutover on.
    number = days + _CUTOVER_JULIAN_DAY_NUMBER
    f = number + 1401
    if days >= _CUTOVER_DAY:
        f += (((4 * number + 274_277) // 146_097) * 3) // 4 - 38
    e = 4 * f + 3
    h = 5 * ((e % 1461) // 4) + 2
    month = (h // 153 + 2) % 12 + 1
    return e // 1461 - 4716 + (14 - month) // 12, month, (h % 153) // 5 + 1


def epoch_day(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a date that may roll over (month 13, 30 February), as in Java."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    a = (14 - month) // 12
    y, m = year + 4800 - a, month + 12 * a - 3
    julian = day + (153 * m + 2) // 5 + 365 * y + y // 4 - 32_083 - _CUTOVER_JULIAN_DAY_NUMBER
    gregorian = julian - y // 100 + y // 400 + 38
    return gregorian if gregorian >= _CUTOVER_DAY else julian


def epoch_ms(value: datetime.datetime) -> int:
    """Milliseconds since the epoch of a datetime, our schemaless `java.util.Date`; a naive one is UTC."""
    aware = value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)
    return (aware - _EPOCH) // datetime.timedelta(milliseconds=1)


def date_text(instant_ms: int) -> str:
    """`java.util.Date.toString()`: `Tue Nov 14 22:13:20 UTC 2023`."""
    t = calendar_fields(instant_ms)
    # Date.toString() prints the year of the era, without the era.
    year = t.year if t.year > 0 else 1 - t.year
    return f"{t.weekday} {_MONTHS[t.month - 1]} {t.day:02} {t.hour:02}:{t.minute:02}:{t.second:02} UTC {year:04}"


def double_text(value: float) -> str:
    """`Double.toString`: `1.0E10`, `100.0`, `4.9E-324`, `NaN`, `-Infinity`."""
    if not math.isfinite(value):
        return _not_finite_text(value)
    magnitude = abs(value)
    text = repr(value)
    if 1e-3 <= magnitude < 1e7 or magnitude == 0:
        return text
    return _scientific(text, f"{value:.1e}")


def float_text(value: float) -> str:
    """`Float.toString` of a number that is a 32 bit float; other numbers are rounded to one first."""
    if not math.isfinite(value):
        return _not_finite_text(value)
    value = to_float32(value)
    if not math.isfinite(value):
        return _not_finite_text(value)
    shortest = next(t for t in (f"{value:.{n}e}" for n in range(9)) if to_float32(float(t)) == value)
    magnitude = abs(value)
    if 1e-3 <= magnitude < 1e7 or magnitude == 0:
        return repr(float(shortest))
    return _scientific(shortest, f"{value:.1e}")


def _not_finite_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _scientific(shortest: str, two_digits: str) -> str:
    sign, digits, exponent = Decimal(shortest).as_tuple()
    assert isinstance(exponent, int)
    while len(digits) > 1 and digits[-1] == 0:
        digits, exponent = digits[:-1], exponent + 1
    if len(digits) == 1:
        # Java prints at least two digits and then takes the closest two: 5e-324 is 4.9E-324.
        mantissa, _, power = two_digits.partition("e")
        return f"{mantissa}E{int(power)}"
    head, *tail = map(str, digits)
    return f"{'-' if sign else ''}{head}.{''.join(tail)}E{exponent + len(digits) - 1}"


def decimal_text(value: Decimal) -> str:
    """`BigDecimal.toString`: `10.50`, `7E+2`, `1E-8`; Java has no negative zero."""
    return str(value.copy_abs() if value.is_zero() else value)


def java_string(schema: Schema | None, value: Any) -> str:
    """`String.valueOf` of a Connect value; `schema` determines the type of an int, a float or a dict.

    Java prints a byte array as an address, which is meaningless: here it is printed in base64. Maps
    keep their own order, where Java's HashMap has an order by hash.
    """
    if value is None:
        return "null"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return _integer_string(schema, value)
    if isinstance(value, float):
        return float_text(value) if schema is not None and schema.type is Type.FLOAT32 else double_text(value)
    if isinstance(value, Decimal):
        return decimal_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return _mapping_string(schema, value)
    if isinstance(value, list | tuple):
        element = schema.value_schema if schema is not None and schema.type is Type.ARRAY else None
        return "[" + ", ".join([java_string(element, item) for item in value]) + "]"
    return date_text(epoch_ms(value)) if isinstance(value, datetime.datetime) else str(value)


def _integer_string(schema: Schema | None, value: int) -> str:
    name = schema.name if schema is not None else None
    if name == DATE:
        return date_text(value * MS_PER_DAY)
    if name in (TIME, TIMESTAMP):
        return date_text(value)
    return integer_text(value)


def _mapping_string(schema: Schema | None, value: dict[Any, Any]) -> str:
    if schema is not None and schema.type is Type.STRUCT:
        # Struct.toString() leaves out what is null, and knows nothing of defaults.
        items = [(f, value.get(f.name)) for f in schema.fields]
        return "Struct{" + ",".join([f"{f.name}={java_string(f.schema, v)}" for f, v in items if v is not None]) + "}"
    is_map = schema is not None and schema.type is Type.MAP
    keys, values = (schema.key_schema, schema.value_schema) if is_map and schema is not None else (None, None)
    return "{" + ", ".join([f"{java_string(keys, k)}={java_string(values, v)}" for k, v in value.items()]) + "}"
