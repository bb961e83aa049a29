"""The ConfigDef of a Java class, from the JSON of Kafka Connect's REST API (ConfigKeyInfo)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from airflow_connect.api.config.config_def import REQUIRED, ConfigDef, ConfigKey, Importance, Type, Width
from airflow_connect.errors import ConfigError


def definition_of(keys: Iterable[Mapping[str, Any]]) -> ConfigDef:
    """The keys that a Java class defines, in their order; of two with one name the first one.

    The JSON has no validators: which values are valid, only the class itself knows. The default of a password is not
    in it either: such a key has none here, and Java's own holds.
    """
    definition = ConfigDef()
    for info in keys:
        if info["name"] in definition.keys:
            continue
        key = _key(info)
        try:
            definition.define(key)
        except ConfigError:
            # A default that its own type does not parse: Java never parses it either. It is kept as text.
            definition.define(replace(key, type=Type.STRING))
    return definition


def _key(info: Mapping[str, Any]) -> ConfigKey:
    kind = _one_of(Type, info.get("type"), Type.STRING)
    default = info.get("default_value")
    if info.get("required"):
        default = REQUIRED
    elif kind is Type.PASSWORD:
        default = None
    return ConfigKey(
        name=str(info["name"]),
        type=kind,
        default=default,
        documentation=str(info.get("documentation") or ""),
        importance=_one_of(Importance, info.get("importance"), Importance.MEDIUM),
        group=info.get("group"),
        order=int(info.get("order_in_group") or info.get("order") or -1),
        width=_one_of(Width, info.get("width"), Width.MEDIUM),
        display_name=str(info.get("display_name") or ""),
        dependents=tuple(info.get("dependents") or ()),
    )


def _one_of(kind: Any, value: Any, otherwise: Any) -> Any:
    """The member of an enumeration, or `otherwise` for one that a newer Kafka has."""
    try:
        return kind(value)
    except ValueError:
        return otherwise
