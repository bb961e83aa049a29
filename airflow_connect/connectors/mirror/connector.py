"""The mirror source as a connector class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar

from airflow_connect.api.offsets import TopicPartition, is_other_topic
from airflow_connect.api.source import ExactlyOnceSupport, OffsetChanges, SourceConnector, SourceOffset, SourcePartition
from airflow_connect.connectors.mirror import clients, offsets
from airflow_connect.connectors.mirror.acls import copy_acls
from airflow_connect.connectors.mirror.config import READ_COMMITTED, MirrorConfig
from airflow_connect.connectors.mirror.keys import MirrorKeys
from airflow_connect.connectors.mirror.offsets import Committed, LogBounds, StartRules, start_of
from airflow_connect.connectors.mirror.protocol.alone import RAW_BYTES, target_admin
from airflow_connect.connectors.mirror.protocol.internal_topics import ensure_topic
from airflow_connect.connectors.mirror.syncs.writer import not_written, write_begins
from airflow_connect.connectors.mirror.task import MirrorSourceTask
from airflow_connect.connectors.mirror.topics import TIMESTAMP_TYPE, RemoteTopics
from airflow_connect.connectors.mirror.work import MirroredRange, divided, ranges_of, task_config
from airflow_connect.counting import agreeing, names, plural
from airflow_connect.errors import AccessError, ConnectError
from airflow_connect.kafka.admin import watermarks
from airflow_connect.kafka.admin.topics import TopicInfo, all_names, deleted_topics, resolve_topics
from airflow_connect.kafka.clients.short_lived import Admin, admin_client


class MirrorSourceConnector(SourceConnector):
    """`org.apache.kafka.connect.mirror.MirrorSourceConnector`: topics of another cluster, byte for byte."""

    config_def = MirrorConfig.config_def()
    task_class = MirrorSourceTask
    converters: ClassVar[Mapping[str, str]] = RAW_BYTES
    version = "1.0"

    def start(self, config: Mapping[str, str]) -> None:
        """See `Connector`."""
        super().start(config)
        self._typed = MirrorConfig.from_config(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Creates and configures remote topics, then divides what is new in the source cluster among tasks.

        Raises:
            OffsetError: the source cluster no longer holds a committed offset.
            ConnectError: one of the clusters refused, or did not answer.
        """
        config = self._typed
        if not config.enabled:
            self.context.note(f"{MirrorKeys.enabled} is false, so nothing is mirrored.")
            return []
        source = admin_client(config.source_admin())
        target = None if self.context.only_plans else target_admin(config.target_admin(), self.context.cluster_id)
        listed = all_names(source)
        topics = resolve_topics(source, config.selection.select(listed), None)
        self._tell_deleted(source, topics)
        self._tell_unused(listed)
        self._tell_cycles(topics)
        if not topics:
            self.context.note("No topic of the source cluster is selected by the configuration.")
            return []
        # Before topics are created: a run that is refused must change nothing.
        committed = self._committed(topics)
        ranges = self._ranges(source, topics, committed)
        if target is not None:
            if not config.emits_syncs:
                self._tell_without_syncs(target, ranges, committed)
            ranges = self._prepared(RemoteTopics(config, source, target), topics, committed, ranges)
            self._ensure_syncs_topic(source, target)
            self._write_begins(target, ranges)
            self._copy_acls(source, target, topics)
        return [task_config(self.config, part) for part in divided(ranges, max_tasks)]

    def reconcile_offsets(self, committed: Iterable[tuple[SourcePartition, SourceOffset]]) -> OffsetChanges:
        """Where topics begin that `auto.offset.reset=latest` is for, before anything is mirrored.

        If this run fails, the next one must not begin at later ends: records in between would be lost.
        """
        config = self._typed
        consumer = config.source_consumer()
        if not config.enabled or consumer.auto_offset_reset != offsets.LATEST:
            return ()
        source = admin_client(config.source_admin())
        topics = resolve_topics(source, config.selection.select(all_names(source)), None)
        known = {tp.topic for tp in self._committed(topics)}
        new = {topic: info for topic, info in topics.items() if topic not in known}
        logs = _bounds(source, new, consumer.isolation_level)
        self._tell_skipped(f"{tp} [{log.low}, {log.end})" for tp, log in logs.items() if log.end > log.low)
        alias = config.policy.source
        return [(offsets.partition_of(alias, tp), offsets.start_at_latest(log)) for tp, log in logs.items()]

    def source_partitions(self, task_config: Mapping[str, str]) -> Iterable[SourcePartition]:
        """Those of the task's ranges: it never reads others."""
        alias = self._typed.policy.source
        return [offsets.partition_of(alias, one.topic_partition) for one in ranges_of(task_config)]

    def names_changed_topics(self, config: Mapping[str, str]) -> bool:
        """False: topics that were created again are recognised by the ids in offsets."""
        return False

    def names_changed_routes(self, config: Mapping[str, str]) -> bool:
        """Of every mirror."""
        return True

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        """As MirrorMaker 2: only if records of aborted transactions are not read (KIP-618)."""
        # Asked before keys are checked; what is wrong with them is told then.
        given = [config.get(f"{prefix}consumer.isolation.level") for prefix in ("source.", "")]
        level = next((one for one in given if one is not None), READ_COMMITTED)
        is_committed = level.strip().lower() == READ_COMMITTED
        return ExactlyOnceSupport.SUPPORTED if is_committed else ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(
        self, config: Mapping[str, str], offsets_by_partition: Mapping[tuple[tuple[str, Any], ...], SourceOffset | None]
    ) -> bool:
        """Check offsets that are being altered."""
        for partition, offset in offsets_by_partition.items():
            offsets.check_altered(dict(partition), offset)
        return True

    def _prepared(
        self,
        copies: RemoteTopics,
        topics: Mapping[str, TopicInfo],
        committed: Mapping[TopicPartition, Committed],
        ranges: Sequence[MirroredRange],
    ) -> list[MirroredRange]:
        """Create and configure the copies, and say what they will lack.

        Returns:
            The ranges with the ids of their copies, and an empty one for each partition that has nothing new, but
            another copy: its offset gets the new id, so that the next run does not tell it again.
        """
        created = copies.ensure(topics)
        ids = copies.ids(topics)
        moved = {
            tp: one
            for tp, one in sorted(committed.items())
            if (tp.topic in created or is_other_topic(one.copy_id, ids[tp.topic])) and not one.is_start
        }
        self._tell_new_copies(set(created), moved, ids)
        if late := copies.with_times_of_brokers(topics):
            self.context.note(
                f"{names(late)} has {TIMESTAMP_TYPE}=LogAppendTime: its copies get the time of the target's brokers,"
                f" and their own timestamps are lost. Set {TIMESTAMP_TYPE}=CreateTime there."
            )
        planned = {one.topic_partition for one in ranges}
        idle = [
            MirroredRange(*tp, one.position, one.position, topics[tp.topic].topic_id)
            for tp, one in moved.items()
            if tp not in planned and tp.partition < topics[tp.topic].partitions and one.copy_id
        ]
        return [one._replace(copy_id=ids[one.topic]) for one in (*ranges, *idle)]

    def _tell_new_copies(
        self, created: AbstractSet[str], moved: Mapping[TopicPartition, Committed], ids: Mapping[str, str]
    ) -> None:
        """Say which copies are other topics than those that were written before, and what they lack."""
        by_topic: dict[str, list[TopicPartition]] = {}
        for tp, one in moved.items():
            if one.position:
                by_topic.setdefault(tp.topic, []).append(tp)
        for topic, tps in by_topic.items():
            remote = self._typed.policy.remote_topic(topic)
            former = names(sorted({moved[tp].copy_id for tp in tps if moved[tp].copy_id}))
            what = (
                f"The target cluster had no topic {remote} any more, so it was created again."
                if topic in created
                else f"Topic {remote} of the target cluster was recreated: its id is {ids[topic]}, and an earlier run"
                f" wrote to {former}."
            )
            begins = names(f"{tp}@{moved[tp].position}" for tp in tps)
            count = plural(sum(moved[tp].position for tp in tps), "offset")
            lacks = (
                f"What was mirrored before is not in it: it begins at {begins}, and lacks up to {count} before that."
                " To mirror the rest again, delete these offsets."
                if topic in created
                else f"What was mirrored before is not in it: it lacks up to {count} before {begins}. To mirror the"
                " rest again, delete these offsets. If it was recreated while a run copied, it holds the last records"
                " of that run, and they come twice then."
            )
            self.context.note(f"{what} {lacks}")

    def _ensure_syncs_topic(self, source: Admin, target: Admin) -> None:
        config = self._typed
        if config.emits_syncs:
            cluster = source if config.syncs_location == clients.SOURCE else target
            topic = config.policy.offset_syncs_topic(config.syncs_location)
            ensure_topic(cluster, topic, config.syncs_replication_factor, MirrorKeys.syncs_replication_factor.name)

    def _write_begins(self, target: Admin, ranges: Sequence[MirroredRange]) -> None:
        """Syncs only make checkpoints exact: the copy is valid without them."""
        try:
            write_begins(self._typed, target, ranges)
        except ConnectError as error:
            self.context.note(not_written(error))

    def _tell_without_syncs(
        self, target: Admin, ranges: Sequence[MirroredRange], committed: Mapping[TopicPartition, Committed]
    ) -> None:
        """Name copies that get records once more, or from an earlier place, when no offset sync tells where these are.

        The syncs of earlier runs would lead a group on the way back past records that it has not read.
        """
        policy = self._typed.policy
        back = [
            TopicPartition(policy.remote_topic(one.topic), one.partition)
            for one in ranges
            if (known := committed.get(one.topic_partition)) is None or one.start < known.position
        ]
        listed = set(all_names(target)) if back else set()
        there = resolve_topics(target, sorted({tp.topic for tp in back} & listed), None)
        held = [tp for tp in back if tp.topic in there and tp.partition < there[tp.topic].partitions]
        ends = watermarks.latest_offsets(target, held, watermarks.READ_UNCOMMITTED)
        if filled := [tp for tp in held if ends[tp]]:
            self.context.note(
                f"{plural(len(filled), 'partition')} of the target cluster {agreeing(len(filled), 'have')} records"
                f" already, and {agreeing(len(filled), 'are')} mirrored from an earlier place, or from the beginning:"
                f" {names(filled)}. With {MirrorKeys.emits_syncs}=false no offset sync tells where the new copies are."
                " Offset syncs of earlier runs do not hold for them: a group that is translated back by these may be"
                " sent past records that it has not read. Delete the topic"
                f" {policy.offset_syncs_topic(self._typed.syncs_location)} before you translate groups back."
            )

    def _copy_acls(self, source: Admin, target: Admin, topics: Mapping[str, TopicInfo]) -> None:
        """Rules that may not be read or written do not keep records from being copied, as in MirrorMaker 2."""
        if not self._typed.syncs_acls:
            return
        try:
            note = copy_acls(self._typed.policy, topics.keys(), source, target)
        except AccessError as error:
            end = f"{MirrorKeys.syncs_acls}=false ends this message."
            note = f"Access control lists were not copied: {error.message} {end}"
        if note:
            self.context.note(note)

    def _ranges(
        self, source: Admin, topics: Mapping[str, TopicInfo], committed: Mapping[TopicPartition, Committed]
    ) -> list[MirroredRange]:
        """What the run reads: everything from the committed offsets to the ends of the logs now."""
        consumer = self._typed.source_consumer()
        if ignored := consumer.ignored:
            self.context.note(f"Settings of the source consumer that have no effect here: {names(ignored)}.")
        logs = _bounds(source, topics, consumer.isolation_level)
        known = {tp.topic for tp in committed}
        rules = StartRules(consumer.auto_offset_reset, self._typed.out_of_range)
        found = self._vanished(committed, topics)
        skipped = []
        for tp, log in logs.items():
            start = start_of(tp, committed.get(tp), log, rules, is_known=tp.topic in known)
            if start.note:
                self.context.note(start.note)
            if tp not in committed and start.position > log.low:
                skipped.append(f"{tp} [{log.low}, {start.position})")
            if start.must_commit or start.position < log.end:
                end = max(start.position, log.end)
                found.append(MirroredRange(tp.topic, tp.partition, start.position, end, log.topic_id))
        self._tell_skipped(skipped)
        return found

    def _tell_skipped(self, skipped: Iterable[str]) -> None:
        if shown := names(skipped):
            self.context.note(f"auto.offset.reset=latest: what new topics hold is not mirrored: {shown}.")

    def _committed(self, topics: Mapping[str, TopicInfo]) -> dict[TopicPartition, Committed]:
        """Committed offsets of the selected topics, also of partitions that they do not have any more."""
        found: dict[TopicPartition, Committed] = {}
        for partition, offset in self.context.offset_reader.committed():
            tp = offsets.topic_partition_of(self._typed.policy.source, partition)
            committed = Committed.of(offset)
            if tp is not None and committed is not None and tp.topic in topics:
                found[tp] = committed
        return found

    def _tell_deleted(self, source: Admin, topics: Mapping[str, TopicInfo]) -> None:
        """Name selected topics that were mirrored, and that the source cluster no longer lists."""
        ends: dict[str, dict[TopicPartition, int]] = {}
        for partition, offset in self.context.offset_reader.committed():
            tp, committed = offsets.topic_partition_of(self._typed.policy.source, partition), Committed.of(offset)
            if tp is not None and committed is not None and tp.topic not in topics:
                ends.setdefault(tp.topic, {})[tp] = committed.position
        absent = self._typed.selection.select(ends)
        deleted = deleted_topics(source, absent)
        for topic in absent:
            shown = names(f"{tp}@{position}" for tp, position in sorted(ends[topic].items()))
            why = (
                f"The source cluster no longer has topic {topic}."
                if topic in deleted
                else f"Topic {topic} of the source cluster is not listed any more: its principal may not describe it."
            )
            self.context.note(
                f"{why} It was mirrored up to {shown}; its copy stays, and nothing more is copied. To end this message,"
                " delete these offsets, or exclude the topic."
            )

    def _tell_unused(self, listed: Iterable[str]) -> None:
        """Name entries of `topics` without effect; topics that were mirrored before are told by `_tell_deleted`."""
        before = (
            offsets.topic_partition_of(self._typed.policy.source, partition)
            for partition, _ in self.context.offset_reader.committed()
        )
        known = {*listed, *(tp.topic for tp in before if tp is not None)}
        for entry, why in self._typed.selection.unused(known).items():
            self.context.note(f"{entry} in {MirrorKeys.topics} selects no topic of the source cluster: {why}.")

    def _tell_cycles(self, topics: Iterable[str]) -> None:
        """Name topics that go round and round, with a longer name each time."""
        policy = self._typed.policy
        if round_and_round := names(topic for topic in topics if policy.goes_round(topic)):
            self.context.note(
                f"By their names, these topics were mirrored from {policy.source} before, and came back there:"
                f" {round_and_round}. Each run copies them once more, under a longer name, because no mirror recognises"
                " the cycle. Give each cluster the same alias in all mirrors, without the separator"
                f" {policy.separator}, or name these topics in {MirrorKeys.topics_exclude}."
            )

    def _vanished(
        self, committed: Mapping[TopicPartition, Committed], topics: Mapping[str, TopicInfo]
    ) -> list[MirroredRange]:
        """Empty ranges for partitions that a recreated topic has not: if it gets them, they begin at their beginning.

        Raises:
            OffsetError: `offsets.out.of.range` is not set.
        """
        counts: dict[str, int] = {}
        ranges = []
        for tp, one in committed.items():
            info = topics[tp.topic]
            if tp.partition >= info.partitions and (one.position, one.topic_id) != (0, info.topic_id):
                counts[tp.topic] = max(counts.get(tp.topic, 0), tp.partition + 1)
                ranges.append(MirroredRange(tp.topic, tp.partition, 0, 0, info.topic_id))
        for topic, count in counts.items():
            what = (
                f"Topic {topic} of the source cluster was recreated: it has {topics[topic].partitions} partitions, but"
                f" {count} were mirrored"
            )
            if not self._typed.out_of_range:
                raise offsets.out_of_range_error(what)
            self.context.note(f"{what}. If it gets more again, they are mirrored from their beginning.")
        return ranges


def _bounds(source: Admin, topics: Mapping[str, TopicInfo], isolation: str) -> dict[TopicPartition, LogBounds]:
    tps = [TopicPartition(topic, number) for topic, info in topics.items() for number in range(info.partitions)]
    low = watermarks.earliest_offsets(source, tps)
    end = watermarks.latest_offsets(source, tps, isolation)
    high = end
    if isolation == READ_COMMITTED:
        high = watermarks.latest_offsets(source, tps, watermarks.READ_UNCOMMITTED)
    return {tp: LogBounds(low[tp], end[tp], high[tp], topics[tp.topic].topic_id) for tp in tps}
