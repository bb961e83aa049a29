"""Packs ranges into Connect tasks by estimated cost."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.documents.run import TaskPlan
from airflow_connect.planning.limits import RunLimits, fair_shares

DEFAULT_BYTES_PER_RECORD = 200.0


def pack(
    ranges: Sequence[OffsetRange], tasks_max: int, bytes_per_record: Mapping[str, float], limits: RunLimits
) -> tuple[TaskPlan, ...]:
    """Distribute ranges over at most `tasks_max` tasks so that the largest task is small.

    Longest processing time first (Graham 1969): at most 4/3 of the optimum. The cost of a range is its offsets times
    the bytes per record that the last run of the connector measured for its topic. The result depends on the arguments
    only. Empty ranges are left out; fewer ranges than tasks give fewer tasks.
    """
    work = [r for r in ranges if not r.is_empty]
    if not work:
        return ()

    def cost(r: OffsetRange) -> float:
        return len(r) * bytes_per_record.get(r.topic, DEFAULT_BYTES_PER_RECORD)

    bins = [(0.0, number) for number in range(min(tasks_max, len(work)))]
    contents: list[list[OffsetRange]] = [[] for _ in bins]
    for r in sorted(work, key=lambda r: (-cost(r), r.topic, r.partition)):
        load, number = heapq.heappop(bins)
        contents[number].append(r)
        heapq.heappush(bins, (load + cost(r), number))
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


def _byte_shares(contents: Sequence[Sequence[OffsetRange]], max_bytes: int) -> list[int]:
    """Equal parts of the byte limit; a part is at least one byte, because 0 would mean no limit."""
    if max_bytes <= 0:
        return [0] * len(contents)
    return [max(1, share) for share in fair_shares([max_bytes] * len(contents), max_bytes)]
