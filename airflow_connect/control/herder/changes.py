"""What operations write: pure functions from the state to records of both topics.

A connector that may run is RUNNING between its runs as well: the state says what will happen, as in Kafka Connect. Only
a run changes it to FAILED, and the next successful run, a restart or a new configuration changes it back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_connect.control.herder.task_configs import task_configs, version_of
from airflow_connect.control.state import records
from airflow_connect.control.state.records import PAUSED, STARTED, STOPPED, Properties, Record
from airflow_connect.control.state.status_fold import Status
from airflow_connect.control.state.topics import Change, State

RUNNING, FAILED = "RUNNING", "FAILED"
SHOWN = {STARTED: RUNNING, PAUSED: PAUSED, STOPPED: STOPPED}


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes.

    Attributes:
        worker_id: host:port, as status records name the worker that has a connector.
        resolve: returns a configuration with its references resolved.
    """

    worker_id: str
    resolve: Callable[[Mapping[str, str | None]], Mapping[str, Any]] = dict

    def created(self, state: State, name: str, config: Properties, initial: str | None) -> Change:
        """Register a connector; `initial`: its target state if the request names one."""
        target = initial or STARTED
        tasks = self._tasks(config) if target == STARTED else []
        # As in Kafka Connect (KIP-980) before the configuration: a worker that reads only that must not start it.
        before = [] if initial is None else [records.target_state(name, initial)]
        return Change(
            [*before, records.connector_config(name, config), *_committed(name, tasks)],
            [*self._states(state, name, config, target, len(tasks))],
        )

    def updated(self, state: State, name: str, config: Properties) -> Change:
        """Give a connector another configuration. Its tasks change only while it may run."""
        target, old = state.config.target(name), state.config.tasks(name)
        tasks = self._tasks(config) if target == STARTED else list(old)
        changed = _committed(name, tasks) if tasks != old or name in state.config.inconsistent else []
        return Change(
            [records.connector_config(name, config), *changed],
            [*self._states(state, name, config, target, len(tasks))],
        )

    def deleted(self, state: State, name: str) -> Change:
        """Remove a connector, its states and its active topics. Its offsets stay, as in Kafka Connect."""
        return Change(
            records.no_connector(name),
            [
                *(records.task_status(name, task, None) for task in state.status.tasks.get(name, {})),
                records.connector_status(name, None),
                *self.no_topics(state, name).status,
            ],
        )

    def paused(self, state: State, name: str) -> Change:
        """Let no run begin; tasks stay."""
        return self._targeted(state, name, PAUSED, len(state.config.tasks(name)), [])

    def stopped(self, state: State, name: str) -> Change:
        """Let no run begin, and remove the tasks; then offsets may be changed."""
        return self._targeted(state, name, STOPPED, 0, [records.commit(name, 0)], before=True)

    def resumed(self, state: State, name: str) -> Change:
        """Let runs begin. A connector without tasks gets them now. What has failed stays failed until a run."""
        config, tasks = state.config.connectors[name].config, state.config.tasks(name)
        new = self._tasks(config)
        if state.config.target(name) == STARTED and tasks == new:
            return Change([records.target_state(name, STARTED)])
        return self._targeted(state, name, STARTED, len(new), _committed(name, new) if new != tasks else [])

    def restarted(self, state: State, name: str, tasks: Collection[int | None], request: Record | None) -> Change:
        """Give up failures, and ask the worker for a run now.

        Args:
            tasks: what is restarted: tasks, and None for the connector.
            request: the record that a worker reads.
        """
        shown = SHOWN[state.config.target(name)]
        version = version_of(state.config.connectors[name].config)
        fresh = Status(shown, self._owner(state, name), version=version).to_json()
        status = [
            records.connector_status(name, fresh) if task is None else records.task_status(name, task, fresh)
            for task in tasks
        ]
        return Change([] if request is None else [request], status)

    def run_ended(self, state: State, name: str, trace: str | None, *, is_config: bool) -> Change:
        """The result of a run.

        Args:
            trace: why it failed; None: it did not.
            is_config: it failed because of the configuration: the connector is FAILED, too.
        """
        version = version_of(state.config.connectors[name].config)
        result = Status(RUNNING if trace is None else FAILED, self.worker_id, trace, version=version)
        of_connector = result if is_config else Status(RUNNING, self.worker_id, version=version)
        # Every task of a run fails if one does: nothing is committed.
        changed = [
            records.task_status(name, task, result.to_json())
            for task in range(len(state.config.tasks(name)))
            if state.status.tasks.get(name, {}).get(task) != result
        ]
        if state.status.connectors.get(name) != of_connector:
            changed.append(records.connector_status(name, of_connector.to_json()))
        return Change((), changed)

    def used_topics(self, state: State, name: str, topics: Iterable[str], now_ms: int) -> Change:
        """Record topics that a run has read or written, each once."""
        new = [topic for topic in topics if topic not in state.status.topics.get(name, {})]
        return Change((), [records.active_topic(topic, name, 0, now_ms) for topic in new])

    def no_topics(self, state: State, name: str) -> Change:
        """Forget the topics of a connector."""
        return Change((), [records.no_active_topic(topic, name) for topic in state.status.topics.get(name, {})])

    def _tasks(self, config: Mapping[str, str | None]) -> list[dict[str, str | None]]:
        needed = {key: config.get(key) for key in ("connector.class", "tasks.max")}
        # Only if it must be: a provider that does not answer is no reason to refuse the others.
        is_written = not any("${" in (value or "") for value in needed.values())
        return task_configs(config, None if is_written else self.resolve(needed))

    def _owner(self, state: State, name: str) -> str:
        """The worker that has the connector; a new one belongs to the worker that got the request."""
        known = state.status.connectors.get(name)
        return self.worker_id if known is None else known.worker_id

    def _targeted(
        self, state: State, name: str, target: str, tasks: int, more: list[Record], *, before: bool = False
    ) -> Change:
        config = state.config.connectors[name].config
        own = [records.target_state(name, target)]
        return Change([*more, *own] if before else [*own, *more], [*self._states(state, name, config, target, tasks)])

    def _states(
        self, state: State, name: str, config: Mapping[str, str | None], target: str, tasks: int
    ) -> list[Record]:
        status = Status(SHOWN[target], self._owner(state, name), version=version_of(config)).to_json()
        gone = [task for task in state.status.tasks.get(name, {}) if task >= tasks]
        return [
            records.connector_status(name, status),
            *(records.task_status(name, task, status) for task in range(tasks)),
            *(records.task_status(name, task, None) for task in gone),
        ]


def _committed(name: str, tasks: list[dict[str, str | None]]) -> list[Record]:
    if not tasks:
        return []
    return [*(records.task_config(name, n, task) for n, task in enumerate(tasks)), records.commit(name, len(tasks))]
