"""Packs ranges into Connect tasks by estimated cost."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.documents.run import TaskPlan
from airflow_connect.planning.limits import RunLimits, fair_shares

DEFAULT_BYTES_PER_RECORD = 200.0

Cost = Callable[[OffsetRange], float]
"""Estimated work of a range, in any unit."""


def cost_by_bytes(bytes_per_record: Mapping[str, float]) -> Cost:
    """Offsets times the bytes per record that the last run of the connector measured for the topic."""
    return lambda r: len(r) * bytes_per_record.get(r.topic, DEFAULT_BYTES_PER_RECORD)


def pack(
    ranges: Sequence[OffsetRange], tasks_max: int, bytes_per_record: Mapping[str, float], limits: RunLimits
) -> tuple[TaskPlan, ...]:
    """Distribute ranges over at most `tasks_max` tasks so that the largest task is small.

    Longest processing time first (Graham 1969): at most 4/3 of the optimum. The result depends on the arguments only.
    Empty ranges are left out; fewer ranges than tasks give fewer tasks. Ranges of the same partition are in different
    tasks, even if that needs more tasks than `tasks_max`.
    """
    contents, _ = _distribute(ranges, tasks_max, cost_by_bytes(bytes_per_record))
    shares = _byte_shares(contents, limits.max_bytes)
    letter_shares = _byte_shares(contents, limits.max_dead_letter_bytes)
    return tuple(
        TaskPlan(
            task=number,
            ranges=tuple(sorted(held, key=lambda r: (r.topic, r.partition))),
            max_bytes=shares[number],
            max_seconds=limits.max_seconds,
            max_dead_letter_bytes=letter_shares[number],
        )
        for number, held in enumerate(contents)
    )


def largest_load(ranges: Sequence[OffsetRange], tasks_max: int, cost: Cost) -> float:
    """The cost of the largest task if `pack` distributes the ranges."""
    _, loads = _distribute(ranges, tasks_max, cost)
    return max(loads, default=0.0)


def _distribute(
    ranges: Sequence[OffsetRange], tasks_max: int, cost: Cost
) -> tuple[list[list[OffsetRange]], list[float]]:
    """The ranges of each task, and their cost."""
    work = [r for r in ranges if not r.is_empty]
    most = max(Counter(r.topic_partition for r in work).values(), default=0)
    number_of_tasks = min(max(tasks_max, most), len(work))
    contents: list[list[OffsetRange]] = [[] for _ in range(number_of_tasks)]
    held: list[set[TopicPartition]] = [set() for _ in contents]
    loads = [0.0] * number_of_tasks
    bins = [(0.0, number) for number in range(number_of_tasks)]
    for r in sorted(work, key=lambda r: (-cost(r), r.topic, r.partition, r.start)):
        taken = []
        while r.topic_partition in held[bins[0][1]]:
            taken.append(heapq.heappop(bins))
        _, number = bins[0]
        loads[number] += cost(r)
        heapq.heapreplace(bins, (loads[number], number))
        for other in taken:
            heapq.heappush(bins, other)
        contents[number].append(r)
        held[number].add(r.topic_partition)
    return contents, loads


def _byte_shares(contents: Sequence[Sequence[OffsetRange]], max_bytes: int) -> list[int]:
    """Equal parts of the byte limit; a part is at least one byte, because 0 would mean no limit."""
    if max_bytes <= 0:
        return [0] * len(contents)
    return [max(1, share) for share in fair_shares([max_bytes] * len(contents), max_bytes)]
