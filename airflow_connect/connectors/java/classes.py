"""Connector classes for Java classes: what the lookup of class names loads for a plugin of `plugin.path`."""

from __future__ import annotations

from typing import Any

from airflow_connect.api.config.config_def import ConfigDef, KeyFamily
from airflow_connect.connectors.java.chain import JavaConverter, JavaPredicate, JavaTransformation
from airflow_connect.connectors.java.keys import JavaSinkKeys, JavaSourceKeys
from airflow_connect.jvm.discovery.java_plugin import JavaPlugin, registered
from airflow_connect.jvm.discovery.runtime_types import (
    CONFIG_PROVIDER,
    CONVERTER,
    HEADER_CONVERTER,
    PREDICATE,
    SINK,
    SOURCE,
    TRANSFORMATION,
)

_made: dict[tuple[str, str], type[Any]] = {}
"""By name and place: a class is made once, because others compare it."""
_UNDECLARED = "Settings that the Java class reads without declaring them."
_STAGES: dict[str, type[Any]] = {
    TRANSFORMATION: JavaTransformation,
    PREDICATE: JavaPredicate,
    CONVERTER: JavaConverter,
    HEADER_CONVERTER: JavaConverter,
}


def java_class(name: str) -> type[Any]:
    """The class for a Java class that was found in `plugin.path`.

    Raises:
        ConfigError: there is none.
    """
    plugin = registered(name)
    place = (name, str(plugin.known.folder))
    if place not in _made:
        _made[place] = _class_of(plugin)
    return _made[place]


def _class_of(plugin: JavaPlugin) -> type[Any]:
    if SOURCE in plugin.kinds:
        from airflow_connect.connectors.java.source import JavaSourceConnector, JavaSourceTask

        return _connector(plugin, JavaSourceConnector, JavaSourceTask)
    if SINK in plugin.kinds:
        from airflow_connect.connectors.java.sink import JavaSinkConnector
        from airflow_connect.connectors.java.sink_task import JavaSinkTask

        return _connector(plugin, JavaSinkConnector, JavaSinkTask)
    if CONFIG_PROVIDER in plugin.kinds:
        from airflow_connect.connectors.java.provider import JavaConfigProvider

        return _named(plugin, (JavaConfigProvider,), _Definition(None))
    bases = tuple(dict.fromkeys(_STAGES[kind] for kind in plugin.kinds))
    return _named(plugin, bases, _Definition(ConfigDef()))


def _connector(plugin: JavaPlugin, base: type[Any], task: type[Any]) -> type[Any]:
    shared = (JavaSourceKeys if SOURCE in plugin.kinds else JavaSinkKeys).config_def()
    task_class = type(f"{_simple(plugin)}Task", (task,), {"plugin": plugin, "version": _Version()})
    return _named(plugin, (base,), _Definition(shared), task_class=task_class)


def _named(plugin: JavaPlugin, bases: tuple[type[Any], ...], definition: _Definition, **members: Any) -> type[Any]:
    text = f"{plugin.class_name}, in {plugin.location}."
    own = {"plugin": plugin, "config_def": definition, "version": _Version(), "__doc__": text}
    return type(_simple(plugin), bases, {**own, **members})


def _simple(plugin: JavaPlugin) -> str:
    name: str = plugin.class_name.rpartition(".")[2]
    return name.replace("$", "_")


class _Definition:
    """The class attribute `config_def`: tasks do not need it, and the first time, Java must be asked."""

    def __init__(self, shared: ConfigDef | None) -> None:
        """`shared`: our keys of a class that may get others than it declares, too; None: it does not run here."""
        self._shared = shared
        self._found: ConfigDef | None = None

    def __get__(self, instance: object, owner: type[Any]) -> ConfigDef:
        """The plugin's keys and ours. As in Connect, a plugin may get keys that it does not declare."""
        if self._found is None:
            definition = ConfigDef().include(owner.plugin.config_def())
            if self._shared is not None:
                definition.include(self._shared).define_family(KeyFamily("", _UNDECLARED))
            self._found = definition
        return self._found


class _Version:
    """The class attribute `version`."""

    def __get__(self, instance: object, owner: type[Any]) -> str:
        """What Java says, or "unknown"."""
        plugin: JavaPlugin = owner.plugin
        return plugin.version or "unknown"
