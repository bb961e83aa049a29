"""Whether a configuration is that of a source or of a sink: what its class is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.api.config import plugins
from airflow_connect.api.source import SourceConnector
from airflow_connect.config.keys.sink import CONNECTOR_CLASS
from airflow_connect.config_providers.resolving import resolve_references
from airflow_connect.errors import ConfigError, ConnectError
from airflow_connect.jvm.discovery.registry import registered, use_plugin_path

if TYPE_CHECKING:
    from airflow_connect.runtime.spec import RunSpec


def names_source(spec: RunSpec) -> bool:
    """Whether `connector.class` names a source. False if it cannot be looked up: a sink's check then reports why.

    Makes the worker's Java plugins known: everything that is done with a connector begins here.

    Raises:
        ConfigError: the Java plugins of `plugin.path` cannot be prepared.
    """
    use_plugin_path(spec.worker, spec.references)
    name = str(spec.connector.get(CONNECTOR_CLASS) or "")
    if "${" in name:
        try:
            resolved = resolve_references(spec.connector, spec.worker, spec.references).resolve(spec.connector)
        except ConnectError:
            return False
        name = str(resolved[CONNECTOR_CLASS])
    try:
        return bool(name) and is_source(plugins.resolve_connector({**spec.connector, CONNECTOR_CLASS: name}))
    except ConfigError:
        return False


def is_source(reference: plugins.PluginRef) -> bool:
    """Whether a connector class is a source. Java is not started for that.

    Raises:
        ConfigError: the class cannot be loaded.
    """
    if reference.is_java:
        return not registered(reference.name).is_sink
    found = plugins.load(reference)
    return isinstance(found, type) and issubclass(found, SourceConnector)
