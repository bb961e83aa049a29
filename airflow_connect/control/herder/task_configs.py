"""The task configurations of a connector, as REST shows them and Kafka Connect stores them.

A bounded run decides how many tasks it needs when it is planned. What is stored here is what Kafka Connect shows before
a sink has work: `tasks.max` tasks with the configuration of the connector. A source has one: only its run knows more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_connect import __version__
from airflow_connect.api.config import plugins
from airflow_connect.control.state.java_map_order import in_java_order
from airflow_connect.errors import ConfigError, ConnectError
from airflow_connect.jvm.discovery.java_plugin import registered
from airflow_connect.runtime.driver.class_of_connector import is_source

_JDBC = "io.confluent.connect.jdbc."
_SEARCH = "io.confluent.connect.elasticsearch."
_OWN_PLACE = {
    f"{_JDBC}JdbcSinkConnector": f"{_JDBC}sink.JdbcSinkTask",
    f"{_JDBC}JdbcSourceConnector": f"{_JDBC}source.JdbcSourceTask",
    f"{_SEARCH}ElasticsearchSinkConnector": f"{_SEARCH}ElasticsearchSinkTask",
}
_SUFFIX = "Connector"
_PACKAGE = "airflow_connect"
SOURCE, SINK, UNKNOWN = "source", "sink", "unknown"


def task_configs(
    config: Mapping[str, str | None], resolved: Mapping[str, Any] | None = None
) -> list[dict[str, str | None]]:
    """The configuration of each task, in the order of the members that Kafka Connect writes.

    Args:
        config: the connector's configuration, valid, references unresolved: tasks get it so.
        resolved: the same with references resolved, which class and number of tasks may be; None: it has none.
    """
    known = config if resolved is None else resolved
    reference = plugins.resolve_connector(known)
    count = 1 if is_source(reference) else int(str(known.get("tasks.max") or 1))
    one = in_java_order({**config, "task.class": _task_class(reference)})
    return [dict(one) for _ in range(count)]


def kind_of(config: Mapping[str, str | None]) -> str:
    """`source`, `sink`, or `unknown` for a class that is not installed here."""
    try:
        return SOURCE if is_source(plugins.resolve_connector(config)) else SINK
    except ConfigError:
        return UNKNOWN


def version_of(config: Mapping[str, str | None]) -> str | None:
    """The version of the connector's class; None if it is not installed here, or does not tell."""
    try:
        reference = plugins.resolve_connector(config)
        if reference.is_java:
            return registered(reference.name).version or None
        return version_shown(plugins.load(reference))
    except ConnectError:
        return None


def version_shown(plugin: type[Any]) -> str:
    """The version of a plugin; the connectors of this package have that of the package."""
    version = str(getattr(plugin, "version", "unknown"))
    return __version__ if plugin.__module__.startswith(f"{_PACKAGE}.") and version == "unknown" else version


def _task_class(reference: plugins.PluginRef) -> str:
    """Kafka Connect's name of the task, so that a worker that takes the connector over finds it."""
    if ":" not in reference.name:
        simple = reference.name.removesuffix(_SUFFIX) + "Task"
        return _OWN_PLACE.get(reference.name, simple)
    task = plugins.load(reference).task_class
    return task if isinstance(task, str) else f"{task.__module__}:{task.__qualname__}"
