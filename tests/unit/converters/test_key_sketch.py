"""Samples of keys: what they find, what they estimate, and that rows and columns have the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.converters.key_sketch import SAMPLED, KeySketches, spread_of

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
LOCAL = datetime(2026, 1, 1, 12, tzinfo=UTC).replace(tzinfo=None)


def sampled(keys, partition=FIRST):
    sketches = KeySketches()
    for offset, key in enumerate(keys):
        sketches.see(partition, offset, "orders", (key,))
    return sketches.sample(partition)


def sampled_columns(keys, piece=700):
    sketches = KeySketches()
    column = keys if isinstance(keys, pa.Array) else pa.array(keys)
    for start in range(0, len(column), piece):
        part = column.slice(start, piece)
        sketches.see_columns(FIRST, np.arange(start, start + len(part)), "orders", [part])
    return sketches.sample(FIRST)


def spread(first, second):
    return spread_of({FIRST: [sampled(first)], SECOND: [sampled(second, SECOND)]})


def test_keys_of_several_partitions_are_counted_with_an_example():
    assert spread(["a", "b", "b", "c"], ["x", "b"]) == (4, 1, False, ("orders-0@1", "orders-1@1"))
    assert spread(["a", "b"], ["c", "ab", ""]) is None
    assert spread(["a"], []) is None


def test_more_keys_than_a_sample_are_estimated():
    found = spread([f"k{n}" for n in range(40_000)], [f"k{n}" for n in range(38_000, 78_000)])
    assert found is not None and found.is_estimated
    assert 60_000 < found.keys < 100_000 and 1_000 < found.several < 3_500
    assert spread(range(40_000), range(40_000, 80_000)) is None


def test_small_partition_beside_a_large_one_is_compared_as_far_as_the_sample_goes():
    found = spread(range(20_000), range(500))
    assert found is not None and found.is_estimated and found.several > 0


@pytest.mark.parametrize(
    "keys",
    [
        list(range(-2_500, 2_500)),
        [f"köy {n}" for n in range(5_000)],
        ["", "a", "aa", "\0", "a" * 70_000, "b"],
        [b"", b"\0\xff", b"x" * 40_000],
        [True, False],
        [1.5, float("inf"), -0.25],
        [Decimal("1.50"), Decimal("-0.01")],
        [LOCAL, LOCAL - timedelta(days=30_000, microseconds=6)],
        ["a", None, "b"],
    ],
    ids=["numbers", "texts", "long texts", "bytes", "booleans", "floats", "decimals", "times", "null"],
)
def test_rows_and_columns_have_the_same_sample(keys):
    assert sampled(keys) == sampled_columns(keys) == sampled_columns(keys, piece=3)


def test_every_sample_has_the_smallest_hashes_whatever_the_order():
    keys = [str(n) for n in range(5_000)]
    forward, backward = sampled(keys), sampled(keys[::-1])
    assert len(forward) == len(backward) < SAMPLED * 23
    found = spread_of({FIRST: [forward], SECOND: [backward]})
    assert found is not None and found.keys == found.several and 4_000 < found.keys < 6_000


@pytest.mark.parametrize(
    "same",
    [
        (1, "1", Decimal("1.00")),
        (LOCAL, datetime(2026, 1, 1, 13, tzinfo=timezone(timedelta(hours=1)))),
        (LOCAL, datetime(2026, 1, 1, 12, tzinfo=UTC)),
        ("a", b"a"),
    ],
    ids=["number", "zone", "utc", "bytes"],
)
def test_values_that_become_one_key_are_one(same):
    assert len({sampled([key]) for key in same}) == 1


def test_columns_of_a_key_are_not_mixed_up():
    def of(*key, target="orders"):
        sketches = KeySketches()
        sketches.see(FIRST, 0, target, key)
        return sketches.sample(FIRST)

    assert len({of("a", "b"), of("ab", ""), of("", "ab"), of("b", "a"), of("ab"), of("a", "b", "")}) == 6
    assert of("a") != of("a", target="others")


def test_ranges_of_one_partition_are_one_sample():
    found = spread_of({FIRST: [sampled(["a"]), sampled(["b", "c"])], SECOND: [sampled(["c"], SECOND), ""]})
    assert found == (3, 1, False, ("orders-0@1", "orders-1@0"))
    assert spread_of({FIRST: [sampled(["a"]), sampled(["a"])]}) is None
