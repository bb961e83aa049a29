"""Offsets that the tasks of a run have moved themselves (`SinkConnector.commits_offsets`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_connect.api.offsets import OffsetRange, TopicPartition


def moved_by_tasks(ranges: Sequence[OffsetRange], now: Mapping[TopicPartition, int]) -> frozenset[TopicPartition]:
    """Partitions whose offset is one that their task may have committed: within what it was to copy.

    Args:
        ranges: the plan; a partition has one range.
        now: what the group has committed.
    """
    return frozenset(
        r.topic_partition for r in ranges if r.topic_partition in now and r.start <= now[r.topic_partition] <= r.end
    )
