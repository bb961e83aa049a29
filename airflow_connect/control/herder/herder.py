"""The operations on connectors, over the state topics of one installation. Threads may share a herder."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from airflow_connect.config_providers.resolving import resolve_references
from airflow_connect.control.herder import offsets, plugins, refusals, views
from airflow_connect.control.herder.changes import FAILED, Writer
from airflow_connect.control.herder.refusals import RefusedError
from airflow_connect.control.herder.validation import refuse_invalid, validated
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state import records
from airflow_connect.control.state.config_fold import Registered
from airflow_connect.control.state.topics import Change, State, StateTopics
from airflow_connect.runtime.spec import RunSpec, new_run_id

NAME = "name"
Config = Mapping[str, str | None]


class Herder:
    """Reads the current state for every request, and changes it in transactions: see `control/state/topics.py`."""

    def __init__(self, topics: StateTopics, settings: ControlSettings, worker_id: str) -> None:
        """`topics`: open; `worker_id`: host:port of this process."""
        self._topics = topics
        self._settings = settings
        self._writer = Writer(worker_id, self._resolved)

    def server_info(self) -> dict[str, str]:
        """The id of the Kafka cluster; REST adds the version."""
        return {"kafka_cluster_id": self._topics.cluster_id()}

    # What reads.

    def names(self) -> list[str]:
        """Names of all connectors."""
        return self._topics.look(lambda state: list(state.config.connectors))

    def expanded(self, wanted: frozenset[str]) -> dict[str, dict[str, Any]]:
        """All connectors with their `status` and `info`, as far as wanted."""
        return self._topics.look(lambda state: views.expanded(state, wanted))

    def info(self, name: str) -> dict[str, Any]:
        """ConnectorInfo."""
        return self._topics.look(lambda state: views.info(state.config, name))

    def config(self, name: str) -> dict[str, str | None]:
        """The configuration as registered, references unresolved."""
        return self._registered(name)

    def registered(self, name: str) -> Registered:
        """The configuration as registered, and the offset of its record, which `replace_config` compares.

        Raises:
            RefusedError: there is no such connector.
        """
        found = self._topics.look(lambda state: state.config.connectors.get(name))
        if found is None:
            raise refusals.no_connector(name)
        return found

    def tasks(self, name: str) -> list[dict[str, Any]]:
        """TaskInfo of every task."""
        return self._topics.look(lambda state: views.tasks(state.config, name))

    def status(self, name: str) -> dict[str, Any]:
        """ConnectorStateInfo."""
        return self._topics.look(lambda state: views.status(state, name))

    def task_status(self, name: str, task: int) -> dict[str, Any]:
        """TaskState."""
        return self._topics.look(lambda state: views.task_status(state.status, name, task))

    def plugin_keys(self, plugin: str) -> list[dict[str, Any]]:
        """ConfigKeyInfo of a plugin that is installed, or that a registered connector uses.

        Raises:
            RefusedError: there is none.
        """
        return plugins.keys_of(plugin, lambda: self._topics.look(views.values_in_use))

    def validated(self, plugin: str, config: Config) -> dict[str, Any]:
        """ConfigInfos of a configuration of the class `plugin`; registers nothing.

        Raises:
            RefusedError: the class is missing, unknown, or another than `plugin`.
        """
        return validated(plugin, config, self._settings.raw, self._settings.references.values, asks_java=True)

    # What changes connectors.

    def create(self, name: str, config: Config, initial_state: str | None = None) -> dict[str, Any]:
        """Register a connector; returns its ConnectorInfo, as in Kafka Connect before it has tasks.

        Raises:
            RefusedError: the configuration is wrong, or the name is taken.
        """
        named = _with_name(name, config)
        self._refuse_invalid(named)
        self._topics.change(lambda state: self._created(state, name, named, initial_state), _nothing)
        return {**self.info(name), "tasks": []}

    def put_config(self, name: str, config: Config) -> tuple[bool, dict[str, Any]]:
        """Create a connector or give it another configuration; returns whether it is new, and its ConnectorInfo.

        Raises:
            RefusedError: the configuration is wrong.
        """
        named = _with_name(name, config)
        self._refuse_invalid(named)
        is_new = False

        def decide(state: State) -> Change:
            nonlocal is_new
            is_new = name not in state.config.connectors
            if is_new:
                return self._writer.created(state, name, named, None)
            return self._writer.updated(state, name, named)

        before = self._topics.look(lambda state: len(state.config.tasks(name)))
        self._topics.change(decide, _nothing)
        return is_new, _with_tasks(self.info(name), before)

    def patch_config(self, name: str, patch: Config) -> dict[str, Any]:
        """Change keys of a configuration; a value of None removes its key (KIP-477). Returns ConnectorInfo.

        Raises:
            RefusedError: there is no such connector, the result is wrong, or the configuration has changed meanwhile.
        """
        seen = self.registered(name)
        merged = {**seen.config, **patch}
        patched = {key: value for key, value in merged.items() if patch.get(key, "") is not None}
        if NAME in patched:
            patched = _with_name(name, patched)
        self._refuse_invalid(patched)

        def decide(state: State) -> Change:
            now = state.config.connectors.get(name)
            if now is None or now.offset != seen.offset:
                raise refusals.stale()
            return self._writer.updated(state, name, patched)

        before = self._topics.look(lambda state: len(state.config.tasks(name)))
        self._topics.change(decide, _nothing)
        return _with_tasks(self.info(name), before)

    def replace_config(self, name: str, config: Config, seen_offset: int) -> None:
        """Give a connector another configuration, if nobody else has done so since its record at `seen_offset`.

        Raises:
            RefusedError: the configuration is wrong, or the registered one has changed meanwhile.
        """
        named = _with_name(name, config)
        self._refuse_invalid(named)

        def decide(state: State) -> Change:
            now = state.config.connectors.get(name)
            if now is None or now.offset != seen_offset:
                raise refusals.stale()
            return self._writer.updated(state, name, named)

        self._topics.change(decide, _nothing)

    def delete(self, name: str) -> None:
        """Remove a connector. Its offsets stay."""

        def decide(state: State) -> Change:
            if name not in state.config.connectors:
                raise refusals.no_connector(name)
            return self._writer.deleted(state, name)

        self._topics.change(decide, _nothing)

    def pause(self, name: str) -> None:
        """Let no run begin. One that is running ends first."""
        self._change_known(name, lambda state: self._writer.paused(state, name))

    def resume(self, name: str) -> None:
        """Let runs begin."""
        self._change_known(name, lambda state: self._writer.resumed(state, name))

    def stop(self, name: str) -> None:
        """Let no run begin, and remove the tasks, so that offsets may be changed."""
        self._change_known(name, lambda state: self._writer.stopped(state, name))

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> dict[str, Any]:
        """Run a connector now, if it may run; returns its state, with what is restarted as RESTARTING."""
        answer: dict[str, Any] = {}

        def decide(state: State) -> Change:
            if name not in state.config.connectors:
                raise refusals.nothing_to_restart(name)
            which = _restarted(state, name, include_tasks=include_tasks, only_failed=only_failed)
            answer.update(views.status(state, name, which))
            request = records.restart(name, include_tasks=include_tasks, only_failed=only_failed)
            return self._writer.restarted(state, name, which, request if which else None)

        self._topics.change(decide, _nothing)
        return answer

    def run_now(self, name: str, limits: Mapping[str, str]) -> str:
        """Ask the worker for a run now; returns its id. It replaces a request that no worker has seen yet.

        Args:
            name: of a connector that is neither paused nor stopped.
            limits: keys of `records.RUN_LIMITS` for this run only.
        """
        run_id = new_run_id()

        def decide(state: State) -> Change:
            if name not in state.config.connectors:
                raise refusals.nothing_to_restart(name)
            if (target := state.config.target(name)) != records.STARTED:
                raise RefusedError(f"Connector {name} is {target.lower()}. Resume it first.", refusals.CONFLICT)
            which = _restarted(state, name, include_tasks=True, only_failed=False)
            return self._writer.restarted(state, name, which, records.run_request(name, run_id, limits))

        self._topics.change(decide, _nothing)
        return run_id

    def restart_task(self, name: str, task: int) -> None:
        """Run the connector of a failed task now: a run has all of its tasks."""

        def decide(state: State) -> Change:
            if name not in state.config.connectors:
                raise refusals.nothing_to_restart(name)
            if not 0 <= task < len(state.config.tasks(name)):
                raise RefusedError(f"Unknown task: {name}-{task}", refusals.NOT_FOUND)
            request = records.restart(name, include_tasks=True, only_failed=False)
            return self._writer.restarted(state, name, [task], request)

        self._topics.change(decide, _nothing)

    # Topics and offsets.

    def active_topics(self, name: str) -> dict[str, Any]:
        """The topics that the connector uses."""
        if not self._settings.tracks_topics:
            raise RefusedError("Topic tracking is disabled.", refusals.FORBIDDEN)
        return self._topics.look(lambda state: views.active_topics(state.status, name))

    def reset_topics(self, name: str) -> None:
        """Forget them."""
        if not self._settings.tracks_topics:
            raise RefusedError("Topic tracking is disabled.", refusals.FORBIDDEN)
        if not self._settings.may_reset_topics:
            raise RefusedError("Topic tracking reset is disabled.", refusals.FORBIDDEN)
        self._topics.change(lambda state: self._writer.no_topics(state, name), _nothing)

    def offsets(self, name: str) -> dict[str, Any]:
        """ConnectorOffsets."""
        return offsets.offsets_of(self.spec_of(self._registered(name)), self._topics.admin)

    def alter_offsets(self, name: str, body: Any) -> str:
        """Set offsets of a stopped connector; returns the message."""
        entries = offsets.entries_of(body)
        return offsets.alter(self._stopped_spec(name), entries)

    def reset_offsets(self, name: str) -> str:
        """Delete the offsets of a stopped connector; returns the message."""
        return offsets.reset(self._stopped_spec(name))

    def set_cluster_level(self, namespace: str, level: str) -> None:
        """Set a log level in every worker."""
        self._topics.change(lambda _: Change([records.logger_level(namespace, level)]), _nothing)

    # What a worker needs.

    def spec_of(self, config: Config, origin: Mapping[str, str] | None = None) -> RunSpec:
        """The specification of a run with this configuration."""
        return RunSpec(config, self._settings.raw, origin=origin or {}, references=self._settings.references.values)

    def _resolved(self, config: Config) -> dict[str, Any]:
        """A configuration with its references resolved. Raises ConnectError: a provider cannot resolve one."""
        raw, known = self._settings.raw, self._settings.references.values
        return resolve_references(config, raw, known).resolve(config)

    def run_ended(
        self, name: str, config_offset: int, trace: str | None, *, is_config: bool, only_own: bool = False
    ) -> None:
        """Record the result of a run, unless the connector was deleted, stopped or changed meanwhile.

        Args:
            name: of the connector.
            config_offset: of the configuration that the run had.
            trace: why it failed; None: it did not.
            is_config: it failed because of its configuration.
            only_own: only if the connector still belongs to this process, or to none.
        """

        def decide(state: State) -> Change:
            now = state.config.connectors.get(name)
            if now is None or now.offset != config_offset or state.config.target(name) != records.STARTED:
                return Change()
            known = state.status.connectors.get(name)
            if only_own and known is not None and known.worker_id != self._writer.worker_id:
                return Change()
            return self._writer.run_ended(state, name, trace, is_config=is_config)

        # Most runs change nothing, and a transaction costs more than a look.
        if self._topics.look(lambda state: any(decide(state))):
            self._topics.change(decide, _nothing)

    def used_topics(self, name: str, topics: Iterable[str]) -> None:
        """Record which topics a run has used."""
        names = list(topics)
        known = self._topics.look(lambda state: set(state.status.topics.get(name, {})))
        if not self._settings.tracks_topics or known.issuperset(names):
            return
        now_ms = time.time_ns() // 1_000_000

        def decide(state: State) -> Change:
            if name not in state.config.connectors:
                return Change()
            return self._writer.used_topics(state, name, names, now_ms)

        self._topics.change(decide, _nothing)

    def _registered(self, name: str) -> dict[str, str | None]:
        """The configuration that a run gets, whatever `config` shows."""
        return self._topics.look(lambda state: views.config_of(state.config, name))

    def _refuse_invalid(self, config: Config) -> None:
        refuse_invalid(config, self._settings.raw, self._settings.references.values, asks_java=True)

    def _created(self, state: State, name: str, config: dict[str, str | None], initial: str | None) -> Change:
        if name in state.config.connectors:
            raise RefusedError(f"Connector {name} already exists", refusals.CONFLICT)
        return self._writer.created(state, name, config, initial)

    def _change_known(self, name: str, decide: Any) -> None:
        def checked(state: State) -> Change:
            if name not in state.config.connectors:
                raise refusals.unknown_connector(name)
            change: Change = decide(state)
            return change

        self._topics.change(checked, _nothing)

    def _stopped_spec(self, name: str) -> RunSpec:
        def check(state: State) -> None:
            if name not in state.config.connectors:
                raise refusals.no_connector(name)
            if state.config.target(name) != records.STOPPED or state.config.tasks(name):
                raise refusals.not_stopped(name)

        self._topics.look(check)
        return self.spec_of(self._registered(name))


def _restarted(state: State, name: str, *, include_tasks: bool, only_failed: bool) -> frozenset[int | None]:
    """What a restart affects: tasks, and None for the connector. Source: RestartRequest, RestartPlan (KIP-745)."""
    own = state.status.connectors.get(name)
    found: set[int | None] = set()
    if not only_failed or (own is not None and own.state == FAILED):
        found.add(None)
    if include_tasks:
        tasks = state.status.tasks.get(name, {})
        found |= {task for task, status in tasks.items() if not only_failed or status.state == FAILED}
    return frozenset(found)


def _with_name(name: str, config: Config) -> dict[str, str | None]:
    """The configuration with its name, which it must not contradict."""
    given = config.get(NAME)
    if given is not None and given != name:
        raise RefusedError(f"Connector name configuration ({given}) doesn't match connector name in the URL ({name})")
    return {**config, NAME: name}


def _with_tasks(info: dict[str, Any], count: int) -> dict[str, Any]:
    """Kafka Connect answers with the tasks from before the change."""
    return {**info, "tasks": [{"connector": info["name"], "task": task} for task in range(count)]}


def _nothing(_: State) -> None:
    return None
