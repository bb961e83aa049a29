"""Whether the records of one row, or of one document, have one key in Kafka: only then are they in one partition.

A sink that finds rows or documents by keys writes the records of a partition in their order, and those of different
partitions in any order. Its keys need not be Kafka's: a transformation such as ValueToKey or ExtractField$Key makes
them, or they are fields of the value. So some records of each partition are looked at, and a sample of all keys tells
whether one has records in several partitions (key_sketch.py).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.converters.key_sketch import KeySketches, Spread, spread_of

if TYPE_CHECKING:
    from airflow_connect.api.record import KafkaRecord
    from airflow_connect.api.sink_state import CopiedRun

LOOKED_AT = 1_000
"""Records of a partition that are looked at, the first ones of a run: few cost no time and little memory."""
UNKEYED = "unkeyed"
"""Member of what a task returns for a partition: whether records that change rows by their keys have none in Kafka."""
SEVERAL = "several_keys"
"""The same: the place of a record whose key in Kafka is not that of another record of the same row."""
SAMPLE = "sample_of_keys"
"""The same: the keys of its rows that the driver compares with those of other partitions."""


class KeysInKafka:
    """Compares the keys of a task's records with those that Kafka has, and samples them.

    Attributes:
        sketches: the samples, of all records.
    """

    def __init__(self) -> None:
        """Nothing was seen."""
        self.sketches = KeySketches()
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
        """What a task returns for a partition; {}: it had no records."""
        found: dict[str, Any] = {}
        if partition in self._unkeyed:
            found = {UNKEYED: True}
        elif partition in self._several:
            found = {SEVERAL: self._several[partition]}
        sample = self.sketches.sample(partition)
        return found | {SAMPLE: sample} if sample else found


def notes_on_spread(run: CopiedRun, what: str, follows: str) -> Iterator[str]:
    """Name the topics whose records of one key are, or may be, in several partitions.

    Args:
        run: whose tasks have returned `details`.
        what: one of the things that have keys: "row" or "document".
        follows: sentences about what that means, and what to do.
    """
    count = Counter(partition.topic for partition in run.planned.partitions)
    unkeyed = {report.range.topic for report in run.reports if report.details.get(UNKEYED)}
    several = {report.range.topic: str(report.details[SEVERAL]) for report in run.reports if SEVERAL in report.details}
    spread = _spread_of_topics(run)
    for topic in sorted({*unkeyed, *several, *spread}):
        if count[topic] < 2:
            continue
        why = ""
        if topic in unkeyed:
            why = f"Records of {topic} have no keys, so that"
        elif topic in several:
            why = (
                f"Records of {topic} that change one {what} have different keys in Kafka, such as {several[topic]} and"
                " one before it, so that"
            )
        if why:
            why += f" those of one {what} may be in any of its {count[topic]} partitions. "
        yield f"{why}{_fact(topic, what, spread[topic]) if topic in spread else ''}{follows}"


def _spread_of_topics(run: CopiedRun) -> dict[str, Spread]:
    samples: defaultdict[str, defaultdict[TopicPartition, list[str]]] = defaultdict(lambda: defaultdict(list))
    for report in run.reports:
        if text := report.details.get(SAMPLE):
            samples[report.range.topic][report.range.topic_partition].append(str(text))
    found = {topic: spread_of(of_topic) for topic, of_topic in samples.items()}
    return {topic: spread for topic, spread in found.items() if spread is not None}


def _fact(topic: str, what: str, spread: Spread) -> str:
    several, every = f"{spread.several:,}", f"{spread.keys:,}"
    if spread.is_estimated:
        several, every = f"about {several}", f"about {every} (estimated from a sample of the keys)"
    one, other = spread.places
    return (
        f"In this run, records of {topic} for one {what} are in several partitions, which is so for {several} of"
        f" {every} keys: {one} and {other} have the same one. "
    )
