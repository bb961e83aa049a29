"""The heartbeat connector and its task.

Source: org.apache.kafka.connect.mirror.{MirrorHeartbeatConnector,MirrorHeartbeatTask}. The heartbeats of a mirror from
`a` to `b` are in the topic `heartbeats` of `b`. A mirror from `b` to another cluster copies that topic, even if it is
not selected, so whoever reads `b.heartbeats` there knows that `b` is reachable, and how late its records come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from airflow_connect.api.record import SourceRecord
from airflow_connect.api.schema import BYTES
from airflow_connect.api.source import ExactlyOnceSupport, SourceConnector, SourceOffset, SourcePartition, SourceTask
from airflow_connect.connectors.mirror import clients
from airflow_connect.connectors.mirror.heartbeat.keys import HeartbeatConfig
from airflow_connect.connectors.mirror.policy import HEARTBEATS
from airflow_connect.connectors.mirror.protocol.alone import NO_POSITION, RAW_BYTES, check_altered, target_admin
from airflow_connect.connectors.mirror.protocol.internal_topics import ensure_topic
from airflow_connect.connectors.mirror.protocol.records import Heartbeat

SOURCE_NAME, TARGET_NAME = "sourceClusterAlias", "targetClusterAlias"


class MirrorHeartbeatTask(SourceTask):
    """Writes one heartbeat, with the time of the run."""

    _is_written = False

    def start(self, config: Mapping[str, str]) -> None:
        """See `SourceTask`."""
        typed = HeartbeatConfig.from_config(config)
        self._source, self._target = typed.source_alias, typed.target_alias

    def poll(self) -> Sequence[SourceRecord]:
        """The heartbeat."""
        self._is_written = True
        heartbeat = Heartbeat(self._source, self._target, self.context.clock_ms)
        record = SourceRecord(
            topic=HEARTBEATS,
            partition=0,
            key_schema=BYTES,
            key=heartbeat.key(),
            value_schema=BYTES,
            value=heartbeat.value(),
            timestamp=heartbeat.timestamp,
            source_partition={SOURCE_NAME: self._source, TARGET_NAME: self._target},
            source_offset=NO_POSITION,
        )
        return [record]

    def has_ended(self) -> bool:
        """Whether the heartbeat was returned."""
        return self._is_written

    def stop(self) -> None:
        """See `SourceTask`; nothing is open."""


class MirrorHeartbeatConnector(SourceConnector):
    """`org.apache.kafka.connect.mirror.MirrorHeartbeatConnector`: a sign of life in the target cluster."""

    config_def = HeartbeatConfig.config_def()
    task_class = MirrorHeartbeatTask
    converters: ClassVar[Mapping[str, str]] = RAW_BYTES
    version = "1.0"

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """One task, if heartbeats are enabled; creates the topic.

        Raises:
            ConnectError: the target cluster refused, or did not answer.
        """
        config = HeartbeatConfig.from_config(self.config)
        if not config.emits:  # As in MirrorMaker 2, heartbeats do not depend on `enabled`.
            self.context.note(f"{HeartbeatConfig.emits} is false, so no heartbeat is written.")
            return []
        if not self.context.only_plans:
            target = target_admin(clients.admin_of(self.config, clients.TARGET), self.context.cluster_id)
            key = HeartbeatConfig.replication_factor.name
            ensure_topic(target, HEARTBEATS, config.replication_factor, key)
        return [dict(self.config)]

    def source_partitions(self, task_config: Mapping[str, str]) -> Iterable[SourcePartition]:
        """The only one."""
        config = HeartbeatConfig.from_config(task_config)
        return [{SOURCE_NAME: config.source_alias, TARGET_NAME: config.target_alias}]

    def names_changed_topics(self, config: Mapping[str, str]) -> bool:
        """False: earlier heartbeats are not needed."""
        return False

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        """Nothing is read, so nothing can be read twice."""
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Mapping[tuple[tuple[str, Any], ...], SourceOffset | None]
    ) -> bool:
        """Check offsets that are being altered: they have no effect, but their form."""
        return check_altered(offsets, {SOURCE_NAME: str, TARGET_NAME: str})
