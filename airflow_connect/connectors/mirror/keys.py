"""Definitions of the mirror source's keys.

Source: MirrorConnectorConfig and MirrorSourceConfig of Apache Kafka 4.3 for names, types and defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from airflow_connect.api.config.config_def import (
    REQUIRED,
    ConfigDef,
    ConfigKey,
    Importance,
    KeyFamily,
    Problem,
    Type,
)
from airflow_connect.api.config.validators import Lambda, NonEmptyString, Range, ValidString
from airflow_connect.api.config.values import invalid
from airflow_connect.connectors.mirror.policy import DEFAULT_POLICY, POLICIES
from airflow_connect.connectors.mirror.selection import Patterns
from airflow_connect.java.patterns.nodes import PatternError

ENABLED = "enabled"
SOURCE_ALIAS, TARGET_ALIAS = "source.cluster.alias", "target.cluster.alias"
SOURCE_CLUSTER, TARGET_CLUSTER = "source.cluster.", "target.cluster."
SOURCE_SERVERS, TARGET_SERVERS = f"{SOURCE_CLUSTER}bootstrap.servers", f"{TARGET_CLUSTER}bootstrap.servers"
TOPICS, TOPICS_EXCLUDE, TOPICS_BLACKLIST = "topics", "topics.exclude", "topics.blacklist"
SETTINGS_EXCLUDE, SETTINGS_BLACKLIST = "config.properties.exclude", "config.properties.blacklist"
POLICY_CLASS, SEPARATOR = "replication.policy.class", "replication.policy.separator"
INTERNAL_SEPARATOR = "replication.policy.internal.topic.separator.enabled"
HEARTBEATS_REPLICATION = "heartbeats.replication.enabled"
REPLICATION_FACTOR = "replication.factor"
SYNC_SETTINGS, DEFAULTS_FROM = "sync.topic.configs.enabled", "use.defaults.from"
SYNC_ACLS = "sync.topic.acls.enabled"
EMIT_SYNCS, SYNC_DISTANCE = "emit.offset-syncs.enabled", "offset.lag.max"
SYNCS_LOCATION, SYNCS_REPLICATION_FACTOR = "offset-syncs.topic.location", "offset-syncs.topic.replication.factor"
OUT_OF_RANGE = "offsets.out.of.range"
TOPICS_DEFAULT = ".*"
TOPICS_EXCLUDE_DEFAULT = r".*[\-\.]internal, .*\.replica, __.*"
SETTINGS_EXCLUDE_DEFAULT = (
    r"follower\.replication\.throttled\.replicas, leader\.replication\.throttled\.replicas,"
    r" message\.timestamp\.difference\.max\.ms, message\.timestamp\.type, unclean\.leader\.election\.enable,"
    r" min\.insync\.replicas"
)

_TOPIC_FILTER = "org.apache.kafka.connect.mirror.DefaultTopicFilter"
_SETTINGS_FILTER = "org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter"
_CLUSTERS, _WHICH, _COPIES, _RUN = "Clusters", "Topics", "Topics of the target", "Run"
_SYNCS = "Offset syncs"
_EACH_RUN = "Each run looks for topics, partitions and settings once, when it starts."


@cache
def mirror_keys() -> ConfigDef:
    """Every key of the mirror source; those of every source are added by the runtime."""
    definition = ConfigDef().define(
        *cluster_keys(), *_topic_keys(), *_copy_keys(), *_sync_keys(), *_run_keys(), *_ignored_keys()
    )
    definition.define_family(
        KeyFamily(SOURCE_CLUSTER, "Connection to the source cluster: `security.protocol`, `sasl.*`, `ssl.*`."),
        KeyFamily(TARGET_CLUSTER, "Connection to the target cluster, for creating and configuring topics."),
        KeyFamily("source.consumer.", "The consumer that reads the source cluster; precedes `consumer.`."),
        KeyFamily("consumer.", "The consumer that reads the source cluster."),
        KeyFamily("source.admin.", "The admin client of the source cluster; precedes `admin.`."),
        KeyFamily("target.admin.", "The admin client of the target cluster; precedes `admin.`."),
        KeyFamily("admin.", "The admin clients of both clusters."),
        *(KeyFamily(prefix, f"The producer of offset syncs{more}.") for prefix, more in _SYNC_PRODUCERS.items()),
    )
    definition.define_rule((SOURCE_ALIAS, TARGET_ALIAS), aliases_differ)
    return definition


_SYNC_PRODUCERS = {
    "producer.": "",
    "source.producer.": f", with `{SYNCS_LOCATION}=source`; precedes `producer.`",
    "target.producer.": f", with `{SYNCS_LOCATION}=target`; precedes `producer.`",
}


def cluster_keys() -> list[ConfigKey]:
    """Keys about both clusters, for all three connectors."""
    high = Importance.HIGH
    return [
        ConfigKey(
            SOURCE_ALIAS, Type.STRING, REQUIRED,
            "Name of the source cluster. It is part of the names of remote topics and of the offsets: do not change"
            " it.",
            NonEmptyString(), high, _CLUSTERS,
        ),
        ConfigKey(
            TARGET_ALIAS, Type.STRING, "target",
            "Name of the target cluster. Topics that came from it are not mirrored back.",
            NonEmptyString(), high, _CLUSTERS,
        ),
        ConfigKey(
            SOURCE_SERVERS, Type.STRING, REQUIRED,
            "Addresses of the source cluster, as `host:port,host:port`.", NonEmptyString(), high, _CLUSTERS,
        ),
        ConfigKey(
            TARGET_SERVERS, Type.STRING, REQUIRED,
            "Addresses of the target cluster: the cluster of the worker, to which records and offsets are written.",
            NonEmptyString(), high, _CLUSTERS,
        ),
        ConfigKey(
            ENABLED, Type.BOOLEAN, True, "Whether anything is mirrored.", None, Importance.LOW, _CLUSTERS,
        ),
    ]  # fmt: skip


def _topic_keys() -> list[ConfigKey]:
    low = Importance.LOW
    return [
        *selection_keys(),
        ConfigKey(
            HEARTBEATS_REPLICATION, Type.BOOLEAN, True,
            "Whether topics with MirrorMaker 2's heartbeats are mirrored even if `topics` does not name them.",
            None, low, _WHICH,
        ),
        *policy_keys(),
    ]  # fmt: skip


def selection_keys() -> list[ConfigKey]:
    """Keys that select topics, for source and checkpoint connector."""
    high, low = Importance.HIGH, Importance.LOW
    patterns = Lambda(check_patterns, "names and Java regular expressions")
    return [
        ConfigKey(
            TOPICS, Type.LIST, TOPICS_DEFAULT,
            "Topics to mirror: names and Java regular expressions, which must match the whole name.",
            patterns, high, _WHICH,
        ),
        ConfigKey(
            TOPICS_EXCLUDE, Type.LIST, TOPICS_EXCLUDE_DEFAULT,
            "Topics that are not mirrored, in the same form; it takes precedence over `topics`. Internal topics are"
            " never mirrored.",
            patterns, high, _WHICH,
        ),
        ConfigKey(
            TOPICS_BLACKLIST, Type.LIST, None, "Old name of `topics.exclude`, used if that is not set.",
            patterns, low, _WHICH,
        ),
        ConfigKey(
            "topic.filter.class", Type.STRING, _TOPIC_FILTER,
            "Class that selects topics; only Kafka's own one is available.",
            ValidString(_TOPIC_FILTER), low, _WHICH,
        ),
    ]  # fmt: skip


def policy_keys() -> list[ConfigKey]:
    """Keys about names of topics, for all three connectors."""
    low = Importance.LOW
    return [
        ConfigKey(
            POLICY_CLASS, Type.STRING, DEFAULT_POLICY,
            "How remote topics are named: DefaultReplicationPolicy puts the alias of the source cluster in front,"
            " IdentityReplicationPolicy keeps names, and cannot recognise cycles.",
            ValidString(*POLICIES), low, _WHICH,
        ),
        ConfigKey(
            SEPARATOR, Type.STRING, ".", "Text between alias and topic in the names of remote topics.",
            NonEmptyString(), low, _WHICH,
        ),
        ConfigKey(
            INTERNAL_SEPARATOR, Type.BOOLEAN, True,
            "Whether MirrorMaker 2's own topics have that separator in their names, too.",
            None, low, _WHICH,
        ),
    ]  # fmt: skip


def _copy_keys() -> list[ConfigKey]:
    low, high = Importance.LOW, Importance.HIGH
    patterns = Lambda(check_patterns, "names and Java regular expressions")
    return [
        ConfigKey(
            REPLICATION_FACTOR, Type.INT, 2,
            "Replicas of remote topics that are created; -1: the target cluster's default.",
            Range(-1), low, _COPIES,
        ),
        ConfigKey(
            SYNC_SETTINGS, Type.BOOLEAN, True,
            "Whether each run gives remote topics the settings of their originals. New topics always get them.",
            None, low, _COPIES,
        ),
        ConfigKey(
            SETTINGS_EXCLUDE, Type.LIST, SETTINGS_EXCLUDE_DEFAULT,
            "Topic settings that are not copied: names and Java regular expressions.", patterns, high, _COPIES,
        ),
        ConfigKey(
            "config.property.filter.class", Type.STRING, _SETTINGS_FILTER,
            "Class that selects settings; only Kafka's own one is available.",
            ValidString(_SETTINGS_FILTER), low, _COPIES,
        ),
        ConfigKey(
            SETTINGS_BLACKLIST, Type.LIST, None, "Old name of `config.properties.exclude`, used if that is not set.",
            patterns, low, _COPIES,
        ),
        ConfigKey(
            DEFAULTS_FROM, Type.STRING, "target",
            "Whose default a setting has that the source topic does not set: `target` or `source`.",
            ValidString("target", "source"), low, _COPIES,
        ),
        ConfigKey(
            SYNC_ACLS, Type.BOOLEAN, True,
            "Whether each run gives remote topics the access control lists of their originals: without the right to"
            " write, and READ instead of ALL.",
            None, low, _COPIES,
        ),
    ]  # fmt: skip


def _sync_keys() -> list[ConfigKey]:
    low = Importance.LOW
    return [
        ConfigKey(
            EMIT_SYNCS, Type.BOOLEAN, True,
            "Whether each run records which offsets of the source became which offsets of the target. Checkpoints need"
            " it.",
            None, low, _SYNCS,
        ),
        syncs_location_key(),
        ConfigKey(
            SYNCS_REPLICATION_FACTOR, Type.SHORT, 3,
            "Replicas of the topic for offset syncs, if it is created; -1: the cluster's default.",
            Range(-1), low, _SYNCS,
        ),
        ConfigKey(
            SYNC_DISTANCE, Type.LONG, 100,
            "Most records between the end of a run and the offset sync before it, for a MirrorMaker 2 that takes over."
            " Farther from the end, distances double. The connectors of this package read exact ranges from the same"
            " records.",
            Range(0), low, _SYNCS,
        ),
    ]  # fmt: skip


def syncs_location_key() -> ConfigKey:
    """The key `offset-syncs.topic.location`, of source and checkpoint connector."""
    return ConfigKey(
        SYNCS_LOCATION, Type.STRING, "source",
        "Cluster of the topic with offset syncs, `source` or `target`. It is `mm2-offset-syncs.<alias>.internal` with"
        " the alias of the other cluster.",
        ValidString("source", "target"), Importance.LOW, _SYNCS,
    )  # fmt: skip


def _run_keys() -> list[ConfigKey]:
    return [
        ConfigKey(
            OUT_OF_RANGE, Type.STRING, "",
            "Where to resume if the source cluster no longer holds the committed offset, or the topic was recreated:"
            " `earliest`, `latest` or `nearest` (the closest end of the log). Blank: the run fails and shows both"
            " offsets.",
            ValidString("", "earliest", "latest", "nearest"), Importance.MEDIUM, _RUN,
            display_name="Offsets out of range",
        ),
    ]  # fmt: skip


def _ignored_keys() -> list[ConfigKey]:
    """Keys of MirrorMaker 2 without a meaning here, and why."""
    rows: list[tuple[str, Type, Any, str, str]] = [
        ("refresh.topics.enabled", Type.BOOLEAN, True, "Whether to look for new topics.", _EACH_RUN),
        ("refresh.topics.interval.seconds", Type.LONG, 600, "Seconds between two looks.", _EACH_RUN),
        ("sync.topic.configs.interval.seconds", Type.LONG, 600, "Seconds between two updates.", _EACH_RUN),
        ("sync.topic.acls.interval.seconds", Type.LONG, 600, "Seconds between two updates.", _EACH_RUN),
        ("consumer.poll.timeout.ms", Type.LONG, 1000, "Timeout of a poll.", "A task waits until there is a record."),
    ]
    return [
        ConfigKey(name, kind, default, what, None, Importance.LOW, _RUN, ignored=reason)
        for name, kind, default, what, reason in rows
    ]


def check_patterns(name: str, value: Any) -> None:
    """Check names and Java regular expressions.

    Raises:
        ConfigError: one cannot be used.
    """
    try:
        Patterns(value or ())
    except PatternError as error:
        raise invalid(name, value, f"Not a regular expression of Java: {error}") from error


def aliases_differ(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """Find equal names of both clusters."""
    if parsed[SOURCE_ALIAS] == parsed[TARGET_ALIAS]:
        yield Problem(
            TARGET_ALIAS,
            f"{SOURCE_ALIAS} and {TARGET_ALIAS} are both {parsed[SOURCE_ALIAS]}.",
            "Give the two clusters different names.",
        )
