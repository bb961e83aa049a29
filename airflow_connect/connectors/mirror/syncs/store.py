"""Translates offsets between the clusters, from the topic with offset syncs.

Source: org.apache.kafka.connect.mirror.OffsetSyncStore: the newest sync at or before an offset counts; after it, the
next offset of the target is all that is known. Differences: every sync that the topic holds is used, not 64 of each
partition; a sync of this package covers a range (`RANGE_HEADER`); what was known of topics that have been recreated
since is dropped; and a group before the first sync begins where the target's log begins, if that is the first copy.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.record import KafkaRecord
from airflow_connect.connectors.mirror.protocol.records import OffsetSync
from airflow_connect.connectors.mirror.syncs.ledger import CopiedRange
from airflow_connect.kafka.clients.short_lived import Admin
from airflow_connect.kafka.reading.topic_contents import committed_records, ranges_of

RANGE_HEADER = "airflow_connect.range"
"""Header of a sync: how many records from this one on are consecutive in both clusters, as decimal digits. 0: no copy
is known; those of this record and of later ones are after the offset of the target."""
TOPIC_IDS_HEADER = "airflow_connect.topic.ids"
"""Header of a sync: Kafka's ids of the topic in the source cluster and of its copy, as `id,id`."""


class OffsetSyncStore:
    """The ranges of all partitions."""

    def __init__(self, records: Iterable[KafkaRecord] = ()) -> None:
        """`records`: of the topic, in its order."""
        self._ranges: dict[TopicPartition, list[CopiedRange]] = {}
        self._topic_ids: dict[TopicPartition, str] = {}
        self._begins: dict[TopicPartition, int] = {}
        self._original_begins: dict[TopicPartition, int] = {}
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

    def topic_ids(self, tp: TopicPartition) -> tuple[str, str]:
        """Ids of the topics in the source and in the target cluster; "" if MirrorMaker 2 has written all syncs."""
        source, _, target = self._topic_ids.get(tp, "").partition(",")
        return source, target

    def end(self, tp: TopicPartition) -> int:
        """The end of the last copy in the target cluster; `tp` is one of `partitions`."""
        last = self._ranges[tp][-1]
        return last.downstream + last.length

    def keep(self, is_wanted: Callable[[str], bool]) -> None:
        """Drop all topics of the source cluster but these."""
        self.forget([tp for tp in self._ranges if not is_wanted(tp.topic)])

    def forget(self, tps: Collection[TopicPartition]) -> None:
        """Drop what is known of some partitions."""
        for tp in tps:
            del self._ranges[tp]

    def begin_at(self, begins: Mapping[TopicPartition, int], originals: Mapping[TopicPartition, int]) -> None:
        """Tell where the logs begin now.

        A place before that is one that a consumer would leave by `auto.offset.reset`, perhaps to the end.

        Args:
            begins: of the copies, by partition of the source cluster.
            originals: of these partitions themselves.
        """
        self._begins.update(begins)
        self._original_begins.update(originals)

    def downstream(self, tp: TopicPartition, upstream: int) -> int | None:
        """Where a group continues in the target cluster; None: what it has not read may be before the first sync.

        Args:
            tp: partition of the source cluster.
            upstream: the next offset of the group.
        """
        ranges, begin = self._ranges.get(tp, []), self._begins.get(tp, 0)
        index = bisect_right(ranges, upstream, key=lambda one: one.upstream) - 1
        if index < 0:
            # Nothing was copied before the record that is the first of the target's log.
            return begin if ranges and ranges[0].downstream == 0 else None
        one = ranges[index]
        return max(one.downstream + min(upstream - one.upstream, one.length), begin)

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
        found = one.upstream + min(downstream - one.downstream, one.length)
        return max(found, self._original_begins.get(tp, 0))

    def _add(self, record: KafkaRecord) -> None:
        if record.value is None:
            return
        sync, headers = OffsetSync.of(record.key, record.value), dict(record.headers)
        tp, new = sync.topic_partition, _range_of(sync, headers.get(RANGE_HEADER))
        ids = (headers.get(TOPIC_IDS_HEADER) or b"").decode("utf-8", "replace")
        ranges = self._ranges.setdefault(tp, [])
        last = ranges[-1] if ranges else None
        is_other = bool(ids) and self._topic_ids.get(tp, ids) != ids
        if last is not None and (is_other or not _follows(new, last)):
            # One of the topics was recreated or cut, or the mirror was set back: older ranges may be wrong by now.
            ranges.clear()
            self._topic_ids.pop(tp, None)
            last = None
        if ids:
            self._topic_ids[tp] = ids
        if last is not None and new[:2] == (last.upstream + last.length, last.downstream + last.length):
            ranges[-1] = last._replace(length=last.length + new.length)
        else:
            ranges.append(new)


def _range_of(sync: OffsetSync, length: bytes | None) -> CopiedRange:
    count = int(length) if length is not None and length.isdigit() else 1
    return CopiedRange(sync.upstream, sync.downstream + (0 if count else 1), count)


def _follows(new: CopiedRange, last: CopiedRange) -> bool:
    """Whether a range is behind the last one on both sides, as it is if nothing has happened to the topics."""
    return new.upstream >= last.upstream + last.length and new.downstream >= last.downstream + last.length
