"""Starts plugin hosts for one connector, and turns its configuration into what Java gets."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_connect.config.resolved.own_chain import chain_classes
from airflow_connect.connectors.java.keys import JavaKeys
from airflow_connect.errors import ConnectError

if TYPE_CHECKING:
    from airflow_connect.jvm.discovery.catalogue import JavaPlugin
    from airflow_connect.jvm.host import PluginHost

TASK, TASK_CLASS, TASK_ID = "airflow.java.task", "airflow.java.task.class", "airflow.java.task.id"
"""In the configuration of a task: what the Java connector returned for it as JSON, its class, and its number."""
_PLUGIN_LOG = logging.getLogger("airflow_connect.java")

log = logging.getLogger(__name__)


def java_config(config: Mapping[str, str], class_name: str) -> dict[str, str]:
    """The configuration that the Java connector gets: without what only this package adds."""
    kept = {key: value for key, value in config.items() if not key.startswith(TASK)}
    return {**kept, "connector.class": class_name}


def start_host(plugin: JavaPlugin, config: Mapping[str, str], *, is_driver: bool = False) -> PluginHost:
    """A host that has loaded the folders of a plugin and of the classes in its chain.

    Raises:
        ConnectError: Java, the jars of Kafka Connect, or the plugin's folder is missing, or the JVM does not start.
    """
    from airflow_connect.jvm.discovery.registry import folders_of
    from airflow_connect.jvm.host import PluginHost

    typed = JavaKeys.from_config(config)
    return PluginHost.start(
        folders_of([plugin.class_name, *(name for _kind, name in chain_classes(config).values())]),
        heap_mb=typed.heap_mb,
        options=typed.options,
        is_driver=is_driver,
        on_line=_PLUGIN_LOG.info,
        connect_home=Path(typed.connect_home) if typed.connect_home else None,
    )


def call_timeout_s(config: Mapping[str, str]) -> float:
    """`airflow.java.block.timeout.ms`, in seconds."""
    return JavaKeys.from_config(config).block_timeout_ms / 1000


def close_host(host: PluginHost | None) -> list[str]:
    """Stop the plugin and end its JVM; what went wrong in that is logged, and returned."""
    if host is None:
        return []
    try:
        warnings = host.close()
    except ConnectError as error:
        warnings = [str(error)]
    for warning in warnings:
        log.warning("%s", warning)
    return warnings


def note_of(warning: str) -> str:
    """A warning as a complete sentence."""
    return warning if warning.endswith((".", "!", "?")) else f"{warning}."


def offsets_json(offsets: Any) -> list[list[Any]]:
    """Committed offsets as the host gets them: pairs of partition and offset."""
    return [[dict(partition), dict(offset)] for partition, offset in offsets]
