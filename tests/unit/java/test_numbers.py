"""Java's conversions between numbers and from text."""

from __future__ import annotations

import math
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.java.numbers import float32_of, narrowed, parse_decimal, parse_float, parse_integer, wrapped


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.sampled_from([8, 16, 32, 64]))
def test_wrapped_keeps_the_low_bits(number: int, bits: int) -> None:
    low = number % (1 << bits)
    assert wrapped(number, bits) % (1 << bits) == low
    assert -(1 << bits - 1) <= wrapped(number, bits) < 1 << bits - 1


@pytest.mark.parametrize(
    ("value", "bits", "expected"),
    [
        (math.nan, 32, 0),
        (math.inf, 64, (1 << 63) - 1),
        (-math.inf, 32, -(1 << 31)),
        (1e300, 8, -1),  # the largest int, whose low 8 bits are all set
        (-1e300, 16, 0),
        (-300.9, 8, -44),
        (2.0**63, 64, (1 << 63) - 1),
        (True, 8, 1),
        (Decimal("-300.99"), 8, -44),
        (Decimal("18446744073709551617"), 64, 1),
        (Decimal("1e999999999"), 64, 0),
        (Decimal("1e-999999999"), 64, 0),
        (Decimal("7" * 5000), 8, wrapped(int("7" * 4000) * 10**1000 + int("7" * 1000), 8)),
    ],
)
def test_narrowed_numbers_lose_what_java_drops(value: bool | float | Decimal, bits: int, expected: int) -> None:
    assert narrowed(value, bits) == expected


@given(st.floats(width=32))
def test_float32_of_32_bit_floats_changes_nothing(value: float) -> None:
    assert struct.pack("<f", float32_of(value)) == struct.pack("<f", value)


def test_float32_of_integer_between_two_floats_is_rounded_once() -> None:
    # 2**60 + 2**36 lies exactly between two floats; one more belongs to the upper one, which a double no longer sees.
    between = (1 << 60) + (1 << 36)
    assert float32_of(between) == float(1 << 60)
    assert float32_of(between + 1) == float((1 << 60) + (1 << 37))


@pytest.mark.parametrize("text", ["", "+", "-", " 1", "1 ", "1.0", "0x1", "1_0", "1L", "128", "-129"])
def test_parse_integer_what_java_refuses_raises(text: str) -> None:
    with pytest.raises(ValueError, match="is not an integer of 8 bits"):
        parse_integer(text, 8)


@pytest.mark.parametrize(
    ("text", "number"), [("+7", 7), ("-128", -128), ("0000000000000000000000000127", 127), ("\u0667", 7)]
)
def test_parse_integer_what_java_reads_is_read(text: str, number: int) -> None:
    assert parse_integer(text, 8) == number


@pytest.mark.parametrize(
    ("text", "bits", "number"),
    [
        ("\t1f ", 64, 1.0),
        (".5d", 64, 0.5),
        ("-Infinity", 32, -math.inf),
        ("1e400", 64, math.inf),
        ("0x1p3", 64, 8.0),
        ("-0x1p99999", 32, -math.inf),
        ("3.5e38", 32, math.inf),
        ("-1e99999999999999999999", 32, -math.inf),
        ("1e-99999999999999999999", 32, 0.0),
        ("16777217", 32, 16777216.0),
    ],
)
def test_parse_float_what_java_reads_is_read(text: str, bits: int, number: float) -> None:
    assert parse_float(text, bits) == number


@pytest.mark.parametrize("text", ["", "nan", "inf", "1_0", "0x1", "1e", "--1", "\u0667"])
def test_parse_float_what_java_refuses_raises(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        parse_float(text, 64)


@pytest.mark.parametrize("text", ["", " 1", "NaN", "1_0", "0x1", "1e99999999999999999999"])
def test_parse_decimal_what_java_refuses_raises(text: str) -> None:
    with pytest.raises(ValueError, match=r"decimal number|out of range"):
        parse_decimal(text)


def test_parse_decimal_zero_has_no_sign() -> None:
    assert str(parse_decimal("-0.00")) == "0.00"
