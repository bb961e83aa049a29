"""What connectors of both directions have in common: keys, validation, configurations of tasks.

Source: org.apache.kafka.connect.connector.Connector and ConnectorContext (KIP-26), for one bounded run: a connector
object lives in the driver for as long as the run needs it, a task object in an executor for one Spark task.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from airflow_connect.api.config import ConfigDef, ConfigValue


class ConnectorContext(Protocol):
    """What a connector object may ask of the run."""

    @property
    def run_id(self) -> str:
        """Identity of the run, unique for ever, safe in file names."""

    def request_task_reconfiguration(self) -> None:
        """Say that `task_configs` would answer otherwise now. The next run asks it anew; this one stays as planned."""

    def raise_error(self, error: Exception) -> None:
        """Fail the run with `error`, as soon as the method of the connector that runs now has returned."""


class Connector(ABC):
    """A connector: its keys, and how its work is shared among tasks.

    The driver makes an object, calls `initialize`, `start`, then what it needs, and `stop` at last, also after an
    error. It may do so several times in one run, each time with a new object; keep nothing that must survive in it.

    Attributes:
        config_def: the connector's own keys. Those that every connector has (`name`, `topics`, converters, errors,
            limits of a run) are added by the runtime.
        version: shown with the plugin.
    """

    config_def: ClassVar[ConfigDef] = ConfigDef()
    version: ClassVar[str] = "unknown"
    context: ConnectorContext
    config: Mapping[str, str]

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[ConfigValue]:
        """Every key of `config_def` with what is wrong about it in `ConfigValue.errors`.

        Extend it for checks that `ConfigDef.define_rule` cannot express. It never raises, does not open connections,
        and is called often: also to plan, and by forms. Values may hold secrets: no message repeats one.
        """
        return cls.config_def.validate(config)

    def initialize(self, context: ConnectorContext) -> None:
        """Take the context; before `start`."""
        self.context = context

    def start(self, config: Mapping[str, str]) -> None:
        """Begin, with the whole configuration as text.

        Raises:
            ConfigError: something is wrong that only shows now. The run ends before anything was copied.
        """
        self.config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """One configuration per task, at least one and at most `max_tasks` (`tasks.max`).

        A run makes as many tasks as there is work for, and not more than configurations; task n gets the n-th.
        """
        return [dict(self.config)] * max_tasks

    def stop(self) -> None:  # noqa: B027 (most have nothing to release)
        """Release what `start` opened; called exactly once, also when `start` failed."""


class Task(ABC):
    """What tasks of both directions have in common.

    Attributes:
        version: shown with the plugin; usually that of the connector.
    """

    version: ClassVar[str] = "unknown"

    @abstractmethod
    def start(self, config: Mapping[str, str]) -> None:
        """Begin, with this task's configuration as text."""

    @abstractmethod
    def stop(self) -> None:
        """Release everything; called exactly once, also when `start` failed."""
