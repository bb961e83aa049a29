"""The herder as a user of Airflow gets it: changes have audit entries, and only those who may set secrets see them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from airflow_connect.api.config.plugins import PluginKind, additions, find_added
from airflow_connect.api.config.values import HIDDEN, masked
from airflow_connect.config.keys.sink import sink_keys
from airflow_connect.config.keys.source import source_keys
from airflow_connect.config.resolved.loading import connector_definition
from airflow_connect.control.herder.herder import Config, Herder
from airflow_connect.control.herder.validation import CLASS
from airflow_connect.errors import ConnectError
from airflow_connect.ui.web.access import Right, Visitor
from airflow_connect.ui.web.audit import record
from airflow_connect.ui.web.installations import Installation

MOST_OFFSETS = 10_000
"""Characters of the offsets in an audit entry."""


class VisitorHerder(Herder):
    """The operations on an installation for one user. It checks no right: that is what `Visitor.refuse_without` does.

    Configurations are shown with `[hidden]` for literal secrets, unless the user may change the installation.
    """

    def __init__(self, installation: Installation, visitor: Visitor, worker_id: str) -> None:
        """`worker_id`: host:port of this Airflow."""
        super().__init__(installation.topics, installation.settings, worker_id)
        self._conn_id = installation.conn_id
        self._visitor = visitor

    def info(self, name: str) -> dict[str, Any]:
        """ConnectorInfo."""
        return self._shown_info(super().info(name))

    def config(self, name: str) -> dict[str, str | None]:
        """The configuration as registered."""
        return self._shown(super().config(name))

    def tasks(self, name: str) -> list[dict[str, Any]]:
        """TaskInfo of every task."""
        return [{**task, "config": self._shown(task["config"])} for task in super().tasks(name)]

    def expanded(self, wanted: frozenset[str]) -> dict[str, dict[str, Any]]:
        """All connectors with their `status` and `info`, as far as wanted."""
        found = super().expanded(wanted)
        if "info" not in wanted or self._sees_secrets():
            return found
        return {
            name: {part: self._hidden_info(shown) if part == "info" else shown for part, shown in parts.items()}
            for name, parts in found.items()
        }

    def create(self, name: str, config: Config, initial_state: str | None = None) -> dict[str, Any]:
        """Register a connector."""
        self._record("create_connector", name, config)
        return super().create(name, config, initial_state)

    def put_config(self, name: str, config: Config) -> tuple[bool, dict[str, Any]]:
        """Create a connector or give it another configuration."""
        self._record("put_config", name, config)
        return super().put_config(name, config)

    def patch_config(self, name: str, patch: Config) -> dict[str, Any]:
        """Change keys of a configuration."""
        self._record("patch_config", name, patch)
        return super().patch_config(name, patch)

    def replace_config(self, name: str, config: Config, seen_offset: int) -> None:
        """Give a connector another configuration, unless it has changed meanwhile."""
        self._record("put_config", name, config)
        super().replace_config(name, config, seen_offset)

    def delete(self, name: str) -> None:
        """Remove a connector."""
        self._record("delete_connector", name)
        super().delete(name)

    def pause(self, name: str) -> None:
        """Let no run begin."""
        self._record("pause_connector", name)
        super().pause(name)

    def resume(self, name: str) -> None:
        """Let runs begin."""
        self._record("resume_connector", name)
        super().resume(name)

    def stop(self, name: str) -> None:
        """Let no run begin, and remove the tasks."""
        self._record("stop_connector", name)
        super().stop(name)

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> dict[str, Any]:
        """Run a connector now."""
        self._record("restart_connector", name)
        return super().restart(name, include_tasks=include_tasks, only_failed=only_failed)

    def restart_task(self, name: str, task: int) -> None:
        """Run the connector of a task now."""
        self._record("restart_task", name, task=str(task))
        super().restart_task(name, task)

    def reset_topics(self, name: str) -> None:
        """Forget which topics the connector has used."""
        self._record("reset_topics", name)
        super().reset_topics(name)

    def alter_offsets(self, name: str, body: Any) -> str:
        """Set offsets of a stopped connector."""
        self._record("alter_offsets", name, offsets=json.dumps(body)[:MOST_OFFSETS])
        return super().alter_offsets(name, body)

    def reset_offsets(self, name: str) -> str:
        """Delete the offsets of a stopped connector."""
        self._record("reset_offsets", name)
        return super().reset_offsets(name)

    def _record(self, operation: str, connector: str, keys: Config | None = None, **more: str) -> None:
        record(operation, self._visitor.name, self._conn_id, connector, keys or {}, **more)

    def _sees_secrets(self) -> bool:
        return self._visitor.may(Right.CHANGE, self._conn_id)

    def _shown(self, config: Mapping[str, str | None]) -> dict[str, str | None]:
        return dict(config) if self._sees_secrets() else _hidden(config)

    def _shown_info(self, info: dict[str, Any]) -> dict[str, Any]:
        return info if self._sees_secrets() else self._hidden_info(info)

    @staticmethod
    def _hidden_info(info: dict[str, Any]) -> dict[str, Any]:
        return {**info, "config": _hidden(info["config"])}


def _hidden(config: Mapping[str, str | None]) -> dict[str, str | None]:
    names = _secret_names(config.get(CLASS) or "", additions())
    if names is None:
        shared = {*sink_keys().keys, *source_keys().keys}
        config = {key: value if key in shared else HIDDEN for key, value in config.items()}
    return masked(config, names or frozenset())


@cache
def _secret_names(connector_class: str, _additions: int) -> frozenset[str] | None:
    """Keys of type PASSWORD of a class; {} if it is not installed here; None if Java cannot be asked about its keys.

    `_additions`: a class that was not known may have been found since.
    """
    try:
        return connector_definition({CLASS: connector_class}).secret_names
    except ConnectError:
        return None if find_added(PluginKind.CONNECTOR, connector_class) else frozenset()
