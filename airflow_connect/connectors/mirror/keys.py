"""The keys of the mirror's three connectors.

Source: MirrorConnectorConfig and MirrorSourceConfig of Apache Kafka 4.3 for names, types and defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from airflow_connect.api.config.config_def import REQUIRED, ConfigDef, ConfigKey, Importance, KeyFamily, Problem, Rule
from airflow_connect.api.config.typed import KeyGroup, TypedConfig, TypedKey
from airflow_connect.api.config.validators import Lambda, NonEmptyString, Range, ValidString
from airflow_connect.api.config.values import Type, invalid
from airflow_connect.connectors.mirror.policy import DEFAULT_POLICY, IDENTITY_POLICY, POLICIES, ReplicationPolicy
from airflow_connect.connectors.mirror.selection import Patterns, TopicSelection
from airflow_connect.java.patterns.nodes import PatternError

SOURCE_CLUSTER, TARGET_CLUSTER = "source.cluster.", "target.cluster."
TOPICS_DEFAULT = ".*"
TOPICS_EXCLUDE_DEFAULT = r".*[\-\.]internal, .*\.replica, __.*"
SETTINGS_EXCLUDE_DEFAULT = (
    r"follower\.replication\.throttled\.replicas, leader\.replication\.throttled\.replicas,"
    r" message\.timestamp\.difference\.max\.ms, message\.timestamp\.type, unclean\.leader\.election\.enable,"
    r" min\.insync\.replicas"
)

_TOPIC_FILTER = "org.apache.kafka.connect.mirror.DefaultTopicFilter"
_SETTINGS_FILTER = "org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter"
_CLUSTERS, _WHICH, _COPIES = KeyGroup("Clusters"), KeyGroup("Topics"), KeyGroup("Topics of the target")
_SYNCS, _RUN = KeyGroup("Offset syncs"), KeyGroup("Run")
_EACH_RUN = "Each run looks for topics, partitions and settings once, when it starts."


def _check_patterns(name: str, value: Any) -> None:
    """Check names and Java regular expressions.

    Raises:
        ConfigError: one cannot be used.
    """
    try:
        Patterns(value or ())
    except PatternError as error:
        raise invalid(name, value, f"Not a regular expression of Java: {error}") from error


PATTERNS = Lambda(_check_patterns, "names and Java regular expressions")


class ClusterKeys(TypedConfig):
    """Keys about both clusters, of all three connectors."""

    source_alias = _CLUSTERS.high.text(
        "source.cluster.alias",
        REQUIRED,
        "Name of the source cluster. It is part of the names of remote topics and of the offsets: do not change it.",
        NonEmptyString(),
    )
    target_alias = _CLUSTERS.high.text(
        "target.cluster.alias",
        "target",
        "Name of the target cluster. Topics that came from it are not mirrored back.",
        NonEmptyString(),
    )
    source_servers = _CLUSTERS.high.text(
        f"{SOURCE_CLUSTER}bootstrap.servers",
        REQUIRED,
        "Addresses of the source cluster, as `host:port,host:port`.",
        NonEmptyString(),
    )
    target_servers = _CLUSTERS.high.text(
        f"{TARGET_CLUSTER}bootstrap.servers",
        REQUIRED,
        "Addresses of the target cluster: the cluster of the worker, to which records and offsets are written.",
        NonEmptyString(),
    )
    enabled = _CLUSTERS.low.boolean("enabled", True, "Whether anything is mirrored.")

    @classmethod
    def checks(cls) -> Iterable[tuple[Sequence[TypedKey[Any]], Rule]]:
        """The clusters have different names."""
        yield (cls.source_alias, cls.target_alias), _aliases_differ

    def _or_old_name(self, key: TypedKey[tuple[str, ...]], old: TypedKey[tuple[str, ...]]) -> Patterns:
        """The value of a key, or of its old name if only that is set."""
        is_old = key.name not in self.raw and old.name in self.raw
        return Patterns((old if is_old else key).of(self.parsed))


class SelectionKeys(ClusterKeys):
    """Keys that select topics, of source and checkpoint connector."""

    topics = _WHICH.high.words(
        "topics",
        TOPICS_DEFAULT,
        "Topics to mirror: names and Java regular expressions, which must match the whole name.",
        PATTERNS,
    )
    topics_exclude = _WHICH.high.words(
        "topics.exclude",
        TOPICS_EXCLUDE_DEFAULT,
        "Topics that are not mirrored, in the same form; it takes precedence over `topics`. Internal topics are"
        " never mirrored.",
        PATTERNS,
    )
    topics_blacklist = _WHICH.low.words(
        "topics.blacklist", None, "Old name of `topics.exclude`, used if that is not set.", PATTERNS
    )

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """The filter class has no other value."""
        super().define(definition)
        definition.define(_only("topic.filter.class", _TOPIC_FILTER, "Class that selects topics", "Topics"))

    def _selected(self, policy: ReplicationPolicy, *, heartbeats: bool) -> TopicSelection:
        """Which topics are mirrored; with those of heartbeats, or without."""
        excluded = self._or_old_name(type(self).topics_exclude, type(self).topics_blacklist)
        return TopicSelection(Patterns(self.topics), excluded, heartbeats, policy)


class PolicyKeys(ClusterKeys):
    """Keys about names of topics, of all three connectors."""

    policy_class = _WHICH.low.text(
        "replication.policy.class",
        DEFAULT_POLICY,
        "How remote topics are named: DefaultReplicationPolicy puts the alias of the source cluster in front,"
        " IdentityReplicationPolicy keeps names, and cannot recognise cycles.",
        ValidString(*POLICIES),
    )
    separator = _WHICH.low.text(
        "replication.policy.separator",
        ".",
        "Text between alias and topic in the names of remote topics.",
        NonEmptyString(),
    )
    internal_separator = _WHICH.low.boolean(
        "replication.policy.internal.topic.separator.enabled",
        True,
        "Whether MirrorMaker 2's own topics have that separator in their names, too.",
    )

    @cached_property
    def policy(self) -> ReplicationPolicy:
        """How topics are named."""
        return ReplicationPolicy(
            source=self.source_alias,
            target=self.target_alias,
            separator=self.separator,
            internal_separator=self.separator if self.internal_separator else ".",
            keeps_names=self.policy_class == IDENTITY_POLICY,
        )


class SyncsKeys(TypedConfig):
    """Keys about offset syncs, of source and checkpoint connector."""

    syncs_location = _SYNCS.low.text(
        "offset-syncs.topic.location",
        "source",
        "Cluster of the topic with offset syncs, `source` or `target`. It is `mm2-offset-syncs.<alias>.internal` with"
        " the alias of the other cluster.",
        ValidString("source", "target"),
    )


class MirrorKeys(SelectionKeys, PolicyKeys, SyncsKeys):
    """Every key of the mirror source; those of every source are added by the runtime."""

    heartbeats_replication = _WHICH.low.boolean(
        "heartbeats.replication.enabled",
        True,
        "Whether topics with MirrorMaker 2's heartbeats are mirrored even if `topics` does not name them.",
    )
    replication_factor = _COPIES.low.integer(
        "replication.factor",
        2,
        "Replicas of remote topics that are created; -1: the target cluster's default.",
        Range(-1),
    )
    syncs_settings = _COPIES.low.boolean(
        "sync.topic.configs.enabled",
        True,
        "Whether each run gives remote topics the settings of their originals. New topics always get them.",
    )
    settings_exclude = _COPIES.high.words(
        "config.properties.exclude",
        SETTINGS_EXCLUDE_DEFAULT,
        "Topic settings that are not copied: names and Java regular expressions.",
        PATTERNS,
    )
    settings_blacklist = _COPIES.low.words(
        "config.properties.blacklist",
        None,
        "Old name of `config.properties.exclude`, used if that is not set.",
        PATTERNS,
    )
    defaults_from_source = _COPIES.low.text(
        "use.defaults.from",
        "target",
        "Whose default a setting has that the source topic does not set: `target` or `source`.",
        ValidString("target", "source"),
    ).equals("source")
    syncs_acls = _COPIES.low.boolean(
        "sync.topic.acls.enabled",
        True,
        "Whether each run gives remote topics the access control lists of their originals: without the right to"
        " write, and READ instead of ALL.",
    )
    emits_syncs = _SYNCS.low.boolean(
        "emit.offset-syncs.enabled",
        True,
        "Whether each run records which offsets of the source became which offsets of the target. Checkpoints need it.",
    )
    syncs_replication_factor = _SYNCS.low.short(
        "offset-syncs.topic.replication.factor",
        3,
        "Replicas of the topic for offset syncs, if it is created; -1: the cluster's default.",
        Range(-1),
    )
    sync_distance = _SYNCS.low.long(
        "offset.lag.max",
        100,
        "Most records between the end of a run and the offset sync before it, for a MirrorMaker 2 that takes over."
        " Farther from the end, distances double. The connectors of this package read exact ranges from the same"
        " records.",
        Range(0),
    )
    out_of_range = _RUN.medium.text(
        "offsets.out.of.range",
        "",
        "Where to resume if the source cluster no longer holds the committed offset, or the topic was recreated:"
        " `earliest`, `latest` or `nearest` (the closest end of the log). Blank: the run fails and shows both"
        " offsets.",
        ValidString("", "earliest", "latest", "nearest"),
        display_name="Offsets out of range",
    )

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """What no code of the connector reads, and settings of clients."""
        super().define(definition)
        which = _only(
            "config.property.filter.class", _SETTINGS_FILTER, "Class that selects settings", "Topics of the target"
        )
        definition.define(which, *_ignored_keys())
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


_SYNC_PRODUCERS = {
    "producer.": "",
    "source.producer.": f", with `{SyncsKeys.syncs_location}=source`; precedes `producer.`",
    "target.producer.": f", with `{SyncsKeys.syncs_location}=target`; precedes `producer.`",
}


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
        ConfigKey(name, kind, default, what, None, Importance.LOW, "Run", ignored=reason)
        for name, kind, default, what, reason in rows
    ]


def _only(name: str, value: str, what: str, group: str) -> ConfigKey:
    """A key that names a class, of which only Kafka's own one is available."""
    text = f"{what}; only Kafka's own one is available."
    return ConfigKey(name, Type.STRING, value, text, ValidString(value), Importance.LOW, group)


def _aliases_differ(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    source, target = ClusterKeys.source_alias, ClusterKeys.target_alias
    if source.of(parsed) == target.of(parsed):
        yield Problem(
            target.name,
            f"{source} and {target} are both {source.of(parsed)}.",
            "Give the two clusters different names.",
        )
