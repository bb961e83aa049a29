"""Reads a MirrorMaker 2 properties file: clusters, flows between them, and what each connector and worker inherits.

Source: org.apache.kafka.connect.mirror.MirrorMakerConfig (Kafka 4.3): `clusterPairs`, `connectorBaseConfig`,
`clusterProps`, `workerConfig`. Two differences: a flow with an unknown cluster is an error, where MirrorMaker 2 ignores
it; and each flow has a topic for the history of its runs, because MirrorMaker 2 gives connectors of all flows the same
names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from airflow_connect.api.config.near_names import did_you_mean, nearest
from airflow_connect.config.keys.sink import CommonKeys
from airflow_connect.config.keys.source import SourceKeys
from airflow_connect.config.resolved.client_layers import is_connection_key
from airflow_connect.connectors.mirror.checkpoint.keys import CheckpointKeys
from airflow_connect.connectors.mirror.heartbeat.keys import HeartbeatConfig
from airflow_connect.connectors.mirror.keys import MirrorKeys
from airflow_connect.errors import ConfigError

CLUSTERS = "clusters"
SERVERS = "bootstrap.servers"
SOURCE, CHECKPOINT, HEARTBEAT = "MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector"
_PACKAGE = "org.apache.kafka.connect.mirror"
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_CLIENT_KINDS = ("producer.", "consumer.", "admin.")
_PROVIDERS = "config.providers"
_OF_WORKERS = (
    *("offset.storage", "config.storage", "status.storage", "key.converter", "value.converter", "header.converter"),
    *("task", "worker", "replication.policy"),
)
"""Beginnings of top-level keys that every worker gets."""
_OF_OUR_WORKERS = ("runs.storage", "state.topics", "spark.")
"""The same for keys that MirrorMaker 2 does not have."""
_FLOW = re.compile(r"(?P<source>(?:(?!->).)*+)->(?P<target>[^.]*+)\.(?P<key>.+)")

Strings = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FlowConnector:
    """One connector of a flow.

    Attributes:
        source, target: aliases of the clusters.
        kind: simple name of its class, which is its name, too.
        config: of the connector.
        worker: configuration of the worker that would run it.
    """

    source: str
    target: str
    kind: str
    config: Strings = field(repr=False)
    worker: Strings = field(repr=False)

    @property
    def flow(self) -> str:
        """`source->target`."""
        return f"{self.source}->{self.target}"


def connectors_of(properties: Strings, where: str, only_targets: Collection[str] = ()) -> list[FlowConnector]:
    """The connectors of all flows, in the order in which they should run: heartbeats, copies, checkpoints.

    Args:
        properties: of the file.
        where: name of the file, for messages.
        only_targets: leave out flows to other clusters, as `connect-mirror-maker.sh --clusters`; (): all.

    Raises:
        ConfigError: names the key that is missing or wrong, and the file.
    """
    file = _File(properties, where)
    clusters = file.clusters()
    file.check_flows(clusters)
    for alias in only_targets:
        if alias not in clusters:
            raise file.wrong(CLUSTERS, f"there is no cluster {alias}", did_you_mean(nearest(alias, clusters)))
    pairs = [(a, b) for a in clusters for b in clusters if a != b]
    if not any(file.is_enabled(a, b) for a, b in pairs):
        example = "->".join(clusters[:2]) if len(clusters) > 1 else "a->b"
        raise file.wrong(
            f"{example}.{MirrorKeys.enabled}", "no flow is enabled", f"Write {example}.{MirrorKeys.enabled}=true."
        )
    wanted = [(a, b) for a, b in pairs if not only_targets or b in only_targets]
    beats = [file.connector(a, b, HEARTBEAT) for a, b in wanted if file.has_heartbeats(a, b)]
    enabled = [(a, b) for a, b in wanted if file.is_enabled(a, b)]
    return [*beats, *(file.connector(a, b, kind) for kind in (SOURCE, CHECKPOINT) for a, b in enabled)]


@cache
def _names(kind: str) -> frozenset[str]:
    """Names of all keys of a connector: those that it takes from the top level of the file."""
    own = {SOURCE: MirrorKeys, CHECKPOINT: CheckpointKeys, HEARTBEAT: HeartbeatConfig}[kind].config_def()
    every = (own, CommonKeys.config_def(), SourceKeys.config_def())
    return frozenset(name for definition in every for name in definition.keys) - {"name", "connector.class"}


class _File:
    """The properties of a file."""

    def __init__(self, properties: Strings, where: str) -> None:
        self._properties = properties
        self._where = where

    def wrong(self, key: str, what: str, suggestion: str) -> ConfigError:
        """The error about a key of the file."""
        return ConfigError(f"{key} in {self._where}: {what}.", suggestion=suggestion, config_path=key)

    def clusters(self) -> list[str]:
        """The aliases.

        Raises:
            ConfigError: there are none, or one has no address.
        """
        found = [alias.strip() for alias in self._properties.get(CLUSTERS, "").split(",") if alias.strip()]
        if not found:
            raise self.wrong(
                CLUSTERS, "no cluster is named", "Write the aliases of all clusters, such as clusters=west, east."
            )
        for alias in found:
            if not self._cluster(alias).get(SERVERS):
                key = f"{alias}.{SERVERS}"
                raise self.wrong(key, f"the address of cluster {alias} is missing", f"Write {key}=host:9092.")
        return found

    def check_flows(self, clusters: Sequence[str]) -> None:
        """Refuse flows with a cluster that does not exist."""
        for key in self._properties:
            flow = _FLOW.fullmatch(key)
            for alias in flow.group("source", "target") if flow else ():
                if alias not in clusters:
                    hint = did_you_mean(nearest(alias, clusters)) or f"Add it to {CLUSTERS}, or correct the key."
                    raise self.wrong(key, f"there is no cluster {alias}; {CLUSTERS}={', '.join(clusters)}", hint)

    def is_enabled(self, source: str, target: str) -> bool:
        """Whether records are copied."""
        return _is_true(self._properties.get(f"{source}->{target}.{MirrorKeys.enabled}", "false"))

    def has_heartbeats(self, source: str, target: str) -> bool:
        """Whether heartbeats are written: in both directions, unless a key says otherwise."""
        general = self._properties.get(HeartbeatConfig.emits.name, "true")
        return _is_true(self._properties.get(f"{source}->{target}.{HeartbeatConfig.emits}", general))

    def connector(self, source: str, target: str, kind: str) -> FlowConnector:
        """A connector with everything that it inherits, weakest first."""
        config = {name: value for name, value in self._properties.items() if name in _names(kind)}
        config |= self._with_prefixes((_PROVIDERS, "replication.policy"))
        for role, alias in (("source", source), ("target", target)):
            for name, value in self._cluster(alias).items():
                is_of_client = name.startswith(_CLIENT_KINDS)
                config[f"{role}.{name}" if is_of_client else f"{role}.cluster.{name}"] = value
        config |= {"name": kind, "connector.class": f"{_PACKAGE}.{kind}"}
        config |= {MirrorKeys.source_alias.name: source, MirrorKeys.target_alias.name: target}
        config |= _stripped(self._properties, f"{source}->{target}.")
        config.setdefault(MirrorKeys.enabled.name, "false")
        return FlowConnector(source, target, kind, config, self._worker(source, target))

    def _worker(self, source: str, target: str) -> Strings:
        worker = self._cluster(target) | self._with_prefixes((*_OF_WORKERS, _PROVIDERS, *_OF_OUR_WORKERS))
        defaults = {
            "client.id": f"{source}->{target}",
            "group.id": f"{source}-mm2",
            "offset.storage.topic": f"mm2-offsets.{source}.internal",
            "status.storage.topic": f"mm2-status.{source}.internal",
            "config.storage.topic": f"mm2-configs.{source}.internal",
            "runs.storage.topic": f"mm2-runs.{source}.internal",
            "key.converter": _BYTES,
            "value.converter": _BYTES,
            "header.converter": _BYTES,
        }
        replicas = "storage.replication.factor"
        if f"offset.{replicas}" in worker:
            defaults[f"runs.{replicas}"] = worker[f"offset.{replicas}"]
        return {**defaults, **worker}

    def _cluster(self, alias: str) -> dict[str, str]:
        """Settings of a cluster: `alias.key`, and connection keys of the top level; for its clients, too."""
        found = _stripped(self._properties, f"{alias}.")
        general = {name: value for name, value in self._properties.items() if is_connection_key(name)}
        for layer in (dict(found), general):
            for name, value in layer.items():
                if is_connection_key(name):
                    found.setdefault(name, value)
                    for kind in _CLIENT_KINDS:
                        found.setdefault(f"{kind}{name}", value)
        return found

    def _with_prefixes(self, prefixes: Iterable[str]) -> dict[str, str]:
        begin = tuple(prefixes)
        return {name: value for name, value in self._properties.items() if name.startswith(begin)}


def _stripped(properties: Strings, prefix: str) -> dict[str, str]:
    return {name[len(prefix) :]: value for name, value in properties.items() if name.startswith(prefix)}


def _is_true(value: str) -> bool:
    return value.strip().lower() == "true"
