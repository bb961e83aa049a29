"""The Java plugins that this process knows: those of every `plugin.path` that a worker configuration has named.

`use_plugin_path` is called wherever a worker configuration is read. From then on, `api/config/plugins.py` finds the
classes by their names and aliases, and `registered` has the rest about them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from airflow_connect.api.config import plugins
from airflow_connect.api.config.plugins import PluginKind
from airflow_connect.counting import names
from airflow_connect.errors import ConfigError
from airflow_connect.jvm.discovery import runtime_types
from airflow_connect.jvm.discovery.catalogue import Catalogue, JavaPlugin

log = logging.getLogger(__name__)

PLUGIN_PATH = "plugin.path"
_MADE_BY = "airflow_connect.connectors.java.classes:java_class"
_KINDS = {
    runtime_types.SINK: PluginKind.CONNECTOR,
    runtime_types.SOURCE: PluginKind.CONNECTOR,
    runtime_types.CONVERTER: PluginKind.CONVERTER,
    runtime_types.HEADER_CONVERTER: PluginKind.HEADER_CONVERTER,
    runtime_types.TRANSFORMATION: PluginKind.TRANSFORMATION,
    runtime_types.PREDICATE: PluginKind.PREDICATE,
    runtime_types.CONFIG_PROVIDER: PluginKind.CONFIG_PROVIDER,
}
_lock = threading.Lock()
_catalogues: dict[str, Catalogue] = {}
_by_class: dict[str, dict[str, JavaPlugin]] = {}


def use_plugin_path(worker: Mapping[str, Any]) -> Catalogue | None:
    """Make the plugins of a worker's `plugin.path` known in this process; None if it has none.

    Idempotent, and cheap: unless a file has changed, only the times of the files are looked at.

    Args:
        worker: a worker configuration, as written. A reference in its `plugin.path` is resolved.

    Raises:
        ConfigError: a reference cannot be resolved, or the cache cannot be written.
    """
    text = _plugin_path(worker)
    if not text:
        return None
    catalogue = Catalogue.of(text)
    with _lock:
        before = _catalogues.get(text)
        if before is not None and before.locations == catalogue.locations:
            return before
        for warning in catalogue.warnings:
            if before is None or warning not in before.warnings:
                log.warning("%s", warning)
        _catalogues[text] = catalogue
        _register(catalogue)
    return catalogue


def catalogues() -> tuple[Catalogue, ...]:
    """Every plugin path that this process uses."""
    return tuple(_catalogues.values())


def registered(name: str) -> JavaPlugin:
    """The plugin with a full Java name.

    Raises:
        ConfigError: no plugin path of this process has it, or two different connectors have this name.
    """
    found = list(_by_class.get(name, {}).values())
    if not found:
        searched = "; ".join(_catalogues) or "none"
        raise ConfigError(
            f"The Java class {name} is in no plugin.path of this process ({searched}).",
            code="plugin.not_found",
            config_path=PLUGIN_PATH,
            suggestion="Put its jars into a folder of the worker's plugin.path, on this machine, too.",
        )
    if len({plugin.known.content for plugin in found}) > 1 and _is_connector(found[0]):
        raise _ambiguous(name, found)
    return found[0]


def all_registered() -> list[JavaPlugin]:
    """One plugin for each Java class, sorted by name."""
    return [next(iter(found.values())) for _, found in sorted(_by_class.items())]


def folders_of(class_names: Iterable[str]) -> tuple[Path, ...]:
    """Entries of a `plugin.path` with all of these classes, for one plugin host; names of other classes are left out.

    A class that is also in the location of the first one is taken from there, as in Kafka Connect.

    Raises:
        ConfigError: a class is in several locations, which differ, and not in that of the first class.
    """
    folders: dict[Path, None] = {}
    home = ""
    for name in class_names:
        found = _by_class.get(name)
        if not found:
            continue
        if home not in found and len({plugin.known.content for plugin in found.values()}) > 1:
            raise _ambiguous(name, list(found.values()))
        plugin = found[home] if home in found else next(iter(found.values()))
        home = home or plugin.location
        folders.update(dict.fromkeys(plugin.folders))
    return tuple(folders)


def _ambiguous(name: str, found: list[JavaPlugin]) -> ConfigError:
    places = [plugin.location for plugin in found]
    return ConfigError(
        f"The Java class {name} is in several places, which differ: {names(places)}.",
        code="plugin.ambiguous",
        config_path=PLUGIN_PATH,
        suggestion="Keep one version of the plugin in plugin.path; or, if two workers have one each, give them"
        " processes of their own.",
    )


def _is_connector(plugin: JavaPlugin) -> bool:
    return any(_KINDS[kind] is PluginKind.CONNECTOR for kind in plugin.kinds)


def _register(catalogue: Catalogue) -> None:
    by_kind: dict[PluginKind, dict[str, str]] = {kind: {} for kind in _KINDS.values()}
    for plugin in catalogue.plugins:
        _by_class[plugin.class_name] = {**_by_class.get(plugin.class_name, {}), plugin.location: plugin}
        for kind in plugin.kinds:
            by_kind[_KINDS[kind]][plugin.class_name] = f"{_MADE_BY}[{plugin.class_name}]"
    for kind, paths in by_kind.items():
        plugins.add(kind, paths, place=catalogue.text)


def _plugin_path(worker: Mapping[str, Any]) -> str:
    text = str(worker.get(PLUGIN_PATH) or "").strip()
    if "${" not in text:
        return text
    from airflow_connect.config_providers.resolving import CONFIG_PROVIDERS, resolve_references

    needed = {key: value for key, value in worker.items() if key.startswith(CONFIG_PROVIDERS) or key == PLUGIN_PATH}
    return str(resolve_references({}, needed).resolve(needed)[PLUGIN_PATH]).strip()
