"""Typed configuration of the checkpoint connector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_connect.connectors.mirror import keys
from airflow_connect.connectors.mirror.checkpoint import keys as own
from airflow_connect.connectors.mirror.config import or_old_name, policy_of
from airflow_connect.connectors.mirror.policy import ReplicationPolicy
from airflow_connect.connectors.mirror.selection import Patterns, TopicSelection


@dataclass(frozen=True, slots=True)
class CheckpointConfig:
    """Everything that the checkpoint connector takes from its configuration.

    Attributes:
        enabled: `enabled`, and there is something to do.
        policy: names of topics.
        topics: whose offsets are translated.
        include, exclude: groups.
        emits: whether checkpoints are written.
        syncs_groups: whether offsets of groups are written to the target cluster.
        translates_back: whether offsets in topics that came from the target cluster are translated.
        replication_factor: of the topic with checkpoints.
        syncs_location: cluster of the topic with offset syncs.
        raw: the whole configuration.
    """

    enabled: bool
    policy: ReplicationPolicy
    topics: TopicSelection
    include: Patterns
    exclude: Patterns
    emits: bool
    syncs_groups: bool
    translates_back: bool
    replication_factor: int
    syncs_location: str
    raw: Mapping[str, str] = field(repr=False)

    @classmethod
    def from_config(cls, raw: Mapping[str, str]) -> CheckpointConfig:
        """Check and type a configuration.

        Raises:
            ConfigError: names every wrong key.
        """
        parsed = own.checkpoint_keys().parse(raw)
        policy = policy_of(parsed)
        excluded = or_old_name(raw, parsed, keys.TOPICS_EXCLUDE, keys.TOPICS_BLACKLIST)
        emits, syncs_groups = parsed[own.EMIT], parsed[own.SYNC_GROUPS]
        return cls(
            enabled=parsed[keys.ENABLED] and (emits or syncs_groups),
            policy=policy,
            topics=TopicSelection(Patterns(parsed[keys.TOPICS]), Patterns(excluded), False, policy),
            include=Patterns(parsed[own.GROUPS]),
            exclude=Patterns(or_old_name(raw, parsed, own.GROUPS_EXCLUDE, own.GROUPS_BLACKLIST)),
            emits=emits,
            syncs_groups=syncs_groups,
            translates_back=parsed[own.TRANSLATE_BACK],
            replication_factor=parsed[own.REPLICATION_FACTOR],
            syncs_location=parsed[keys.SYNCS_LOCATION],
            raw=raw,
        )

    def takes_group(self, group: str) -> bool:
        """Whether a group is translated."""
        return group in self.include and group not in self.exclude
