"""Committed runs of connectors, from the runs topic alone: the configurations of the connectors are not needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.config.resolved.worker import WorkerConfig
from airflow_connect.config_providers.resolving import resolve_references
from airflow_connect.kafka.clients import settings as clients

if TYPE_CHECKING:
    from airflow_connect.kafka.clients.short_lived import Admin


def runs_of(worker: Mapping[str, Any], name: str, limit: int) -> list[dict[str, Any]]:
    """Reports of a connector's committed runs, the newest first; at most 100 are kept.

    Args:
        worker: a worker configuration, as written.
        name: of the connector, whether it is registered or not.
        limit: at most so many.

    Raises:
        ConfigError: the worker configuration is wrong.
        UnavailableError, AccessError: Kafka cannot be read.
    """
    from airflow_connect.kafka.clients.short_lived import admin_client

    references = resolve_references({}, worker)
    with references.hiding_errors():
        resolved = references.resolve(worker)
        admin = admin_client(clients.admin_config(resolved, {}).settings)
        topic, reader = (
            WorkerConfig.from_properties(resolved).runs_topic,
            clients.consumer_config(resolved, {}).settings,
        )
        return documents_of(admin, reader, topic, name, limit)


def documents_of(
    admin: Admin, reader: Mapping[str, Any], runs_topic_name: str, name: str, limit: int
) -> list[dict[str, Any]]:
    """As `runs_of`; `reader`: librdkafka settings of a consumer."""
    from airflow_connect.exactly_once.kafka_journal import RUN
    from airflow_connect.kafka.state import runs_topic

    topic = runs_topic.find(admin, runs_topic_name)
    if topic is None:
        return []
    records = runs_topic.read(admin, reader, topic, name)
    run_ids = sorted(runs_topic.document_names(records, RUN), reverse=True)[:limit]
    found = (runs_topic.decode_document(RUN, name, records, run_id) for run_id in run_ids)
    return [document for document in found if document is not None]


def names_with_state(worker: Mapping[str, Any]) -> list[str]:
    """Names of all connectors that have state in the runs topic; reads the whole topic.

    Raises:
        UnavailableError, AccessError: Kafka cannot be read.
    """
    from airflow_connect.kafka.clients.short_lived import admin_client
    from airflow_connect.kafka.state import compacted_topics, runs_topic
    from airflow_connect.kafka.state.state_documents import parse_key

    references = resolve_references({}, worker)
    found: set[str] = set()

    def take(key: bytes | None, value: bytes | None) -> None:
        parts = parse_key((key or b"").decode("utf-8", "replace"))
        if parts and value is not None:
            found.add(str(parts[1]))

    with references.hiding_errors():
        resolved = references.resolve(worker)
        admin = admin_client(clients.admin_config(resolved, {}).settings)
        topic = runs_topic.find(admin, WorkerConfig.from_properties(resolved).runs_topic)
        if topic is not None:
            compacted_topics.read(admin, clients.consumer_config(resolved, {}).settings, topic.name, take)
    return sorted(found)
