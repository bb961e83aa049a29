"""Offsets of the source cluster's groups as offsets of the target cluster.

Source: org.apache.kafka.connect.mirror.MirrorCheckpointTask.checkpoint. One addition: a group that has failed over
reads `west.orders` in `east`; the mirror from `east` to `west` translates its offsets back to `orders`, with the offset
syncs of the mirror from `west` to `east`. MirrorMaker 2 leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.mirror import clients
from airflow_connect.connectors.mirror.checkpoint.config import CheckpointConfig
from airflow_connect.connectors.mirror.policy import ReplicationPolicy
from airflow_connect.connectors.mirror.protocol.records import Checkpoint
from airflow_connect.connectors.mirror.selection import TopicSelection
from airflow_connect.connectors.mirror.syncs.store import OffsetSyncStore
from airflow_connect.kafka.admin.consumer_group import Committed
from airflow_connect.kafka.clients.short_lived import Admin

_OTHER = {clients.SOURCE: clients.TARGET, clients.TARGET: clients.SOURCE}


class Translation:
    """The offset syncs of this mirror, and of the mirror in the opposite direction."""

    def __init__(self, policy: ReplicationPolicy, forward: OffsetSyncStore, back: OffsetSyncStore) -> None:
        """`forward`: from the source to the target cluster; `back`: of the opposite mirror."""
        self._policy = policy
        self._forward, self._back = forward, back
        opposite = replace(policy, source=policy.target, target=policy.source)
        self._returned = {
            TopicPartition(opposite.remote_topic(tp.topic), tp.partition): tp
            for tp in ([] if policy.keeps_names else back.partitions)
        }
        self._partitions = list(dict.fromkeys([*forward.partitions, *self._returned]))

    @classmethod
    def read(cls, config: CheckpointConfig, admins: Mapping[str, Admin]) -> Translation:
        """Read the offset syncs of both directions, as far as there are any.

        The topic of the opposite mirror is in the same cluster role of its own: `source` is our target.

        Args:
            config: of the connector.
            admins: clients of both clusters, by `SOURCE` and `TARGET`.

        Raises:
            ConnectError: a cluster refused or did not answer, or a record is not an offset sync.
        """
        policy, location = config.policy, config.syncs_location
        opposite = replace(policy, source=policy.target, target=policy.source)

        def syncs(cluster: str, topic: str) -> OffsetSyncStore:
            settings = clients.consumer_of(config.raw, cluster).settings
            return OffsetSyncStore.read(admins[cluster], settings, topic)

        forward = syncs(location, policy.offset_syncs_topic(location))
        back = syncs(_OTHER[location], opposite.offset_syncs_topic(location))
        return cls(policy, forward, back)

    def partitions(self, topics: TopicSelection) -> list[TopicPartition]:
        """Partitions of the source cluster that can be translated, if their topic or its original is selected."""
        return [
            tp
            for tp in self._partitions
            if topics.has(tp.topic) or (tp in self._returned and topics.has(self._returned[tp].topic))
        ]

    def checkpoints(self, group: str, committed: Mapping[TopicPartition, Committed]) -> Iterable[Checkpoint]:
        """The offsets of a group that can be translated.

        Args:
            group: its name.
            committed: next offsets in the source cluster.
        """
        for tp, (upstream, metadata) in committed.items():
            original = self._returned.get(tp)
            if original is None:
                remote = TopicPartition(self._policy.remote_topic(tp.topic), tp.partition)
                downstream = self._forward.downstream(tp, upstream)
            else:
                remote, downstream = original, self._back.upstream(original, upstream)
            if downstream is not None:
                yield Checkpoint(group, remote, upstream, downstream, metadata)
