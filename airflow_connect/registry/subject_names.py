"""The subject under which a schema is registered (`key.subject.name.strategy`, `value.subject.name.strategy`).

Source: io.confluent.kafka.serializers.subject.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow_connect.api.config import plugins
from airflow_connect.errors import ConfigError, DataError

SubjectNames = Callable[[str, bool, str | None], str]
"""(topic, is_key, full name of the record type or None) to the subject."""


def topic_name(topic: str, is_key: bool, record_name: str | None) -> str:
    """TopicNameStrategy: `<topic>-key`, `<topic>-value`."""
    return f"{topic}-{'key' if is_key else 'value'}"


def record_name(topic: str, is_key: bool, record_name: str | None) -> str:
    """RecordNameStrategy: the full name of the record type, whatever the topic.

    Raises:
        DataError: the schema is not of a record.
    """
    return _named(record_name, is_key, "RecordNameStrategy")


def topic_record_name(topic: str, is_key: bool, record_name: str | None) -> str:
    """TopicRecordNameStrategy: `<topic>-<full name of the record type>`.

    Raises:
        DataError: the schema is not of a record.
    """
    return f"{topic}-{_named(record_name, is_key, 'TopicRecordNameStrategy')}"


def _named(name: str | None, is_key: bool, strategy: str) -> str:
    if name:
        return name
    part = "key" if is_key else "value"
    raise DataError(
        f"In configuration {part}.subject.name.strategy = {strategy}, the message {part} must only be a record schema, "
        "but its schema has no record name.",
        code="data.subject",
        suggestion=f"Write records, or set {part}.subject.name.strategy to TopicNameStrategy.",
    )


_STRATEGIES: dict[str, SubjectNames] = {
    "TopicNameStrategy": topic_name,
    "RecordNameStrategy": record_name,
    "TopicRecordNameStrategy": topic_record_name,
}
_PACKAGE = "io.confluent.kafka.serializers.subject."
DEFAULT_STRATEGY = f"{_PACKAGE}TopicNameStrategy"


def subject_names(name: str, key: str) -> SubjectNames:
    """The strategy for a configuration value: Java class name, its last part, or `package.module:function`.

    Args:
        name: the value.
        key: the configuration key, for messages.

    Raises:
        ConfigError: no such strategy.
    """
    found = _STRATEGIES.get(name.removeprefix(_PACKAGE))
    if found is not None:
        return found
    if ":" in name:
        own: Any = plugins.load(plugins.PluginRef(plugins.PluginKind.CONVERTER, name, name))
        if callable(own):
            return own  # type: ignore[no-any-return]
    raise ConfigError(
        f"Invalid value {name} for configuration {key}: there is no such subject name strategy.",
        suggestion=(
            f"Use {', '.join(_STRATEGIES)} (with or without {_PACKAGE[:-1]}), or name your own function as "
            "package.module:function; it takes the topic, whether it is a key, and the record name or None."
        ),
        config_path=key,
    )
