"""The plugins of this installation, and their keys."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Container, Iterable
from functools import cache
from typing import Any

from airflow_connect import __version__
from airflow_connect.api.config import plugins
from airflow_connect.api.config.config_def import ConfigDef
from airflow_connect.api.config.infos import config_key_infos
from airflow_connect.api.config.plugins import PluginKind
from airflow_connect.api.source import SourceConnector
from airflow_connect.config.resolved.loading import connector_definition
from airflow_connect.control.herder.refusals import NOT_FOUND, RefusedError
from airflow_connect.control.herder.task_configs import version_shown
from airflow_connect.errors import ConfigError, ConnectError
from airflow_connect.jvm.discovery.describing import describe
from airflow_connect.jvm.discovery.java_plugin import PLUGIN_KINDS, JavaPlugin, all_registered, registered

log = logging.getLogger(__name__)

_OTHERS = (
    (PluginKind.TRANSFORMATION, "transformation"),
    (PluginKind.PREDICATE, "predicate"),
    (PluginKind.CONVERTER, "converter"),
    (PluginKind.HEADER_CONVERTER, "header_converter"),
)
_CONNECTORS = ("sink", "source")
_WITH_KEYS = (PluginKind.CONNECTOR, *(kind for kind, _ in _OTHERS))


def installed(*, connectors_only: bool, with_versions: bool = True) -> list[dict[str, str]]:
    """PluginInfo of every plugin of this package and of `plugin.path`: sinks, sources, then the others.

    A Java class that cannot be created is left out, as in Kafka Connect, and so is one whose name this package has.

    Args:
        connectors_only: no transformations, predicates and converters.
        with_versions: also those of Java classes, and whether they can be created: a JVM is started to ask those that
            it has never been asked about.
    """
    own = [dict(entry) for entry in _connectors() + (() if connectors_only else _others())]
    kinds = (*_CONNECTORS, *(() if connectors_only else (kind for _, kind in _OTHERS)))
    java = _java(kinds, with_versions=with_versions)
    if not java:
        return own
    return sorted([*own, *java], key=lambda entry: (kinds.index(entry["type"]), entry["class"]))


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
            found_class = reference or plugins.resolve(kind, name)
            if found_class.is_java:
                return _java_keys(registered(found_class.name))
            plugin = plugins.load(found_class)
        except ConfigError:
            continue
        definition = getattr(plugin, "config_def", None)
        if inspect.isclass(plugin) and isinstance(definition, ConfigDef):
            return config_key_infos(definition)
    raise RefusedError(f"Unknown plugin {name}.", NOT_FOUND)


def _java_keys(plugin: JavaPlugin) -> list[dict[str, Any]]:
    """As Kafka Connect: the keys of the class; for a connector, also those of every connector."""
    own = plugin.key_infos()
    if plugin.kind is not PluginKind.CONNECTOR:
        return own
    names = {info["name"] for info in own}
    config = {"connector.class": plugin.class_name, plugins.PREFERS_JAVA: "true"}
    return [*own, *(info for info in config_key_infos(connector_definition(config)) if info["name"] not in names)]


def _java(kinds: Container[str], *, with_versions: bool) -> list[dict[str, str]]:
    known = all_registered()
    has_versions = with_versions and _describe(known)
    entries = []
    for plugin in known:
        for kind in plugin.kinds:
            if kind not in kinds or plugin.class_name in plugins.built_in(PLUGIN_KINDS[kind]):
                continue
            if has_versions and not plugin.is_loadable:
                continue
            version = plugin.version if has_versions else ""
            entries.append({"class": plugin.class_name, "type": kind, **({"version": version} if version else {})})
    return entries


def _describe(known: Iterable[JavaPlugin]) -> bool:
    """Ask Java about all classes at once; whether it has answered."""
    try:
        describe({plugin.location: plugin.known for plugin in known}.values())
    except ConnectError as error:
        log.warning("The versions of Java plugins are not known: %s", error)
        return False
    return True


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
