"""What a person can do with the connectors of an installation, wherever the requests go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from airflow_connect.api.config.near_names import did_you_mean, nearest
from airflow_connect.errors import ConfigError

_MOST_NEAR, _MOST_LISTED = 3, 20
_LIKENESS = 0.5
"""Lower than for keys: names of connectors have long parts in common."""


class Connectors(Protocol):
    """The operations of Kafka Connect's REST API. Answers have its shapes.

    Every method about one connector raises ConfigError `kafka_connect.missing` if there is none with that name.

    Attributes:
        place: where the requests go, for messages.
    """

    place: str

    def names(self) -> list[str]:
        """Names of all connectors, sorted."""

    def expanded(self) -> dict[str, dict[str, Any]]:
        """`status` and `info` of every connector, by name."""

    def info(self, name: str) -> dict[str, Any]:
        """ConnectorInfo: `config`, `tasks`, `type`."""

    def config(self, name: str) -> dict[str, str] | None:
        """The configuration as registered; None: there is no such connector."""

    def states(self, name: str) -> dict[str, Any]:
        """ConnectorStateInfo: `connector` and `tasks` with states, workers and traces."""

    def tasks(self, name: str) -> list[dict[str, Any]]:
        """TaskInfo of every task."""

    def topics(self, name: str) -> list[str]:
        """Topics that it has used since the last reset."""

    def reset_topics(self, name: str) -> None:
        """Forget them."""

    def create(self, name: str, config: Mapping[str, Any], initial_state: str | None = None) -> None:
        """Register a connector. `initial_state`: STOPPED, PAUSED or RUNNING (KIP-980)."""

    def apply(self, name: str, config: Mapping[str, Any]) -> str:
        """Create or update one; returns `created`, `updated` or `unchanged`."""

    def delete(self, name: str) -> bool:
        """Remove one; its offsets stay. False: there was none."""

    def pause(self, name: str) -> None:
        """Let no run begin."""

    def resume(self, name: str) -> None:
        """Let runs begin."""

    def stop(self, name: str) -> None:
        """Let no run begin, and remove the tasks."""

    def restart(self, name: str, *, only_failed: bool = True) -> None:
        """Restart the connector and its tasks, or those that have failed."""

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task."""

    def offsets(self, name: str) -> list[dict[str, Any]]:
        """Committed offsets: `[{"partition": {...}, "offset": {...}}]`."""

    def alter_offsets(self, name: str, offsets: Sequence[Mapping[str, Any]]) -> str:
        """Set offsets of a stopped connector; returns the message."""

    def reset_offsets(self, name: str) -> str:
        """Delete all offsets of a stopped connector; returns the message."""

    def plugins(self, *, connectors_only: bool) -> list[dict[str, str]]:
        """Installed plugins: `class`, `type`, `version`."""

    def plugin_keys(self, plugin: str) -> list[dict[str, Any]]:
        """ConfigKeyInfo of every key of a plugin."""

    def loggers(self) -> dict[str, dict[str, Any]]:
        """Log levels of the worker that answers, by logger."""

    def set_level(self, logger: str, level: str, *, cluster: bool) -> list[str]:
        """Set a log level; returns the loggers that changed, [] for every worker of a cluster."""


def no_connector(name: str, known: Sequence[str], place: str) -> ConfigError:
    """The error for a name that nothing has, with the names that are nearest."""
    near = nearest(name, known, count=_MOST_NEAR, likeness=_LIKENESS)
    listed = ", ".join(sorted(known)[:_MOST_LISTED])
    more = f" and {len(known) - _MOST_LISTED} more" if len(known) > _MOST_LISTED else ""
    there = f"There are {listed}{more}." if known else "No connector is registered there."
    return ConfigError(
        f"{place} has no connector called {name}.",
        code="kafka_connect.missing",
        suggestion=f"{did_you_mean(near)} {there}".strip(),
    )
