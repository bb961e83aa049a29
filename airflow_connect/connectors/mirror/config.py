"""Typed configuration of the mirror source, and the settings of its Kafka clients."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from airflow_connect.connectors.mirror import clients
from airflow_connect.connectors.mirror.keys import MirrorKeys
from airflow_connect.connectors.mirror.protocol.alone import RAW_BYTES
from airflow_connect.connectors.mirror.selection import Patterns, TopicSelection
from airflow_connect.kafka.clients.settings import ClientConfig

READ_COMMITTED = "read_committed"


class MirrorConfig(MirrorKeys):
    """Everything that the mirror source takes from its configuration."""

    @cached_property
    def selection(self) -> TopicSelection:
        """Which topics are mirrored."""
        return self._selected(self.policy, heartbeats=self.heartbeats_replication)

    @cached_property
    def excluded_settings(self) -> Patterns:
        """Settings of topics that are not copied."""
        return self._or_old_name(MirrorKeys.settings_exclude, MirrorKeys.settings_blacklist)

    def may_drop(self, *, has_transactions: bool) -> bool:
        """Whether a record may be left out, or get another place, between this connector and its topic.

        Args:
            has_transactions: then no record that Kafka refuses is skipped.
        """
        if self.raw.get("transforms", "").strip():
            return True
        tolerates = self.raw.get("errors.tolerance", "").strip().lower() == "all"
        return tolerates and (not has_transactions or any(key in self.raw for key in RAW_BYTES))

    def source_consumer(self) -> ClientConfig:
        """The consumer of the source cluster; read_committed unless configured otherwise.

        Raises:
            ConfigError: a setting cannot be used.
        """
        return clients.consumer_of(self.raw, clients.SOURCE)

    def source_admin(self) -> dict[str, Any]:
        """Settings of the admin client of the source cluster.

        Raises:
            ConfigError: a setting cannot be used.
        """
        return clients.admin_of(self.raw, clients.SOURCE)

    def target_admin(self) -> dict[str, Any]:
        """Settings of the admin client of the target cluster.

        Raises:
            ConfigError: a setting cannot be used.
        """
        return clients.admin_of(self.raw, clients.TARGET)
