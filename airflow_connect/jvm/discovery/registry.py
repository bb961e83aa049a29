"""The Java plugins that this process knows: those of every `plugin.path` that a worker configuration has named.

`use_plugin_path` is called wherever a worker configuration is read. From then on, `api/config/plugins.py` finds the
classes by their names and aliases, and `registered` has the rest about them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow_connect.api.config import plugins
from airflow_connect.api.config.plugins import PluginKind
from airflow_connect.jvm.discovery.catalogue import Catalogue
from airflow_connect.jvm.discovery.java_plugin import PLUGIN_KINDS, JavaPlugin, all_registered, register, registered
from airflow_connect.jvm.host_jars import use_connect_home

log = logging.getLogger(__name__)

PLUGIN_PATH, CONNECT_HOME = "plugin.path", "airflow.java.connect.home"
FRESH_S = 1.0
"""How long the files are not looked at again: pages ask about all connectors of an installation at once."""
_MADE_BY = "airflow_connect.connectors.java.classes:java_class"
_lock = threading.Lock()
_catalogues: dict[str, Catalogue] = {}
_looked_at_s: dict[str, float] = {}


def use_plugin_path(worker: Mapping[str, Any], known: Mapping[str, str] | None = None) -> Catalogue | None:
    """Make the plugins of a worker's `plugin.path` known in this process; None if it has none.

    Idempotent, and cheap: unless a file has changed, only the times of the files are looked at, once a second.

    Args:
        worker: a worker configuration, as written. A reference in its `plugin.path` is resolved.
        known: values of references that are already resolved.

    Raises:
        ConfigError: a reference cannot be resolved, or the cache cannot be written.
    """
    text = _plugin_path(worker, known)
    if not text:
        return None
    if home := str(worker.get(CONNECT_HOME) or "").strip():
        use_connect_home(Path(home))
    if text in _catalogues and time.monotonic() - _looked_at_s.get(text, 0) < FRESH_S:
        return _catalogues[text]
    catalogue = Catalogue.of(text)
    with _lock:
        _looked_at_s[text] = time.monotonic()
        before = _catalogues.get(text)
        if before is not None and before.locations == catalogue.locations:
            return before
        for warning in catalogue.warnings:
            if before is None or warning not in before.warnings:
                log.warning("%s", warning)
        _catalogues[text] = catalogue
        register(catalogue.plugins, instead_of=() if before is None else before.plugins)
        _add_names(catalogue)
    return catalogue


def catalogues() -> tuple[Catalogue, ...]:
    """Every plugin path that this process uses."""
    return tuple(_catalogues.values())


def _add_names(catalogue: Catalogue) -> None:
    by_kind: dict[PluginKind, dict[str, str]] = {kind: {} for kind in PLUGIN_KINDS.values()}
    for plugin in catalogue.plugins:
        for kind in plugin.kinds:
            by_kind[PLUGIN_KINDS[kind]][plugin.class_name] = f"{_MADE_BY}[{plugin.class_name}]"
    for plugin_kind, paths in by_kind.items():
        plugins.add(plugin_kind, paths, place=catalogue.text)


def _plugin_path(worker: Mapping[str, Any], known: Mapping[str, str] | None) -> str:
    text = str(worker.get(PLUGIN_PATH) or "").strip()
    if "${" not in text:
        return text
    from airflow_connect.config_providers.resolving import CONFIG_PROVIDERS, resolve_references

    needed = {key: value for key, value in worker.items() if key.startswith(CONFIG_PROVIDERS) or key == PLUGIN_PATH}
    return str(resolve_references({}, needed, known).resolve(needed)[PLUGIN_PATH]).strip()


__all__ = ["PLUGIN_PATH", "JavaPlugin", "all_registered", "catalogues", "registered", "use_plugin_path"]
