"""What this client may do with topics and groups, as the broker says (KIP-430)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from confluent_kafka import KafkaError, TopicCollection
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from airflow_connect.errors import AccessError, ConfigError, ConnectError
from airflow_connect.kafka.admin.consumer_group import operations_on_group
from airflow_connect.kafka.clients.short_lived import API_TIMEOUT_S, Admin, kafka_error, wait


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


def not_creatable(admin: Admin, topics: Iterable[str]) -> dict[str, bool]:
    """Topics that this client may not create, or that exist; nothing is created.

    A broker can be asked for the operations on a topic only if the topic exists, so this is a request to create them
    that is only validated.

    Returns:
        By topic whether it exists.

    Raises:
        UnavailableError: Kafka does not answer.
    """
    wanted = [NewTopic(name, -1, -1) for name in sorted(topics)]
    if not wanted:
        return {}
    found = {}
    asked = admin.create_topics(wanted, request_timeout=API_TIMEOUT_S, validate_only=True)
    for name, future in asked.items():
        try:
            wait(future, f"asking whether topic {name} may be created")
        except ConnectError as error:
            cause = kafka_error(error.__cause__) if error.__cause__ else None
            exists = cause is not None and cause.code() == KafkaError.TOPIC_ALREADY_EXISTS
            if exists or isinstance(error, AccessError):
                found[name] = exists
            elif not isinstance(error, ConfigError):  # the broker's defaults, which need not be those of the topic
                raise
    return found


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
