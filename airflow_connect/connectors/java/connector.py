"""What Java connectors of both kinds do on the driver: one plugin host, from the plan to the end of the run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_connect.api.connector import Connector
from airflow_connect.connectors.java.hosts import (
    DRIVER_HOSTS,
    TASK,
    TASK_CLASS,
    TASK_ID,
    TASK_SECRETS,
    close_host,
    hidden_keys,
    java_config,
)
from airflow_connect.connectors.java.keys import JavaKeys
from airflow_connect.connectors.java.mixed import python_classes
from airflow_connect.counting import plural
from airflow_connect.errors import ConfigError, JavaPluginError, TaskFailedError

if TYPE_CHECKING:
    from airflow_connect.jvm.discovery.java_plugin import JavaPlugin
    from airflow_connect.jvm.host import PluginHost


class JavaConnector(Connector):
    """The base of generated classes.

    Attributes:
        plugin: the Java class, and where it is.
    """

    runs_chain = True
    plugin: ClassVar[JavaPlugin]
    _host: PluginHost | None = None

    @classmethod
    def runs_chain_of(cls, config: Mapping[str, str | None]) -> bool:
        """See `Connector`: if all classes of the chain are Java classes."""
        return not python_classes(config)

    def host(self) -> PluginHost:
        """The host of this object, started on first use."""
        if self._host is None:
            self._host = DRIVER_HOSTS.take(self.plugin, self.config)
        return self._host

    def config_for_java(self) -> Mapping[str, str]:
        """The configuration of a run: that of the connector, with what a worker would add."""
        return self.config

    def _asked(self, config: Mapping[str, str], op: str, **members: Any) -> Mapping[str, Any]:
        """The answer of an object that is not started, to a question about a configuration."""
        host = DRIVER_HOSTS.take(self.plugin, config)
        try:
            named = java_config(config, self.plugin.class_name)
            answer = host.call(
                op, config=named, timeout_s=JavaKeys.from_config(config).call_timeout_s, **members
            ).result
        except BaseException:
            close_host(host)
            raise
        DRIVER_HOSTS.give_back(self.plugin, config, host)
        return answer

    def planned(self, max_tasks: int, offsets: Sequence[Sequence[Any]], late_ms: int = 0) -> list[dict[str, str]]:
        """Let Java check the configuration, start the connector, and tell the configuration of each task.

        Args:
            max_tasks: `tasks.max`.
            offsets: committed ones of a source.
            late_ms: how long a connector without tasks may take to ask for a reconfiguration, and have some.

        Raises:
            ConfigError: its definition refuses the configuration.
            JavaPluginError: the class itself does; it may have looked at its system.
            TaskFailedError: it returns more tasks than it may, or fails.
        """
        complete = self.config_for_java()
        config = java_config(complete, self.plugin.class_name)
        self._check_by_java(config)
        plan = self.host().call(
            "plan",
            config=config,
            max_tasks=max_tasks,
            offsets=offsets,
            late_ms=late_ms,
            timeout_s=JavaKeys.from_config(self.config).call_timeout_s + late_ms / 1000,
        )
        tasks = plan.result["tasks"]
        if len(tasks) > max_tasks:
            raise TaskFailedError(
                f"{self.plugin.class_name} returned {plural(len(tasks), 'task configuration')}, but at most"
                f" {max_tasks} were requested.",
                code="plugin.task_configs",
                suggestion="Set tasks.max to the number that the plugin supports.",
            )
        secrets = json.dumps(hidden_keys(complete))
        added = {TASK_CLASS: plan.result["task_class"], TASK_SECRETS: secrets}
        return [
            {**complete, **added, TASK: json.dumps(task), TASK_ID: str(number)} for number, task in enumerate(tasks)
        ]

    def after_tasks(self) -> None:
        """Fail if the connector's own threads have told Connect to.

        Raises:
            TaskFailedError: what the connector raised.
        """
        if self._host is None:
            return
        found = self._host.call("watch", timeout_s=JavaKeys.from_config(self.config).call_timeout_s).result
        if found.get("raised"):
            raise TaskFailedError(
                f"{self.plugin.class_name} has asked to fail: {found['raised']}.",
                code="java.plugin_failed",
                suggestion="The next run continues after the last committed offset. See the log for what the plugin"
                " says.",
            )
        if found.get("reconfigure"):
            self.other_tasks_requested()

    def other_tasks_requested(self) -> None:
        """The connector has asked for other tasks while those of this run were running."""
        self.context.request_task_reconfiguration()

    def stop(self) -> None:
        """Stop the Java connector and end its host."""
        host, self._host = self._host, None
        close_host(host)

    def _check_by_java(self, config: Mapping[str, str]) -> None:
        """Source: AbstractHerder.validateConnectorConfig; it may open connections, so it is called in runs only."""
        found = (
            self.host()
            .call("validate", config=config, timeout_s=JavaKeys.from_config(self.config).call_timeout_s)
            .result
        )
        wrong = [info["value"] for info in found.get("configs", []) if info["value"].get("errors")]
        if wrong:
            lines = "; ".join(f"{value['name']}: {', '.join(value['errors'])}" for value in wrong)
            if not found["against_definition"]:
                raise JavaPluginError(
                    f"{self.plugin.class_name} refuses the configuration: {lines}",
                    code="java.refused",
                    suggestion="If it could not reach its system, another attempt may succeed. Otherwise correct these"
                    " keys.",
                    config_path=str(wrong[0]["name"]),
                )
            raise ConfigError(
                f"{self.plugin.class_name} refuses the configuration: {lines}",
                code="java.config",
                suggestion="Correct these keys.",
                config_path=str(wrong[0]["name"]),
            )
