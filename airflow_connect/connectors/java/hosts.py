"""Starts plugin hosts for one connector, and turns its configuration into what Java gets."""

from __future__ import annotations

import atexit
import json
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_connect.api.config.references import ResolvedText
from airflow_connect.config.resolved.loading import secret_names
from airflow_connect.connectors.java.keys import JavaKeys
from airflow_connect.connectors.java.mixed import for_java

if TYPE_CHECKING:
    from airflow_connect.jvm.discovery.java_plugin import JavaPlugin
    from airflow_connect.jvm.host import PluginHost

TASK, TASK_CLASS, TASK_ID = "airflow.java.task", "airflow.java.task.class", "airflow.java.task.id"
"""In the configuration of a task: what the Java connector returned for it as JSON, its class, and its number."""
TASK_SECRETS = "airflow.java.task.secrets"
"""There, too: `hidden_keys` as a JSON list. A task asks Java for no definition."""
KEPT_S = 10.0
"""How long a host is kept after it has answered a question."""
_PLUGIN_LOG = logging.getLogger("airflow_connect.java")

log = logging.getLogger(__name__)


def java_config(config: Mapping[str, str], class_name: str) -> dict[str, str]:
    """The configuration that the Java connector gets: without what only this package adds."""
    kept = {key: value for key, value in for_java(config).items() if not key.startswith(TASK)}
    return {**kept, "connector.class": class_name}


@dataclass(frozen=True)
class HostSettings:
    """What a plugin host is started with.

    Attributes:
        folders: of the plugin and of the classes in the chain that it runs.
        heap_mb, options, connect_home: see the keys.
        is_driver: it lives for seconds, and copies no records.
    """

    folders: tuple[Path, ...]
    heap_mb: int
    options: tuple[str, ...]
    connect_home: str
    is_driver: bool

    @classmethod
    def of(cls, plugin: JavaPlugin, config: Mapping[str, str], *, is_driver: bool) -> HostSettings:
        """Those for a connector.

        Raises:
            ConfigError: a setting is wrong, or the folder of a class is missing or ambiguous.
        """
        typed = JavaKeys.from_config(config)
        return cls(plugin.folders_for(for_java(config)), typed.heap_mb, typed.options, typed.connect_home, is_driver)

    @classmethod
    def of_chain(cls, folders: tuple[Path, ...], keys: JavaKeys) -> HostSettings:
        """Those for the Java classes in the chain of another connector."""
        return cls(folders, keys.heap_mb, keys.options, keys.connect_home, is_driver=False)

    def start(self) -> PluginHost:
        """A new host.

        Raises:
            ConnectError: Java or the jars of Kafka Connect are missing, or the JVM does not start.
        """
        from airflow_connect.jvm.host import PluginHost

        return PluginHost.start(
            self.folders,
            heap_mb=self.heap_mb,
            options=self.options,
            is_driver=self.is_driver,
            on_line=_PLUGIN_LOG.info,
            connect_home=Path(self.connect_home) if self.connect_home else None,
        )


def hidden_keys(config: Mapping[str, str]) -> list[str]:
    """Keys whose values no plugin may print: those of type PASSWORD, and values of references."""
    references = (key for key, value in config.items() if isinstance(value, ResolvedText))
    return sorted({*secret_names(config), *references})


def start_host(plugin: JavaPlugin, config: Mapping[str, str]) -> PluginHost:
    """A host for a task.

    Raises:
        ConnectError: see `HostSettings`.
    """
    host = HostSettings.of(plugin, config, is_driver=False).start()
    host.secret_names = frozenset(json.loads(config[TASK_SECRETS]))
    return host


class DriverHosts:
    """Hosts of connectors on the driver. One that has only answered a question is kept for a moment.

    A run asks what a connector supports, and starts it next: a second JVM would cost two seconds.
    """

    def __init__(self) -> None:
        """None yet."""
        self._kept: dict[HostSettings, tuple[PluginHost, threading.Timer]] = {}
        self._lock = threading.Lock()
        atexit.register(self.close)

    def take(self, plugin: JavaPlugin, config: Mapping[str, str]) -> PluginHost:
        """A host that has no connector; the caller closes it, or gives it back."""
        settings = HostSettings.of(plugin, config, is_driver=True)
        with self._lock:
            kept = self._kept.pop(settings, None)
        if kept is not None:
            kept[1].cancel()
        host = settings.start() if kept is None else kept[0]
        host.secret_names = frozenset(hidden_keys(config))
        return host

    def give_back(self, plugin: JavaPlugin, config: Mapping[str, str], host: PluginHost) -> None:
        """Keep a host that still has no connector."""
        settings = HostSettings.of(plugin, config, is_driver=True)
        timer = threading.Timer(KEPT_S, self._end, (settings, host))
        timer.daemon = True
        with self._lock:
            before = self._kept.pop(settings, None)
            self._kept[settings] = (host, timer)
        timer.start()
        if before is not None:
            before[1].cancel()
            close_host(before[0])

    def close(self) -> None:
        """End all of them."""
        with self._lock:
            kept, self._kept = list(self._kept.values()), {}
        for host, timer in kept:
            timer.cancel()
            close_host(host)

    def _end(self, settings: HostSettings, host: PluginHost) -> None:
        with self._lock:
            if settings not in self._kept or self._kept[settings][0] is not host:
                return
            del self._kept[settings]
        close_host(host)


def close_host(host: PluginHost | None) -> list[Any]:
    """Stop the plugin and end its JVM; what goes wrong in that is logged.

    Returns:
        Records that the plugin has reported as errant meanwhile, as the host tells them.
    """
    if host is None:
        return []
    for warning in host.close():
        log.warning("%s", warning)
    return host.late_reports


def offsets_json(offsets: Any) -> list[list[Any]]:
    """Committed offsets as the host gets them: pairs of partition and offset."""
    return [[dict(partition), dict(offset)] for partition, offset in offsets]


DRIVER_HOSTS = DriverHosts()
