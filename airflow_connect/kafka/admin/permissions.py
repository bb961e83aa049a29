"""What this client may do with topics and groups, as the broker says (KIP-430)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from confluent_kafka import TopicCollection

from airflow_connect.kafka.admin.consumer_group import operations_on_group
from airflow_connect.kafka.clients.short_lived import API_TIMEOUT_S, Admin, wait


def missing_on_topics(admin: Admin, topics: Iterable[str], wanted: Collection[str]) -> dict[str, list[str]]:
    """Operations that are missing on each topic; topics that do not exist are left out.

    Args:
        wanted: `READ`, `WRITE`, `DESCRIBE`, ...

    Raises:
        AccessError: a topic may not even be described.
        UnavailableError: Kafka does not answer.
    """
    names = sorted(topics)
    if not names:
        return {}
    asked = admin.describe_topics(
        TopicCollection(names), include_authorized_operations=True, request_timeout=API_TIMEOUT_S
    )
    return {
        name: _missing(wait(future, f"describing topic {name}").authorized_operations, wanted)
        for name, future in asked.items()
    }


def missing_on_group(admin: Admin, group: str, wanted: Collection[str]) -> list[str]:
    """Operations that are missing on a consumer group, whether it exists or not.

    Raises:
        AccessError: it may not even be described.
        UnavailableError: Kafka does not answer.
    """
    return _missing(operations_on_group(admin, group), wanted)


def _missing(operations: Any, wanted: Collection[str]) -> list[str]:
    if operations is None:  # a broker that does not tell
        return []
    allowed = {operation.name for operation in operations}
    return [] if "ALL" in allowed else sorted(set(wanted) - allowed)
