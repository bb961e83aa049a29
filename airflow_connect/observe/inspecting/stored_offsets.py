"""Everything that the offsets topic holds, decoded: the offsets of all sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from airflow_connect.config.resolved.worker import WorkerConfig
from airflow_connect.config_providers.resolving import resolve_references
from airflow_connect.kafka.clients import settings as clients


def stored_offsets(worker: Mapping[str, Any]) -> list[dict[str, Any]]:
    """`connector`, `partition` and `offset` of every source partition, by connector; [] without an offsets topic.

    Args:
        worker: a worker configuration, as written.

    Raises:
        ConfigError: the worker configuration is wrong.
        UnavailableError, AccessError: Kafka cannot be read.
    """
    from airflow_connect.kafka.admin.new_topics import partition_count
    from airflow_connect.kafka.clients.short_lived import admin_client
    from airflow_connect.kafka.state import compacted_topics

    references = resolve_references({}, worker)
    found: dict[str, dict[str, Any]] = {}

    def take(key: bytes | None, value: bytes | None) -> None:
        decoded = _json(key)
        if not isinstance(decoded, list) or len(decoded) != 2:
            return
        mark = json.dumps(decoded, sort_keys=True)
        if value is None:
            found.pop(mark, None)
        else:
            found[mark] = {"connector": decoded[0], "partition": decoded[1], "offset": _json(value)}

    with references.hiding_errors():
        resolved = references.resolve(worker)
        topic = WorkerConfig.from_properties(resolved).sources.offsets_topic
        admin = admin_client(clients.admin_config(resolved, {}).settings)
        if partition_count(admin, topic) is not None:
            compacted_topics.read(admin, clients.consumer_config(resolved, {}).settings, topic, take)
    return [found[mark] for mark in sorted(found)]


def _json(text: bytes | None) -> Any:
    """The document; the text itself if it is none."""
    try:
        return json.loads(text or b"null")
    except (ValueError, RecursionError):
        return (text or b"").decode("utf-8", "replace")
