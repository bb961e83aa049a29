"""Unscaled numbers of Arrow decimals are the bytes of `BigInteger.toByteArray`."""

from __future__ import annotations

from decimal import Context, Decimal

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.converters.decimal_columns import has_longer, is_shortest, unscaled_column
from airflow_connect.java.numbers import unscaled_bytes
from tests.support.session.searching import examples

MOST = 10**38 - 1
NUMBERS = st.builds(
    lambda bits, more, sign: max(-MOST, min(MOST, sign * (1 << bits) + more)),
    st.integers(0, 126),
    st.integers(-2, 2) | st.integers(-(1 << 60), 1 << 60),
    st.sampled_from([-1, 1]),
)
"""Of every length, and beside every power of two."""


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(NUMBERS | st.none(), max_size=8), st.integers(0, 2))
def test_unscaled_numbers_are_the_shortest_bytes(numbers: list[int | None], first: int) -> None:
    exact = Context(prec=60)
    decimals = [None if number is None else Decimal(number).scaleb(-5, exact) for number in numbers]
    column = pa.array(decimals, pa.decimal128(38, 5)).slice(first)

    found = unscaled_column(column)

    expected = [None if number is None else unscaled_bytes(number) for number in numbers[first:]]
    assert found.to_pylist() == expected and found.type == pa.binary()
    assert is_shortest(found)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.binary(max_size=4) | st.none(), max_size=6), st.integers(0, 6))
def test_longer_bytes_are_noticed(values: list[bytes | None], first: int) -> None:
    shortest = all(
        v is None or (v != b"" and unscaled_bytes(int.from_bytes(v, "big", signed=True)) == v) for v in values[first:]
    )
    assert is_shortest(pa.array(values, pa.binary()).slice(first)) is shortest


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(NUMBERS | st.none(), max_size=6), st.integers(0, 38), st.integers(0, 2))
def test_more_digits_are_noticed(numbers: list[int | None], digits: int, first: int) -> None:
    column = pa.array([None if n is None else unscaled_bytes(n) for n in numbers], pa.binary()).slice(first)
    assert has_longer(column, digits) is any(n is not None and abs(n) >= 10**digits for n in numbers[first:])
