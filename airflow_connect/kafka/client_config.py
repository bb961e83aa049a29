"""Kafka's Java client keys -> librdkafka settings, layer by layer, as Kafka Connect stacks them.

Layers, later ones win: the worker's connection keys (`bootstrap.servers`, `security.*`, `ssl.*`, `sasl.*`,
...), the worker's `consumer.` / `producer.` / `admin.` keys, the connector's `consumer.override.` /
`producer.override.` / `admin.override.` keys (allowed by `connector.client.config.override.policy`). One
difference from Kafka Connect, which does not hand the first layer's security keys on to the clients of
connectors: here they are inherited, so a worker file that repeats them under each prefix means the same,
and one that does not just works.

librdkafka's own names are accepted in every layer (Airflow's Kafka connection holds them). Keys that exist
only in Java are dropped and named in `ClientConfig.ignored`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.api.errors import ConfigError
from airflow_connect.api.override_policy import OverridePolicy
from airflow_connect.kafka.java_security import apply_sasl, apply_ssl
from airflow_connect.kafka.librdkafka_names import NAMES

MASK = "***"
_SECRET = re.compile(
    r"password|secret|jaas|credential|token(?!\.endpoint)|key\.pem|keystore\.key|sasl\.oauthbearer\.config",
    re.I,
)
_CONNECTION = re.compile(
    r"(bootstrap\.servers|metadata\.broker\.list|client\.(id|dns\.lookup|rack)|(security|ssl|sasl|socket|broker)\..+"
    r"|enable\.(ssl\.certificate\.verification|sasl\..+)|(request|metadata)\.(timeout|max\.age)\.ms"
    r"|(reconnect|retry)\.backoff(\.max)?\.ms|connections\.max\.idle\.ms|(send|receive)\.buffer\.bytes|debug)"
)


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Settings for one kind of client.

    Attributes:
        settings: librdkafka settings; secrets inside, print them through `redact` only.
        ignored: keys as the user wrote them, prefix included, that have no meaning for librdkafka.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


def consumer_config(worker: Mapping[str, str], connector: Mapping[str, str]) -> ClientConfig:
    """Settings of a sink's consumer: group `connect-<name>`, read_committed, earliest, no auto commit.

    Read_committed is this project's default (Kafka Connect's is read_uncommitted): exactly-once would
    otherwise copy records of aborted transactions.
    """
    defaults = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    if connector.get("name"):
        defaults["group.id"] = f"connect-{connector['name']}"
    config = _translate(defaults, _layers(worker, connector, "consumer"))
    config.settings["enable.auto.commit"] = False
    return config


def producer_config(worker: Mapping[str, str], connector: Mapping[str, str]) -> ClientConfig:
    """Settings of a producer; acks=all unless configured."""
    return _translate({"acks": "all"}, _layers(worker, connector, "producer"))


def admin_config(worker: Mapping[str, str], connector: Mapping[str, str]) -> ClientConfig:
    """Settings of an admin client."""
    return _translate({}, _layers(worker, connector, "admin"))


def redact(config: Mapping[str, Any]) -> dict[str, Any]:
    """A copy for printing: values of secret keys are masked, `${provider:ref}` references are kept."""
    return {key: _masked(key, value) for key, value in config.items()}


def _masked(key: str, value: Any) -> Any:
    is_reference = isinstance(value, str) and re.fullmatch(r"\$\{[^}]+\}", value)
    return MASK if _SECRET.search(key) and value not in ("", None) and not is_reference else value


def _layers(worker: Mapping[str, str], connector: Mapping[str, str], kind: str) -> list[tuple[str, dict[str, Any]]]:
    """(prefix, keys without it), weakest first."""
    overrides = _with_prefix(connector, f"{kind}.override.")
    OverridePolicy.of_worker(worker).check((f"{kind}.override.", name) for name in sorted(overrides))
    return [
        ("", {key: value for key, value in worker.items() if _CONNECTION.fullmatch(key)}),
        (f"{kind}.", _with_prefix(worker, f"{kind}.")),
        (f"{kind}.override.", overrides),
    ]


def _with_prefix(config: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}


def _translate(defaults: Mapping[str, Any], layers: Iterable[tuple[str, Mapping[str, Any]]]) -> ClientConfig:
    merged: dict[str, Any] = dict(defaults)
    origin: dict[str, str] = {}
    for prefix, keys in layers:
        for key, value in keys.items():
            # A key twice under two names would depend on dictionary order: the later layer's spelling wins.
            for other in _SYNONYMS.get(key, ()):
                merged.pop(other, None)
            merged[key] = value
            origin[key] = prefix
    try:
        return _translated(merged, origin)
    except ConfigError as error:
        key = error.config_path
        if not origin.get(key):
            raise
        # What the user wrote has the prefix, and only that is found again.
        full = origin[key] + key
        raise ConfigError(
            f"{full}: {error.message}", code=error.code, suggestion=error.suggestion, config_path=full
        ) from error


def _translated(merged: Mapping[str, Any], origin: Mapping[str, str]) -> ClientConfig:
    settings: dict[str, Any] = {}
    used = apply_sasl(merged, settings) | apply_ssl(merged, settings)
    ignored: list[str] = []
    for key, value in merged.items():
        if key in used:
            continue
        if not _apply(key, value, settings):
            ignored.append(origin.get(key, "") + key)
    return ClientConfig(settings, tuple(sorted(ignored)))


def _apply(key: str, value: Any, settings: dict[str, Any]) -> bool:
    """Put one key into `settings`; False: librdkafka has nothing like it."""
    if value is None or key in _OURS:
        return key in _OURS
    text = str(value).lower() if isinstance(value, bool) else str(value).strip()
    rule = _RENAMED.get(key)
    if rule is not None:
        name, convert = rule
        settings[name] = convert(key, text)
        return True
    if key in NAMES:
        settings[key] = text
        return True
    return False


def _same(_key: str, text: str) -> str:
    return text


def _number(key: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise ConfigError(
            f"{key}={text} is not a whole number.", suggestion="Write digits only.", config_path=key
        ) from error


def _kilobytes(key: str, text: str) -> int:
    return max(1, _number(key, text) // 1024)


def _buffer(key: str, text: str) -> int:
    return max(0, _number(key, text))  # Java's -1 means the system's default, librdkafka's 0 does


def _socket_timeout(key: str, text: str) -> int:
    return min(300_000, max(10, _number(key, text)))  # librdkafka's range


def _message_timeout(key: str, text: str) -> int:
    return min(2_147_483_647, _number(key, text))


def _reset(key: str, text: str) -> str:
    if text in ("earliest", "latest", "smallest", "largest", "beginning", "end", "error"):
        return text
    if text == "none":
        return "error"
    raise ConfigError(f"{key}={text} is not supported.", suggestion="Use earliest, latest or none.", config_path=key)


def _endpoint_check(_key: str, text: str) -> str:
    return text.lower() or "none"  # Java switches the check off with an empty value


_Rule = tuple[str, Callable[[str, str], Any]]
_RENAMED: Mapping[str, _Rule] = {
    "sasl.mechanism": ("sasl.mechanisms", _same),
    "ssl.endpoint.identification.algorithm": ("ssl.endpoint.identification.algorithm", _endpoint_check),
    "request.timeout.ms": ("socket.timeout.ms", _socket_timeout),
    "send.buffer.bytes": ("socket.send.buffer.bytes", _buffer),
    "receive.buffer.bytes": ("socket.receive.buffer.bytes", _buffer),
    "fetch.max.wait.ms": ("fetch.wait.max.ms", _number),
    "auto.offset.reset": ("auto.offset.reset", _reset),
    "buffer.memory": ("queue.buffering.max.kbytes", _kilobytes),
    "max.request.size": ("message.max.bytes", _number),
    "delivery.timeout.ms": ("message.timeout.ms", _message_timeout),
    "compression.gzip.level": ("compression.level", _number),
    "compression.lz4.level": ("compression.level", _number),
    "compression.zstd.level": ("compression.level", _number),
}
_PAIRS = (
    ("bootstrap.servers", "metadata.broker.list"),
    ("sasl.mechanism", "sasl.mechanisms"),
    ("request.timeout.ms", "socket.timeout.ms"),
    ("fetch.max.wait.ms", "fetch.wait.max.ms"),
    ("max.request.size", "message.max.bytes"),
    ("delivery.timeout.ms", "message.timeout.ms"),
    ("compression.type", "compression.codec"),
    ("acks", "request.required.acks"),
    ("max.partition.fetch.bytes", "fetch.message.max.bytes"),
    ("sasl.jaas.config", "sasl.username"),
    ("sasl.jaas.config", "sasl.password"),
    ("ssl.truststore.location", "ssl.ca.location"),
)
_SYNONYMS: dict[str, tuple[str, ...]] = {}
for _one, _other in _PAIRS:
    _SYNONYMS[_one] = (*_SYNONYMS.get(_one, ()), _other)
    _SYNONYMS[_other] = (*_SYNONYMS.get(_other, ()), _one)
_OURS = frozenset({"enable.auto.commit", "transactional.id"})
"""Decided by the run, whatever is configured; Kafka Connect overrides them in the same way."""
