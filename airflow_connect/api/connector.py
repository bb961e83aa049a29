"""The common base of sources and sinks: keys, validation, configurations of tasks.

Source: org.apache.kafka.connect.connector.Connector and ConnectorContext (KIP-26), for one bounded run: a connector
object lives in the driver while the run needs it, a task object in an executor for one Spark task.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from airflow_connect.api.config.config_def import ConfigDef, ConfigValue


class ConnectorContext(Protocol):
    """The run's services for a connector object."""

    @property
    def run_id(self) -> str:
        """Identifier of the run: globally unique, and safe in file names."""

    def request_task_reconfiguration(self) -> None:
        """Tell the runtime that the result of `task_configs` has changed.

        The next run uses it; this one stays as planned.
        """

    def raise_error(self, error: Exception) -> None:
        """Fail the run with `error` as soon as the connector's current method returns."""


class Connector(ABC):
    """A connector: its keys, and how its work is divided among tasks.

    The driver creates an object, calls `initialize`, `start`, then the methods it needs, and finally `stop`, even after
    an error. A run may use several objects; do not keep state in one that must survive it.

    Attributes:
        config_def: the connector's own keys. The runtime adds the keys of every connector (`name`, `topics`,
            converters, errors, limits of a run).
        version: shown with the plugin.
        runs_chain: whether its tasks can run converters, transformations and predicates themselves.
    """

    config_def: ClassVar[ConfigDef] = ConfigDef()
    version: ClassVar[str] = "unknown"
    runs_chain: ClassVar[bool] = False
    context: ConnectorContext
    config: Mapping[str, str]

    @classmethod
    def runs_chain_of(cls, config: Mapping[str, str | None]) -> bool:
        """Whether its tasks run converters, transformations and predicates of a configuration themselves.

        The run then passes bytes: whole messages to a sink, and those that a source returns to Kafka.

        Args:
            config: with the worker's converters where the connector sets none.
        """
        return cls.runs_chain

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[ConfigValue]:
        """Validate a configuration: every key of `config_def`, with its problems in `ConfigValue.errors`.

        Extend it for checks that `ConfigDef.define_rule` cannot express. It must not raise or open connections, and is
            called often, also for plans and forms. Values may be secrets: messages must not repeat them.
        """
        return cls.config_def.validate(config)

    def initialize(self, context: ConnectorContext) -> None:
        """Take the context; before `start`."""
        self.context = context

    def start(self, config: Mapping[str, str]) -> None:
        """Begin, with the whole configuration as text.

        Raises:
            ConfigError: a problem that can only be detected now. The run ends before anything is copied.
        """
        self.config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """One configuration per task, at least one and at most `max_tasks` (`tasks.max`).

        A run creates as many tasks as it has work for, but not more than configurations; task n gets the n-th.
        """
        return [dict(self.config)] * max_tasks

    def after_tasks(self) -> None:  # noqa: B027 (most have nothing to say)
        """Called when all tasks have ended without an error: before the run commits, or for a source, before it ends.

        Raises:
            ConnectError: the run fails. What tasks of a source have committed stays.
        """

    def stop(self) -> None:  # noqa: B027 (most have nothing to release)
        """Release what `start` opened; called exactly once, even if `start` failed, and never without `start`."""


class Task(ABC):
    """The common base of source and sink tasks.

    Attributes:
        version: shown with the plugin; usually that of the connector.
    """

    version: ClassVar[str] = "unknown"

    @abstractmethod
    def start(self, config: Mapping[str, str]) -> None:
        """Begin, with this task's configuration as text."""

    @abstractmethod
    def stop(self) -> None:
        """Release everything; called exactly once, even if `start` failed."""
