"""Pauses, limits and deadlines of repeated operations, with a clock that passes only in pauses."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.retrying import AtDeadline, Backoff, Jitter, Retry, Timing


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def timing(self, share: float = 1.0) -> Timing:
        """Chance always draws the same share of the way between the two numbers."""
        return Timing(lambda: self.now, self.sleep, lambda low, high: low + share * (high - low))


def test_pauses_double_up_to_the_longest() -> None:
    backoff = Backoff(0.1, 1.0)
    assert [backoff.pause_s(failures) for failures in range(1, 7)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


@pytest.mark.parametrize(
    ("jitter", "least", "most"),
    [
        (Jitter.NONE, [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
        (Jitter.HALF, [0.5, 1.0, 1.5], [1.0, 2.0, 3.0]),
        (Jitter.WHOLE, [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]),
        (Jitter.BEYOND_LONGEST, [1.0, 2.0, 0.0], [1.0, 2.0, 3.0]),
    ],
)
def test_jitter_leaves_its_part_of_a_pause_to_chance(jitter: Jitter, least: list[float], most: list[float]) -> None:
    backoff = Backoff(1.0, 3.0, jitter)
    for share, expected in ((0.0, least), (1.0, most)):
        uniform = Clock().timing(share).uniform
        assert [backoff.pause_s(failures, uniform) for failures in (1, 2, 3)] == expected


def test_real_chance_stays_within_the_pause() -> None:
    backoff = Backoff(1.0, 3.0, Jitter.HALF)
    assert all(1.5 <= backoff.pause_s(9) <= 3.0 for _ in range(100))


@given(st.integers(1, 10**9), st.floats(0, 1e6), st.floats(0, 1e6), st.sampled_from(Jitter))
def test_pause_of_any_failure_is_in_bounds(failures: int, first_s: float, longest_s: float, jitter: Jitter) -> None:
    assert 0 <= Backoff(first_s, longest_s, jitter).pause_s(failures) <= longest_s


def test_pause_without_a_longest_one_stays_finite() -> None:
    assert math.isfinite(Backoff(0.1).pause_s(10**9))


def test_number_of_retries_ends_the_tries() -> None:
    clock = Clock()
    retry = Retry(Backoff(1.0), retries=2, timing=clock.timing())
    assert [retry.pause() for _ in range(4)] == [True, True, False, False]
    assert (clock.pauses, retry.failures) == ([1.0, 2.0], 4)


def test_no_retries_means_one_try() -> None:
    clock = Clock()
    assert not Retry(Backoff(1.0), retries=0, timing=clock.timing()).pause()
    assert clock.pauses == []


@pytest.mark.parametrize(
    ("at_deadline", "pauses"),
    [
        (AtDeadline.OVERRUN, [1.0, 2.0, 4.0]),
        (AtDeadline.CUT, [1.0, 2.0, 2.5]),
        (AtDeadline.STOP, [1.0, 2.0]),
    ],
)
def test_last_pause_before_the_deadline(at_deadline: AtDeadline, pauses: list[float]) -> None:
    clock = Clock()
    retry = Retry(Backoff(1.0), within_s=5.5, at_deadline=at_deadline, timing=clock.timing())
    while retry.pause():
        assert len(clock.pauses) < 10
    assert clock.pauses == pauses


def test_pause_that_ends_just_at_the_deadline_is_not_made_where_tries_stop() -> None:
    clock = Clock()
    retry = Retry(Backoff(1.0), within_s=1.0, at_deadline=AtDeadline.STOP, timing=clock.timing())
    assert not retry.pause()


def test_time_of_the_tries_themselves_counts() -> None:
    clock = Clock()
    retry = Retry(Backoff(1.0, 1.0), within_s=10.0, timing=clock.timing())
    clock.now += 4.0
    assert (retry.elapsed_s, retry.left_s) == (4.0, 6.0)
    assert retry.pause()
    clock.now += 5.0
    assert retry.left_s == 0.0
    assert not retry.pause()


def test_no_time_at_all_means_one_try() -> None:
    clock = Clock()
    assert not Retry(Backoff(1.0), within_s=0.0, timing=clock.timing()).pause()


def test_backoff_of_zero_never_sleeps() -> None:
    clock = Clock()
    retry = Retry(Backoff(0.0), within_s=1.0, timing=clock.timing())
    assert [retry.pause() for _ in range(3)] == [True, True, True]
    assert clock.pauses == []
    assert retry.left_s == 1.0


def test_retry_without_limits_goes_on() -> None:
    clock = Clock()
    retry = Retry(Backoff(0.3, 60.0), timing=clock.timing())
    assert all(retry.pause() for _ in range(500))
    assert retry.left_s == math.inf
