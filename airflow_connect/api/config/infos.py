"""A configuration and its definition as JSON, in the shapes of Kafka Connect's REST API: ConfigInfos and its parts.

Source: org.apache.kafka.connect.runtime.rest.entities.{ConfigInfos,ConfigKeyInfo,ConfigValueInfo} of Kafka 4.3, as its
answers to `GET /connector-plugins/X/config` and `PUT /connector-plugins/X/config/validate` were recorded. Unlike in
Kafka Connect, the resolved value of a reference to a config provider is never shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_connect.api.config import plugins
from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, ConfigValue, Width
from airflow_connect.api.config.references import ResolvedText
from airflow_connect.api.config.values import convert_to_string


def config_key_infos(definition: ConfigDef) -> list[dict[str, Any]]:
    """ConfigKeyInfo of every key, in the order of definition."""
    orders = _orders(definition)
    return [_key_info(key, orders[key.name]) for key in definition.keys.values()]


def config_infos(name: str, definition: ConfigDef, raw: Mapping[str, Any]) -> dict[str, Any]:
    """ConfigInfos of a configuration, whether it is valid or not.

    Args:
        name: connector class as given.
        definition: every key of that class.
        raw: the configuration, references resolved.
    """
    orders = _orders(definition)
    values = definition.validate(raw)
    configs = []
    for value in values:
        key = definition.keys.get(value.name)
        info = None if key is None else _key_info(key, orders[value.name])
        configs.append({"definition": info, "value": _value_info(key, value, raw)})
    return {
        "name": name,
        "error_count": sum(len(value.errors) for value in values),
        "groups": definition.groups,
        "configs": configs,
    }


def _orders(definition: ConfigDef) -> dict[str, int]:
    """Position of every key in its group, from 1; -1 without a group. A key without its own position is next."""
    orders: dict[str, int] = {}
    last: dict[str, int] = {}
    for key in definition.keys.values():
        if key.group is None:
            orders[key.name] = -1
            continue
        orders[key.name] = key.order if key.order > 0 else last.get(key.group, 0) + 1
        last[key.group] = max(last.get(key.group, 0), orders[key.name])
    return orders


def _key_info(key: ConfigKey, order: int) -> dict[str, Any]:
    return {
        "name": key.name,
        "type": key.type.value,
        "required": key.is_required,
        "default_value": convert_to_string(key.parsed_default, key.type),
        "importance": key.importance.value,
        "documentation": key.documentation,
        "group": key.group,
        "order_in_group": order,
        "width": (key.width if key.group is not None else Width.NONE).value,
        "display_name": key.display_name or key.name,
        "dependents": list(key.dependents),
    }


def _value_info(key: ConfigKey | None, value: ConfigValue, raw: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": value.name,
        "value": None if key is None else _shown(key, value, raw),
        "recommended_values": [] if key is None else _recommended(key, value),
        "errors": list(value.errors),
        "visible": value.visible,
    }


def _shown(key: ConfigKey, value: ConfigValue, raw: Mapping[str, Any]) -> str | None:
    given = raw.get(key.name)
    if isinstance(given, ResolvedText) and value.value is not None:
        return given.reference
    return convert_to_string(value.value, key.type)


def _recommended(key: ConfigKey, value: ConfigValue) -> list[str]:
    """The recommended values; for a class without a recommender the built-in classes, as in Connect."""
    if key.recommender is None and key.plugin is not None:
        # Java converters are for Java connectors only, so they are not recommended to all.
        is_connector = key.plugin is plugins.PluginKind.CONNECTOR
        return plugins.java_names(key.plugin) if is_connector else sorted(plugins.built_in(key.plugin))
    return [text for item in value.recommended_values if (text := convert_to_string(item, key.type)) is not None]
