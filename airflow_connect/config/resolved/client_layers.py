"""Decides which configuration keys reach which Kafka client, and which of them take precedence.

Later layers override earlier ones:

1. the worker's connection keys (`bootstrap.servers`, `security.*`, `ssl.*`, `sasl.*`, ...);
2. the worker's `consumer.`, `producer.` and `admin.` keys;
3. the connector's `consumer.override.`, `producer.override.` and `admin.override.` keys (KIP-458).

Source: Worker.baseConsumerConfigs, baseProducerConfigs and adminConfigs of Kafka Connect. As there, a worker's other
keys without a prefix (`auto.offset.reset`, `isolation.level`, `linger.ms`, ...) belong to the worker's own clients and
do not reach connectors. There is one difference: from the first layer, Kafka Connect passes only `bootstrap.servers` to
clients of connectors. Here all connection keys are inherited, so security is configured once; a worker file that
repeats them under each prefix has the same effect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from airflow_connect.api.config.values import coerce_config

CONSUMER, PRODUCER, ADMIN = "consumer", "producer", "admin"
CLIENT_KINDS = (CONSUMER, PRODUCER, ADMIN)
GROUP_ID = "group.id"

_CONNECTION = re.compile(
    r"(bootstrap\.servers|metadata\.broker\.list|client\.(id|dns\.lookup|rack)|(security|ssl|sasl|socket|broker)\..+"
    r"|enable\.(ssl\.certificate\.verification|sasl\..+)|(request|metadata)\.(timeout|max\.age)\.ms"
    r"|(reconnect|retry)\.backoff(\.max)?\.ms|connections\.max\.idle\.ms|(send|receive)\.buffer\.bytes|debug)"
)


class Layer(NamedTuple):
    """Settings of one layer.

    Attributes:
        prefix: what the user writes in front of them, e.g. `consumer.override.`.
        settings: names without the prefix, values as text. A key without a value is not set.
    """

    prefix: str
    settings: Mapping[str, str]


def is_connection_key(name: str) -> bool:
    """Whether a worker's key without a prefix reaches every client."""
    return _CONNECTION.fullmatch(name) is not None


def client_layers(worker: Mapping[str, Any], connector: Mapping[str, Any], kind: str) -> list[Layer]:
    """The layers of one kind of client, weakest first.

    Args:
        worker, connector: whole configurations, references resolved; JSON numbers and booleans are taken as their text.
        kind: `consumer`, `producer` or `admin`.
    """
    of_worker, of_connector = _given(worker), _given(connector)
    return [
        Layer("", {name: value for name, value in of_worker.items() if is_connection_key(name)}),
        Layer(f"{kind}.", _with_prefix(of_worker, f"{kind}.")),
        Layer(f"{kind}.override.", _with_prefix(of_connector, f"{kind}.override.")),
    ]


def consumer_group(worker: Mapping[str, Any], connector: Mapping[str, Any], name: str) -> str:
    """The group that holds a sink's offsets: `connect-<name>` unless a layer of its consumer overrides it."""
    given = [layer.settings.get(GROUP_ID) for layer in client_layers(worker, connector, CONSUMER)]
    return next((group for group in reversed(given) if group is not None), f"connect-{name}")


def _given(config: Mapping[str, Any]) -> dict[str, str]:
    return {name: value.strip() for name, value in coerce_config(config).items() if value is not None}


def _with_prefix(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name[len(prefix) :]: value for name, value in config.items() if name.startswith(prefix) and name != prefix}
