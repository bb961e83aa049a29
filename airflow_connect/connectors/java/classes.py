"""Connector classes for Java classes: what the lookup of class names loads for a plugin of `plugin.path`."""

from __future__ import annotations

from functools import cache
from typing import Any

from airflow_connect.api.config.config_def import ConfigDef, KeyFamily
from airflow_connect.api.config.plugins import PluginKind
from airflow_connect.connectors.java.connector import JavaConnector
from airflow_connect.connectors.java.keys import JavaSinkKeys, JavaSourceKeys
from airflow_connect.errors import ConfigError
from airflow_connect.jvm.discovery.registry import JavaPlugin, registered

_OWN = "Settings that the Java connector reads without declaring them."


@cache
def java_class(name: str) -> type[Any]:
    """The class for a Java class that was found in `plugin.path`.

    Raises:
        ConfigError: there is none, or it is a class that only Java connectors can use.
        ConnectError: its keys are not known yet, and Java could not be asked.
    """
    plugin = registered(name)
    if plugin.kind is PluginKind.CONNECTOR:
        return _sink_class(plugin) if plugin.is_sink else _source_class(plugin)
    return _chain_class(plugin)


def _source_class(plugin: JavaPlugin) -> type[Any]:
    from airflow_connect.connectors.java.source import JavaSourceConnector, JavaSourceTask

    task = type(f"{_simple(plugin)}Task", (JavaSourceTask,), {"plugin": plugin, "version": plugin.version})
    definition = _definition(plugin, JavaSourceKeys.config_def())
    return _named(plugin, JavaSourceConnector, {"task_class": task, "config_def": definition})


def _sink_class(plugin: JavaPlugin) -> type[Any]:
    from airflow_connect.connectors.java.sink import JavaSinkConnector, JavaSinkTask

    task = type(f"{_simple(plugin)}Task", (JavaSinkTask,), {"plugin": plugin, "version": plugin.version})
    definition = _definition(plugin, JavaSinkKeys.config_def())
    return _named(plugin, JavaSinkConnector, {"task_class": task, "config_def": definition})


def _named(plugin: JavaPlugin, base: type[JavaConnector], members: dict[str, Any]) -> type[Any]:
    documentation = f"{plugin.class_name}, version {plugin.version}, in {plugin.location}."
    return type(
        _simple(plugin), (base,), {"plugin": plugin, "version": plugin.version, "__doc__": documentation, **members}
    )


def _definition(plugin: JavaPlugin, shared: ConfigDef) -> ConfigDef:
    """The plugin's keys and ours. As in Connect, it may get keys that it does not declare."""
    definition = ConfigDef().include(plugin.config_def())
    return definition.include(shared).define_family(KeyFamily("", _OWN))


def _chain_class(plugin: JavaPlugin) -> type[Any]:
    """A converter, transformation or predicate: it has keys here, and runs in Java only."""

    def refuse(_self: object, *_arguments: object) -> None:
        raise ConfigError(
            f"The {plugin.kind.label} {plugin.class_name} is a Java class: only Java connectors can use it yet.",
            code="java.mixed_chain",
            suggestion="Use a class of this package or a Python class with this connector.",
        )

    documentation = f"{plugin.class_name}, version {plugin.version}, in {plugin.location}."
    return type(
        _simple(plugin),
        (),
        {"__init__": refuse, "__doc__": documentation, "config_def": plugin.config_def(), "plugin": plugin},
    )


def _simple(plugin: JavaPlugin) -> str:
    name: str = plugin.class_name.rpartition(".")[2]
    return name.replace("$", "_")
