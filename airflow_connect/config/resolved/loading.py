"""Merges connector and worker configuration: converters, clients and names that a run uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_connect.api.config import plugins
from airflow_connect.api.config.config_def import ConfigDef
from airflow_connect.api.config.values import coerce_json
from airflow_connect.api.source import SourceConnector
from airflow_connect.config.keys import sink as sink_keys
from airflow_connect.config.keys.source import source_keys, with_topic_creation
from airflow_connect.config.keys.transforms import with_chain
from airflow_connect.config.resolved import own_chain
from airflow_connect.config.resolved.client_layers import consumer_group
from airflow_connect.config.resolved.java_chain import (
    JavaChainConfig,
    java_chain_of,
    unused_host_keys,
    with_hosts_of_worker,
)
from airflow_connect.config.resolved.sink import ConverterConfig, SinkConnectorConfig, converter_of, effective_converter
from airflow_connect.config.resolved.worker import WorkerConfig
from airflow_connect.documentation import page_url
from airflow_connect.errors import ConfigError, ConnectError


@dataclass(frozen=True, slots=True)
class ResolvedConfig:
    """Everything that a run takes from its two configurations, checked against each other.

    Attributes:
        connector, worker: the two typed configurations.
        key_converter, value_converter, header_converter: the connector's, else the worker's.
        consumer_group: group that holds the connector's offsets.
        transactional_id: `<group.id>-<connector>`, by which a run fences its predecessors.
        java: the Java classes of the chain; None: it has none.
        notes: sentences about keys that are ignored or unknown, without values.
    """

    connector: SinkConnectorConfig
    worker: WorkerConfig
    key_converter: ConverterConfig
    value_converter: ConverterConfig
    header_converter: ConverterConfig
    consumer_group: str = ""
    transactional_id: str = ""
    java: JavaChainConfig | None = None
    notes: tuple[str, ...] = ()


def secret_names(raw: Mapping[str, Any]) -> frozenset[str]:
    """Keys of type PASSWORD of a connector and its transformations; none if its class is not installed here.

    Their names need not suggest a secret: `query.masked` of the JDBC source, or a key of a third-party connector.
    """
    try:
        return connector_definition(raw).secret_names
    except ConnectError:
        return frozenset()


def connector_definition(raw: Mapping[str, Any]) -> ConfigDef:
    """Every key of the kind of connector that `connector.class` names, and of its transformations; imports the classes.

    Raises:
        ConfigError: `connector.class` is missing or unknown.
    """
    name = coerce_json(sink_keys.CONNECTOR_CLASS, raw.get(sink_keys.CONNECTOR_CLASS))
    if not name:
        # The full list of missing keys is more useful than this one key.
        sink_keys.sink_keys().parse(raw)
        raise ConfigError(
            "connector.class is empty.",
            suggestion=f"Set it to a connector: {', '.join(plugins.aliases(plugins.PluginKind.CONNECTOR))}.",
            config_path=sink_keys.CONNECTOR_CLASS,
        )
    try:
        reference = plugins.resolve_connector({**raw, sink_keys.CONNECTOR_CLASS: name})
        connector = plugins.load(reference)
    except ConfigError as error:
        raise ConfigError(
            f"{sink_keys.CONNECTOR_CLASS}: {error.message}",
            code=error.code,
            suggestion=error.suggestion,
            config_path=sink_keys.CONNECTOR_CLASS,
        ) from error
    definition = getattr(connector, "config_def", None)
    if not isinstance(definition, ConfigDef):
        raise ConfigError(
            f"The class {name} is not a connector: it has no `config_def`.",
            suggestion=f"Set connector.class to a class that has one: {page_url('how-to/write-a-connector')}",
            config_path=sink_keys.CONNECTOR_CLASS,
        )
    if isinstance(connector, type) and issubclass(connector, SourceConnector):
        shared = source_keys()
        return with_chain(with_topic_creation(_with_shared_keys(reference, definition, shared), raw), raw)
    return with_chain(_with_shared_keys(reference, definition, sink_keys.sink_keys()), raw)


def _with_shared_keys(reference: plugins.PluginRef, definition: ConfigDef, shared: ConfigDef) -> ConfigDef:
    """The keys of a connector, plus those of every connector of its kind that it does not define itself.

    A Java connector may define some of these again, as Kafka Connect allows: the run obeys those of every connector.
    """
    if reference.is_java:
        own = [key for key in definition.keys.values() if key.name not in shared.keys]
        complete = ConfigDef().define(*own).define_family(*definition.families)
        for names, rule in definition.rules:
            complete.define_rule(names, rule)
        return complete.include(shared)
    return definition if sink_keys.NAME in definition.keys else shared.include(definition)


def load_connector_config(
    raw: Mapping[str, Any], worker_raw: Mapping[str, Any], definition: ConfigDef | None = None
) -> ResolvedConfig:
    """Check and type a sink connector's and a worker's configuration, alone and together.

    Args:
        raw: connector configuration, config providers resolved.
        worker_raw: worker configuration, config providers resolved.
        definition: every key of the connector; default: that of its class.

    Raises:
        ConfigError: names every wrong key of the connector, else of the worker, else of their combination.
    """
    known = definition or connector_definition(raw)
    completed = with_hosts_of_worker(own_chain.completed(raw, worker_raw), worker_raw)
    connector = SinkConnectorConfig.from_config(completed, known)
    worker = WorkerConfig.from_properties(worker_raw)
    group = consumer_group(worker_raw, raw, connector.name)
    check_overrides(connector, worker, group)

    def converter(key: str, own: ConverterConfig | None, of_worker: ConverterConfig | None) -> ConverterConfig:
        if own is None and of_worker is None and known.is_unused(key, connector.raw):
            own = converter_of(connector.raw, {key: own_chain.KEEPS_BYTES}, key)
        return effective_converter(
            key, own, of_worker, f"for plain JSON use JsonConverter with {key}.schemas.enable=false"
        )

    key = converter(sink_keys.KEY_CONVERTER, connector.key_converter, worker.key_converter)
    value = converter(sink_keys.VALUE_CONVERTER, connector.value_converter, worker.value_converter)
    header = connector.header_converter or worker.header_converter
    java = java_chain_of(connector.transforms, (key, value, header), connector.raw, worker_raw)
    connector.ignored += unused_host_keys(connector.raw, java, connector.connector)
    return ResolvedConfig(
        connector=connector,
        worker=worker,
        key_converter=key,
        value_converter=value,
        header_converter=header,
        java=java,
        consumer_group=group,
        transactional_id=f"{worker.group_id}-{connector.name}",
        notes=_notes(connector, worker),
    )


def check_overrides(connector: SinkConnectorConfig, worker: WorkerConfig, group: str) -> None:
    """Check the connector's client overrides against the worker's policy, and its consumer group against the worker's.

    Source: KIP-458; DistributedHerder of Kafka Connect.

    Raises:
        ConfigError: with Connect's texts.
    """
    overridden = (
        (sink_keys.CONSUMER_OVERRIDE, connector.consumer_override),
        (sink_keys.PRODUCER_OVERRIDE, connector.producer_override),
        (sink_keys.ADMIN_OVERRIDE, connector.admin_override),
    )
    worker.override_policy.check((prefix, name) for prefix, settings in overridden for name in settings)
    if group == worker.group_id:
        raise ConfigError(
            f"Consumer group {group} conflicts with Connect worker group {worker.group_id}.",
            suggestion="Give the connector another name or another consumer.override.group.id, or give the worker"
            " another"
            " group.id.",
            config_path="consumer.override.group.id",
        )
    if not (group.isascii() and group.isprintable()):
        # rd_kafka_consumer_group_metadata_read: "Input buffer group id is not safe".
        raise ConfigError(
            f"Consumer group {group!r} has characters that are not printable ASCII: librdkafka commits no offsets of"
            " such a group in a transaction.",
            suggestion="Give the connector a name of ASCII characters, or set consumer.override.group.id to one.",
            config_path="consumer.override.group.id",
        )


def _notes(connector: SinkConnectorConfig, worker: WorkerConfig) -> tuple[str, ...]:
    sentences = []
    for where, config in (("connector", connector), ("worker", worker)):
        sentences += [f"{where} key {name} is ignored: {reason}" for name, reason in config.ignored]
        for name, nearest in config.unknown:
            hint = f" Did you mean {nearest}?" if nearest else ""
            sentences.append(f"{where} key {name} is unknown and has no effect.{hint}")
    return tuple(sentences)
