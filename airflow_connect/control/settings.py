"""What the control plane takes from a worker configuration: its topics, its Kafka clients, its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.api.config.config_def import REQUIRED, ConfigDef, ConfigKey, Importance, Type
from airflow_connect.api.config.references import ResolvedReferences
from airflow_connect.api.config.validators import NonEmptyString
from airflow_connect.api.config.values import coerce_config
from airflow_connect.config.keys.source_worker import BROKER_DEFAULT, CONNECT_REPLICATION_FACTOR, topic_settings
from airflow_connect.config.resolved.worker import WorkerConfig
from airflow_connect.config_providers.resolving import ProviderFactory, resolve_references
from airflow_connect.kafka.clients import settings as clients
from airflow_connect.kafka.state.compacted_topics import CompactedTopic
from airflow_connect.kafka.state.topic_upkeep import Upkeep

STATUS_TOPIC = "status.storage.topic"
STATUS_PARTITIONS = "status.storage.partitions"
STATUS_REPLICATION_FACTOR = "status.storage.replication.factor"
TRACKING = "topic.tracking.enable"
TRACKING_RESET = "topic.tracking.allow.reset"


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """A worker configuration as the control plane uses it.

    Attributes:
        raw: the configuration as written; references are unresolved, so it can be part of a run's specification.
        worker: the same, typed.
        references: values of the worker's references.
        config_topic, status_topic: the two topics.
        admin, reader, producer: librdkafka settings; they may hold secrets.
        interval_s: pause between two runs of a connector that does not set its own.
        has_own_interval: whether the configuration sets it.
        timeout_s: after which a run is ended; 0: never.
        runs_at_once: connectors that run at the same time.
        tracks_topics, may_reset_topics: whether active topics are recorded, and may be forgotten (KIP-558).
    """

    raw: Mapping[str, Any] = field(repr=False)
    worker: WorkerConfig
    references: ResolvedReferences = field(repr=False)
    config_topic: CompactedTopic
    status_topic: CompactedTopic
    admin: Mapping[str, Any] = field(repr=False)
    reader: Mapping[str, Any] = field(repr=False)
    producer: Mapping[str, Any] = field(repr=False)
    interval_s: float = 60.0
    has_own_interval: bool = False
    timeout_s: float = 0.0
    runs_at_once: int = 1
    tracks_topics: bool = True
    may_reset_topics: bool = True

    @property
    def group_id(self) -> str:
        """`group.id`: the name of the installation."""
        return self.worker.group_id

    @classmethod
    def from_worker(
        cls, raw: Mapping[str, Any], providers: Mapping[str, ProviderFactory] | None = None
    ) -> ControlSettings:
        """Resolve, check and type a worker configuration.

        Args:
            raw: as written.
            providers: config providers that need no configuration.

        Raises:
            ConfigError: names every wrong key.
            UnavailableError: a config provider's server did not answer.
        """
        references = resolve_references({}, raw, providers=providers)
        with references.hiding_errors():
            resolved = references.resolve(raw)
            worker = WorkerConfig.from_properties(resolved)
            parsed = _keys().parse(resolved)
            text = {name: value for name, value in coerce_config(resolved).items() if value is not None}
            sources = worker.sources
            return cls(
                raw=dict(raw),
                worker=worker,
                references=references,
                config_topic=CompactedTopic(
                    sources.config_topic, 1, sources.config_replication_factor, "config.storage.topic",
                    Upkeep(sources.config_topic_settings, worker.alters_state_topics),
                ),
                status_topic=CompactedTopic(
                    parsed[STATUS_TOPIC], parsed[STATUS_PARTITIONS], _factor(parsed, text), STATUS_TOPIC,
                    Upkeep(topic_settings(text, "status.storage."), worker.alters_state_topics),
                ),
                admin=clients.admin_config(resolved, {}).settings,
                reader=clients.consumer_config(resolved, {}).settings,
                producer=clients.producer_config(resolved, {}).settings,
                interval_s=float(worker.run_interval_s),
                timeout_s=float(worker.run_timeout_s),
                runs_at_once=worker.runs_at_once,
                has_own_interval=bool(text.get(WorkerConfig.run_interval_s.name)),
                tracks_topics=parsed[TRACKING],
                may_reset_topics=parsed[TRACKING_RESET],
            )  # fmt: skip


def _factor(parsed: Mapping[str, Any], given: Mapping[str, str]) -> int:
    if parsed[STATUS_REPLICATION_FACTOR] is not None:
        return int(parsed[STATUS_REPLICATION_FACTOR])
    return CONNECT_REPLICATION_FACTOR if STATUS_TOPIC in given else BROKER_DEFAULT


def _keys() -> ConfigDef:
    low = Importance.LOW
    return ConfigDef().define(
        ConfigKey("bootstrap.servers", Type.LIST, REQUIRED, "Brokers.", None, Importance.HIGH),
        ConfigKey(STATUS_TOPIC, Type.STRING, "connect-status", "Status topic.", NonEmptyString(), low),
        ConfigKey(STATUS_PARTITIONS, Type.INT, 5, "Partitions for creating the status topic.", None, low),
        ConfigKey(STATUS_REPLICATION_FACTOR, Type.SHORT, None, "Replicas for creating the status topic.", None, low),
        ConfigKey(TRACKING, Type.BOOLEAN, True, "Whether active topics are recorded.", None, low),
        ConfigKey(TRACKING_RESET, Type.BOOLEAN, True, "Whether active topics may be reset.", None, low),
    )
