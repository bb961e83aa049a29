"""Settings of the Kafka clients of both clusters, from a mirror connector's configuration.

Source: MirrorConnectorConfig.sourceConsumerConfig and its neighbours (Kafka 4.3): of `source.cluster.` and
`target.cluster.` only connection keys count; `consumer.`, `producer.` and `admin.` apply to both clusters, and the same
with `source.` or `target.` in front to one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_connect.errors import ConfigError
from airflow_connect.kafka.clients.settings import ClientConfig, admin_config, consumer_config, producer_config

SOURCE, TARGET = "source", "target"
_CONSUMER, _PRODUCER, _ADMIN = "consumer.", "producer.", "admin."
_OWN_NAMES = frozenset({"source.cluster.alias", "target.cluster.alias", "consumer.poll.timeout.ms"})


def consumer_of(raw: Mapping[str, str], cluster: str) -> ClientConfig:
    """A consumer of a cluster (`SOURCE` or `TARGET`); read_committed unless configured otherwise.

    Raises:
        ConfigError: a setting cannot be used.
    """
    return _client(consumer_config, raw, cluster, _CONSUMER)


def producer_of(raw: Mapping[str, str], cluster: str) -> dict[str, Any]:
    """Settings of a producer of a cluster.

    Raises:
        ConfigError: a setting cannot be used.
    """
    return _client(producer_config, raw, cluster, _PRODUCER).settings


def admin_of(raw: Mapping[str, str], cluster: str) -> dict[str, Any]:
    """Settings of the admin client of a cluster.

    Raises:
        ConfigError: a setting cannot be used.
    """
    return _client(admin_config, raw, cluster, _ADMIN).settings


def _client(make: Any, raw: Mapping[str, str], side: str, kind: str) -> ClientConfig:
    own = [_without_prefix(raw, prefix) for prefix in (kind, f"{side}.{kind}")]
    named = {name: value for layer in own for name, value in layer.items() if not name.startswith("override.")}
    cluster = f"{side}.cluster."
    layers = _without_prefix(raw, cluster) | {f"{kind}{name}": value for name, value in named.items()}
    try:
        found: ClientConfig = make(layers, {})
    except ConfigError as error:
        key = error.config_path
        if not key or key.startswith(kind):
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
