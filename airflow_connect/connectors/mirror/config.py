"""Typed configuration of the mirror source, and the settings of its Kafka clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.connectors.mirror import clients, keys
from airflow_connect.connectors.mirror.policy import IDENTITY_POLICY, ReplicationPolicy
from airflow_connect.connectors.mirror.protocol.alone import RAW_BYTES
from airflow_connect.connectors.mirror.selection import Patterns, TopicSelection
from airflow_connect.kafka.clients.settings import ClientConfig

READ_COMMITTED = "read_committed"


@dataclass(frozen=True, slots=True)
class MirrorConfig:
    """Everything that the mirror source takes from its configuration.

    Attributes:
        enabled: `enabled`.
        policy: names of remote topics.
        selection: which topics are mirrored.
        replication_factor: of new topics; -1: the cluster's default.
        syncs_settings: whether existing topics get the settings of their originals.
        excluded_settings: settings that are not copied.
        defaults_from_source: `use.defaults.from` is `source`.
        syncs_acls: whether remote topics get the access control lists of their originals.
        emits_syncs: whether offset syncs are written.
        syncs_location: the cluster of the topic with offset syncs, `source` or `target`.
        syncs_replication_factor: of that topic.
        sync_distance: `offset.lag.max`.
        out_of_range: `offsets.out.of.range`: `earliest`, `latest`, `nearest`, or "" to fail.
        raw: the whole configuration.
    """

    enabled: bool
    policy: ReplicationPolicy
    selection: TopicSelection
    replication_factor: int
    syncs_settings: bool
    excluded_settings: Patterns
    defaults_from_source: bool
    syncs_acls: bool
    emits_syncs: bool
    syncs_location: str
    syncs_replication_factor: int
    sync_distance: int
    out_of_range: str
    raw: Mapping[str, str] = field(repr=False)

    @classmethod
    def from_config(cls, raw: Mapping[str, str]) -> MirrorConfig:
        """Check and type a configuration.

        Raises:
            ConfigError: names every wrong key.
        """
        parsed = keys.mirror_keys().parse(raw)
        policy = policy_of(parsed)
        exclude = or_old_name(raw, parsed, keys.TOPICS_EXCLUDE, keys.TOPICS_BLACKLIST)
        excluded_settings = or_old_name(raw, parsed, keys.SETTINGS_EXCLUDE, keys.SETTINGS_BLACKLIST)
        return cls(
            enabled=parsed[keys.ENABLED],
            policy=policy,
            selection=TopicSelection(
                Patterns(parsed[keys.TOPICS]), Patterns(exclude), parsed[keys.HEARTBEATS_REPLICATION], policy
            ),
            replication_factor=parsed[keys.REPLICATION_FACTOR],
            syncs_settings=parsed[keys.SYNC_SETTINGS],
            excluded_settings=Patterns(excluded_settings),
            defaults_from_source=parsed[keys.DEFAULTS_FROM] == "source",
            syncs_acls=parsed[keys.SYNC_ACLS],
            emits_syncs=parsed[keys.EMIT_SYNCS],
            syncs_location=parsed[keys.SYNCS_LOCATION],
            syncs_replication_factor=parsed[keys.SYNCS_REPLICATION_FACTOR],
            sync_distance=parsed[keys.SYNC_DISTANCE],
            out_of_range=parsed[keys.OUT_OF_RANGE],
            raw=raw,
        )

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


def policy_of(parsed: Mapping[str, Any]) -> ReplicationPolicy:
    """How topics are named."""
    separator = parsed[keys.SEPARATOR]
    return ReplicationPolicy(
        source=parsed[keys.SOURCE_ALIAS],
        target=parsed[keys.TARGET_ALIAS],
        separator=separator,
        internal_separator=separator if parsed[keys.INTERNAL_SEPARATOR] else ".",
        keeps_names=parsed[keys.POLICY_CLASS] == IDENTITY_POLICY,
    )


def or_old_name(raw: Mapping[str, str], parsed: Mapping[str, Any], name: str, old: str) -> list[str]:
    """The value of a key, or of its old name if only that is set."""
    found: list[str] = parsed[old] if name not in raw and old in raw else parsed[name]
    return found
