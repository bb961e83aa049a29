"""What a task gets from the driver, as a key of its configuration: ranges of the source cluster's partitions."""

from __future__ import annotations

import heapq
import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from airflow_connect.api.offsets import TopicPartition

RANGES = "airflow_connect.mirror.ranges"
"""Key of a task's configuration; set by the connector, not by users."""


class MirroredRange(NamedTuple):
    """Offsets `[start, end)` of a partition, as planned.

    Attributes:
        topic_id: id of the topic when the run was planned.
        copy_id: id of its copy in the target cluster then; "": unknown.
    """

    topic: str
    partition: int
    start: int
    end: int
    topic_id: str
    copy_id: str = ""

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of the source cluster."""
        return TopicPartition(self.topic, self.partition)


def task_config(config: Mapping[str, str], ranges: Sequence[MirroredRange]) -> dict[str, str]:
    """The configuration of a task."""
    return {**config, RANGES: json.dumps(ranges, ensure_ascii=False, separators=(",", ":"))}


def ranges_of(config: Mapping[str, str]) -> list[MirroredRange]:
    """The ranges of a task."""
    return [MirroredRange(*values) for values in json.loads(config[RANGES])]


def divided(ranges: Sequence[MirroredRange], max_tasks: int) -> list[list[MirroredRange]]:
    """Largest range first, into the task with the fewest offsets (Graham 1969); no task is empty."""
    bins = [(0, number) for number in range(min(max_tasks, len(ranges)))]
    contents: list[list[MirroredRange]] = [[] for _ in bins]
    for one in sorted(ranges, key=lambda one: (one.start - one.end, one)):
        load, number = heapq.heappop(bins)
        contents[number].append(one)
        heapq.heappush(bins, (load + one.end - one.start, number))
    return contents
