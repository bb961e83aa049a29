"""How often and how long the S3 client tries again."""

from __future__ import annotations

import pytest

from airflow_connect.retrying import Timing
from airflow_connect.stores.s3.http.transport import LONGEST_PAUSE_S, S3Transport
from tests.unit.stores.s3.s3_clients import settings


def pauses(share: float, least_retries: int = 0, **changes: int) -> list[float]:
    """The pauses of a request that always fails, where chance draws the same share of every pause."""
    waited: list[float] = []
    timing = Timing(sleep=waited.append, uniform=lambda low, high: low + share * (high - low))
    tries = S3Transport(settings("http://127.0.0.1:1", **changes), timing=timing).begin_tries(least_retries)
    while tries.pause():
        pass
    return waited


def test_pauses_largest_draw_doubles_up_to_the_cap() -> None:
    assert pauses(1.0, part_retries=9, retry_backoff_ms=200) == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 20.0, 20.0]


def test_pauses_are_wholly_left_to_chance() -> None:
    assert pauses(0.5, part_retries=3, retry_backoff_ms=200) == [0.1, 0.2, 0.4]


def test_pauses_of_the_largest_backoff_stay_below_the_cap() -> None:
    assert pauses(1.0, part_retries=200, retry_backoff_ms=86_400_000) == [LONGEST_PAUSE_S] * 200


@pytest.mark.parametrize(("part_retries", "tried"), [(0, 8), (3, 8), (30, 30)])
def test_publishing_is_stubborn(part_retries: int, tried: int) -> None:
    assert len(pauses(1.0, least_retries=8, part_retries=part_retries, retry_backoff_ms=1)) == tried
