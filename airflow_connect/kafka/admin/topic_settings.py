"""Settings of topics, as the broker applies them."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]

from airflow_connect.kafka.clients.short_lived import API_TIMEOUT_S, Admin, wait


def settings_of(admin: Admin, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """All settings of each topic, defaults included.

    Raises:
        AccessError: a topic does not exist, or may not be described.
        UnavailableError: Kafka does not answer.
    """
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    if not resources:
        return {}
    described = admin.describe_configs(resources, request_timeout=API_TIMEOUT_S)
    return {
        resource.name: {
            name: str(entry.value)
            for name, entry in wait(future, f"reading the settings of topic {resource.name}").items()
        }
        for resource, future in described.items()
    }
