"""Keeps state topics small: settings for new topics, and a recommendation for existing ones.

The cleaner compacts closed segments only. With Kafka's defaults, a segment is closed after a week or a gigabyte, so
nothing is compacted for a week. `max.compaction.lag.ms` (KIP-354) closes and compacts a segment within that time,
whatever part of the log is dirty. Some services refuse some of the settings; the topic is then created without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from airflow_connect.config.resolved.worker import WorkerConfig
from airflow_connect.kafka.clients.short_lived import API_TIMEOUT_S, Admin, wait

_ALTER = WorkerConfig.alters_state_topics
HOUR_MS = 3_600_000
COMPACT = {"cleanup.policy": "compact"}
SMALL: Mapping[str, str] = {
    "segment.ms": str(HOUR_MS),
    "max.compaction.lag.ms": str(HOUR_MS),
    # The smallest that services such as Confluent Cloud allow.
    "segment.bytes": str(50 * 1024 * 1024),
}
"""Settings of a new state topic, in addition to those of the worker."""
LONGEST_LAG_MS = 24 * HOUR_MS
"""If records may wait longer for the cleaner, a run notes it."""


def _ignore(_: str) -> None:
    """Discard the sentence."""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """How a state topic is maintained.

    Attributes:
        settings: topic settings of the worker (`offset.storage.segment.ms` and the like, KIP-605), without prefix;
            they take precedence over `SMALL`.
        alters: `state.topics.alter`: whether an existing topic gets `SMALL` too.
        tell: gets sentences for the report.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    alters: bool = False
    tell: Callable[[str], None] = _ignore

    @property
    def wanted(self) -> dict[str, str]:
        """Settings of a new topic."""
        return {**SMALL, **self.settings}


def maintain_topic(admin: Admin, topic: str, configs: Mapping[str, Any], upkeep: Upkeep) -> None:
    """Report that an existing topic is rarely compacted, or change its settings if the worker allows it.

    Args:
        configs: the topic's settings as `describe_configs` returns them.

    Raises:
        ConfigError, AccessError, UnavailableError: `state.topics.alter` is set and Kafka refused.
    """
    lag_ms = min(int(configs[name].value) for name in ("segment.ms", "max.compaction.lag.ms") if name in configs)
    if lag_ms <= LONGEST_LAG_MS:
        return
    missing = {name: value for name, value in upkeep.wanted.items() if configs[name].value != value}
    shown = ",".join(f"{name}={value}" for name, value in sorted(missing.items()))
    if not upkeep.alters:
        upkeep.tell(
            f"State topic {topic} is compacted only after {lag_ms // HOUR_MS} hours, so runs read more and more of"
            f" it. Run kafka-configs.sh --bootstrap-server {admin.settings.get('bootstrap.servers')} --alter"
            f" --entity-type topics --entity-name {topic} --add-config {shown}, or set {_ALTER}=true in the worker."
        )
        return
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in missing.items()]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    future = admin.incremental_alter_configs([resource], request_timeout=API_TIMEOUT_S)[resource]
    wait(future, f"setting {shown} of state topic {topic} ({_ALTER}=true)")
    upkeep.tell(f"State topic {topic} got {shown} ({_ALTER}=true).")
