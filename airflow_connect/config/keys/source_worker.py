"""Keys of a worker that source runs use: offsets topic, config topic, transactions.

Names and defaults: Kafka Connect's DistributedConfig, StandaloneConfig and WorkerConfig (Kafka 4.3); a topic whose name
is required there has the name from its sample files here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_connect.api.config.typed import KeyGroup, TypedConfig, TypedKey
from airflow_connect.api.config.validators import Lambda, NonEmptyString, Range
from airflow_connect.api.config.values import invalid

_NO_TOPIC_SETTING = frozenset({"topic", "partitions", "replication.factor", "file.filename", "cleanup.policy"})
"""Keys after `offset.storage.` and the like that are not topic settings; the cleanup policy is always `compact`."""

BROKER_DEFAULT = -1
CONNECT_REPLICATION_FACTOR = 3
"""Kafka Connect's default for the topics of its distributed workers."""
DISABLED, PREPARING, ENABLED = "disabled", "preparing", "enabled"
_SOURCES = KeyGroup("Sources")
_COUNT = "Positive number, or -1 to use the broker's default"


def topic_settings(worker: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Settings of a state topic, without prefix. Source: KIP-605."""
    named = {key[len(prefix) :]: value for key, value in worker.items() if key.startswith(prefix)}
    return {key: value for key, value in named.items() if key not in _NO_TOPIC_SETTING}


def _check_count(name: str, value: Any) -> None:
    if value is None or (value < 1 and value != -1):
        raise invalid(name, value, "Value must be positive, or -1 to use the broker's default")


def _check_factor(name: str, value: Any) -> None:
    if value is not None:
        _check_count(name, value)


def _check_support(name: str, value: Any) -> None:
    if value not in (DISABLED, PREPARING, ENABLED):
        raise invalid(name, value, f"String must be one of: {DISABLED}, {PREPARING}, {ENABLED}")


class SourceWorkerConfig(TypedConfig):
    """What sources share.

    Attributes:
        offsets_replication_factor, config_replication_factor: for creating the topic; -1 is the broker's default.
        offsets_topic_settings, config_topic_settings: settings for creating the topic, without prefix (KIP-605).
    """

    # fmt: off
    offsets_topic = _SOURCES.medium.text(
        "offset.storage.topic", "connect-offsets",
        "Compacted topic with the offsets of all sources, in Kafka Connect's format; it is created if it does not"
        " exist.",
        NonEmptyString(),
    )
    offsets_partitions = _SOURCES.low.integer(
        "offset.storage.partitions", 25, "Number of partitions for creating the offsets topic.",
        Lambda(_check_count, _COUNT),
    )
    _offsets_factor = _SOURCES.low.optional_short(
        "offset.storage.replication.factor",
        "Replication factor for creating the offsets topic; -1 uses the broker's default."
        " Not set: 3, as in Kafka Connect, if offset.storage.topic is set; otherwise -1.",
        Lambda(_check_factor, _COUNT),
    )
    offsets_file = _SOURCES.low.text(
        "offset.storage.file.filename", None,
        "Offsets file of a standalone worker of Kafka Connect. Offsets are taken over from it if a connector has"
        " none in the offsets topic, or if the worker has continued since our last run. It gets a copy of the"
        " offsets at the end of a run.",
    ).or_blank()
    config_topic = _SOURCES.medium.text(
        "config.storage.topic", "connect-configs",
        "Compacted topic of one partition, in Kafka Connect's format. It stores how many tasks a source had, so"
        " that the next run can fence them. It is created if it does not exist.",
        NonEmptyString(),
    )
    _config_factor = _SOURCES.low.optional_short(
        "config.storage.replication.factor",
        "Replication factor for creating the config topic; -1 uses the broker's default."
        " Not set: 3, as in Kafka Connect, if config.storage.topic is set; otherwise -1.",
        Lambda(_check_factor, _COUNT),
    )
    offset_flush_interval_ms = _SOURCES.low.long(
        "offset.flush.interval.ms", 60_000,
        "Time between two transactions of a source with transaction.boundary=interval, and between two writes of"
        " offsets if records are not written in transactions, in milliseconds.",
        Range(0),
    )
    exactly_once = _SOURCES.medium.text(
        "exactly.once.source.support", ENABLED,
        "`disabled`: delivery of sources is at least once, unless their configuration says otherwise. `preparing`"
        " and `enabled`: exactly once.",
        Lambda(_check_support, f"[{DISABLED}, {PREPARING}, {ENABLED}]"),
    ).to(lambda chosen: chosen != DISABLED)
    creates_topics = _SOURCES.low.boolean(
        "topic.creation.enable", True, "Whether sources may create topics according to their topic.creation keys.",
    )
    # fmt: on

    def __init__(self, raw: Mapping[str, str], parsed: Mapping[str, Any]) -> None:
        """`raw`: the worker's configuration as text."""
        super().__init__(raw, parsed)
        self.offsets_replication_factor = self._factor(self._offsets_factor, SourceWorkerConfig.offsets_topic)
        self.config_replication_factor = self._factor(self._config_factor, SourceWorkerConfig.config_topic)
        self.offsets_topic_settings = topic_settings(raw, "offset.storage.")
        self.config_topic_settings = topic_settings(raw, "config.storage.")

    def _factor(self, given: int | None, topic: TypedKey[str]) -> int:
        if given is not None:
            return given
        # If the topic is named, there is a distributed worker of Kafka Connect, or its defaults are wanted.
        return CONNECT_REPLICATION_FACTOR if topic.name in self.raw else BROKER_DEFAULT
