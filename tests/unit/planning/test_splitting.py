"""Which partitions several tasks share, where they are cut, and what the plan says about it."""

import itertools

import hypothesis.strategies as st
import pytest
from hypothesis import given

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.api.sink import Splitting
from airflow_connect.planning.limits import RunLimits
from airflow_connect.planning.packing import cost_by_bytes, largest_load, pack
from airflow_connect.planning.splitting import BYTES_OF_A_RANGE, EVEN_ENOUGH, SplitRules, cut, divide

ranges = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 3000)), max_size=8).map(
    lambda pairs: [OffsetRange("t", i, start, start + length) for i, (start, length) in enumerate(pairs)]
)


def rules(min_records=1, multiple_of=1, refused=""):
    return SplitRules(lambda: Splitting(refused, multiple_of), min_records)


def divided(given_ranges, tasks_max, given_rules, sizes=None):
    return divide(given_ranges, tasks_max, cost_by_bytes(sizes or {}), sizes or {}, given_rules)


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.integers(1, 40), st.integers(1, 10**5), st.integers(1, 10**4))
def test_cuts_cover_a_range_exactly(start, length, parts, least, multiple):
    whole = OffsetRange("t", 0, start, start + length)

    found = cut(whole, parts, least, multiple)

    assert (found[0].start, found[-1].end) == (whole.start, whole.end)
    assert all(one.end == other.start for one, other in itertools.pairwise(found))
    assert 1 <= len(found) <= parts
    if len(found) > 1:
        assert all(len(part) >= max(least, multiple) for part in found)
    assert all((part.start - whole.start) % multiple == 0 for part in found)


@given(ranges, st.integers(1, 8), st.integers(1, 500), st.integers(1, 200))
def test_every_offset_is_in_one_range_and_tasks_do_not_get_more_uneven(given_ranges, tasks_max, least, multiple):
    found = divided(given_ranges, tasks_max, rules(least, multiple)).ranges

    for whole in given_ranges:
        parts = [r for r in found if r.partition == whole.partition]
        assert [offset for r in parts for offset in (r.start, r.end)] == sorted(
            offset for r in parts for offset in (r.start, r.end)
        )
        assert (parts[0].start, parts[-1].end) == (whole.start, whole.end)
        assert all(one.end == other.start for one, other in itertools.pairwise(parts))
        assert len(parts) <= tasks_max
    assert largest_load(found, tasks_max, len) <= largest_load(given_ranges, tasks_max, len)
    for task in pack(found, tasks_max, {}, RunLimits()):
        assert len({r.partition for r in task.ranges}) == len(task.ranges), "two ranges of a partition in one task"


@given(ranges, st.integers(1, 8), st.integers(1, 500))
def test_tasks_are_even_if_nothing_but_their_number_limits_cuts(given_ranges, tasks_max, least):
    found = divided(given_ranges, tasks_max, rules(1)).ranges

    fair = sum(map(len, found)) / tasks_max
    # An offset cannot be cut, and at most so many ranges of a partition are made as there are tasks.
    assert largest_load(found, tasks_max, len) <= max(2.0, (1 + 1 / EVEN_ENOUGH) * fair)


def test_one_large_partition_keeps_every_task_busy():
    found = divided([OffsetRange("t", 0, 7, 10_000_007)], 4, rules(1_000_000, 1000))

    assert [len(r) for r in found.ranges] == [2_500_000] * 4
    assert found.notes == ("Several tasks share a partition: t-0 into 4 ranges.",)
    assert len(pack(found.ranges, 4, {}, RunLimits())) == 4


def test_skewed_partition_is_cut_and_the_others_are_not():
    small = [OffsetRange("t", n, 0, 100_000) for n in (1, 2, 3)]

    found = divided([OffsetRange("t", 0, 0, 9_000_000), *small], 4, rules(1_000_000)).ranges

    assert [len([r for r in found if r.partition == n]) for n in range(4)] == [4, 1, 1, 1]


@pytest.mark.parametrize(
    ("length", "tasks_max", "least"),
    [
        (1_999_999, 4, 1_000_000),  # Small runs write as many files as ever.
        (50_000_000, 1, 1_000_000),
    ],
)
def test_nothing_is_cut_or_said_without_need(length, tasks_max, least):
    def unasked():
        raise AssertionError("the connector was asked")

    whole = [OffsetRange("t", 0, 0, length)]

    found = divided(whole, tasks_max, SplitRules(unasked, least))

    assert (found.ranges, found.notes) == (tuple(whole), ())


def test_equal_partitions_as_many_as_tasks_stay_whole():
    whole = [OffsetRange("t", n, 0, 5_000_000) for n in range(4)]

    assert divided(whole, 4, rules(1000)).ranges == tuple(whole)


def test_plan_says_why_a_large_partition_is_not_cut():
    whole = [OffsetRange("t", n, 0, 9_000_000 if n < 2 else 10) for n in range(5)]

    found = divided(whole, 8, rules(1000, refused="with flush.on.end=false it cannot be"))

    assert found.ranges == tuple(whole)
    assert found.notes == ("tasks.max=8, but one task copies each of t-0, t-1: with flush.on.end=false it cannot be.",)


def test_plan_says_that_flush_size_leaves_no_room_for_a_cut():
    found = divided([OffsetRange("t", 0, 0, 9_000_000)], 4, rules(1_000_000, 5_000_000))

    assert len(found.ranges) == 1
    assert found.notes[0].startswith("tasks.max=4, but one task copies all of t-0: ranges have multiples of 5000000")


def test_large_records_are_worth_a_cut_before_there_are_many():
    whole = [OffsetRange("t", 0, 0, 1000)]

    assert len(divided(whole, 4, rules(1_000_000), {"t": BYTES_OF_A_RANGE / 250}).ranges) == 4
    assert len(divided(whole, 4, rules(1_000_000), {"t": BYTES_OF_A_RANGE / 501}).ranges) == 1
