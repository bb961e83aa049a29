"""Connectors whose plugin can run converters, transformations and predicates itself (`Connector.runs_chain`).

Where it does (`Connector.runs_chain_of`), the run passes bytes to it and from it. The plugin gets the classes in its
configuration, with the worker's converters where the connector sets none: a plugin does not see the worker's
configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_connect.api.config import plugins
from airflow_connect.api.config.values import coerce_config
from airflow_connect.config.keys import sink as keys
from airflow_connect.config.keys.transform_classes import PREDICATE_KIND, TRANSFORMATION_KIND
from airflow_connect.config.keys.transforms import TYPE
from airflow_connect.errors import ConfigError

KEEPS_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
"""What the run converts with then, and where a configuration uses no converter."""
CONVERTERS = {
    keys.KEY_CONVERTER: plugins.PluginKind.CONVERTER,
    keys.VALUE_CONVERTER: plugins.PluginKind.CONVERTER,
    keys.HEADER_CONVERTER: plugins.PluginKind.HEADER_CONVERTER,
}


def runs_chain(connector: plugins.PluginRef, config: Mapping[str, str | None]) -> bool:
    """Whether the plugin runs the chain of a configuration itself, one that is `completed`."""
    return can_run_chain(connector) and bool(plugins.load(connector).runs_chain_of(config))


def can_run_chain(connector: plugins.PluginRef) -> bool:
    """Whether the plugin can run a chain."""
    return bool(getattr(plugins.load(connector), "runs_chain", False))


def completed(raw: Mapping[str, Any], worker_raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """A configuration with the worker's converters; that of a plugin that cannot run a chain is returned as it is."""
    name = str(raw.get(keys.CONNECTOR_CLASS) or "").strip()
    try:
        if not (name and can_run_chain(plugins.resolve_connector({**raw, keys.CONNECTOR_CLASS: name}))):
            return raw
    except ConfigError:
        return raw  # Reported with every other wrong key.
    found = dict(raw)
    for key in CONVERTERS:
        if raw.get(key) is None and worker_raw.get(key) is not None:
            # Nested keys without their converter have no effect, and must not get one now.
            found = {name: value for name, value in found.items() if not name.startswith(f"{key}.")}
            found |= {name: value for name, value in worker_raw.items() if name == key or name.startswith(f"{key}.")}
    return {**found, **_full_names(coerce_config(found))}


def chain_classes(raw: Mapping[str, str | None]) -> dict[str, tuple[plugins.PluginKind, str]]:
    """Kind and name of each class in the chain of a configuration, by key."""
    found = {key: (kind, str(raw[key])) for key, kind in CONVERTERS.items() if raw.get(key)}
    for kind in (TRANSFORMATION_KIND, PREDICATE_KIND):
        for alias in kind.aliases(raw):
            key = kind.prefix(alias) + TYPE
            if raw.get(key):
                found[key] = (kind.plugin_kind, str(raw[key]).strip())
    return found


def _full_names(raw: Mapping[str, str | None]) -> dict[str, str]:
    """Java knows fewer aliases than the lookup here (`InsertField$Value`)."""
    names = {}
    for key, (kind, name) in chain_classes(raw).items():
        try:
            names[key] = plugins.resolve(kind, name).name
        except ConfigError:
            continue  # Reported with every other wrong key.
    return names
