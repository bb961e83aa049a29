"""All plugins of this package in one table: what the lookup of class names searches first.

Each table is next to the plugins that it names, and imports none of them. This module is above them all, so the
direction of imports holds for the tables as for any other module. The lookup (`api/config/plugins.py`) lies
below, because configurations are checked there. It loads this module by its path on the first lookup, as it loads
every plugin. Entry points, by which third-party plugins are found, would cost 40 ms per process in an installation of
Airflow, and would not be there in a checkout that is not installed.
"""

from __future__ import annotations

from airflow_connect.api.config.plugins import PluginKind
from airflow_connect.config_providers import plugins as config_providers
from airflow_connect.connectors import plugins as connectors
from airflow_connect.converters import plugins as converters
from airflow_connect.formats import plugins as formats
from airflow_connect.layout import plugins as layout
from airflow_connect.registry import plugins as registry
from airflow_connect.stores import plugins as stores
from airflow_connect.transforms import plugins as transforms

_PACKAGES = (connectors, converters, registry, transforms, config_providers, formats, layout, stores)

TABLES: dict[PluginKind, dict[str, str]] = {
    kind: {name: path for package in _PACKAGES for name, path in package.TABLES.get(kind, {}).items()}
    for kind in PluginKind
}
"""Java class name to dotted path (`package.module:Class`), by kind."""
