"""What only Java knows about a plugin: its version, its ConfigDef, and whether it can be created at all.

A class is described together with all others of its location, because starting a JVM takes longer than that. The
answers stay in the cache until a file of the location changes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from airflow_connect.errors import ConfigError, JavaBlockedError, JavaPluginError, JvmGoneError
from airflow_connect.jvm.cache import locked
from airflow_connect.jvm.discovery.known_locations import KnownLocation

log = logging.getLogger(__name__)

TIMEOUT_S = 120.0
_OF_THE_PLUGIN = (JvmGoneError, JavaBlockedError, JavaPluginError, ConfigError)
"""Errors that other plugins in the same JVM are not to blame for."""


def describe(locations: Iterable[KnownLocation], *, anew: bool = False) -> dict[str, dict[str, dict[str, Any]]]:
    """By location and class: `version` and `config` (ConfigKeyInfo), or `error`. Starts a JVM for what is not cached.

    Args:
        locations: which.
        anew: ask again about classes that could not be created.

    Raises:
        ConnectError: no JVM can be started.
    """
    wanted = list(locations)
    answers, missing = _known_answers(wanted, anew=anew)
    if not missing:
        return answers
    with locked("java-plugins-described"):  # The others wait for one JVM instead of starting one each.
        answers, missing = _known_answers(wanted, anew=anew)
        for batch in _batches(missing):
            for known, found in _asked(batch):
                known.keep_described(found)
                answers[known.path] = {**answers[known.path], **found}
    return answers


def _known_answers(
    locations: Iterable[KnownLocation], *, anew: bool
) -> tuple[dict[str, dict[str, dict[str, Any]]], list[KnownLocation]]:
    """What is in the cache, and the locations that Java must be asked about."""
    answers: dict[str, dict[str, dict[str, Any]]] = {}
    missing: list[KnownLocation] = []
    for known in locations:
        answers[known.path] = described = known.described()
        names = {plugin.class_name for plugin in known.scanned.plugins}
        if names - described.keys() or (anew and any("error" in entry for entry in described.values())):
            missing.append(known)
    return answers, missing


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
    by_class = {entry["class"]: entry for entry in answered["value"]}
    return [{plugin.class_name: by_class[plugin.class_name] for plugin in known.scanned.plugins} for known in batch]
