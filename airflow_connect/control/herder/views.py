"""Answers about connectors: pure functions of the state, in the shapes of Kafka Connect's REST API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_connect.control.herder import refusals
from airflow_connect.control.herder.task_configs import kind_of
from airflow_connect.control.state.config_fold import ConfigState
from airflow_connect.control.state.status_fold import Status, StatusState
from airflow_connect.control.state.topics import State

RESTARTING = "RESTARTING"


def info(config: ConfigState, name: str) -> dict[str, Any]:
    """ConnectorInfo.

    Raises:
        RefusedError: there is no such connector.
    """
    given = config_of(config, name)
    tasks = [{"connector": name, "task": task} for task in range(len(config.tasks(name)))]
    return {"name": name, "config": given, "tasks": tasks, "type": kind_of(given)}


def values_in_use(state: State) -> frozenset[str]:
    """The values of all registered configurations, among them the classes that they use."""
    return frozenset(v for given in state.config.connectors.values() for v in given.config.values() if v is not None)


def config_of(config: ConfigState, name: str) -> dict[str, str | None]:
    """The configuration as registered, references unresolved.

    Raises:
        RefusedError: there is no such connector.
    """
    if name not in config.connectors:
        raise refusals.no_connector(name)
    return dict(config.connectors[name].config)


def tasks(config: ConfigState, name: str) -> list[dict[str, Any]]:
    """TaskInfo of every task.

    Raises:
        RefusedError: there is no such connector.
    """
    config_of(config, name)
    return [
        {"id": {"connector": name, "task": task}, "config": dict(properties)}
        for task, properties in enumerate(config.tasks(name))
    ]


def status(state: State, name: str, restarting: frozenset[int | None] = frozenset()) -> dict[str, Any]:
    """ConnectorStateInfo.

    Args:
        restarting: tasks, and None for the connector, that are shown as restarting.

    Raises:
        RefusedError: nothing is known of the connector.
    """
    known = state.status.connectors.get(name)
    registered = state.config.connectors.get(name)
    if known is None or registered is None:
        raise refusals.RefusedError(f"No status found for connector {name}", refusals.NOT_FOUND)
    return {
        "name": name,
        "connector": _state(known, None in restarting),
        "tasks": [
            {"id": task, **_state(found, task in restarting)}
            for task, found in sorted(state.status.tasks.get(name, {}).items())
        ],
        "type": kind_of(registered.config),
    }


def task_status(status_state: StatusState, name: str, task: int) -> dict[str, Any]:
    """TaskState.

    Raises:
        RefusedError: nothing is known of the task.
    """
    found = status_state.tasks.get(name, {}).get(task)
    if found is None:
        raise refusals.RefusedError(f"No status found for task {name}-{task}", refusals.NOT_FOUND)
    return {"id": task, **_state(found, False)}


def expanded(state: State, wanted: frozenset[str]) -> dict[str, dict[str, Any]]:
    """Every connector with what `expand` asks for; unknown values of it add nothing."""
    makers: Mapping[str, Any] = {
        "status": lambda name: status(state, name),
        "info": lambda name: info(state.config, name),
    }
    found: dict[str, dict[str, Any]] = {}
    for name in state.config.connectors:
        found[name] = {}
        for what in makers.keys() & wanted:
            try:
                found[name][what] = makers[what](name)
            except refusals.RefusedError:
                # Registered by a Kafka Connect worker that has not started it; Connect leaves it out as well.
                continue
    return found


def active_topics(status_state: StatusState, name: str) -> dict[str, Any]:
    """The topics that the connector has used since it was created, or since the last reset."""
    return {name: {"topics": sorted(status_state.topics.get(name, {}))}}


def _state(found: Status, is_restarting: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "state": RESTARTING if is_restarting else found.state,
        "worker_id": found.worker_id,
        "version": found.version,
    }
    if found.trace:
        shown["trace"] = found.trace
    return shown
