"""Whether the records of one row, or of one document, have one key in Kafka: only then are they in one partition.

A sink that finds rows or documents by keys writes the records of a partition in their order, and those of different
partitions in any order. Its keys need not be Kafka's: a transformation such as ValueToKey or ExtractField$Key makes
them, or they are fields of the value. So some records of each partition are looked at.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import TopicPartition

if TYPE_CHECKING:
    from airflow_connect.api.record import KafkaRecord
    from airflow_connect.api.sink_state import CopiedRun

LOOKED_AT = 1_000
"""Records of a partition that are looked at, the first ones of a run: few cost no time and little memory."""
UNKEYED = "unkeyed"
"""Member of what a task returns for a partition: whether records that change rows by their keys have none in Kafka."""
SEVERAL = "several_keys"
"""The same: the place of a record whose key in Kafka is not that of another record of the same row."""


class KeysInKafka:
    """Compares the keys of a task's records with those that Kafka has."""

    def __init__(self) -> None:
        """Nothing was seen."""
        self._left: defaultdict[TopicPartition, int] = defaultdict(lambda: LOOKED_AT)
        self._unkeyed: set[TopicPartition] = set()
        self._of_topics: defaultdict[str, dict[Any, bytes]] = defaultdict(dict)
        self._several: dict[TopicPartition, str] = {}

    def wanted(self, partition: TopicPartition) -> int:
        """How many more records of a partition are looked at."""
        return self._left[partition]

    def see(self, partition: TopicPartition, offset: int, key: Any, in_kafka: bytes | None) -> None:
        """Look at a record.

        Args:
            partition, offset: where it was consumed.
            key: by which the sink finds its row.
            in_kafka: as it was consumed.
        """
        self._left[partition] -= 1
        if in_kafka is None:
            self._unkeyed.add(partition)
            return
        try:
            before = self._of_topics[partition.topic].setdefault(key, in_kafka)
        except TypeError:  # A list or a dict in the key.
            before = self._of_topics[partition.topic].setdefault(repr(key), in_kafka)
        if before != in_kafka:
            self._several[partition] = f"{partition}@{offset}"
            self._left[partition] = 0

    def see_columns(self, partition: TopicPartition, offsets: Any, keys: Any, consumed: Sequence[KafkaRecord]) -> None:
        """The same for several records, as far as they are wanted."""
        for offset, key, record in zip(offsets, keys, consumed, strict=True):
            if self._left[partition] <= 0:
                return
            self.see(partition, int(offset), key, record.key)

    def details(self, partition: TopicPartition) -> dict[str, Any]:
        """What a task returns for a partition; {}: nothing was found."""
        if partition in self._unkeyed:
            return {UNKEYED: True}
        return {SEVERAL: self._several[partition]} if partition in self._several else {}


def notes_on_spread(run: CopiedRun, what: str, follows: str) -> Iterator[str]:
    """Name the topics whose records of one key may be in several partitions.

    Args:
        run: whose tasks have returned `details`.
        what: one of the things that have keys: "row" or "document".
        follows: sentences about what that means, and what to do.
    """
    count = Counter(partition.topic for partition in run.planned.partitions)
    unkeyed = {report.range.topic for report in run.reports if report.details.get(UNKEYED)}
    several = {report.range.topic: str(report.details[SEVERAL]) for report in run.reports if SEVERAL in report.details}
    for topic in sorted({*unkeyed, *several}):
        if count[topic] < 2:
            continue
        why = f"Records of {topic} have no keys, so that"
        if topic not in unkeyed:
            why = (
                f"Records of {topic} that change one {what} have different keys in Kafka, such as {several[topic]} and"
                " one before it, so that"
            )
        yield f"{why} those of one {what} may be in any of its {count[topic]} partitions. {follows}"
