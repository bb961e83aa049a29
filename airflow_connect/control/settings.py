"""What the control plane takes from a worker configuration: its topics, its Kafka clients, its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.api.config.references import ResolvedReferences
from airflow_connect.api.config.typed import KeyGroup, TypedConfig
from airflow_connect.api.config.validators import NonEmptyString
from airflow_connect.config.keys.source_worker import BROKER_DEFAULT, CONNECT_REPLICATION_FACTOR, topic_settings
from airflow_connect.config.resolved.worker import WorkerConfig
from airflow_connect.config_providers.resolving import ProviderFactory, resolve_references
from airflow_connect.jvm.discovery.registry import use_plugin_path
from airflow_connect.kafka.clients import settings as clients
from airflow_connect.kafka.state.compacted_topics import CompactedTopic
from airflow_connect.kafka.state.topic_upkeep import Upkeep

_OF_STATUS = KeyGroup(None)


class _StatusKeys(TypedConfig):
    """Keys about the topic that holds the states of connectors, and about active topics."""

    topic = _OF_STATUS.low.text("status.storage.topic", "connect-status", "Status topic.", NonEmptyString())
    partitions = _OF_STATUS.low.integer("status.storage.partitions", 5, "Partitions for creating the status topic.")
    factor = _OF_STATUS.low.optional_short("status.storage.replication.factor", "Replicas for creating it.")
    tracks = _OF_STATUS.low.boolean("topic.tracking.enable", True, "Whether active topics are recorded.")
    may_reset = _OF_STATUS.low.boolean("topic.tracking.allow.reset", True, "Whether active topics may be reset.")


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
            use_plugin_path(resolved)
            worker = WorkerConfig.from_properties(resolved)
            status = _StatusKeys.from_config(resolved)
            topic, sources = _StatusKeys.topic.name, worker.sources
            factor = CONNECT_REPLICATION_FACTOR if topic in worker.raw else BROKER_DEFAULT
            return cls(
                raw=dict(raw),
                worker=worker,
                references=references,
                config_topic=CompactedTopic(
                    sources.config_topic, 1, sources.config_replication_factor, "config.storage.topic",
                    Upkeep(sources.config_topic_settings, worker.alters_state_topics),
                ),
                status_topic=CompactedTopic(
                    status.topic, status.partitions, factor if status.factor is None else status.factor, topic,
                    Upkeep(topic_settings(worker.raw, "status.storage."), worker.alters_state_topics),
                ),
                admin=clients.admin_config(resolved, {}).settings,
                reader=clients.consumer_config(resolved, {}).settings,
                producer=clients.producer_config(resolved, {}).settings,
                interval_s=float(worker.run_interval_s),
                timeout_s=float(worker.run_timeout_s),
                runs_at_once=worker.runs_at_once,
                has_own_interval=bool(worker.raw.get(WorkerConfig.run_interval_s.name)),
                tracks_topics=status.tracks,
                may_reset_topics=status.may_reset,
            )  # fmt: skip
