"""The settings of topics, as the broker applies them: of many in one request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from airflow_connect.errors import ConnectError
from airflow_connect.kafka.clients.short_lived import API_TIMEOUT_S, Admin, wait


def settings_of(admin: Admin, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """All settings of each topic, defaults included.

    Raises:
        AccessError: a topic does not exist, or may not be described.
        UnavailableError: Kafka does not answer.
    """
    found: dict[str, dict[str, str]] = {}
    for topic, settings in settings_of_topics(admin, topics).items():
        if isinstance(settings, ConnectError):
            raise settings
        found[topic] = settings
    return found


def settings_of_topics(admin: Admin, topics: Iterable[str]) -> dict[str, dict[str, str] | ConnectError]:
    """The same, with an answer or an error for each topic."""
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    if not resources:
        return {}
    found: dict[str, dict[str, str] | ConnectError] = {}
    for resource, future in admin.describe_configs(resources, request_timeout=API_TIMEOUT_S).items():
        try:
            configs = wait(future, f"reading the settings of topic {resource.name}")
        except ConnectError as error:
            found[resource.name] = error
        else:
            found[resource.name] = {name: str(entry.value) for name, entry in configs.items()}
    return found


def change(admin: Admin, topic: str, settings: Mapping[str, str]) -> None:
    """Set some settings of a topic; the others stay (KIP-339).

    Raises:
        AccessError, ConfigError: Kafka refused.
        UnavailableError: Kafka does not answer.
    """
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    for future in admin.incremental_alter_configs([resource], request_timeout=API_TIMEOUT_S).values():
        wait(future, f"changing the settings of topic {topic}")
