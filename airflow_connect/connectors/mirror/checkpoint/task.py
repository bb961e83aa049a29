"""The task of the checkpoint connector: one translation of its groups."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.record import Header, SourceRecord
from airflow_connect.api.schema import BYTES
from airflow_connect.api.source import SourcePartition, SourceTask
from airflow_connect.connectors.mirror import clients
from airflow_connect.connectors.mirror.checkpoint.config import CheckpointConfig
from airflow_connect.connectors.mirror.checkpoint.downstream import TIMEOUT_S, Written, write_offsets
from airflow_connect.connectors.mirror.checkpoint.history import FARTHEST_HEADER, CheckpointHistory
from airflow_connect.connectors.mirror.checkpoint.translation import Translation
from airflow_connect.connectors.mirror.protocol.alone import NO_POSITION
from airflow_connect.connectors.mirror.protocol.records import Checkpoint
from airflow_connect.counting import names, plural
from airflow_connect.errors import ConnectError
from airflow_connect.kafka.admin.consumer_group import committed_with_notes_now, every_committed_offset
from airflow_connect.kafka.clients.short_lived import Admin, admin_client

GROUPS = "airflow_connect.mirror.groups"
"""Key of a task's configuration; set by the connector, not by users."""


class MirrorCheckpointTask(SourceTask):
    """Translates its groups once."""

    _has_ended = False

    def start(self, config: Mapping[str, str]) -> None:
        """See `SourceTask`."""
        self._config = CheckpointConfig.from_config(config)
        self._groups: list[str] = json.loads(config[GROUPS])

    def poll(self) -> Sequence[SourceRecord]:
        """The checkpoints that are new; offsets of groups are written to the target cluster before.

        Raises:
            ConnectError: one of the clusters refused, or did not answer.
        """
        config = self._config
        admins = {side: admin_client(clients.admin_of(config.raw, side)) for side in (clients.SOURCE, clients.TARGET)}
        translation = Translation.read(config, admins)
        known = self._known(admins[clients.TARGET]) if config.emits else CheckpointHistory()
        found: list[Checkpoint] = []
        moved = 0
        live: list[str] = []
        self._lacking: dict[str, list[TopicPartition]] = {}
        for sentence in translation.notes:
            self.context.note(sentence)
        for group in self._groups:
            last = functools.partial(known.last, group)
            checkpoints = self._translated(admins[clients.SOURCE], translation, group)
            if config.syncs_groups:
                own = [one for one in checkpoints if translation.may_move(one, last(one.topic_partition))]
                written = self._synchronised(admins[clients.TARGET], group, own)
                moved += written.moved
                live += [group] if written.is_live else []
                # An offset is translated back once; without a checkpoint, the next run tries again.
                failed = {one for one in own if one.topic_partition in written.refused and translation.leads_back(one)}
                checkpoints = [one for one in checkpoints if one not in failed]
            found += [one for one in checkpoints if is_newer(one, last(one.topic_partition))]
        if moved:
            self.context.note(f"{plural(moved, 'offset', 'were')} written to consumer groups of the target cluster.")
        if live:
            self.context.note(
                f"{plural(len(live), 'consumer group', 'have')} members in the target cluster, so no offset was written"
                f" there: {names(live)}."
            )
        self._tell_lacking()
        self._has_ended = True
        return [self._record(one, known) for one in found] if config.emits else []

    def has_ended(self) -> bool:
        """Whether the groups were translated."""
        return self._has_ended

    def stop(self) -> None:
        """See `SourceTask`; nothing is open."""

    def _translated(self, source: Admin, translation: Translation, group: str) -> list[Checkpoint]:
        """What can be translated of a group; a group that cannot be read does not keep the others from it."""
        try:
            committed = committed_with_notes_now(source, group, translation.partitions, TIMEOUT_S)
        except ConnectError as error:
            self.context.note(f"Consumer group {group} was not translated: {error.message}")
            return []
        found = list(translation.checkpoints(group, committed))
        self._look_for_lacking(source, translation, group, {one.topic_partition for one in found})
        return found

    def _look_for_lacking(
        self, source: Admin, translation: Translation, group: str, translated: AbstractSet[TopicPartition]
    ) -> None:
        """Remember the offsets of a group in mirrored topics that no offset sync translates."""
        try:
            every = every_committed_offset(source, group, is_stable=False)
        except ConnectError as error:
            self.context.note(f"Not all offsets of consumer group {group} could be read: {error.message}")
            return
        selected = set(self._config.selection.select({tp.topic for tp in every}))
        lacking = [tp for tp in every if tp.topic in selected and translation.place_of(tp) not in translated]
        if lacking:
            self._lacking[group] = sorted(lacking)

    def _tell_lacking(self) -> None:
        if not self._lacking:
            return
        count = sum(map(len, self._lacking.values()))
        shown = names(f"{group} ({names(tps)})" for group, tps in self._lacking.items())
        self.context.note(
            f"{plural(count, 'offset')} of {plural(len(self._lacking), 'consumer group', 'have')} no place in the"
            " target cluster, because no offset sync leads there. Either the partition was not mirrored yet, or the"
            f" group has stopped before the first offset sync that is still there: {shown}."
        )

    def _synchronised(self, target: Admin, group: str, checkpoints: Sequence[Checkpoint]) -> Written:
        """Write the offsets of a group; what is refused does not keep others from being written."""
        if not checkpoints:
            return Written()
        try:
            written = write_offsets(target, group, checkpoints)
        except ConnectError as error:
            self.context.note(f"Offsets of consumer group {group} were not written: {error.message}")
            return Written(0, {one.topic_partition: error for one in checkpoints})
        for tp, refusal in written.refused.items():
            self.context.note(f"The offset of consumer group {group} in {tp} was not written: {refusal.message}")
        return written

    def _known(self, target: Admin) -> CheckpointHistory:
        """What earlier runs have written."""
        settings = clients.consumer_of(self._config.raw, clients.TARGET).settings
        return CheckpointHistory.read(target, settings, self._config.policy.checkpoints_topic)

    def _record(self, checkpoint: Checkpoint, known: CheckpointHistory) -> SourceRecord:
        farthest = known.farthest(checkpoint.group, checkpoint.topic_partition) or 0
        is_behind = checkpoint.downstream < farthest
        told = (Header(FARTHEST_HEADER, BYTES, str(farthest).encode()),) if is_behind else ()
        return SourceRecord(
            topic=self._config.policy.checkpoints_topic,
            partition=0,
            key_schema=BYTES,
            key=checkpoint.key(),
            value_schema=BYTES,
            value=checkpoint.value(),
            timestamp=self.context.clock_ms,
            headers=told,
            source_partition=partition_of(checkpoint),
            source_offset=NO_POSITION,
        )


def is_newer(new: Checkpoint, old: Checkpoint | None) -> bool:
    """Whether a checkpoint is worth writing: the group has moved, or its place in the target cluster is another one.

    Source: MirrorCheckpointTask.checkpointIsMoreRecent. One difference: a place before the last one is written, too.
    The copy was recreated, and the last checkpoint leads past records of the new one.
    """
    return old is None or new.upstream < old.upstream or new.downstream != old.downstream


def partition_of(checkpoint: Checkpoint) -> SourcePartition:
    """The source partition of a checkpoint (Checkpoint.connectPartition); members in Java's order."""
    tp = checkpoint.topic_partition
    return {"partition": tp.partition, "topic": tp.topic, "group": checkpoint.group}
