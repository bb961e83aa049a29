"""Java's conversions between numbers and from text, as transformations use them (JLS 5.1, Kafka Connect's Values)."""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation

from airflow_connect.converters.java_text import to_float32

_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_FLOAT = re.compile(r"([+-]?)(?:(NaN|Infinity)|((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFdD]?)", re.ASCII)
_HEX_FLOAT = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+)[fFdD]?", re.ASCII)
_BLANKS = "".join(map(chr, range(0x21)))
_FARTHEST_EXPONENT = 1000  # far beyond what any of the types can hold, near enough to compute with


def wrapped(number: int, bits: int) -> int:
    """The low `bits` of `number` as a signed integer: a narrowing conversion."""
    half = 1 << bits - 1
    return (number + half) % (1 << bits) - half


def narrowed(value: bool | int | float | Decimal, bits: int) -> int:
    """`Number.byteValue()` to `longValue()`: 8, 16, 32 or 64 bits.

    Floats lose their fraction and end at the nearest number of 32 bits (64 for a long) before the high bits go; a NaN
    is 0. A Decimal loses its fraction and its high bits.
    """
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        limit = 1 << max(bits, 32) - 1
        whole = limit if value >= limit else -limit if value <= -limit else math.trunc(value)
        return wrapped(min(whole, limit - 1), bits)
    if isinstance(value, Decimal):
        return wrapped(int(_bounded(value)), bits)
    return wrapped(int(value), bits)


def _bounded(value: Decimal) -> Decimal:
    # 1E999999999 has a billion digits; all that counts are its low 64 bits, and those of 1E1000 are 0 as well.
    sign, digits, exponent = value.as_tuple()
    if isinstance(exponent, int) and exponent > _FARTHEST_EXPONENT:
        return Decimal((sign, digits, _FARTHEST_EXPONENT))
    return value


def float32_of(value: bool | int | float | Decimal) -> float:
    """`Number.floatValue()`: rounded once to the nearest 32 bit float."""
    # An int goes by way of Decimal: rounding to a double first could end on the other neighbour.
    return to_float32(Decimal(value) if isinstance(value, int) else value)


def parse_integer(text: str, bits: int) -> int:
    """`Byte.parseByte` to `Long.parseLong`: a sign, then digits of any script.

    Raises:
        ValueError: anything else, or a number that needs more bits.
    """
    # The longest long has 19 digits; zeros may stand before them.
    if _INTEGER.fullmatch(text) and len(text.lstrip("+-0")) <= 20:
        number = int(text)
        if -(1 << bits - 1) <= number < 1 << bits - 1:
            return number
    raise ValueError(f"{text} is not an integer of {bits} bits.")


def parse_float(text: str, bits: int) -> float:
    """`Float.parseFloat` (32 bits) and `Double.parseDouble` (64 bits): also NaN, Infinity, hexadecimal and `1f`.

    Raises:
        ValueError: anything else.
    """
    text = text.strip(_BLANKS)
    if found := _FLOAT.fullmatch(text):
        sign, special, digits = found.groups()
        if special:
            return math.nan if special == "NaN" else math.copysign(math.inf, -1 if sign == "-" else 1)
        return _nearest_float32(sign + digits) if bits == 32 else float(sign + digits)
    if hexadecimal := _HEX_FLOAT.fullmatch(text):
        wide = _from_hex(hexadecimal.group(1))
        return to_float32(wide) if bits == 32 else wide
    raise ValueError(f"{text} is not a number.")


def _nearest_float32(text: str) -> float:
    try:
        return to_float32(Decimal(text))
    except InvalidOperation:  # an exponent of more than 18 digits: 0 or infinite, which a double says as well
        return float(text)


def _from_hex(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return -math.inf if text.startswith("-") else math.inf


def parse_decimal(text: str) -> Decimal:
    """`new BigDecimal(text)`.

    Raises:
        ValueError: not a decimal number.
    """
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"{text} is not a decimal number.")
    try:
        number = Decimal(text)
    except InvalidOperation as error:
        raise ValueError(f"The exponent of {text} has too many digits.") from error
    return number.copy_abs() if number.is_zero() else number  # Java's has no negative zero
