"""Times without a zone, where clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.connectors.jdbc.source.values.local_times import LocalTimes, micros_of
from tests.support.session.searching import examples, settings

BERLIN = LocalTimes(ZoneInfo("Europe/Berlin"))
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/St_Johns"]


def instant(text: str) -> int:
    return LocalTimes(UTC).instant_us(datetime.fromisoformat(text))


def local(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2026-07-01T12:00:00", "2026-07-01T10:00:00+00:00"),
        ("2026-01-01T12:00:00", "2026-01-01T11:00:00+00:00"),
        # Clocks go from 2 to 3: a time between counts as what they showed instead.
        ("2026-03-29T02:30:00", "2026-03-29T01:30:00+00:00"),
        # Clocks go from 3 back to 2: the second pass counts.
        ("2026-10-25T02:30:00", "2026-10-25T01:30:00+00:00"),
        ("2026-10-25T01:59:59.999999", "2026-10-24T23:59:59.999999+00:00"),
        ("2026-10-25T03:00:00", "2026-10-25T02:00:00+00:00"),
        # A zone of its own takes precedence.
        ("2026-10-25T02:30:00+02:00", "2026-10-25T00:30:00+00:00"),
    ],
)
def test_local_time_is_an_instant_by_java_s_rule(written: str, expected: str) -> None:
    assert BERLIN.instant_us(local(written)) == instant(expected)


@pytest.mark.parametrize(
    ("now", "closed"),
    [
        ("2026-10-24T23:59:59+00:00", "2026-10-25T01:59:59"),
        # First pass through the hour: all of it comes again, so rows of it must wait.
        ("2026-10-25T00:00:00+00:00", "2026-10-25T02:00:00"),
        ("2026-10-25T00:59:59+00:00", "2026-10-25T02:00:00"),
        # Second pass: only what comes now is missing.
        ("2026-10-25T01:00:00+00:00", "2026-10-25T02:00:00"),
        ("2026-10-25T01:30:00+00:00", "2026-10-25T02:30:00"),
        ("2026-10-25T02:00:00+00:00", "2026-10-25T03:00:00"),
        # Where clocks go forward, nothing comes twice.
        ("2026-03-29T00:59:59+00:00", "2026-03-29T01:59:59"),
        ("2026-03-29T01:00:00+00:00", "2026-03-29T03:00:00"),
    ],
)
def test_upper_bound_waits_for_the_second_pass(now: str, closed: str) -> None:
    assert BERLIN.closed_before(instant(now)) == local(closed)


@settings(max_examples=examples(200))
@given(
    st.sampled_from(ZONES),
    st.integers(instant("1975-01-01T00:00:00+00:00"), instant("2035-01-01T00:00:00+00:00")),
    st.integers(0, 3 * 3600 * 1_000_000),
)
def test_no_row_that_is_written_later_is_below_the_bound(zone: str, now_us: int, later_us: int) -> None:
    times = LocalTimes(ZoneInfo(zone))
    assert times.local(now_us + later_us) >= times.closed_before(now_us)


@settings(max_examples=examples(200))
@given(st.sampled_from(ZONES), st.datetimes(local("1975-01-01"), local("2035-01-01")))
def test_stored_position_is_the_same_local_time_again(zone: str, value: datetime) -> None:
    times = LocalTimes(ZoneInfo(zone))
    again = times.local(times.instant_us(value))
    # A time that clocks skip becomes what they showed; any other comes back equal.
    assert again == value or times.local(times.instant_us(again)) == again != value
    assert abs(again - value) <= timedelta(hours=2)


EPOCH, YEAR_2026 = local("1970-01-01"), local("2025-12-31")
MINUTES = st.integers(0, 400_000).map(lambda n: YEAR_2026 + timedelta(minutes=n, microseconds=n))
LOCAL_TIMES = st.datetimes(local("0001-01-02"), local("9999-12-30")) | MINUTES


@settings(max_examples=examples(200))
@given(st.sampled_from([*ZONES, "Europe/Amsterdam", "Africa/Monrovia"]), st.lists(LOCAL_TIMES, max_size=20))
def test_many_local_times_are_the_same_instants(zone: str, times: list[datetime]) -> None:
    found = LocalTimes(ZoneInfo(zone))
    locals_us = np.array([micros_of(time - EPOCH) for time in times], np.int64)
    assert found.instants_us(locals_us).tolist() == [found.instant_us(time) for time in times]
