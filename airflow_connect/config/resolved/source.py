"""The typed configuration that every source connector has, alone and together with its worker's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.api.config import plugins
from airflow_connect.api.config.config_def import ConfigDef, IgnoredKey, UnknownKey
from airflow_connect.api.config.values import coerce_config
from airflow_connect.config.keys import sink as keys
from airflow_connect.config.keys import source as source_keys
from airflow_connect.config.keys.source import SourceKeys
from airflow_connect.config.keys.transforms import with_chain
from airflow_connect.config.resolved import own_chain
from airflow_connect.config.resolved.java_chain import (
    JavaChainConfig,
    java_chain_of,
    unused_host_keys,
    with_hosts_of_worker,
)
from airflow_connect.config.resolved.sink import (
    CONVERTER_TYPE,
    ConverterConfig,
    converter_of,
    effective_converter,
    errors_of,
    with_prefix,
)
from airflow_connect.config.resolved.transforms import transforms_of
from airflow_connect.config.resolved.worker import WorkerConfig
from airflow_connect.java.patterns.compiled import compile_java_pattern


@dataclass(frozen=True, slots=True)
class TopicGroup:
    """How topics of one group are created (KIP-158).

    Attributes:
        name: `default`, or as listed in `topic.creation.groups`.
        include, exclude: Java patterns for the whole name; `default` takes every topic.
        partitions, replication_factor: -1: the broker's default.
        settings: topic settings, e.g. `cleanup.policy`.
    """

    name: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    partitions: int
    replication_factor: int
    settings: Mapping[str, str] = field(default_factory=dict)

    def takes(self, topic: str) -> bool:
        """Whether `topic` is created with the settings of this group."""
        return _is_matched(topic, self.include) and not _is_matched(topic, self.exclude)


def _is_matched(topic: str, patterns: tuple[str, ...]) -> bool:
    return any(compile_java_pattern(pattern).fullmatch(topic) for pattern in patterns)


class SourceConnectorConfig(SourceKeys):
    """Connect's own keys of a source connector, and ours; the connector's keys are its own.

    Attributes:
        key_converter, value_converter, header_converter: as configured, or else those of `SourceConnector.converters`;
            None: the worker's.
        transforms: the chain of transformations, in order.
        errors: error handling; sources have no dead letter queue.
        topic_groups: in order of precedence, `default` last; () when no `topic.creation.` key is given.
        raw: the whole configuration as text.
        ignored, unknown: as in SinkConnectorConfig.
    """

    ignored: tuple[IgnoredKey, ...] = ()
    unknown: tuple[UnknownKey, ...] = ()

    def __init__(self, raw: Mapping[str, str], parsed: Mapping[str, Any]) -> None:
        """Read each key's value, and what follows from the nested keys."""
        super().__init__(raw, parsed)
        self.key_converter = self._converter_of(keys.KEY_CONVERTER)
        self.value_converter = self._converter_of(keys.VALUE_CONVERTER)
        self.header_converter = self._converter_of(keys.HEADER_CONVERTER)
        self.transforms = () if own_chain.runs_chain(self.connector, raw) else transforms_of(raw)
        self.errors = errors_of(self, self.errors_max_records)
        self.topic_groups = _groups_of(raw, parsed)

    def _converter_of(self, key: str) -> ConverterConfig | None:
        """The converter of the configuration, or else the one that the connector's class prescribes."""
        if own_chain.runs_chain(self.connector, self.raw):
            return converter_of({}, {key: own_chain.KEEPS_BYTES}, key)
        own = converter_of(self.raw, self.parsed, key)
        if own is not None:
            return own
        defaults = getattr(plugins.load(self.connector), "default_converters", None)
        name = None if defaults is None else defaults(self.raw).get(key)
        return None if name is None else converter_of(self.raw, {key: name}, key)

    @classmethod
    def from_config(cls, raw: Mapping[str, Any], definition: ConfigDef | None = None) -> SourceConnectorConfig:
        """Check and type a connector's configuration.

        Args:
            raw: the whole configuration, secrets resolved.
            definition: every key of this kind of connector (`source_keys()` included); without it only the keys that
                all sources share are checked.

        Raises:
            ConfigError: names every wrong key.
        """
        known = with_chain(source_keys.with_topic_creation(definition or cls.config_def(), raw), raw)
        text = {name: value for name, value in coerce_config(raw).items() if value is not None}
        config = cls(text, known.parse(raw))
        config.ignored = tuple(known.ignored_keys(text))
        config.unknown = tuple(known.unknown_keys(text)) if definition else ()
        return config


