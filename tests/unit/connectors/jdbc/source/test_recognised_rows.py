"""Rows that are recognised by a hash: their text, which offsets depend on, and what the look-back hashes of many."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.connectors.jdbc.source.arrow import literals
from airflow_connect.connectors.jdbc.source.arrow.reader import with_repeated_key
from airflow_connect.connectors.jdbc.source.offsets.lookback import SentRows
from airflow_connect.connectors.jdbc.source.offsets.positions import Position
from airflow_connect.connectors.jdbc.source.read.criteria import Tracked
from airflow_connect.connectors.jdbc.source.read.moves import Moves
from airflow_connect.connectors.jdbc.source.values.columns import Column, Kind
from airflow_connect.connectors.jdbc.source.values.local_times import LocalTimes, micros_of
from airflow_connect.connectors.jdbc.source.values.row_text import row_digest, row_text
from tests.support.session.searching import examples, settings

EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (a local time)


def test_text_and_hash_of_a_row_stay_as_they_are() -> None:
    """The hash is that of the first release: offsets have it."""
    row = (
        1, "it's é\n", Decimal("12.50"), Decimal("1E-8"), -0.0, float("nan"), None, True, b"\x00a",
        dt.date(2026, 1, 31), dt.datetime(2026, 1, 31, 12, 30, tzinfo=dt.UTC), dt.time(12, 30, 0, 5),
    )  # fmt: skip
    assert row_text(row).decode() == (
        """(1, "it's é\\n", Decimal('12.50'), Decimal('1E-8'), -0.0, nan, None, True, b'\\x00a', """
        "datetime.date(2026, 1, 31), datetime.datetime(2026, 1, 31, 12, 30, tzinfo=datetime.timezone.utc),"
        " datetime.time(12, 30, 0, 5))"
    )
    assert row_digest(row).hex() == "bde075a77cce29cd77b34d15cf09aa2e"
    assert row_text([1]) == b"(1,)"


@settings(max_examples=examples(400))
@given(
    earlier=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=6),
    batches=st.lists(
        st.lists(st.tuples(st.integers(0, 60) | st.integers(0, 5), st.integers(0, 1)), max_size=12), max_size=6
    ),
    window=st.integers(1, 40),
    limit=st.integers(1, 8),
    all_may_repeat=st.booleans(),
)
def test_many_rows_at_once_are_recognised_as_one_by_one(
    earlier: list[tuple[int, int]], batches: list[list[tuple[int, int]]], window: int, limit: int, all_may_repeat: bool
) -> None:
    """Whatever is not hashed: what is new, what is forgotten, and the offset are the same."""
    last = SentRows(Position(timestamp_us=0), window, limit)
    for row in earlier:
        last.is_new(row, row[0])
    first, second = (SentRows(last.position(9), window, limit) for _ in range(2))
    for rows in (sorted(batch) for batch in batches if batch):
        expected = [first.is_new(row, row[0]) for row in rows]
        may_repeat = np.array([all_may_repeat or rows.count(row) > 1 for row in rows])

        def digests(places: Any, rows: Sequence[Any] = rows) -> list[bytes]:
            return [row_digest(rows[place]) for place in places.tolist()]

        at_us = np.array([row[0] for row in rows], np.int64)
        assert second.new_rows(at_us, rows[-1][0], may_repeat, digests).tolist() == expected
        assert second.position(rows[-1][0]) == first.position(rows[-1][0])
        assert second.forgotten == first.forgotten


def test_equal_rows_count_once_against_the_limit() -> None:
    """Three equal rows take one place of three, so the others have theirs."""
    rows = [(1, "a"), (2, "b"), (3, "c"), (3, "c"), (3, "c")]
    sent = SentRows(Position(), 50, 3)
    may_repeat = np.array([False, False, True, True, True])
    at_us = np.array([row[0] for row in rows], np.int64)
    is_new = sent.new_rows(at_us, 3, may_repeat, lambda places: [row_digest(rows[place]) for place in places.tolist()])
    assert is_new.tolist() == [True, True, True, False, False]
    after = SentRows(sent.position(3), 50, 3)
    assert not any(after.is_new(row, row[0]) for row in rows) and sent.forgotten == 0


def test_rows_of_a_first_load_are_hashed_only_in_the_window() -> None:
    """All others would be forgotten at once."""
    hashed: list[int] = []

    def digests(places: Any) -> list[bytes]:
        hashed.extend(places.tolist())
        return [row_digest((place,)) for place in places.tolist()]

    sent = SentRows(Position(), 50, 20)
    at_us = np.arange(1, 1001, dtype=np.int64)
    assert sent.new_rows(at_us, 1000, np.zeros(1000, bool), digests).all()
    assert hashed == list(range(980, 1000))
    assert sent.position(1000).sent_from_us == 980 and sent.forgotten == 30


ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Europe/Amsterdam", "Australia/Lord_Howe", "Pacific/Apia")
CHANGES = [
    dt.datetime.fromisoformat(text)
    for text in (
        "2026-03-29T02:00", "2026-10-25T02:00", "1987-04-05T00:01", "1937-07-01T00:00", "2026-10-04T02:00",
        "2011-12-30T12:00",
    )
]  # fmt: skip
"""Times near which clocks of these zones change."""


@settings(max_examples=examples(200))
@given(
    zone=st.sampled_from(ZONES),
    local=st.lists(
        st.tuples(st.sampled_from(CHANGES), st.integers(-7_200_000_000, 7_200_000_000)).map(
            lambda pair: pair[0] + dt.timedelta(microseconds=pair[1])
        ),
        max_size=10,
    ),
)
def test_order_of_many_local_times_is_that_of_each(zone: str, local: list[dt.datetime]) -> None:
    times = LocalTimes(dt.UTC if zone == "UTC" else ZoneInfo(zone))
    column = Column("at", Kind.TIMESTAMP)
    moves = Moves([column], Tracked(None, (column,)), "postgresql", times)
    found = times.in_order_us(np.array([micros_of(value - EPOCH) for value in local], np.int64))
    assert found.tolist() == [moves.moment([value]).in_order_us for value in local]


@given(st.lists(st.tuples(st.integers(0, 3) | st.none(), st.sampled_from(["a", "b"])), min_size=1, max_size=12))
def test_repeated_keys_are_found(rows: list[tuple[int | None, str]]) -> None:
    keys = [pa.array([row[0] for row in rows], pa.int64()), pa.array([row[1] for row in rows])]
    assert with_repeated_key(keys, len(rows)).tolist() == [rows.count(row) > 1 for row in rows]
    assert with_repeated_key([], len(rows)).tolist() == [len(rows) > 1] * len(rows)


@given(st.lists(st.text(max_size=6) | st.none(), max_size=8), st.integers(0, 4))
def test_literals_of_texts_are_those_of_python(values: list[str | None], start: int) -> None:
    """Also of a slice, whose buffers begin before it."""
    array = pa.array(values, pa.string()).slice(start)
    assert literals.joined(literals.of_texts(array)).to_pylist() == [repr(value) for value in values[start:]]


@pytest.mark.parametrize(
    "text", ["0.000001", "0.0000010", "0.000000", "0.0000000", "0.0000001", "-0.00000012", "12.50", "NaN"]
)
def test_literals_of_numbers_are_those_of_python(text: str) -> None:
    array = pa.array([text, None])
    found = literals.joined(literals.of_numbers(array, lambda value: repr(value and Decimal(value)))).to_pylist()
    assert found == [f"Decimal('{Decimal(text)}')", "None"]
