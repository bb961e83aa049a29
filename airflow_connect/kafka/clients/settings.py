"""Kafka's Java client keys -> librdkafka settings, for every client of a run.

Planner, readers, producers and admin clients all use this module, for sinks and sources, so a plan always uses the same
values as the client that carries it out. config/resolved/client_layers.py decides which keys reach a client, and which
take precedence.

librdkafka's own names are accepted in every layer (Airflow's Kafka connection holds them). Keys that exist only in Java
are dropped and listed in `ClientConfig.ignored`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_connect.api.config.config_def import IgnoredKey
from airflow_connect.config.keys.override_policy import OverridePolicy
from airflow_connect.config.resolved.client_layers import (
    ADMIN,
    CONSUMER,
    PRODUCER,
    Layer,
    client_layers,
    is_connection_key,
)
from airflow_connect.errors import ConfigError
from airflow_connect.kafka.clients.java_security import apply_sasl, apply_ssl
from airflow_connect.kafka.clients.librdkafka_names import NAMES

READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"
MAX_POLL_RECORDS = 500
"""Java's default of `max.poll.records`."""
EARLIEST, LATEST, NO_RESET = "earliest", "latest", "error"
_MAX_POLL_RECORDS = "max.poll.records"
_RESETS: Mapping[str, str] = {
    # Java's names and librdkafka's: three meanings.
    "earliest": EARLIEST, "smallest": EARLIEST, "beginning": EARLIEST,
    "latest": LATEST, "largest": LATEST, "end": LATEST,
    "none": NO_RESET, "error": NO_RESET,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Settings for one kind of client.

    Attributes:
        settings: librdkafka settings, including secrets: never print them.
        ignored: keys as the user wrote them, with prefix, that librdkafka does not support.
        max_poll_records: the most records that a sink task gets in one `put`, of a consumer. librdkafka has no such
            setting; the sink's loop keeps to it.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    max_poll_records: int = MAX_POLL_RECORDS

    @property
    def isolation_level(self) -> str:
        """`read_committed` or `read_uncommitted`, of a consumer."""
        return str(self.settings["isolation.level"])

    @property
    def auto_offset_reset(self) -> str:
        """`earliest`, `latest` or `none`, of a consumer: where to start in a partition without a committed offset."""
        reset = str(self.settings["auto.offset.reset"])
        return "none" if reset == NO_RESET else reset


def consumer_config(worker: Mapping[str, Any], connector: Mapping[str, Any]) -> ClientConfig:
    """Settings of a sink's consumer: group `connect-<name>`, read_committed, earliest, no auto commit.

    Read_committed is this project's default (Kafka Connect's is read_uncommitted): exactly-once would
    otherwise copy records of aborted transactions.
    """
    defaults = {"isolation.level": READ_COMMITTED, "auto.offset.reset": EARLIEST}
    if connector.get("name"):
        defaults["group.id"] = f"connect-{connector['name']}"
    config = _translate(defaults, _layers(worker, connector, CONSUMER), _OF_CONSUMERS)
    config.settings["enable.auto.commit"] = False
    given = config.settings.pop(_MAX_POLL_RECORDS, MAX_POLL_RECORDS)
    return replace(config, max_poll_records=given)


def producer_config(worker: Mapping[str, Any], connector: Mapping[str, Any]) -> ClientConfig:
    """Settings of a producer; acks=all unless configured."""
    return _translate({"acks": "all"}, _layers(worker, connector, PRODUCER), _RENAMED)


def admin_config(worker: Mapping[str, Any], connector: Mapping[str, Any]) -> ClientConfig:
    """Settings of an admin client."""
    return _translate({}, _layers(worker, connector, ADMIN), _RENAMED)


def _layers(worker: Mapping[str, Any], connector: Mapping[str, Any], kind: str) -> list[Layer]:
    layers = client_layers(worker, connector, kind)
    overrides = layers[-1]
    OverridePolicy.of_worker(worker).check((overrides.prefix, name) for name in sorted(overrides.settings))
    return layers


def keys_without_prefix(worker: Mapping[str, Any]) -> list[IgnoredKey]:
    """Client settings of a worker that do not reach connectors, because they have no prefix."""
    reason = (
        "As in Kafka Connect, without a prefix it applies only to the worker's own clients, not to connectors. Write"
        " consumer.{0} or producer.{0}."
    )
    return [
        IgnoredKey(name, reason.format(name))
        for name in worker
        if (name in NAMES or name in _RENAMED) and not is_connection_key(name) and name not in _OF_WORKERS
    ]


def _translate(defaults: Mapping[str, Any], layers: Iterable[Layer], rules: Mapping[str, _Rule]) -> ClientConfig:
    merged: dict[str, Any] = dict(defaults)
    origin: dict[str, str] = {}
    for prefix, keys in layers:
        for key, value in keys.items():
            # The same key under two names would depend on dictionary order: the later layer's spelling wins.
            for other in _SYNONYMS.get(key, ()):
                merged.pop(other, None)
            merged[key] = value
            origin[key] = prefix
    try:
        return _translated(merged, origin, rules)
    except ConfigError as error:
        key = error.config_path
        if not origin.get(key):
            raise
        # Report the key with its prefix, as the user wrote it.
        full = origin[key] + key
        raise ConfigError(
            f"{full}: {error.message}", code=error.code, suggestion=error.suggestion, config_path=full
        ) from error


def _translated(merged: Mapping[str, Any], origin: Mapping[str, str], rules: Mapping[str, _Rule]) -> ClientConfig:
    settings: dict[str, Any] = {}
    used = apply_sasl(merged, settings) | apply_ssl(merged, settings)
    ignored: list[str] = []
    for key, value in merged.items():
        if key in used:
            continue
        if not _apply(key, value, settings, rules):
            ignored.append(origin.get(key, "") + key)
    return ClientConfig(settings, tuple(sorted(ignored)))


def _apply(key: str, value: Any, settings: dict[str, Any], rules: Mapping[str, _Rule]) -> bool:
    """Put one key into `settings`; False: librdkafka has no equivalent."""
    if key in _OURS:
        return True
    text = str(value)
    rule = rules.get(key)
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


def _at_least_one(key: str, text: str) -> int:
    number = _number(key, text)
    if number < 1:
        raise ConfigError(f"{key}={text} is too small.", suggestion="Use 1 or more.", config_path=key)
    return number


def _kilobytes(key: str, text: str) -> int:
    return max(1, _number(key, text) // 1024)


def _buffer(key: str, text: str) -> int:
    return max(0, _number(key, text))  # Java's -1 means the system's default, librdkafka's 0 does


def _socket_timeout(key: str, text: str) -> int:
    return min(300_000, max(10, _number(key, text)))  # librdkafka's range


def _message_timeout(key: str, text: str) -> int:
    return min(2_147_483_647, _number(key, text))


def _reset(key: str, text: str) -> str:
    found = _RESETS.get(text.lower())
    if found is None:
        raise ConfigError(
            f"{key}={text} is not supported.", suggestion="Use earliest, latest or none.", config_path=key
        )
    return found


def _group(key: str, text: str) -> str:
    if not text:
        raise ConfigError(f"{key} is empty.", suggestion="Set it to a group, or remove the key.", config_path=key)
    return text


def _isolation(key: str, text: str) -> str:
    if text.lower() not in (READ_COMMITTED, READ_UNCOMMITTED):
        raise ConfigError(
            f"{key}={text} is not supported.",
            suggestion=f"Use {READ_COMMITTED} or {READ_UNCOMMITTED}.",
            config_path=key,
        )
    return text.lower()


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
    "isolation.level": ("isolation.level", _isolation),
    "group.id": ("group.id", _group),
    "buffer.memory": ("queue.buffering.max.kbytes", _kilobytes),
    "max.request.size": ("message.max.bytes", _number),
    "delivery.timeout.ms": ("message.timeout.ms", _message_timeout),
    "compression.gzip.level": ("compression.level", _number),
    "compression.lz4.level": ("compression.level", _number),
    "compression.zstd.level": ("compression.level", _number),
}
_OF_CONSUMERS: Mapping[str, _Rule] = {**_RENAMED, _MAX_POLL_RECORDS: (_MAX_POLL_RECORDS, _at_least_one)}
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
"""Set by the run, whatever is configured; Kafka Connect overrides them in the same way."""
_OF_WORKERS = frozenset({"group.id", "session.timeout.ms", "heartbeat.interval.ms"})
"""Keys of a worker that are also client keys: they have their own meaning, or their own explanation."""