@dataclass(frozen=True, slots=True)
class ResolvedSourceConfig:
    """Everything that a run of a source takes from its two configurations, checked against each other.

    Attributes:
        connector, worker: the two typed configurations.
        key_converter, value_converter, header_converter: the connector's, else the worker's.
        transactional_id: `<group.id>-<connector>`, by which a run fences its predecessors; tasks add `-<task>`.
        java: the Java classes of the chain; None: it has none.
    """

    connector: SourceConnectorConfig
    worker: WorkerConfig
    key_converter: ConverterConfig
    value_converter: ConverterConfig
    header_converter: ConverterConfig
    transactional_id: str
    java: JavaChainConfig | None = None

    @property
    def state_topics(self) -> tuple[str, ...]:
        """Where worker and connector keep their state: no record of a source may go there."""
        status = str(self.worker.raw.get("status.storage.topic") or "connect-status")
        return (*self.offsets_topics, self.worker.sources.config_topic, self.worker.runs_topic, status)

    @property
    def offsets_topics(self) -> tuple[str, ...]:
        """Topics that hold the offsets, in order of precedence."""
        return tuple(dict.fromkeys(filter(None, (self.connector.offsets_topic, self.worker.sources.offsets_topic))))

    @property
    def worker_converters(self) -> Mapping[str, str]:
        """The converters of keys and values that are the worker's, and their settings, as keys of a configuration."""
        pairs = (
            (keys.KEY_CONVERTER, self.connector.key_converter, self.key_converter),
            (keys.VALUE_CONVERTER, self.connector.value_converter, self.value_converter),
        )
        found: dict[str, str] = {}
        for key, own, effective in pairs:
            if own is None:
                settings = {name: value for name, value in effective.settings.items() if name != CONVERTER_TYPE}
                found |= {key: effective.plugin.name, **{f"{key}.{name}": value for name, value in settings.items()}}
        return found

    @property
    def boundary_interval_ms(self) -> int:
        """Time between two transactions with `transaction.boundary=interval`."""
        own = self.connector.boundary_interval_ms
        return self.worker.sources.offset_flush_interval_ms if own is None else own

    def task_transactional_id(self, task: int) -> str:
        """`<group.id>-<connector>-<task>`. Source: Worker.taskTransactionalId of Kafka Connect."""
        return f"{self.transactional_id}-{task}"


def load_source_config(
    raw: Mapping[str, Any], worker_raw: Mapping[str, Any], definition: ConfigDef | None = None
) -> ResolvedSourceConfig:
    """Check and type a source connector's and a worker's configuration, alone and together.

    Raises:
        ConfigError: names every wrong key of the connector, else of the worker, else of their combination.
    """
    completed = with_hosts_of_worker(own_chain.completed(raw, worker_raw), worker_raw)
    connector = SourceConnectorConfig.from_config(completed, definition)
    worker = WorkerConfig.from_properties(worker_raw)
    overridden = [
        (prefix, name)
        for prefix in (keys.CONSUMER_OVERRIDE, keys.PRODUCER_OVERRIDE, keys.ADMIN_OVERRIDE)
        for name in with_prefix(connector.raw, prefix)
    ]
    worker.override_policy.check(overridden)
    key = _converter(keys.KEY_CONVERTER, connector.key_converter, worker.key_converter)
    value = _converter(keys.VALUE_CONVERTER, connector.value_converter, worker.value_converter)
    header = connector.header_converter or worker.header_converter
    java = java_chain_of(connector.transforms, (key, value, header), connector.raw, worker_raw)
    connector.ignored += unused_host_keys(connector.raw, java, connector.connector)
    return ResolvedSourceConfig(
        connector=connector,
        worker=worker,
        key_converter=key,
        value_converter=value,
        header_converter=header,
        java=java,
        transactional_id=f"{worker.group_id}-{connector.name}",
    )


def _converter(key: str, own: ConverterConfig | None, worker: ConverterConfig | None) -> ConverterConfig:
    return effective_converter(key, own, worker, "for lines of text use StringConverter")


def _groups_of(text: Mapping[str, str], parsed: Mapping[str, Any]) -> tuple[TopicGroup, ...]:
    default = f"{source_keys.TOPIC_CREATION}{source_keys.DEFAULT_GROUP}."
    if f"{default}{source_keys.PARTITIONS}" not in parsed:
        return ()
    counts = {which: parsed[default + which] for which in (source_keys.PARTITIONS, source_keys.REPLICATION_FACTOR)}
    groups = [_group_of(name, text, parsed, counts) for name in SourceKeys.topic_creation_groups.of(parsed)]
    return (*groups, _group_of(source_keys.DEFAULT_GROUP, text, parsed, counts))


def _group_of(name: str, text: Mapping[str, str], parsed: Mapping[str, Any], default: Mapping[str, int]) -> TopicGroup:
    prefix = f"{source_keys.TOPIC_CREATION}{name}."
    counts = {which: parsed[prefix + which] for which in default}
    known = {source_keys.INCLUDE, source_keys.EXCLUDE, *default}
    settings = {key: value for key, value in with_prefix(text, prefix).items() if key not in known}
    is_default = name == source_keys.DEFAULT_GROUP
    return TopicGroup(
        name=name,
        include=(".*",) if is_default else tuple(parsed[prefix + source_keys.INCLUDE]),
        exclude=() if is_default else tuple(parsed[prefix + source_keys.EXCLUDE]),
        partitions=_first(counts[source_keys.PARTITIONS], default[source_keys.PARTITIONS]),
        replication_factor=_first(counts[source_keys.REPLICATION_FACTOR], default[source_keys.REPLICATION_FACTOR]),
        settings=settings,
    )


def _first(own: int | None, default: int) -> int:
    """A group inherits what it does not set from `default`."""
    return default if own is None else own
