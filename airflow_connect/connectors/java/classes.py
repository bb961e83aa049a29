"""Connector classes for Java classes: what the lookup of class names loads for a plugin of `plugin.path`."""

from __future__ import annotations

from functools import cache
from typing import Any

from airflow_connect.api.config.config_def import ConfigDef, KeyFamily
from airflow_connect.connectors.java.keys import JavaSinkKeys, JavaSourceKeys
from airflow_connect.errors import ConfigError
from airflow_connect.jvm.discovery.catalogue import JavaPlugin
from airflow_connect.jvm.discovery.registry import registered
from airflow_connect.jvm.discovery.runtime_types import SINK, SOURCE

_UNDECLARED = "Settings that the Java connector reads without declaring them."


def java_class(name: str) -> type[Any]:
    """The class for a Java class that was found in `plugin.path`.

    Raises:
        ConfigError: there is none.
    """
    return _class_of(registered(name))


@cache
def _class_of(plugin: JavaPlugin) -> type[Any]:
    if SOURCE in plugin.kinds:
        from airflow_connect.connectors.java.source import JavaSourceConnector, JavaSourceTask

        return _connector(plugin, JavaSourceConnector, JavaSourceTask)
    if SINK in plugin.kinds:
        from airflow_connect.connectors.java.sink import JavaSinkConnector, JavaSinkTask

        return _connector(plugin, JavaSinkConnector, JavaSinkTask)
    return _named(plugin, (_OnlyInJava,), _Definition(None))


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
        """`shared`: our keys of a connector."""
        self._shared = shared
        self._found: ConfigDef | None = None

    def __get__(self, instance: object, owner: type[Any]) -> ConfigDef:
        """The plugin's keys and ours. As in Connect, a connector may get keys that it does not declare."""
        if self._found is None:
            from airflow_connect.jvm.discovery.describing import config_def_of

            definition = ConfigDef().include(config_def_of(owner.plugin))
            if self._shared is not None:
                definition.include(self._shared).define_family(KeyFamily("", _UNDECLARED))
            self._found = definition
        return self._found


class _Version:
    """The class attribute `version`."""

    def __get__(self, instance: object, owner: type[Any]) -> str:
        """What Java says, or "unknown"."""
        from airflow_connect.jvm.discovery.describing import version_of

        return version_of(owner.plugin) or "unknown"


class _OnlyInJava:
    """A converter, transformation or predicate: it has keys here, and runs in Java only."""

    plugin: JavaPlugin

    def __init__(self, *_arguments: object) -> None:
        """Refuse.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(
            f"{self.plugin.class_name} is a Java class, which only Java connectors can use.",
            code="java.mixed_chain",
            suggestion="With this connector, use a class of this package or a Python class.",
        )
