"""What only Java knows about a plugin: its version, its ConfigDef, and whether it can be created at all.

A class is described together with all others of its location, because starting a JVM takes longer than that. The
answers stay in the cache until a file of the location changes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from airflow_connect.api.config.config_def import ConfigDef
from airflow_connect.errors import ConfigError, JavaBlockedError, JavaPluginError, JvmGoneError
from airflow_connect.jvm.discovery.catalogue import JavaPlugin, KnownLocation
from airflow_connect.jvm.discovery.definitions import definition_of

log = logging.getLogger(__name__)

TIMEOUT_S = 120.0
_UNKNOWN_VERSIONS = (None, "", "undefined", "unknown", "null")
_OF_THE_PLUGIN = (JvmGoneError, JavaBlockedError, JavaPluginError, ConfigError)
"""Errors that other plugins in the same JVM are not to blame for."""


def version_of(plugin: JavaPlugin) -> str:
    """What the class says its version is; "" if it says nothing, or cannot be created.

    Raises:
        ConnectError: no JVM can be started.
    """
    version = _description(plugin).get("version")
    return "" if version in _UNKNOWN_VERSIONS else str(version)


def config_def_of(plugin: JavaPlugin) -> ConfigDef:
    """The keys that the class defines.

    Raises:
        ConfigError: the class cannot be created, or has no ConfigDef.
        ConnectError: no JVM can be started.
    """
    described = _description(plugin)
    if "error" in described:
        # Another Java, or a library that has been added elsewhere, may help: the answer is not kept for ever.
        described = describe([plugin.known], anew=True)[plugin.location].get(plugin.class_name, described)
    if "error" in described:
        raise not_loadable(plugin, described["error"])
    return definition_of(described.get("keys") or ())


def not_loadable(plugin: JavaPlugin, why: str) -> ConfigError:
    """The error for a class that Java cannot create."""
    return ConfigError(
        f"The Java class {plugin.class_name} of {plugin.location} cannot be loaded: {why.removesuffix('.')}.",
        code="plugin.not_loadable",
        suggestion="Look for a library that is missing in its folder, or for a newer Java that it needs.",
    )


def is_loadable(plugin: JavaPlugin) -> bool:
    """Whether Java can create the class; Kafka Connect leaves others out of its lists."""
    return "error" not in _description(plugin)


def describe(locations: Iterable[KnownLocation], *, anew: bool = False) -> dict[str, dict[str, dict[str, Any]]]:
    """By location and class: `version`, `keys` (ConfigKeyInfo), or `error`. A JVM is started for what is not cached.

    Args:
        locations: which.
        anew: ask again about classes that could not be created.

    Raises:
        ConnectError: no JVM can be started.
    """
    answers: dict[str, dict[str, dict[str, Any]]] = {}
    missing: list[KnownLocation] = []
    for known in locations:
        answers[known.path] = described = known.described()
        names = {plugin.class_name for plugin in known.scanned.plugins}
        if names - described.keys() or (anew and any("error" in entry for entry in described.values())):
            missing.append(known)
    for batch in _batches(missing):
        for known, found in _asked(batch):
            known.keep_described(found)
            answers[known.path] = {**answers[known.path], **found}
    return answers


def _description(plugin: JavaPlugin) -> dict[str, Any]:
    return describe([plugin.known])[plugin.location].get(plugin.class_name, {})


def _batches(locations: Sequence[KnownLocation]) -> list[list[KnownLocation]]:
    """Locations that one JVM can describe: no two of them have the same class."""
    batches: list[tuple[set[str], list[KnownLocation]]] = []
    for known in locations:
        names = {plugin.class_name for plugin in known.scanned.plugins}
        for taken, batch in batches:
            if not taken & names:
                taken |= names
                batch.append(known)
                break
        else:
            batches.append((set(names), [known]))
    return [batch for _, batch in batches]


def _asked(batch: Sequence[KnownLocation]) -> list[tuple[KnownLocation, dict[str, Any]]]:
    """What Java says about the plugins of some locations. One that breaks its JVM is asked alone."""
    try:
        return list(zip(batch, _ask(batch), strict=True))
    except _OF_THE_PLUGIN as error:
        if len(batch) > 1:
            return [answer for known in batch for answer in _asked([known])]
        log.warning("The plugins of %s cannot be described: %s", batch[0].path, error)
        plugins = batch[0].scanned.plugins
        return [(batch[0], {plugin.class_name: {"error": error.message} for plugin in plugins})]


def _ask(batch: Sequence[KnownLocation]) -> list[dict[str, Any]]:
    from airflow_connect.jvm.host import PluginHost

    classes = [[plugin.kind, plugin.class_name] for known in batch for plugin in known.scanned.plugins]
    with PluginHost.start([known.overlay for known in batch], is_driver=True) as host:
        answered = host.call("describe", timeout_s=TIMEOUT_S, classes=classes).result
    entries = answered["value"] if "value" in answered else answered["classes"]
    by_class: dict[str, dict[str, Any]] = {}
    for (_, name), entry in zip(classes, entries, strict=True):
        # A class of two kinds is described once for each: one that has keys says more.
        if name not in by_class or ("error" in by_class[name] and "error" not in entry):
            by_class[name] = entry
    return [{plugin.class_name: by_class[plugin.class_name] for plugin in known.scanned.plugins} for known in batch]
