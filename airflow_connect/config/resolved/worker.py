"""The typed configuration of a worker, in Connect the worker.properties file: what connectors share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_connect.api.config import near_names, plugins
from airflow_connect.api.config.config_def import (
    REQUIRED,
    ConfigDef,
    ConfigKey,
    Importance,
    KeyFamily,
    Type,
    UnknownKey,
)
from airflow_connect.api.config.typed import KeyGroup, TypedConfig
from airflow_connect.api.config.validators import Lambda, NonEmptyString, Range, ValidList
from airflow_connect.api.config.values import coerce_config, invalid
from airflow_connect.config.keys import sink as sink_keys
from airflow_connect.config.keys.override_policy import ALLOWLIST, POLICIES, POLICY, OverridePolicy, policy_name
from airflow_connect.config.keys.source_worker import BROKER_DEFAULT, SourceWorkerConfig, topic_settings
from airflow_connect.config.resolved.sink import ConverterConfig, converter_of

SIMPLE_HEADER_CONVERTER = "org.apache.kafka.connect.storage.SimpleHeaderConverter"

CLIENT_PREFIXES = ("consumer.", "producer.", "admin.")
_OF_DRIVER = ("spark.", "config.providers")
_NOT_KEPT = "Runs do not store it: the history of runs is in the runs topic."
_NO_SERVICE = "A run is not a service: it does not listen, join a worker group or change its configuration."
_OF_WORKER = "Only `airflow-connect worker` uses it; a run by itself is not a service."
_ONE_WAY = "Java plugins are always found the same way: by a scan of plugin.path that needs no Java."

_LIVE_WORKER_KEYS = (
    "connect.protocol",
    "inter.worker.key.generation.algorithm", "inter.worker.key.size",
    "inter.worker.key.ttl.ms", "inter.worker.signature.algorithm", "inter.worker.verification.algorithms",
    "scheduled.rebalance.max.delay.ms",
    "task.shutdown.graceful.timeout.ms", "worker.sync.timeout.ms", "worker.unsync.backoff.ms",
)  # fmt: skip
_SERVER_KEYS = (
    "access.control.allow.methods", "access.control.allow.origin", "admin.listeners", "heartbeat.interval.ms",
    "listeners", "rebalance.timeout.ms", "response.http.headers.config", "session.timeout.ms",
    "topic.tracking.allow.reset", "topic.tracking.enable",
)  # fmt: skip
_SOURCE_KEYS = ("offset.flush.timeout.ms",)
_KAFKA, _RUNS, _JAVA = KeyGroup("Kafka"), KeyGroup("Runs"), KeyGroup("Java")


def _check_policy(name: str, value: Any) -> None:
    if not value or not policy_name(value):
        raise invalid(name, value, f"String must be one of: {', '.join(POLICIES)}")


def _check_replication(name: str, value: Any) -> None:
    if value is None or (value < 1 and value != -1):
        raise invalid(name, value, "Replication factor must be positive, or -1 to use the broker's default")


def _check_partitions(name: str, value: Any) -> None:
    if value is None or (value < 1 and value != -1):
        raise invalid(name, value, "Number of partitions must be positive, or -1 to use the broker's default")


def _topic_settings(topic: str, prefix: str) -> str:
    return (
        f"Settings of the {topic} topic when it is created, e.g. `{prefix}.storage.segment.ms` (KIP-605). An existing"
        f" topic"
        " keeps its own settings, and the policy is always `compact`."
    )


def _families() -> list[KeyFamily]:
    nested = [
        KeyFamily(f"{key}.", f"Settings of the {key.replace('.', ' ')}.")
        for key in (
            sink_keys.KEY_CONVERTER, sink_keys.VALUE_CONVERTER, sink_keys.HEADER_CONVERTER
        )
    ]  # fmt: skip
    clients = [KeyFamily(p, f"Settings of every Kafka {p.rstrip('.')} only.") for p in CLIENT_PREFIXES]
    security = [
        KeyFamily(prefix, "Settings of all Kafka clients, by the names of Kafka's Java clients or librdkafka's.")
        for prefix in (
            "security.",
            "sasl.",
            "ssl.",
            "socket.",
            "client.",
            "metadata.",
            "reconnect.",
            "retry.",
        )
    ]
    return [
        *nested,
        *clients,
        *security,
        KeyFamily("spark.", "Settings of the Spark session."),
        KeyFamily(
            "config.providers",
            "Config providers: `config.providers` lists their names, `config.providers.<name>.class` and"
            " `config.providers.<name>.param.*` set each of them up.",
        ),
        KeyFamily("offset.storage.", _topic_settings("offsets", "offset")),
        KeyFamily("config.storage.", _topic_settings("config", "config")),
        KeyFamily("status.storage.", "Status topic.", _OF_WORKER),
        KeyFamily("internal.", "Converters of Connect's own topics, fixed since Kafka 3.0.", _NOT_KEPT),
        KeyFamily("rest.", "REST server of a Connect worker.", _OF_WORKER),
        KeyFamily("listeners.https.", "REST server of a Connect worker.", _OF_WORKER),
        KeyFamily("admin.listeners.https.", "REST server of a Connect worker.", _OF_WORKER),
        KeyFamily("plugin.", "How a Connect worker looks for plugins.", _ONE_WAY),
        KeyFamily("metric", "Metrics reporters of a Connect worker.", _NO_SERVICE),
    ]


class WorkerConfig(TypedConfig):
    """What connectors share: every key of a worker file that is used here, and Connect's keys that are ignored.

    Attributes:
        key_converter, value_converter: None if the worker sets none: then every connector must set them.
        header_converter: SimpleHeaderConverter unless set.
        runs_topic_settings: settings for creating the runs topic.
        override_policy: which client settings a connector may override.
        spark: `spark.*`, with the prefix.
        config_providers: `config.providers*`, with the prefix.
        sources: what sources share.
        ignored, unknown: given keys that have no effect here; keys that look misspelt.
    """

    # fmt: off
    bootstrap_servers = _KAFKA.high.words(
        "bootstrap.servers", REQUIRED, "Brokers of the Kafka cluster, host:port, comma separated.",
        ValidList(empty_allowed=False),
    ).to(",".join)
    group_id = _KAFKA.high.text(
        "group.id", "airflow-connect",
        "Name of the installation. It is the prefix of the transactional ids with which a new run fences an older"
        " one: all workers that run the same connectors must use the same name.",
        NonEmptyString(),
    )
    policy = _KAFKA.medium.text(
        POLICY, "All",
        "Which client settings a connector may override: `All`, `None`, `Principal`"
        " (sasl.jaas.config, sasl.mechanism and security.protocol only), or `Allowlist`.",
        Lambda(_check_policy, f"[{', '.join(POLICIES)}]"),
    ).to(policy_name)
    allowlist = _KAFKA.medium.words(
        ALLOWLIST, "",
        "Client settings, without prefixes such as `consumer.override.`, that a connector may override under the"
        " policy `Allowlist`.",
        ValidList(),
    )
    runs_topic = _RUNS.high.text(
        "runs.storage.topic", "connect-runs",
        "Compacted topic for open manifests and the history of runs; it is created if it does not exist, with"
        " topic settings that keep it small and those that follow `runs.storage.`, e.g."
        " `runs.storage.min.insync.replicas`.",
        NonEmptyString(),
    )
    runs_replication_factor = _RUNS.low.short(
        "runs.storage.replication.factor", BROKER_DEFAULT,
        "Replication factor for creating the runs topic; -1 uses the broker's default, default.replication.factor.",
        Lambda(_check_replication, "Positive number, or -1 to use the broker's default"),
    )
    runs_partitions = _RUNS.low.integer(
        "runs.storage.partitions", 5,
        "Number of partitions for creating the runs topic; -1 uses the broker's default. All records of one"
        " connector are in one partition.",
        Lambda(_check_partitions, "Positive number, or -1 to use the broker's default"),
    )
    alters_state_topics = _RUNS.low.boolean(
        "state.topics.alter", False,
        "Whether existing runs, offsets and config topics that are rarely compacted get the settings that keep"
        " them small. `false`: the report says so, and how to change them manually.",
    )
    run_interval_s = _RUNS.low.long(
        "run.interval.seconds", 60,
        "Pause between two runs of a connector by `airflow-connect worker`, in seconds, for connectors that do not"
        " set run.interval.seconds themselves. If unset, a connector with something to copy runs sooner.",
        Range(1),
    )
    run_timeout_s = _RUNS.low.long(
        "run.timeout.seconds", 0,
        "`airflow-connect worker` ends a run that takes longer than this, in seconds, for connectors that do"
        " not set run.timeout.seconds themselves. 0: no limit.",
        Range(0),
    )
    runs_at_once = _RUNS.low.integer(
        "runs.at.once", 4,
        "How many connectors `airflow-connect worker` runs at the same time. They share one Spark session.",
        Range(1, 100),
    )
    plugin_path = _JAVA.medium.words(
        "plugin.path", "",
        "Folders with Java plugins of Kafka Connect, comma separated. Each has a folder, or a jar, for each plugin."
        " They must exist where the driver and the executors run.",
    )
    _java_connect_home = _JAVA.low.text(
        "airflow.java.connect.home", "",
        "Folder with the jars of Kafka Connect 4.1 or newer (`libs` of a Kafka installation), for connectors that do"
        " not set airflow.java.connect.home themselves. Blank: those of version 4.3.1, which are fetched from Maven"
        " Central once.",
    )
    _java_heap_mb = _JAVA.low.integer(
        "airflow.java.heap.mb", 512,
        "Largest Java heap of each plugin host, in MiB, for connectors that do not set airflow.java.heap.mb"
        " themselves.",
        Range(64),
    )
    _java_options = _JAVA.low.words(
        "airflow.java.options", "",
        "More options for Java, with commas, for connectors that do not set airflow.java.options themselves.",
    )
    _java_block_timeout_ms = _JAVA.low.long(
        "airflow.java.block.timeout.ms", 60_000,
        "How long a call of a Java plugin may take, in milliseconds, for connectors that do not set"
        " airflow.java.block.timeout.ms themselves.",
        Range(1_000),
    )
    # fmt: on

    def __init__(self, raw: Mapping[str, str], parsed: Mapping[str, Any]) -> None:
        """`raw`: the configuration as text."""
        super().__init__(raw, parsed)
        header = converter_of(raw, parsed, sink_keys.HEADER_CONVERTER)
        if header is None:  # set to null, which parse() has rejected, or the default, which is never None
            header = ConverterConfig(plugins.resolve(plugins.PluginKind.HEADER_CONVERTER, SIMPLE_HEADER_CONVERTER), {})
        self.header_converter = header
        self.key_converter = converter_of(raw, parsed, sink_keys.KEY_CONVERTER)
        self.value_converter = converter_of(raw, parsed, sink_keys.VALUE_CONVERTER)
        self.runs_topic_settings = topic_settings(raw, "runs.storage.")
        self.override_policy = OverridePolicy(self.policy, frozenset(self.allowlist))
        self.spark = {name: value for name, value in raw.items() if name.startswith("spark.")}
        self.config_providers = {n: v for n, v in raw.items() if n.startswith("config.providers")}
        self.sources = SourceWorkerConfig(raw, parsed)
        self.ignored = tuple(self.config_def().ignored_keys(raw))
        self.unknown = _misspelt(self.config_def(), raw)

    @classmethod
    def from_properties(cls, raw: Mapping[str, Any]) -> WorkerConfig:
        """Check and type a worker configuration; unknown keys are accepted, as Connect does.

        Raises:
            ConfigError: names every wrong key.
        """
        text = {name: value for name, value in coerce_config(raw).items() if value is not None}
        return cls(text, cls.config_def().parse(raw))

    def for_tasks(self) -> WorkerConfig:
        """Without what only the driver uses: see `without_keys_of_driver`."""
        return WorkerConfig(without_keys_of_driver(self.raw), without_keys_of_driver(self.parsed))

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """Its own keys, those about sources, and converters; then keys that only a live worker uses."""
        super().define(definition)
        SourceWorkerConfig.define(definition)
        low = Importance.LOW
        for key in [key for key in sink_keys.CommonKeys.config_def().keys.values() if ".converter" in key.name]:
            is_header = key.name == sink_keys.HEADER_CONVERTER
            text = key.documentation
            if not key.ignored:
                text = f"{text.partition('. ')[0]}, for connectors that do not set {key.name} themselves."
            default = SIMPLE_HEADER_CONVERTER if is_header else None
            definition.define(
                ConfigKey(key.name, key.type, default, text, None, low, "Converters", key.plugin, key.ignored)
            )
        for names, reason in ((_LIVE_WORKER_KEYS, _NO_SERVICE), (_SERVER_KEYS, _OF_WORKER), (_SOURCE_KEYS, _NOT_KEPT)):
            definition.define(
                *(ConfigKey(n, Type.STRING, None, "", None, low, "Kafka Connect", ignored=reason) for n in names)
            )
        definition.define_family(*_families())


def without_keys_of_driver(worker: Mapping[str, Any]) -> dict[str, Any]:
    """A worker's configuration without `spark.*` and `config.providers*`.

    They may hold the token of a Spark Connect server, or of a store of secrets. Tasks have no use for them, so they do
    not get them.
    """
    return {name: value for name, value in worker.items() if not name.startswith(_OF_DRIVER)}


def _misspelt(definition: ConfigDef, raw: Mapping[str, str]) -> tuple[UnknownKey, ...]:
    """Unknown keys that resemble a known one; the rest may be client settings or belong to another plugin."""
    unknown = (name for name, _ in definition.unknown_keys(raw))
    named = (UnknownKey(name, definition.nearest_name(name, near_names.VERY_NEAR)) for name in unknown)
    return tuple(key for key in named if key.nearest)
