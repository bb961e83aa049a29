"""Definitions of the checkpoint connector's keys.

Source: MirrorCheckpointConfig of Apache Kafka 4.3 for names, types and defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, KeyFamily, Problem, Type
from airflow_connect.api.config.validators import Lambda, Range, ValidString
from airflow_connect.connectors.mirror import keys
from airflow_connect.connectors.mirror.policy import IDENTITY_POLICY

GROUPS, GROUPS_EXCLUDE, GROUPS_BLACKLIST = "groups", "groups.exclude", "groups.blacklist"
GROUPS_EXCLUDE_DEFAULT = "console-consumer-.*, connect-.*, __.*"
EMIT = "emit.checkpoints.enabled"
SYNC_GROUPS = "sync.group.offsets.enabled"
TRANSLATE_BACK = "translate.replica.offsets.enabled"
REPLICATION_FACTOR = "checkpoints.topic.replication.factor"
_FILTER = "org.apache.kafka.connect.mirror.DefaultGroupFilter"
_GROUPS, _CHECKPOINTS = "Consumer groups", "Checkpoints"
_EACH_RUN = "Each run translates all groups once."


@cache
def checkpoint_keys() -> ConfigDef:
    """Every key of the checkpoint connector; those of every source are added by the runtime."""
    definition = ConfigDef().define(
        *keys.cluster_keys(),
        *keys.selection_keys(),
        *keys.policy_keys(),
        *_group_keys(),
        *_checkpoint_keys(),
        *_ignored_keys(),
    )
    definition.define_family(
        KeyFamily(keys.SOURCE_CLUSTER, "Connection to the source cluster: `security.protocol`, `sasl.*`, `ssl.*`."),
        KeyFamily(keys.TARGET_CLUSTER, "Connection to the target cluster."),
        KeyFamily("source.consumer.", "The consumer that reads offset syncs in the source cluster."),
        KeyFamily("target.consumer.", "The consumer that reads offset syncs and checkpoints in the target cluster."),
        KeyFamily("consumer.", "The consumers of both clusters."),
        KeyFamily("source.admin.", "The admin client of the source cluster; precedes `admin.`."),
        KeyFamily("target.admin.", "The admin client of the target cluster; precedes `admin.`."),
        KeyFamily("admin.", "The admin clients of both clusters."),
    )
    definition.define_rule((keys.SOURCE_ALIAS, keys.TARGET_ALIAS), keys.aliases_differ)
    definition.define_rule((keys.EMIT_SYNCS, EMIT, SYNC_GROUPS), _has_syncs)
    definition.define_rule((TRANSLATE_BACK, EMIT, keys.POLICY_CLASS), _can_translate_back)
    return definition


def _group_keys() -> list[ConfigKey]:
    high, low = Importance.HIGH, Importance.LOW
    patterns = Lambda(keys.check_patterns, "names and Java regular expressions")
    return [
        ConfigKey(
            GROUPS, Type.LIST, ".*",
            "Consumer groups to translate: names and Java regular expressions, which must match the whole name.",
            patterns, high, _GROUPS,
        ),
        ConfigKey(
            GROUPS_EXCLUDE, Type.LIST, GROUPS_EXCLUDE_DEFAULT,
            "Groups that are not translated, in the same form; it takes precedence over `groups`.",
            patterns, high, _GROUPS,
        ),
        ConfigKey(
            GROUPS_BLACKLIST, Type.LIST, None, "Old name of `groups.exclude`, used if that is not set.",
            patterns, low, _GROUPS,
        ),
        ConfigKey(
            "group.filter.class", Type.STRING, _FILTER, "Class that selects groups; only Kafka's own one is available.",
            ValidString(_FILTER), low, _GROUPS,
        ),
        ConfigKey(
            SYNC_GROUPS, Type.BOOLEAN, False,
            "Whether the translated offsets are committed in the target cluster, for groups without members there. No"
            " offset is moved back.",
            None, low, _GROUPS,
        ),
        ConfigKey(
            TRANSLATE_BACK, Type.BOOLEAN, False,
            "Whether offsets of groups in topics that came from the target cluster are translated back to their"
            " originals, for applications that return after a failover. MirrorMaker 2 leaves them out.",
            None, low, _GROUPS,
        ),
    ]  # fmt: skip


def _checkpoint_keys() -> list[ConfigKey]:
    low = Importance.LOW
    return [
        ConfigKey(EMIT, Type.BOOLEAN, True, "Whether checkpoints are written.", None, low, _CHECKPOINTS),
        ConfigKey(
            REPLICATION_FACTOR, Type.SHORT, 3,
            "Replicas of the topic with checkpoints, if it is created; -1: the cluster's default.",
            Range(-1), low, _CHECKPOINTS,
        ),
        keys.syncs_location_key(),
        ConfigKey(
            keys.EMIT_SYNCS, Type.BOOLEAN, True,
            "Whether the mirror source writes offset syncs. Nothing can be translated without them.",
            None, low, _CHECKPOINTS,
        ),
    ]  # fmt: skip


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
        ConfigKey(name, kind, default, what, None, Importance.LOW, _CHECKPOINTS, ignored=reason)
        for name, kind, default, what, reason in rows
    ]


def _has_syncs(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    # KIP-1031: MirrorCheckpointConnector.validate.
    if not parsed[keys.EMIT_SYNCS] and (parsed[EMIT] or parsed[SYNC_GROUPS]):
        yield Problem(
            keys.EMIT_SYNCS,
            f"{keys.EMIT_SYNCS} is false, but {EMIT} or {SYNC_GROUPS} is true: offsets are translated with offset"
            " syncs.",
            f"Set {keys.EMIT_SYNCS} to true here and for the mirror source, or both others to false.",
        )


def _can_translate_back(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if not parsed[TRANSLATE_BACK]:
        return
    if not parsed[EMIT]:
        yield Problem(
            TRANSLATE_BACK,
            f"{TRANSLATE_BACK} is true, but {EMIT} is false: without checkpoints, a run cannot know which offsets were"
            " translated back before, and would undo it if a group is set back.",
            f"Set {EMIT} to true, or {TRANSLATE_BACK} to false.",
        )
    if parsed[keys.POLICY_CLASS] == IDENTITY_POLICY:
        yield Problem(
            TRANSLATE_BACK,
            f"{TRANSLATE_BACK} is true, but with {IDENTITY_POLICY} a topic's name does not tell where it came from.",
            f"Set {TRANSLATE_BACK} to false.",
        )
