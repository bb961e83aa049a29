"""The plugins of this installation, and their keys."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container
from functools import cache
from typing import Any

from airflow_connect import __version__
from airflow_connect.api.config import plugins
from airflow_connect.api.config.config_def import ConfigDef
from airflow_connect.api.config.infos import config_key_infos
from airflow_connect.api.config.plugins import PluginKind
from airflow_connect.api.source import SourceConnector
from airflow_connect.control.herder.refusals import NOT_FOUND, RefusedError
from airflow_connect.control.herder.task_configs import version_shown
from airflow_connect.errors import ConfigError

_OTHERS = (
    (PluginKind.TRANSFORMATION, "transformation"),
    (PluginKind.PREDICATE, "predicate"),
    (PluginKind.CONVERTER, "converter"),
    (PluginKind.HEADER_CONVERTER, "header_converter"),
)
_WITH_KEYS = (PluginKind.CONNECTOR, *(kind for kind, _ in _OTHERS))


def installed(*, connectors_only: bool) -> list[dict[str, str]]:
    """PluginInfo of every plugin of this package: sinks, sources, then the others."""
    return [dict(entry) for entry in _connectors() + (() if connectors_only else _others())]


def keys_of(name: str, used: Callable[[], Container[str]] = tuple) -> list[dict[str, Any]]:
    """ConfigKeyInfo of a plugin's own keys.

    A GET must not import arbitrary modules: only plugins of this package, entry points and classes that
    a registered connector uses are looked at.

    Args:
        name: class or alias.
        used: returns the values of the registered configurations; asked only for what is not installed.

    Raises:
        RefusedError: there is no such plugin.
    """
    found = [plugins.installed(kind, name) for kind in _WITH_KEYS]
    is_used = not any(found) and name in used()
    for kind, reference in zip(_WITH_KEYS, found, strict=True):
        if reference is None and not is_used:
            continue
        try:
            plugin = plugins.load(reference or plugins.resolve(kind, name))
        except ConfigError:
            continue
        definition = getattr(plugin, "config_def", None)
        if inspect.isclass(plugin) and isinstance(definition, ConfigDef):
            return config_key_infos(definition)
    raise RefusedError(f"Unknown plugin {name}.", NOT_FOUND)


@cache
def _connectors() -> tuple[dict[str, str], ...]:
    found: dict[str, list[dict[str, str]]] = {"sink": [], "source": []}
    for name in sorted(plugins.built_in(PluginKind.CONNECTOR)):
        connector = plugins.load_class(PluginKind.CONNECTOR, name)
        kind = "source" if issubclass(connector, SourceConnector) else "sink"
        found[kind].append({"class": name, "type": kind, "version": version_shown(connector)})
    return (*found["sink"], *found["source"])


@cache
def _others() -> tuple[dict[str, str], ...]:
    return tuple(
        {"class": name, "type": kind_name, "version": __version__}
        for kind, kind_name in _OTHERS
        for name in sorted(plugins.built_in(kind))
    )
