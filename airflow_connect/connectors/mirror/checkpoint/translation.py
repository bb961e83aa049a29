"""Offsets of the source cluster's groups as offsets of the target cluster.

Source: org.apache.kafka.connect.mirror.MirrorCheckpointTask.checkpoint. One addition, which must be switched on: a
group that has failed over reads `west.orders` in `east`; the mirror from `east` to `west` translates its offsets back
to `orders`, with the offset syncs of the mirror from `west` to `east`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.mirror import clients
from airflow_connect.connectors.mirror.checkpoint.config import CheckpointConfig
from airflow_connect.connectors.mirror.checkpoint.history import CheckpointHistory
from airflow_connect.connectors.mirror.checkpoint.outdated import forget_outdated
from airflow_connect.connectors.mirror.policy import ReplicationPolicy
from airflow_connect.connectors.mirror.protocol.records import Checkpoint
from airflow_connect.connectors.mirror.syncs.store import OffsetSyncStore
from airflow_connect.kafka.admin.consumer_group import Committed
from airflow_connect.kafka.clients.short_lived import Admin

_OTHER = {clients.SOURCE: clients.TARGET, clients.TARGET: clients.SOURCE}


class WayBack:
    """What the mirror in the opposite direction has written.

    Attributes:
        originals: partitions of the target cluster, by those of the source cluster that were copied from them.
    """

    def __init__(self, policy: ReplicationPolicy, syncs: OffsetSyncStore, checkpoints: CheckpointHistory) -> None:
        """`policy`: of the opposite mirror; `syncs` and `checkpoints`: its own."""
        self._syncs, self._checkpoints = syncs, checkpoints
        self.originals = {TopicPartition(policy.remote_topic(tp.topic), tp.partition): tp for tp in syncs.partitions}

    def offset(self, original: TopicPartition, offset: int) -> int | None:
        """Where a group continues in the original, which has read its copy up to an offset."""
        return self._syncs.upstream(original, offset)

    def has_moved(self, group: str, copy: TopicPartition, offset: int) -> bool:
        """Whether a group has read more of a copy than the opposite mirror has ever told it.

        Otherwise its offset came from the target cluster, where the group may have been set back since. If it was never
        told anything, that is unknown.
        """
        told = self._checkpoints.farthest(group, copy)
        return told is not None and offset > told


class Translation:
    """The offset syncs of this mirror, and what the mirror in the opposite direction has written.

    Attributes:
        notes: sentences about offsets that cannot be translated.
        partitions: partitions of the source cluster that can be translated.
    """

    def __init__(
        self,
        policy: ReplicationPolicy,
        forward: OffsetSyncStore,
        back: WayBack | None = None,
        notes: Iterable[str] = (),
    ) -> None:
        """`forward`: from the source to the target cluster; `back`: None: nothing is translated back."""
        self._policy, self._forward, self._back = policy, forward, back
        self._originals = back.originals if back is not None else {}
        self._copies = {original: copy for copy, original in self._originals.items()}
        self.notes = tuple(notes)
        self.partitions = tuple(dict.fromkeys([*forward.partitions, *self._originals]))

    @classmethod
    def read(cls, config: CheckpointConfig, admins: Mapping[str, Admin]) -> Translation:
        """Read the offset syncs of selected topics, and those of the opposite mirror if offsets are translated back.

        The topics of the opposite mirror are in the same cluster roles of its own: `source` is our target.

        Args:
            config: of the connector.
            admins: clients of both clusters, by `SOURCE` and `TARGET`.

        Raises:
            ConnectError: a cluster refused or did not answer, or a record is not an offset sync or a checkpoint.
        """
        policy, location = config.policy, config.syncs_location

        def settings(cluster: str) -> Mapping[str, object]:
            return clients.consumer_of(config.raw, cluster).settings

        def syncs(cluster: str, topic: str) -> OffsetSyncStore:
            return OffsetSyncStore.read(admins[cluster], settings(cluster), topic)

        forward = syncs(location, policy.offset_syncs_topic(location))
        source, target = admins[clients.SOURCE], admins[clients.TARGET]
        forward.keep(config.selection.has)
        notes = forget_outdated(forward, policy, source, target)
        if not config.translates_back:
            return cls(policy, forward, None, notes)
        opposite = replace(policy, source=policy.target, target=policy.source)
        returned = syncs(_OTHER[location], opposite.offset_syncs_topic(location))
        returned.keep(lambda topic: config.selection.has(topic) or config.selection.has(opposite.remote_topic(topic)))
        notes += forget_outdated(returned, opposite, target, source)
        told = CheckpointHistory.read(source, settings(clients.SOURCE), opposite.checkpoints_topic)
        return cls(policy, forward, WayBack(opposite, returned, told), notes)

    def checkpoints(self, group: str, committed: Mapping[TopicPartition, Committed]) -> Iterable[Checkpoint]:
        """The offsets of a group that can be translated.

        Args:
            group: its name.
            committed: next offsets in the source cluster.
        """
        for tp, (upstream, metadata) in committed.items():
            original = self._originals.get(tp)
            if original is None or self._back is None:
                downstream = self._forward.downstream(tp, upstream)
            else:
                downstream = self._back.offset(original, upstream)
            if downstream is not None:
                yield Checkpoint(group, self.place_of(tp), upstream, downstream, metadata)

    def place_of(self, tp: TopicPartition) -> TopicPartition:
        """The partition of the target cluster in which a group continues that has read `tp`."""
        return self._originals.get(tp) or TopicPartition(self._policy.remote_topic(tp.topic), tp.partition)

    def leads_back(self, checkpoint: Checkpoint) -> bool:
        """Whether a checkpoint is about an original, and its group has read the copy."""
        return checkpoint.topic_partition in self._copies

    def may_move(self, checkpoint: Checkpoint, known: Checkpoint | None) -> bool:
        """Whether the group's own offset in the target cluster may follow a checkpoint.

        Args:
            checkpoint: one of `checkpoints`.
            known: the last one that was written for the same group and partition.
        """
        copy = self._copies.get(checkpoint.topic_partition)
        if copy is None or self._back is None:
            return True
        is_new = known is None or checkpoint.upstream > known.upstream
        return is_new and self._back.has_moved(checkpoint.group, copy, checkpoint.upstream)
