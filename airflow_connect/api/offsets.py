"""Kafka coordinates: topic-partitions and half-open offset ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from airflow_connect.api.json_document import JsonDocument


class TopicPartition(NamedTuple):
    """A Kafka partition."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """`topic-partition`, as Kafka's own tools print it."""
        return f"{self.topic}-{self.partition}"


def is_other_topic(known_id: str, current_id: str) -> bool:
    """Whether a topic was deleted and created again, by Kafka's topic ids (KIP-516).

    Brokers before 2.8 have no ids ("" here): then a new topic cannot be told from the old one.
    """
    return bool(known_id and current_id and known_id != current_id)


@dataclass(frozen=True, slots=True)
class OffsetRange(JsonDocument):
    """Records `[start, end)` of a topic-partition: `start` inclusive, `end` exclusive.

    The number of records may be smaller than `end - start`: transaction markers, aborted records and compaction leave
    gaps in the offsets.
    """

    topic: str
    partition: int
    start: int
    end: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of the range."""
        return TopicPartition(self.topic, self.partition)

    @property
    def is_empty(self) -> bool:
        """True when there is nothing to read."""
        return self.end <= self.start

    def holds(self, topic: str, partition: int, offset: int) -> bool:
        """Whether the offset of this partition is in the range."""
        return (self.topic, self.partition) == (topic, partition) and self.start <= offset < self.end

    def __len__(self) -> int:
        """Upper bound of the number of records."""
        return max(0, self.end - self.start)

    def __str__(self) -> str:
        """`topic-partition[start, end)`."""
        return f"{self.topic}-{self.partition}[{self.start}, {self.end})"
