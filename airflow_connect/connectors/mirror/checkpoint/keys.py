"""The keys of the checkpoint connector.

Source: MirrorCheckpointConfig of Apache Kafka 4.3 for names, types and defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, KeyFamily, Problem, Rule, Type
from airflow_connect.api.config.typed import KeyGroup, TypedKey
from airflow_connect.api.config.validators import Range, ValidString
from airflow_connect.connectors.mirror.keys import (
    PATTERNS,
    SOURCE_CLUSTER,
    TARGET_CLUSTER,
    MirrorKeys,
    PolicyKeys,
    SelectionKeys,
    SyncsKeys,
)
from airflow_connect.connectors.mirror.policy import IDENTITY_POLICY

GROUPS_EXCLUDE_DEFAULT = "console-consumer-.*, connect-.*, __.*"
_FILTER = "org.apache.kafka.connect.mirror.DefaultGroupFilter"
_GROUPS, _CHECKPOINTS = KeyGroup("Consumer groups"), KeyGroup("Checkpoints")
_EACH_RUN = "Each run translates all groups once."


class CheckpointKeys(SelectionKeys, PolicyKeys, SyncsKeys):
    """Every key of the checkpoint connector; those of every source are added by the runtime."""

    groups = _GROUPS.high.words(
        "groups",
        ".*",
        "Consumer groups to translate: names and Java regular expressions, which must match the whole name.",
        PATTERNS,
    )
    groups_exclude = _GROUPS.high.words(
        "groups.exclude",
        GROUPS_EXCLUDE_DEFAULT,
        "Groups that are not translated, in the same form; it takes precedence over `groups`.",
        PATTERNS,
    )
    groups_blacklist = _GROUPS.low.words(
        "groups.blacklist", None, "Old name of `groups.exclude`, used if that is not set.", PATTERNS
    )
    syncs_groups = _GROUPS.low.boolean(
        "sync.group.offsets.enabled",
        False,
        "Whether the translated offsets are committed in the target cluster, for groups without members there. No"
        " offset is moved back.",
    )
    translates_back = _GROUPS.low.boolean(
        "translate.replica.offsets.enabled",
        False,
        "Whether offsets of groups in topics that came from the target cluster are translated back to their"
        " originals, for applications that return after a failover. MirrorMaker 2 leaves them out.",
    )
    emits = _CHECKPOINTS.low.boolean("emit.checkpoints.enabled", True, "Whether checkpoints are written.")
    replication_factor = _CHECKPOINTS.low.short(
        "checkpoints.topic.replication.factor",
        3,
        "Replicas of the topic with checkpoints, if it is created; -1: the cluster's default.",
        Range(-1),
    )
    emits_syncs = _CHECKPOINTS.low.boolean(
        MirrorKeys.emits_syncs.name,
        True,
        "Whether the mirror source writes offset syncs. Nothing can be translated without them.",
    )

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """What no code of the connector reads, and settings of clients."""
        super().define(definition)
        definition.define(
            ConfigKey(
                "group.filter.class", Type.STRING, _FILTER,
                "Class that selects groups; only Kafka's own one is available.",
                ValidString(_FILTER), Importance.LOW, "Consumer groups",
            ),
            *_ignored_keys(),
        )  # fmt: skip
        definition.define_family(
            KeyFamily(SOURCE_CLUSTER, "Connection to the source cluster: `security.protocol`, `sasl.*`, `ssl.*`."),
            KeyFamily(TARGET_CLUSTER, "Connection to the target cluster."),
            KeyFamily("source.consumer.", "The consumer that reads offset syncs in the source cluster."),
            KeyFamily(
                "target.consumer.", "The consumer that reads offset syncs and checkpoints in the target cluster."
            ),
            KeyFamily("consumer.", "The consumers of both clusters."),
            KeyFamily("source.admin.", "The admin client of the source cluster; precedes `admin.`."),
            KeyFamily("target.admin.", "The admin client of the target cluster; precedes `admin.`."),
            KeyFamily("admin.", "The admin clients of both clusters."),
        )

    @classmethod
    def checks(cls) -> Iterable[tuple[Sequence[TypedKey[Any]], Rule]]:
        """What several keys must have together."""
        yield from super().checks()
        yield (cls.emits_syncs, cls.emits, cls.syncs_groups), _has_syncs
        yield (cls.translates_back, cls.emits, cls.policy_class), _can_translate_back


def _ignored_keys() -> list[ConfigKey]:
    """Keys of MirrorMaker 2 without a meaning here, and why."""
    rows: list[tuple[str, Type, Any, str, str]] = [
        ("refresh.groups.enabled", Type.BOOLEAN, True, "Whether to look for new groups.", _EACH_RUN),
        ("refresh.groups.interval.seconds", Type.LONG, 600, "Seconds between two looks.", _EACH_RUN),
        ("emit.checkpoints.interval.seconds", Type.LONG, 60, "Seconds between two checkpoints.", _EACH_RUN),
        ("sync.group.offsets.interval.seconds", Type.LONG, 60, "Seconds between two updates.", _EACH_RUN),
        ("consumer.poll.timeout.ms", Type.LONG, 1000, "Timeout of a poll.", "A run reads what there is now."),
    ]
    return [
        ConfigKey(name, kind, default, what, None, Importance.LOW, "Checkpoints", ignored=reason)
        for name, kind, default, what, reason in rows
    ]


def _has_syncs(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    # KIP-1031: MirrorCheckpointConnector.validate.
    syncs, emits, groups = CheckpointKeys.emits_syncs, CheckpointKeys.emits, CheckpointKeys.syncs_groups
    if not syncs.of(parsed) and (emits.of(parsed) or groups.of(parsed)):
        yield Problem(
            syncs.name,
            f"{syncs} is false, but {emits} or {groups} is true: offsets are translated with offset syncs.",
            f"Set {syncs} to true here and for the mirror source, or both others to false.",
        )


def _can_translate_back(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    back, emits = CheckpointKeys.translates_back, CheckpointKeys.emits
    if not back.of(parsed):
        return
    if not emits.of(parsed):
        yield Problem(
            back.name,
            f"{back} is true, but {emits} is false: without checkpoints, a run cannot know which offsets were"
            " translated back before, and would undo it if a group is set back.",
            f"Set {emits} to true, or {back} to false.",
        )
    if CheckpointKeys.policy_class.of(parsed) == IDENTITY_POLICY:
        yield Problem(
            back.name,
            f"{back} is true, but with {IDENTITY_POLICY} a topic's name does not tell where it came from.",
            f"Set {back} to false.",
        )
