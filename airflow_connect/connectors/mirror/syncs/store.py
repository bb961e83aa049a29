"""Translates offsets between the clusters, from the topic with offset syncs.

Source: org.apache.kafka.connect.mirror.OffsetSyncStore: the newest sync at or before an offset counts; after it, the
next offset of the target is all that is known. Two differences: every sync that the topic holds is used, not 64 of each
partition; and a sync of this package covers a range (`RANGE_HEADER`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.record import KafkaRecord
from airflow_connect.connectors.mirror.protocol.records import OffsetSync
from airflow_connect.connectors.mirror.syncs.ledger import CopiedRange
from airflow_connect.kafka.clients.short_lived import Admin
from airflow_connect.kafka.reading.topic_contents import committed_records, ranges_of

RANGE_HEADER = "airflow_connect.range"
"""Header of a sync: how many records from this one on are consecutive in both clusters, as decimal digits."""


class OffsetSyncStore:
    """The ranges of all partitions."""

    def __init__(self, records: Iterable[KafkaRecord] = ()) -> None:
        """`records`: of the topic, in its order."""
        self._ranges: dict[TopicPartition, list[CopiedRange]] = {}
        for record in records:
            self._add(record)

    @classmethod
    def read(cls, admin: Admin, settings: Mapping[str, Any], topic: str) -> OffsetSyncStore:
        """Read the topic to its end; it may be missing.

        Args:
            settings: of a consumer of the cluster that has the topic.

        Raises:
            DataError: a record is not an offset sync.
            ConnectError: Kafka refused, or did not answer.
        """
        return cls(committed_records(settings, ranges_of(admin, topic, "topic with offset syncs")))

    @property
    def partitions(self) -> list[TopicPartition]:
        """Partitions of the source cluster with a sync."""
        return list(self._ranges)

    def downstream(self, tp: TopicPartition, upstream: int) -> int | None:
        """Where a group continues in the target cluster; None: no sync is at or before its offset.

        Args:
            tp: partition of the source cluster.
            upstream: the next offset of the group.
        """
        ranges = self._ranges.get(tp, [])
        index = bisect_right(ranges, upstream, key=lambda one: one.upstream) - 1
        if index < 0:
            return None
        one = ranges[index]
        return one.downstream + min(upstream - one.upstream, one.length)

    def upstream(self, tp: TopicPartition, downstream: int) -> int | None:
        """The opposite: where a group continues in the source cluster.

        Args:
            tp: partition of the source cluster.
            downstream: the next offset of the group in the target cluster.
        """
        ranges = self._ranges.get(tp, [])
        index = bisect_right(ranges, downstream, key=lambda one: one.downstream) - 1
        if index < 0:
            return None
        one = ranges[index]
        return one.upstream + min(downstream - one.downstream, one.length)

    def _add(self, record: KafkaRecord) -> None:
        if record.value is None:
            return
        sync = OffsetSync.of(record.key, record.value)
        ranges = self._ranges.setdefault(sync.topic_partition, [])
        if ranges and (sync.upstream < ranges[-1].upstream or sync.downstream < ranges[-1].downstream):
            ranges.clear()  # one of the topics was recreated, or the mirror was set back
        new = CopiedRange(sync.upstream, sync.downstream, _count(record.headers))
        last = ranges[-1] if ranges else None
        if last is not None and new == (last.upstream + last.length, last.downstream + last.length, new.length):
            ranges[-1] = last._replace(length=last.length + new.length)
        else:
            ranges.append(new)


def _count(headers: Iterable[tuple[str, bytes | None]]) -> int:
    found = next((value for name, value in headers if name == RANGE_HEADER), None)
    return int(found) if found is not None and found.isdigit() else 1
