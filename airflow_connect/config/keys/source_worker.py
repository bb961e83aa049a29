"""Keys of a worker that source runs use: offsets topic, config topic, transactions.

Names and defaults: Kafka Connect's DistributedConfig, StandaloneConfig and WorkerConfig (Kafka 4.3); a topic whose name
is required there has the name from its sample files here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.api.config.config_def import ConfigKey, Importance, Type
from airflow_connect.api.config.validators import Lambda, NonEmptyString, Range
from airflow_connect.api.config.values import invalid

OFFSETS_TOPIC = "offset.storage.topic"
OFFSETS_PARTITIONS = "offset.storage.partitions"
OFFSETS_REPLICATION_FACTOR = "offset.storage.replication.factor"
OFFSETS_FILE = "offset.storage.file.filename"
CONFIG_TOPIC = "config.storage.topic"
CONFIG_REPLICATION_FACTOR = "config.storage.replication.factor"
OFFSET_FLUSH_INTERVAL_MS = "offset.flush.interval.ms"
EXACTLY_ONCE_SOURCES = "exactly.once.source.support"
TOPIC_CREATION_ENABLE = "topic.creation.enable"
_NO_TOPIC_SETTING = frozenset({"topic", "partitions", "replication.factor", "file.filename", "cleanup.policy"})
"""Keys after `offset.storage.` and the like that are not topic settings; the cleanup policy is always `compact`."""

BROKER_DEFAULT = -1
CONNECT_REPLICATION_FACTOR = 3
"""Kafka Connect's default for the topics of its distributed workers."""
DISABLED, PREPARING, ENABLED = "disabled", "preparing", "enabled"
_GROUP = "Sources"


@dataclass(frozen=True, slots=True)
class SourceWorkerConfig:
    """What sources share.

    Attributes:
        offsets_topic, offsets_partitions, offsets_replication_factor: the offsets topic; -1 is the broker's default.
        offsets_file: offsets file of a standalone worker of Kafka Connect, or "".
        config_topic, config_replication_factor: the config topic.
        offset_flush_interval_ms: time between two transactions of `transaction.boundary=interval`, and between two
            writes of offsets where there are no transactions.
        exactly_once: `exactly.once.source.support`: False only if it is set to `disabled`.
        creates_topics: `topic.creation.enable`.
        offsets_topic_settings, config_topic_settings: settings for creating the topic, without prefix (KIP-605).
    """

    offsets_topic: str
    offsets_partitions: int
    offsets_replication_factor: int
    offsets_file: str
    config_topic: str
    config_replication_factor: int
    offset_flush_interval_ms: int
    exactly_once: bool
    creates_topics: bool
    offsets_topic_settings: Mapping[str, str] = field(default_factory=dict)
    config_topic_settings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_parsed(cls, parsed: Mapping[str, Any], given: Mapping[str, str]) -> SourceWorkerConfig:
        """From the typed values of `source_worker_keys`; `given`: the worker's configuration as text."""

        def factor(key: str, topic: str) -> int:
            if parsed[key] is not None:
                return int(parsed[key])
            # If the topic is named, there is a distributed worker of Kafka Connect, or its defaults are wanted.
            return CONNECT_REPLICATION_FACTOR if topic in given else BROKER_DEFAULT

        return cls(
            offsets_topic=parsed[OFFSETS_TOPIC],
            offsets_partitions=parsed[OFFSETS_PARTITIONS],
            offsets_replication_factor=factor(OFFSETS_REPLICATION_FACTOR, OFFSETS_TOPIC),
            offsets_file=parsed[OFFSETS_FILE] or "",
            config_topic=parsed[CONFIG_TOPIC],
            config_replication_factor=factor(CONFIG_REPLICATION_FACTOR, CONFIG_TOPIC),
            offset_flush_interval_ms=parsed[OFFSET_FLUSH_INTERVAL_MS],
            exactly_once=parsed[EXACTLY_ONCE_SOURCES] != DISABLED,
            creates_topics=parsed[TOPIC_CREATION_ENABLE],
            offsets_topic_settings=topic_settings(given, "offset.storage."),
            config_topic_settings=topic_settings(given, "config.storage."),
        )


