"""Whether a configuration is that of a source or of a sink: what its class is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.api.config import plugins
from airflow_connect.api.source import SourceConnector
from airflow_connect.config.keys.sink import CONNECTOR_CLASS
from airflow_connect.config_providers.resolving import resolve_references
from airflow_connect.errors import ConfigError, ConnectError

if TYPE_CHECKING:
    from airflow_connect.runtime.spec import RunSpec


def names_source(spec: RunSpec) -> bool:
    """Whether `connector.class` names a source. False if it cannot be looked up: a sink's check then reports why."""
    name = str(spec.connector.get(CONNECTOR_CLASS) or "")
    if "${" in name:
        try:
            resolved = resolve_references(spec.connector, spec.worker, spec.references).resolve(spec.connector)
        except ConnectError:
            return False
        name = str(resolved[CONNECTOR_CLASS])
    try:
        found = plugins.load_class(plugins.PluginKind.CONNECTOR, name) if name else None
    except ConfigError:
        return False
    return isinstance(found, type) and issubclass(found, SourceConnector)
