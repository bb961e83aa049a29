"""Java's numbers: the text that its classes parse, conversions between types, and the largest size supported here.

Every number in text form, in a message, a header or a configuration, is parsed by one of the three parsers below,
because `int()`, `float()` and `Decimal()` also accept blanks, underscores and words that Java refuses. Every
function here is fast for any input: exponents are never expanded to digits.

Source: JLS 5.1.3, java.lang.Long.parseLong, java.lang.Double.parseDouble, java.math.BigDecimal; recorded in
tests/data/numbers.jsonl.
"""

from __future__ import annotations

import decimal
import math
import re
import struct
from decimal import Decimal
from typing import Final

from airflow_connect.errors import DataError

MAX_DECIMAL_BYTES: Final = 4_096
"""Bytes of the unscaled number of a Decimal: 9,864 digits.

Java has no limit. The time that a conversion takes grows with the square of the length.
"""
MAX_DECIMAL_DIGITS: Final = 9_864
MAX_SCALE: Final = (1 << 31) - 1
MIN_SCALE: Final = -(1 << 31)

_EXACT: Final = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?)(\d+))?")
_FLOAT = re.compile(r"([+-]?)(?:(NaN|Infinity)|((?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)[fFdD]?)", re.ASCII)
_HEX_FLOAT = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?|\.[0-9a-fA-F]+)[pP][+-]?\d+)[fFdD]?", re.ASCII)
_BLANKS = "".join(map(chr, range(0x21)))
_LAST_CHAR = "\uffff"
_ZERO_FROM_EXPONENT = 64
_SHOWN = 60


