"""The operations straight over the state topics, without a server in between."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from airflow_connect.control.client.connectors import no_connector
from airflow_connect.control.herder import plugins
from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.herder.refusals import BAD_REQUEST, NOT_FOUND, RefusedError
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state.records import STARTED
from airflow_connect.control.state.topics import StateTopics
from airflow_connect.errors import ConfigError
from airflow_connect.runtime.spec import RunSpec

_EVERYTHING = frozenset({"status", "info"})
RUNNING = "RUNNING"


class Registered(NamedTuple):
    """A registered connector.

    Attributes:
        config: its configuration; references are unresolved.
        offset: of its record in the config topic.
    """

    config: Mapping[str, str | None]
    offset: int


class KafkaConnectors:
    """The connectors of an installation. Reading creates no topic; the first connector does.

    Attributes:
        settings: of the worker configuration.
        herder: the operations themselves.
        place: `the installation <group.id>`.
    """

    def __init__(self, worker: Mapping[str, Any]) -> None:
        """Connect to the brokers of a worker configuration.

        Raises:
            ConfigError: names the key of the worker.
            UnavailableError, AccessError: Kafka.
        """
        self.settings = ControlSettings.from_worker(worker)
        self._topics = StateTopics(self.settings)
        self.herder = Herder(self._topics, self.settings, f"{socket.gethostname()}:{os.getpid()}")
        self._is_open = self._topics.find()
        self.place = f"The installation with group.id={self.settings.group_id}"

    def spec(self, name: str) -> RunSpec:
        """The specification of a run of a registered connector."""
        with self._about(name):
            return self.herder.spec_of(self.herder.config(name))

    def open(self) -> None:
        """Create the state topics if they are missing.

        Raises:
            NotStoppedError: live workers of Kafka Connect own them.
            ConfigError, UnavailableError, AccessError: they cannot be used.
        """
        self._open()
        self._topics.refuse_live_workers()

    def to_run(self) -> dict[str, Registered]:
        """The connectors that may run, by name."""
        return self._topics.look(
            lambda state: {
                name: Registered(dict(known.config), known.offset)
                for name, known in state.config.connectors.items()
                if state.config.target(name) == STARTED
            }
        )

    def registered(self, name: str) -> Registered:
        """A connector's configuration and the offset of its record, whether it may run or not."""
        with self._about(name):
            return self._topics.look(
                lambda state: Registered(
                    dict(state.config.connectors[name].config), state.config.connectors[name].offset
                )
            )

    def names(self) -> list[str]:
        """See `Connectors`."""
        return sorted(self.herder.names()) if self._is_open else []

    def expanded(self) -> dict[str, dict[str, Any]]:
        """See `Connectors`."""
        return self.herder.expanded(_EVERYTHING) if self._is_open else {}

    def info(self, name: str) -> dict[str, Any]:
        """See `Connectors`."""
        with self._about(name):
            return self.herder.info(name)

    def config(self, name: str) -> dict[str, str] | None:
        """See `Connectors`."""
        if name not in self.names():
            return None
        return {key: value for key, value in self.herder.config(name).items() if value is not None}

    def states(self, name: str) -> dict[str, Any]:
        """See `Connectors`."""
        with self._about(name):
            return self.herder.status(name)

    def tasks(self, name: str) -> list[dict[str, Any]]:
        """See `Connectors`."""
        with self._about(name):
            return self.herder.tasks(name)

    def topics(self, name: str) -> list[str]:
        """See `Connectors`."""
        with self._about(name):
            found: list[str] = self.herder.active_topics(name)[name]["topics"]
            return found

    def reset_topics(self, name: str) -> None:
        """See `Connectors`."""
        with self._about(name):
            self.herder.reset_topics(name)

    def create(self, name: str, config: Mapping[str, Any], initial_state: str | None = None) -> None:
        """See `Connectors`."""
        self._open()
        with self._refusals():
            self.herder.create(name, _texts(config), STARTED if initial_state == RUNNING else initial_state)

    def apply(self, name: str, config: Mapping[str, Any]) -> str:
        """See `Connectors`."""
        self._open()
        if self.config(name) == {**_texts(config), "name": name}:
            return "unchanged"
        with self._refusals():
            is_new, _ = self.herder.put_config(name, _texts(config))
        return "created" if is_new else "updated"

    def delete(self, name: str) -> bool:
        """See `Connectors`."""
        if name not in self.names():
            return False
        self.herder.delete(name)
        return True

    def pause(self, name: str) -> None:
        """See `Connectors`."""
        with self._about(name):
            self.herder.pause(name)

    def resume(self, name: str) -> None:
        """See `Connectors`."""
        with self._about(name):
            self.herder.resume(name)

    def stop(self, name: str) -> None:
        """See `Connectors`."""
        with self._about(name):
            self.herder.stop(name)

    def restart(self, name: str, *, only_failed: bool = True) -> None:
        """See `Connectors`."""
        with self._about(name):
            self.herder.restart(name, include_tasks=True, only_failed=only_failed)

    def restart_task(self, name: str, task: int) -> None:
        """See `Connectors`."""
        with self._about(name):
            self.herder.restart_task(name, task)

    def offsets(self, name: str) -> list[dict[str, Any]]:
        """See `Connectors`."""
        with self._about(name):
            found: list[dict[str, Any]] = self.herder.offsets(name)["offsets"]
            return found

    def alter_offsets(self, name: str, offsets: Sequence[Mapping[str, Any]]) -> str:
        """See `Connectors`."""
        with self._about(name):
            return self.herder.alter_offsets(name, {"offsets": list(offsets)})

    def reset_offsets(self, name: str) -> str:
        """See `Connectors`."""
        with self._about(name):
            return self.herder.reset_offsets(name)

    def plugins(self, *, connectors_only: bool) -> list[dict[str, str]]:
        """Plugins that are installed where this process runs."""
        return list(plugins.installed(connectors_only=connectors_only))

    def plugin_keys(self, plugin: str) -> list[dict[str, Any]]:
        """See `Connectors`."""
        with self._refusals():
            return self.herder.plugin_keys(plugin)

    def loggers(self) -> dict[str, dict[str, Any]]:
        """Refused: log levels are those of a process."""
        raise ConfigError(
            "Log levels belong to a worker's process, and Kafka does not know them.",
            suggestion="Ask a worker: --url http://HOST:8083. Levels of every worker can be set without one.",
        )

    def set_level(self, logger: str, level: str, *, cluster: bool) -> list[str]:
        """See `Connectors`; only for every worker of the cluster."""
        if not cluster:
            self.loggers()
        self._open()
        self.herder.set_cluster_level(logger, level)
        return []

    def _open(self) -> None:
        if not self._is_open:
            self._topics.open()
            self._is_open = True

    @contextmanager
    def _about(self, name: str) -> Iterator[None]:
        """Requests about a connector that must exist."""
        known = self.names()
        if name not in known:
            raise no_connector(name, known, self.place)
        with self._refusals():
            yield

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Refused requests fail as they do over REST."""
        try:
            yield
        except RefusedError as refused:
            if refused.status in (BAD_REQUEST, NOT_FOUND):
                raise ConfigError(refused.message, code=refused.code) from refused
            raise


def _texts(config: Mapping[str, Any]) -> dict[str, str | None]:
    """Connect's configurations are text; a key without a value is left out."""
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in config.items()
        if value is not None
    }
