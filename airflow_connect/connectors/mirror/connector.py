"""The mirror source as a connector class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.source import ExactlyOnceSupport, SourceConnector, SourceOffset, SourcePartition
from airflow_connect.connectors.mirror import clients, keys, offsets
from airflow_connect.connectors.mirror.acls import copy_acls
from airflow_connect.connectors.mirror.config import READ_COMMITTED, MirrorConfig
from airflow_connect.connectors.mirror.offsets import Committed, LogBounds, StartRules, start_of
from airflow_connect.connectors.mirror.protocol.alone import RAW_BYTES, target_admin
from airflow_connect.connectors.mirror.protocol.internal_topics import ensure_topic
from airflow_connect.connectors.mirror.task import MirrorSourceTask
from airflow_connect.connectors.mirror.topics import TIMESTAMP_TYPE, RemoteTopics
from airflow_connect.connectors.mirror.work import MirroredRange, divided, ranges_of, task_config
from airflow_connect.errors import AccessError
from airflow_connect.kafka.admin import watermarks
from airflow_connect.kafka.admin.topics import TopicInfo, all_names, resolve_topics
from airflow_connect.kafka.clients.short_lived import Admin, admin_client, names


class MirrorSourceConnector(SourceConnector):
    """`org.apache.kafka.connect.mirror.MirrorSourceConnector`: topics of another cluster, byte for byte."""

    config_def = keys.mirror_keys()
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
            self.context.note(f"{keys.ENABLED} is false, so nothing is mirrored.")
            return []
        source = admin_client(config.source_admin())
        target = None if self.context.only_plans else target_admin(config.target_admin(), self.context.cluster_id)
        topics = resolve_topics(source, config.selection.select(all_names(source)), None)
        if not topics:
            self.context.note("No topic of the source cluster is selected by the configuration.")
            return []
        # Before topics are created: a run that is refused must change nothing.
        committed = self._committed(topics)
        ranges = self._ranges(source, topics, committed)
        if target is not None:
            self._prepare(RemoteTopics(config, source, target), topics, committed)
            self._ensure_syncs_topic(source, target)
            self._copy_acls(source, target, topics)
        return [task_config(self.config, part) for part in divided(ranges, max_tasks)]

    def source_partitions(self, task_config: Mapping[str, str]) -> Iterable[SourcePartition]:
        """Those of the task's ranges: it never reads others."""
        alias = self._typed.policy.source
        return [offsets.partition_of(alias, one.topic_partition) for one in ranges_of(task_config)]

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

    def _prepare(
        self, copies: RemoteTopics, topics: Mapping[str, TopicInfo], committed: Mapping[TopicPartition, Committed]
    ) -> None:
        """Create and configure the copies, and say what they will lack."""
        created = set(copies.ensure(topics))
        lost = {tp: one.position for tp, one in sorted(committed.items()) if tp.topic in created and one.position}
        if lost:
            again = names(sorted({self._typed.policy.remote_topic(tp.topic) for tp in lost}))
            begins = names(f"{tp}@{position}" for tp, position in lost.items())
            self.context.note(
                f"The target cluster had no topic {again} any more, so it was created again. What was mirrored before"
                f" is not in it: it begins at {begins}. To mirror the rest again, delete these offsets."
            )
        if late := copies.with_times_of_brokers(topics):
            self.context.note(
                f"{names(late)} has {TIMESTAMP_TYPE}=LogAppendTime: its copies get the time of the target's brokers,"
                f" and their own timestamps are lost. Set {TIMESTAMP_TYPE}=CreateTime there."
            )

    def _ensure_syncs_topic(self, source: Admin, target: Admin) -> None:
        config = self._typed
        if config.emits_syncs:
            cluster = source if config.syncs_location == clients.SOURCE else target
            topic = config.policy.offset_syncs_topic(config.syncs_location)
            ensure_topic(cluster, topic, config.syncs_replication_factor, keys.SYNCS_REPLICATION_FACTOR)

    def _copy_acls(self, source: Admin, target: Admin, topics: Mapping[str, TopicInfo]) -> None:
        """Rules that may not be read or written do not keep records from being copied, as in MirrorMaker 2."""
        if not self._typed.syncs_acls:
            return
        try:
            note = copy_acls(self._typed.policy, topics.keys(), source, target)
        except AccessError as error:
            note = f"Access control lists were not copied: {error.message} {keys.SYNC_ACLS}=false ends this message."
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
        if skipped:
            self.context.note(f"auto.offset.reset=latest: what new topics hold is not mirrored: {names(skipped)}.")
        return found

    def _committed(self, topics: Mapping[str, TopicInfo]) -> dict[TopicPartition, Committed]:
        """Committed offsets of the selected topics, also of partitions that they do not have any more."""
        found: dict[TopicPartition, Committed] = {}
        for partition, offset in self.context.offset_reader.committed():
            tp = offsets.topic_partition_of(self._typed.policy.source, partition)
            committed = Committed.of(offset)
            if tp is not None and committed is not None and tp.topic in topics:
                found[tp] = committed
        return found

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
            if tp.partition >= info.partitions and one != Committed(0, info.topic_id):
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
