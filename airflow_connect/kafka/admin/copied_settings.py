"""Settings of topics as another cluster can take them over, and partitions that are added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    ResourceType,
)

from airflow_connect.kafka.clients.asking import ask
from airflow_connect.kafka.clients.short_lived import API_TIMEOUT_S, Admin, wait


class TopicSetting(NamedTuple):
    """A setting of a topic.

    Attributes:
        value: as text; None if Kafka does not show it.
        is_default: whether nothing sets it, neither the topic nor the brokers.
        is_copyable: False for settings that cannot be written, are secret, or come from a broker's own file.
    """

    name: str
    value: str | None
    is_default: bool
    is_copyable: bool


def topic_settings(admin: Admin, topics: Iterable[str]) -> dict[str, list[TopicSetting]]:
    """Every setting of some topics.

    Raises:
        ConnectError: Kafka refused, or did not answer.
    """
    wanted = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]

    def describe(client: Admin, timeout_s: float) -> Mapping[str, Future[Any]]:
        found = client.describe_configs(wanted, request_timeout=timeout_s)
        return {str(resource.name): future for resource, future in found.items()}

    if not wanted:
        return {}
    found = ask(admin, describe, "describing the settings of topic")
    return {topic: [_setting(entry) for entry in entries.values()] for topic, entries in found.items()}


def _setting(entry: Any) -> TopicSetting:
    from_file = int(getattr(entry.source, "value", entry.source)) == ConfigSource.STATIC_BROKER_CONFIG.value
    is_copyable = not (entry.is_read_only or entry.is_sensitive or from_file)
    return TopicSetting(entry.name, entry.value, bool(entry.is_default), is_copyable)


def alter_settings(admin: Admin, changes: Mapping[str, Mapping[str, str | None]]) -> None:
    """Change settings of topics and leave all others as they are (KIP-339).

    Args:
        changes: new values by topic and name; None returns a setting to its default.

    Raises:
        ConnectError: Kafka refused, or did not answer.
    """
    resources = [_resource(topic, settings) for topic, settings in changes.items() if settings]
    if not resources:
        return
    for resource, future in admin.incremental_alter_configs(resources, request_timeout=API_TIMEOUT_S).items():
        wait(future, f"changing the settings of topic {resource.name}")


def _resource(topic: str, settings: Mapping[str, str | None]) -> Any:
    entries = [
        ConfigEntry(
            name,
            value,
            incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
        )
        for name, value in settings.items()
    ]
    return ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)


def add_partitions(admin: Admin, counts: Mapping[str, int]) -> None:
    """Give topics more partitions.

    Args:
        counts: their new number, by topic; larger than before.

    Raises:
        ConnectError: Kafka refused, or did not answer.
    """
    new: Sequence[Any] = [NewPartitions(topic, count) for topic, count in counts.items()]
    if not new:
        return
    for topic, future in admin.create_partitions(list(new), request_timeout=API_TIMEOUT_S).items():
        wait(future, f"adding partitions to topic {topic}")
