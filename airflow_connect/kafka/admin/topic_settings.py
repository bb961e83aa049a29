"""The settings of many topics in one request, with an answer or an error for each."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]

from airflow_connect.errors import ConnectError
from airflow_connect.kafka.clients.short_lived import Admin, wait

REQUEST_TIMEOUT_S = 10.0


def settings_of_topics(admin: Admin, topics: Sequence[str]) -> dict[str, dict[str, str] | ConnectError]:
    """Every setting of each topic, defaults included."""
    if not topics:
        return {}
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    found: dict[str, dict[str, str] | ConnectError] = {}
    for resource, future in admin.describe_configs(resources, request_timeout=REQUEST_TIMEOUT_S).items():
        try:
            configs = wait(future, f"reading the settings of topic {resource.name}", REQUEST_TIMEOUT_S + 1)
        except ConnectError as error:
            found[resource.name] = error
        else:
            found[resource.name] = {name: str(entry.value) for name, entry in configs.items()}
    return found
