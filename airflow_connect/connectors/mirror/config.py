"""Typed configuration of the mirror source, and the settings of its Kafka clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.connectors.mirror import keys
from airflow_connect.connectors.mirror.policy import IDENTITY_POLICY, ReplicationPolicy
from airflow_connect.connectors.mirror.selection import Patterns, TopicSelection
from airflow_connect.errors import ConfigError
from airflow_connect.kafka.clients.settings import ClientConfig, admin_config, consumer_config

READ_COMMITTED = "read_committed"
_OWN_NAMES = frozenset({keys.SOURCE_ALIAS, keys.TARGET_ALIAS, "consumer.poll.timeout.ms"})
_CONSUMER, _ADMIN = "consumer.", "admin."


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
    out_of_range: str
    raw: Mapping[str, str] = field(repr=False)

    @classmethod
    def from_config(cls, raw: Mapping[str, str]) -> MirrorConfig:
        """Check and type a configuration.

        Raises:
            ConfigError: names every wrong key.
        """
        parsed = keys.mirror_keys().parse(raw)
        separator = parsed[keys.SEPARATOR]
        policy = ReplicationPolicy(
            source=parsed[keys.SOURCE_ALIAS],
            target=parsed[keys.TARGET_ALIAS],
            separator=separator,
            internal_separator=separator if parsed[keys.INTERNAL_SEPARATOR] else ".",
            keeps_names=parsed[keys.POLICY_CLASS] == IDENTITY_POLICY,
        )
        exclude = _or_old_name(raw, parsed, keys.TOPICS_EXCLUDE, keys.TOPICS_BLACKLIST)
        excluded_settings = _or_old_name(raw, parsed, keys.SETTINGS_EXCLUDE, keys.SETTINGS_BLACKLIST)
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
            out_of_range=parsed[keys.OUT_OF_RANGE],
            raw=raw,
        )

    def source_consumer(self) -> ClientConfig:
        """The consumer of the source cluster; read_committed unless configured otherwise.

        Raises:
            ConfigError: a setting cannot be used.
        """
        own = [_without_prefix(self.raw, prefix) for prefix in (_CONSUMER, f"source.{_CONSUMER}")]
        layers = {name: value for layer in own for name, value in layer.items() if not name.startswith("override.")}
        return _client(consumer_config, self.raw, keys.SOURCE_CLUSTER, _CONSUMER, layers)

    def source_admin(self) -> dict[str, Any]:
        """Settings of the admin client of the source cluster.

        Raises:
            ConfigError: a setting cannot be used.
        """
        return self._admin(keys.SOURCE_CLUSTER, f"source.{_ADMIN}")

    def target_admin(self) -> dict[str, Any]:
        """Settings of the admin client of the target cluster.

        Raises:
            ConfigError: a setting cannot be used.
        """
        return self._admin(keys.TARGET_CLUSTER, f"target.{_ADMIN}")

    def _admin(self, cluster: str, prefix: str) -> dict[str, Any]:
        own = [_without_prefix(self.raw, one) for one in (_ADMIN, prefix)]
        layers = {name: value for layer in own for name, value in layer.items() if not name.startswith("override.")}
        return _client(admin_config, self.raw, cluster, _ADMIN, layers).settings


def _or_old_name(raw: Mapping[str, str], parsed: Mapping[str, Any], name: str, old: str) -> list[str]:
    """The value of a key, or of its old name if only that is set."""
    found: list[str] = parsed[old] if name not in raw and old in raw else parsed[name]
    return found


def _client(make: Any, raw: Mapping[str, str], cluster: str, prefix: str, own: Mapping[str, str]) -> ClientConfig:
    """Settings of a client of a cluster; of `cluster`, only connection keys count, as in MirrorMaker 2."""
    layers = _without_prefix(raw, cluster) | {f"{prefix}{name}": value for name, value in own.items()}
    try:
        found: ClientConfig = make(layers, {})
    except ConfigError as error:
        key = error.config_path
        if not key or key.startswith(prefix):
            raise
        full = f"{cluster}{key}"
        raise ConfigError(
            f"{full}: {error.message}", code=error.code, suggestion=error.suggestion, config_path=full
        ) from error
    return found


def _without_prefix(raw: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {
        name[len(prefix) :]: value for name, value in raw.items() if name.startswith(prefix) and name not in _OWN_NAMES
    }