def shown_number(text: str) -> str:
    """`text` for a message, shortened to its beginning."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def wrapped(number: int, bits: int) -> int:
    """The low `bits` of `number` as a signed integer: a narrowing conversion."""
    half = 1 << bits - 1
    return (number + half) % (1 << bits) - half


def narrowed(value: bool | int | float | Decimal, bits: int) -> int:
    """`Number.byteValue()` to `longValue()`: 8, 16, 32 or 64 bits.

    Floats lose their fraction and are clamped to 32 bits (64 for a long) before the high bits are cut off; a NaN
    is 0. A Decimal loses its fraction and its high bits.
    """
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        limit = 1 << max(bits, 32) - 1
        whole = limit if value >= limit else -limit if value <= -limit else math.trunc(value)
        return wrapped(min(whole, limit - 1), bits)
    if isinstance(value, Decimal):
        return wrapped(_low_bits(value), bits)
    return wrapped(int(value), bits)


def _low_bits(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    # 10^64 is a multiple of 2^64: for larger exponents all remaining bits are 0, and the digits are not needed.
    # Without this, 1E999999999 would become a billion digits.
    if isinstance(exponent, int) and exponent >= _ZERO_FROM_EXPONENT:
        return 0
    return int(value)


def float64_of(value: bool | int | float | Decimal) -> float:
    """`Number.doubleValue()`: too large is infinite; a Decimal has no negative zero."""
    try:
        number = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return abs(number) if number == 0 and isinstance(value, Decimal) and value.is_zero() else number


def float32_of(value: bool | int | float | Decimal) -> float:
    """`Number.floatValue()`: rounded once to the nearest 32 bit float."""
    # An int is converted through Decimal: rounding to a double first could give the wrong neighbour.
    return to_float32(Decimal(value) if isinstance(value, int) else value)


def to_float32(value: float | Decimal) -> float:
    """The 32 bit float closest to `value`, ties to even; too large is infinite.

    A Decimal is rounded only once, not to a double first: a double exactly between two floats is moved towards the
    Decimal.
    """
    wide = float(value)
    if isinstance(value, Decimal) and math.isfinite(wide):
        bits = struct.unpack("<Q", struct.pack("<d", wide))[0]
        exact = Decimal(wide)
        if bits & 0x1FFFFFFF == 0x10000000 and exact != value:
            wide = math.nextafter(wide, math.inf if value > exact else -math.inf)
    try:
        return float(struct.unpack("<f", struct.pack("<f", wide))[0])
    except OverflowError:
        return math.copysign(math.inf, wide)


def parse_integer(text: str, bits: int) -> int:
    """`Byte.parseByte` to `Long.parseLong`: a sign, then digits of any script in Unicode's first plane.

    Raises:
        ValueError: anything else, or a number that needs more bits.
    """
    # The longest long has 19 digits, possibly after leading zeros.
    if _INTEGER.fullmatch(text) and _is_first_plane(text):
        digits = text.lstrip("+-0")
        if len(digits) <= 20:
            number = int(digits or "0")
            number = -number if text[0] == "-" else number
            if -(1 << bits - 1) <= number < 1 << bits - 1:
                return number
    raise ValueError(f"{shown_number(text)} is not an integer of {bits} bits.")


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
    raise ValueError(f"{shown_number(text)} is not a number.")


def _nearest_float32(text: str) -> float:
    try:
        return to_float32(Decimal(text))
    except decimal.InvalidOperation:  # an exponent of more than 18 digits: 0 or infinite, also as a double
        return float(text)


def _from_hex(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return -math.inf if text.startswith("-") else math.inf


def parse_decimal(text: str) -> Decimal:
    """`new BigDecimal(text)`: digits of any script in Unicode's first plane, an exponent of 32 bits.

    Raises:
        ValueError: not a decimal number.
        DataError: a number of more than `MAX_DECIMAL_DIGITS` digits.
    """
    found = _DECIMAL.fullmatch(text)
    if not found or not _is_first_plane(text):
        raise ValueError(f"{shown_number(text)} is not a decimal number.")
    digits, sign, exponent = found.groups()
    if len(digits) > MAX_DECIMAL_DIGITS:
        raise DataError(
            f"The number {shown_number(text)} has more than {MAX_DECIMAL_DIGITS} digits.",
            suggestion="Fix the producer.",
        )
    if exponent and len(exponent) >= 10:
        fraction = len(digits) - digits.index(".") - 1 if "." in digits else 0
        _check_exponent(text, sign, exponent, fraction)
    number = Decimal(text)
    return number.copy_abs() if number.is_zero() else number  # BigDecimal has no negative zero


def _check_exponent(text: str, sign: str, digits: str, fraction: int) -> None:
    """Java keeps the exponent, and the resulting scale, in 32 bits."""
    # Non-ASCII digits have their own zeros.
    digits = "".join(str(int(digit)) for digit in digits[:_SHOWN]).lstrip("0") if len(digits) <= _SHOWN else digits
    exponent = int(sign + (digits or "0")) if len(digits) <= 10 else MAX_SCALE + 1
    if not MIN_SCALE <= exponent <= MAX_SCALE or not MIN_SCALE <= fraction - exponent <= MAX_SCALE:
        raise ValueError(f"The exponent of {shown_number(text)} is out of range.")


def _is_first_plane(text: str) -> bool:
    # Character.isDigit(char) checks the two surrogates of any other character one by one.
    return text.isascii() or max(text) <= _LAST_CHAR


def integer_parameter(text: str | None, name: str = "scale") -> int:
    """A numeric parameter of a schema, such as the scale of a Decimal (Decimal.scale).

    Raises:
        DataError: missing, or not an integer of 32 bits.
    """
    try:
        return parse_integer(text or "", 32)
    except ValueError as error:
        found = "is missing" if text is None else f"is {shown_number(text)!r}"
        raise DataError(
            f"The schema's parameter {name} must be an integer of 32 bits, but it {found}.",
            code="data.schema",
            suggestion=f'Write it into the schema, for example "parameters":{{"{name}":"2"}}.',
        ) from error


def decimal_of_bytes(data: bytes | bytearray | memoryview, scale: int) -> Decimal:
    """`new BigDecimal(new BigInteger(data), scale)`: big-endian two's complement, the digits kept as they are.

    Raises:
        DataError: no bytes, or more than `MAX_DECIMAL_BYTES`.
    """
    if not data:
        raise DataError("Invalid bytes for Decimal field: there are none.", suggestion="Fix the producer.")
    if len(data) > MAX_DECIMAL_BYTES:
        raise DataError(
            f"A Decimal of {len(data)} bytes is too large: at most {MAX_DECIMAL_BYTES} bytes are read.",
            suggestion="Pass such values through as bytes, or set errors.tolerance.",
        )
    # Arithmetic would round to the precision of Python's default context.
    return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale, _EXACT)


def unscaled(value: Decimal) -> tuple[int, int]:
    """`BigDecimal.unscaledValue()` and `scale()` of a finite number.

    Raises:
        DataError: more than `MAX_DECIMAL_DIGITS` digits.
    """
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "a number that is not finite"
    if len(digits) > MAX_DECIMAL_DIGITS:
        raise DataError(
            f"A Decimal of {len(digits)} digits is too large: at most {MAX_DECIMAL_DIGITS} digits are written.",
            suggestion="Pass such values through as text.",
        )
    return int(Decimal((sign, digits, 0))), -exponent


def unscaled_bytes(number: int) -> bytes:
    """`BigInteger.toByteArray()`: the fewest bytes of two's complement, big-endian."""
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(size, "big", signed=True)


def integer_text(number: int) -> str:
    """`str(number)` without Python's limit of 4,300 digits.

    Raises:
        DataError: more than `MAX_DECIMAL_BYTES` bytes.
    """
    if number.bit_length() >= MAX_DECIMAL_BYTES * 8:
        raise DataError(
            f"An integer of {number.bit_length()} bits is too large to be written.", suggestion="Fix the producer."
        )
    return str(Decimal(number))
