"""Offset syncs of topics that are no longer what they were when their records were copied.

Syncs outlive the topics that they are about. If a copy was deleted and created again, or has lost its end, its old
offsets belong to other records, and a group would be sent past records that it has not read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.mirror.policy import ReplicationPolicy
from airflow_connect.connectors.mirror.syncs.store import OffsetSyncStore
from airflow_connect.counting import names
from airflow_connect.kafka.admin import watermarks
from airflow_connect.kafka.admin.topics import TopicInfo, all_names, resolve_topics
from airflow_connect.kafka.clients.short_lived import Admin

_GONE = "does not exist, or may not be described"
_RECREATED = "or its original was recreated since records were copied"
_CUT = "has lost records at its end"


def forget_outdated(store: OffsetSyncStore, policy: ReplicationPolicy, source: Admin, target: Admin) -> list[str]:
    """Drop what a store knows about copies that are no longer there; returns sentences about them.

    The store also learns where the logs of the other copies begin, and those of their originals.

    Args:
        store: read before this call, so that no log may be shorter than the store says.
        policy: of the mirror that has written the syncs; `source` and `target` are its clusters.

    Raises:
        ConnectError: a cluster refused, or did not answer.
    """
    copies = {tp: TopicPartition(policy.remote_topic(tp.topic), tp.partition) for tp in store.partitions}
    originals = _existing(source, {tp.topic for tp in copies})
    # Kafka drops the offsets of groups with their topic, so these are not read any more.
    store.keep(lambda topic: topic in originals)
    copies = {tp: copy for tp, copy in copies.items() if tp.topic in originals}
    there = _existing(target, {copy.topic for copy in copies.values()})
    outdated: dict[TopicPartition, str] = {}
    for tp, copy in copies.items():
        found = there.get(copy.topic)
        if found is None or copy.partition >= found.partitions:
            outdated[tp] = _GONE
        # Syncs of MirrorMaker 2 tell no ids.
        elif store.topic_ids(tp) not in (("", ""), (originals[tp.topic].topic_id, found.topic_id)):
            outdated[tp] = _RECREATED
    left = [tp for tp in copies if tp not in outdated]
    ends = watermarks.latest_offsets(target, [copies[tp] for tp in left], watermarks.READ_UNCOMMITTED)
    outdated |= {tp: _CUT for tp in left if store.end(tp) > ends[copies[tp]]}
    store.forget(outdated)
    kept = [tp for tp in left if tp not in outdated]
    begins = watermarks.earliest_offsets(target, [copies[tp] for tp in kept])
    # Syncs of MirrorMaker 2 may be about an original that was recreated with fewer partitions.
    existing = [tp for tp in kept if tp.partition < originals[tp.topic].partitions]
    store.begin_at({tp: begins[copies[tp]] for tp in kept}, watermarks.earliest_offsets(source, existing))
    return list(_sentences({copies[tp]: reason for tp, reason in outdated.items()}))


def _existing(admin: Admin, topics: Collection[str]) -> Mapping[str, TopicInfo]:
    return resolve_topics(admin, [name for name in all_names(admin) if name in topics], None) if topics else {}


def _sentences(outdated: Mapping[TopicPartition, str]) -> Iterator[str]:
    for reason in dict.fromkeys(outdated.values()):
        which = names(copy for copy, its in outdated.items() if its == reason)
        yield (
            f"Offsets of consumer groups were not translated for the copies {which}: the topic {reason}. They are"
            " translated again when the mirror source has copied more records."
        )
