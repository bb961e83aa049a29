"""The Java plugins of a `plugin.path`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from airflow_connect.counting import names
from airflow_connect.errors import ConfigError
from airflow_connect.jvm.discovery.java_plugin import JavaPlugin
from airflow_connect.jvm.discovery.known_locations import KnownLocation, known_location
from airflow_connect.jvm.discovery.locations import read_plugin_path
from airflow_connect.jvm.discovery.scanning import FoundPlugin


@dataclass(frozen=True)
class Catalogue:
    """All plugins of a `plugin.path`.

    Attributes:
        text: the `plugin.path`.
        plugins: by location, then kind and name. Two locations may have the same class.
        warnings: complete sentences about what is missing, unreadable or in the wrong place.
    """

    text: str
    locations: tuple[KnownLocation, ...]
    plugins: tuple[JavaPlugin, ...]
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, plugin_path: str) -> Catalogue:
        """Read a `plugin.path`; what is in the cache is not read again.

        Raises:
            ConfigError: the cache cannot be written.
        """
        path = read_plugin_path(plugin_path)
        try:
            known = tuple(known_location(location) for location in path.locations)
        except OSError as error:
            raise ConfigError(
                f"The plugins of plugin.path cannot be prepared: {error}.",
                code="java.plugin_path",
                config_path="plugin.path",
                suggestion="Make the folder of the cache writable, or set AIRFLOW_CONNECT_CACHE to another one.",
            ) from error
        warnings = [*path.warnings]
        for one in known:
            warnings += [*one.location.warnings, *one.scanned.warnings]
        warnings += _misplaced(known)
        plugins = tuple(plugin for one in known for plugin in _plugins_of(one))
        return cls(plugin_path, known, plugins, tuple(dict.fromkeys(warnings)))


def _plugins_of(known: KnownLocation) -> Iterable[JavaPlugin]:
    by_class: dict[str, list[FoundPlugin]] = {}
    for found in known.scanned.plugins:
        by_class.setdefault(found.class_name, []).append(found)
    return [JavaPlugin(name, tuple(found.kind for found in same), known) for name, same in by_class.items()]


def _misplaced(known: Iterable[KnownLocation]) -> list[str]:
    """Entries of `plugin.path` that look like the folder of one plugin: a jar with plugins beside jars without any.

    Each of these jars has a class loader of its own, so the plugin does not see its libraries.
    """
    by_entry: dict[str, list[KnownLocation]] = {}
    for one in known:
        if one.location.archives and one.path == os.path.join(os.path.abspath(one.location.entry), _base(one.path)):
            by_entry.setdefault(one.location.entry, []).append(one)
    sentences = []
    for entry, ones in by_entry.items():
        jars = [one for one in ones if not os.path.isdir(one.path)]
        with_plugins = [_base(one.path) for one in jars if one.scanned.plugins]
        without = [_base(one.path) for one in jars if not one.scanned.plugins and one.scanned.classes]
        if with_plugins and without:
            sentences.append(
                f"plugin.path names {entry}, which looks like the folder of one plugin: {names(with_plugins)} cannot"
                f" use {names(without, 2)} beside it, because each jar directly in an entry of plugin.path is a plugin"
                f" by itself. Name the folder above it: {os.path.dirname(os.path.abspath(entry))}."
            )
    return sentences


def _base(path: str) -> str:
    return os.path.basename(path)