def topic_settings(worker: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Settings of a state topic, without prefix. Source: KIP-605."""
    named = {key[len(prefix) :]: value for key, value in worker.items() if key.startswith(prefix)}
    return {key: value for key, value in named.items() if key not in _NO_TOPIC_SETTING}


def source_worker_keys() -> list[ConfigKey]:
    """Definitions of the keys."""
    low, medium = Importance.LOW, Importance.MEDIUM
    count = Lambda(_check_count, "Positive number, or -1 to use the broker's default")
    factor = Lambda(_check_factor, "Positive number, or -1 to use the broker's default")
    unset = "Not set: 3, as in Kafka Connect, if {} is set; otherwise -1."
    return [
        ConfigKey(
            OFFSETS_TOPIC, Type.STRING, "connect-offsets",
            "Compacted topic with the offsets of all sources, in Kafka Connect's format; it is created if it does not"
            " exist.",
            NonEmptyString(), medium, _GROUP,
        ),
        ConfigKey(
            OFFSETS_PARTITIONS, Type.INT, 25, "Number of partitions for creating the offsets topic.",
            count, low, _GROUP,
        ),
        ConfigKey(
            OFFSETS_REPLICATION_FACTOR, Type.SHORT, None,
            f"Replication factor for creating the offsets topic; -1 uses the broker's default."
            f" {unset.format(OFFSETS_TOPIC)}",
            factor, low, _GROUP,
        ),
        ConfigKey(
            OFFSETS_FILE, Type.STRING, None,
            "Offsets file of a standalone worker of Kafka Connect. Offsets are taken over from it if a connector has"
            " none in the offsets topic, or if the worker has continued since our last run. It gets a copy of the"
            " offsets at the end of a run.",
            None, low, _GROUP,
        ),
        ConfigKey(
            CONFIG_TOPIC, Type.STRING, "connect-configs",
            "Compacted topic of one partition, in Kafka Connect's format. It stores how many tasks a source had, so"
            " that the next run can fence them. It is created if it does not exist.",
            NonEmptyString(), medium, _GROUP,
        ),
        ConfigKey(
            CONFIG_REPLICATION_FACTOR, Type.SHORT, None,
            f"Replication factor for creating the config topic; -1 uses the broker's default."
            f" {unset.format(CONFIG_TOPIC)}",
            factor, low, _GROUP,
        ),
        ConfigKey(
            OFFSET_FLUSH_INTERVAL_MS, Type.LONG, 60_000,
            "Time between two transactions of a source with transaction.boundary=interval, and between two writes of"
            " offsets if records are not written in transactions, in milliseconds.",
            Range(0), low, _GROUP,
        ),
        ConfigKey(
            EXACTLY_ONCE_SOURCES, Type.STRING, ENABLED,
            "`disabled`: delivery of sources is at least once, unless their configuration says otherwise. `preparing`"
            " and `enabled`: exactly once.",
            Lambda(_check_support, f"[{DISABLED}, {PREPARING}, {ENABLED}]"), medium, _GROUP,
        ),
        ConfigKey(
            TOPIC_CREATION_ENABLE, Type.BOOLEAN, True,
            "Whether sources may create topics according to their topic.creation keys.",
            None, low, _GROUP,
        ),
    ]  # fmt: skip


def _check_count(name: str, value: Any) -> None:
    if value is None or (value < 1 and value != -1):
        raise invalid(name, value, "Value must be positive, or -1 to use the broker's default")


def _check_factor(name: str, value: Any) -> None:
    if value is not None:
        _check_count(name, value)


def _check_support(name: str, value: Any) -> None:
    if value not in (DISABLED, PREPARING, ENABLED):
        raise invalid(name, value, f"String must be one of: {DISABLED}, {PREPARING}, {ENABLED}")
