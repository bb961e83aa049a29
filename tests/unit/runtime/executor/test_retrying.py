"""`errors.retry.*`: which errors are repeated, how long, and with which pauses."""

import pytest

from airflow_connect.config.resolved.sink import ErrorConfig
from airflow_connect.errors import DataError, UnavailableError
from airflow_connect.retrying import Timing
from airflow_connect.runtime.executor.retrying import Retries


class Clock:
    """Time that passes only in pauses."""

    def __init__(self):
        self.now = 1000.0
        self.pauses_ms = []

    def pause(self, seconds):
        self.pauses_ms.append(round(seconds * 1000))
        self.now += seconds


def retries(clock, timeout_ms, delay_max_ms=60_000, choose=lambda low, high: high / 2):
    errors = ErrorConfig(True, timeout_ms, delay_max_ms, False, False, "", 1, False)
    return Retries(errors, Timing(lambda: clock.now, clock.pause, choose))


def failing(times, error, clock=None, takes_s=0.0):
    """An operation that fails `times` times, each try taking a while."""
    left = [times]

    def operation():
        if clock is not None:
            clock.now += takes_s
        left[0] -= 1
        if left[0] >= 0:
            raise error
        return "done"

    return operation


AWAY = UnavailableError("The registry is away.")


def test_repeat_passing_error_returns_what_succeeds_later():
    clock = Clock()

    assert retries(clock, 60_000).repeat(failing(2, AWAY), AWAY) == "done"

    assert clock.pauses_ms == [300, 600, 1200]


def test_repeat_error_that_stays_is_raised_at_once():
    clock = Clock()
    bad = DataError("Bad.")

    with pytest.raises(DataError) as raised:
        retries(clock, -1).repeat(failing(0, bad), bad)

    assert raised.value is bad
    assert clock.pauses_ms == []


def test_repeat_another_error_that_stays_ends_the_repeating():
    clock = Clock()
    bad = DataError("Bad.")

    with pytest.raises(DataError):
        retries(clock, -1).repeat(failing(9, bad), AWAY)

    assert clock.pauses_ms == [300]


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_repeat_without_timeout_never_and_with_minus_one_without_end(timeout_ms):
    clock = Clock()
    repeat = retries(clock, timeout_ms).repeat

    if timeout_ms == 0:
        with pytest.raises(UnavailableError):
            repeat(failing(0, AWAY), AWAY)
        assert clock.pauses_ms == []
    else:
        assert repeat(failing(500, AWAY), AWAY) == "done"
        assert len(clock.pauses_ms) == 501


def test_repeat_pauses_double_are_random_beyond_the_limit_and_end_with_the_timeout():
    clock = Clock()

    with pytest.raises(UnavailableError):
        retries(clock, 10_000, delay_max_ms=2000).repeat(failing(99, AWAY), AWAY)

    assert clock.pauses_ms == [300, 600, 1200, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 900]
    assert clock.now == pytest.approx(1010.0)


def test_repeat_counts_the_time_of_the_tries_themselves():
    clock = Clock()

    with pytest.raises(UnavailableError):
        retries(clock, 5000).repeat(failing(99, AWAY, clock, takes_s=4.0), AWAY)

    assert clock.pauses_ms == [300, 600]


def test_repeat_any_exception_with_a_true_attribute_retriable_is_repeated():
    class PassingError(Exception):
        retriable = True

    assert retries(Clock(), 1000).repeat(failing(1, PassingError()), PassingError()) == "done"
