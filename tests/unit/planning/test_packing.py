"""Packing of ranges into tasks."""

import hypothesis.strategies as st
from hypothesis import given

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.planning.limits import MAX_DEAD_LETTER_BYTES, RunLimits
from airflow_connect.planning.packing import pack

ranges = st.lists(st.integers(0, 500), max_size=20).map(
    lambda lengths: [OffsetRange(f"t{i % 3}", i, 5, 5 + n) for i, n in enumerate(lengths)]
)
costs = st.dictionaries(st.sampled_from(["t0", "t1", "t2"]), st.floats(1, 1000))


@given(ranges, st.integers(1, 8), costs, st.integers(0, 50))
def test_every_range_with_records_is_in_one_task_and_tasks_are_even(given_ranges, tasks_max, averages, max_bytes):
    limits = RunLimits(max_bytes=max_bytes, max_seconds=3)
    tasks = pack(given_ranges, tasks_max, averages, limits)

    work = [r for r in given_ranges if not r.is_empty]
    packed = [r for task in tasks for r in task.ranges]
    assert sorted(packed, key=str) == sorted(work, key=str)
    assert [task.task for task in tasks] == list(range(min(tasks_max, len(work))))
    assert all(task.ranges and task.max_seconds == 3 for task in tasks)
    assert all((task.max_bytes > 0) == (max_bytes > 0) for task in tasks)
    assert sum(task.max_dead_letter_bytes for task in tasks) == (MAX_DEAD_LETTER_BYTES if tasks else 0)

    def cost(r):
        return len(r) * averages.get(r.topic, 200.0)

    if work:
        largest = max(sum(map(cost, task.ranges)) for task in tasks)
        # Graham 1966: no list schedule exceeds the average plus the largest piece.
        assert largest <= sum(map(cost, work)) / len(tasks) + max(map(cost, work)) + 1e-6


@given(ranges, st.integers(1, 8), costs, st.randoms())
def test_packing_depends_on_nothing_but_the_work(given_ranges, tasks_max, bytes_per_record, chance):
    shuffled = list(given_ranges)
    chance.shuffle(shuffled)

    assert pack(shuffled, tasks_max, bytes_per_record, RunLimits()) == pack(
        given_ranges, tasks_max, bytes_per_record, RunLimits()
    )
