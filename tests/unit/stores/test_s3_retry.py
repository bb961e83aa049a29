"""Pauses between tries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.stores.s3_retry import LONGEST_PAUSE_MS, RetryPolicy


def test_pauses_largest_draw_doubles_up_to_the_cap() -> None:
    pauses = list(RetryPolicy(9, 200).pauses_s(lambda: 1.0))
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 20.0, 20.0]


@given(st.integers(0, 200), st.integers(0, 86_400_000), st.floats(0, 1, exclude_max=True))
def test_pauses_any_policy_stay_in_bounds(retries: int, backoff_ms: int, draw: float) -> None:
    pauses = list(RetryPolicy(retries, backoff_ms).pauses_s(lambda: draw))
    assert len(pauses) == retries
    assert all(0 <= pause <= LONGEST_PAUSE_MS / 1000 for pause in pauses)


def test_at_least_raises_few_and_keeps_many() -> None:
    assert RetryPolicy(3, 7).at_least(8) == RetryPolicy(8, 7)
    assert RetryPolicy(30, 7).at_least(8) == RetryPolicy(30, 7)
