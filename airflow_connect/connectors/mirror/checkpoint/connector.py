"""The checkpoint connector as a connector class."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from airflow_connect.api.source import ExactlyOnceSupport, SourceConnector, SourceOffset
from airflow_connect.connectors.mirror import clients
from airflow_connect.connectors.mirror.checkpoint.config import CheckpointConfig
from airflow_connect.connectors.mirror.checkpoint.keys import CheckpointKeys as Keys
from airflow_connect.connectors.mirror.checkpoint.task import GROUPS as TASK_GROUPS
from airflow_connect.connectors.mirror.checkpoint.task import MirrorCheckpointTask
from airflow_connect.connectors.mirror.protocol.alone import RAW_BYTES, check_altered, target_admin
from airflow_connect.connectors.mirror.protocol.internal_topics import ensure_topic
from airflow_connect.counting import names
from airflow_connect.kafka.admin.consumer_group import all_groups
from airflow_connect.kafka.clients.short_lived import admin_client

_NO_GROUP = "no group that the principal may describe has such a name"


class MirrorCheckpointConnector(SourceConnector):
    """`org.apache.kafka.connect.mirror.MirrorCheckpointConnector`: offsets of consumer groups, translated."""

    config_def = CheckpointConfig.config_def()
    task_class = MirrorCheckpointTask
    converters: ClassVar[Mapping[str, str]] = RAW_BYTES
    version = "1.0"

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Finds the groups of the source cluster and divides them among tasks.

        Raises:
            ConnectError: one of the clusters refused, or did not answer.
        """
        config = CheckpointConfig.from_config(self.config)
        if not config.has_work:
            self.context.note(
                f"{Keys.enabled} is false, or both {Keys.emits} and {Keys.syncs_groups}: no group is translated."
            )
            return []
        source = admin_client(clients.admin_of(config.raw, clients.SOURCE))
        listed = all_groups(source)
        groups = [group for group in listed if config.takes_group(group)]
        for entry, matching in config.include.matching(listed):
            if not any(config.takes_group(group) for group in matching):
                why = f"{Keys.groups_exclude} excludes what it matches ({names(matching)})" if matching else _NO_GROUP
                self.context.note(f"{entry} in {Keys.groups} selects no consumer group of the source cluster: {why}.")
        if not groups:
            self.context.note("No consumer group of the source cluster is selected by the configuration.")
            return []
        if not self.context.only_plans:
            target = target_admin(clients.admin_of(config.raw, clients.TARGET), self.context.cluster_id)
            if config.emits:
                ensure_topic(
                    target, config.policy.checkpoints_topic, config.replication_factor, Keys.replication_factor.name
                )
        count = min(max_tasks, len(groups))
        return [{**self.config, TASK_GROUPS: json.dumps(groups[number::count])} for number in range(count)]

    def names_changed_topics(self, config: Mapping[str, str]) -> bool:
        """False: each run reads from the topic itself which checkpoints it has."""
        return False

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        """A checkpoint replaces the one before it."""
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Mapping[tuple[tuple[str, Any], ...], SourceOffset | None]
    ) -> bool:
        """Check offsets that are being altered: they have no effect, but their form."""
        return check_altered(offsets, {"group": str, "topic": str, "partition": int})
