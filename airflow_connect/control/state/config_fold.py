"""What the records of the config topic add up to: connectors, their target states and their committed tasks.

A pure fold, record by record, with the rules of Kafka Connect's KafkaConfigBackingStore. Task configurations wait for
the `commit` that follows them. The cleaner may have removed some of them; then the connector has no tasks until it gets
new ones. Records of an unknown kind, and values that cannot be read, change nothing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from airflow_connect.control.state import records
from airflow_connect.runtime.spec import is_run_id

_LOG = logging.getLogger(__name__)
_STATES = frozenset({records.STARTED, records.PAUSED, records.STOPPED})
_MOST_TASKS = 1 << 20
_MOST_RESTARTS = 10_000
_MOST_TAKEN_AWAY = 10_000
Properties = dict[str, str | None]


class Registered(NamedTuple):
    """A registered connector.

    Attributes:
        offset: of its `connector-` record: it changes with every change of the configuration.
    """

    config: Properties
    offset: int


class Restart(NamedTuple):
    """A request to restart a connector.

    Attributes:
        run_id: of the run that is wanted, or "".
        limits: keys of `records.RUN_LIMITS` and values for that run only.
    """

    offset: int
    connector: str
    include_tasks: bool
    only_failed: bool
    run_id: str = ""
    limits: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class ConfigState:
    """The config topic up to `next_offset`.

    Attributes:
        connectors: registered connectors by name, in the order of their first record.
        targets: target states by connector; a connector without one is `STARTED`.
        target_offsets: of the record that changed it last.
        taken_away: what was done last that ends a run of a connector, "deleted" or "stopped", with the offset of its
            record. It stays when the connector is created again or resumed. The latest ones only.
        task_counts: number of tasks of the last `commit`.
        task_configs: committed configurations by connector and task.
        inconsistent: connectors for whose last `commit` task configurations are missing.
        fenced: task counts of `tasks-fencing-` records.
        restarts: the latest requests, oldest first.
        levels: log levels for the whole cluster, with the offset of their record.
        next_offset: offset after the last record.
    """

    connectors: dict[str, Registered] = field(default_factory=dict)
    targets: dict[str, str] = field(default_factory=dict)
    target_offsets: dict[str, int] = field(default_factory=dict)
    taken_away: dict[str, tuple[int, str]] = field(default_factory=dict)
    task_counts: dict[str, int] = field(default_factory=dict)
    task_configs: dict[str, dict[int, Properties]] = field(default_factory=dict)
    inconsistent: set[str] = field(default_factory=set)
    fenced: dict[str, int] = field(default_factory=dict)
    restarts: list[Restart] = field(default_factory=list)
    levels: dict[str, tuple[int, str]] = field(default_factory=dict)
    next_offset: int = 0
    _waiting: dict[str, dict[int, Properties]] = field(default_factory=dict, repr=False)

    def target(self, name: str) -> str:
        """The target state of a connector."""
        return self.targets.get(name, records.STARTED)

    def taken_away_since(self, name: str, offset: int) -> str | None:
        """What ends a run of the connector that began with the state up to `offset`: "deleted", "stopped", or None.

        A connector that was created again, or resumed, within moments counts as well: its offsets may be others.
        """
        if name not in self.connectors:
            return "deleted"
        if self.target(name) == records.STOPPED:
            return "stopped"
        when, what = self.taken_away.get(name, (-1, ""))
        return what if when >= offset else None

    def tasks(self, name: str) -> list[Properties]:
        """Configurations of the connector's tasks, by number; none if they are inconsistent."""
        if name in self.inconsistent or name not in self.connectors:
            return []
        configs = self.task_configs.get(name, {})
        return [configs[task] for task in range(self.task_counts.get(name, 0)) if task in configs]

    def take(self, key: bytes | None, value: bytes | None, offset: int) -> None:
        """Apply one record."""
        self.next_offset = max(self.next_offset, offset + 1)
        name = None if key is None else _decoded(key)
        if name is None:
            _LOG.warning("The config topic has a record at offset %d whose key is not UTF-8; it is ignored.", offset)
            return
        for prefix, apply in _KINDS:
            if name.startswith(prefix):
                apply(self, name.removeprefix(prefix), value, offset)
                return
        if name != records.SESSION_KEY:
            _LOG.info("The config topic has a record of an unknown kind at offset %d; it is ignored.", offset)

    def _take_connector(self, name: str, value: bytes | None, offset: int) -> None:
        if value is None:
            if self.connectors.pop(name, None) is not None:
                self._take_away(name, offset, "deleted")
            self.task_counts.pop(name, None)
            self.task_configs.pop(name, None)
            self._waiting.pop(name, None)
            self.inconsistent.discard(name)
            return
        config = _properties(value, f"{records.CONNECTOR}{name}", offset)
        if config is not None:
            self.connectors[name] = Registered(config, offset)

    def _take_away(self, name: str, offset: int, what: str) -> None:
        self.taken_away.pop(name, None)  # The latest is the last.
        self.taken_away[name] = offset, what
        if len(self.taken_away) > _MOST_TAKEN_AWAY:
            del self.taken_away[next(iter(self.taken_away))]

    def _take_task(self, rest: str, value: bytes | None, offset: int) -> None:
        name, separator, number = rest.rpartition("-")
        if value is None or not separator or not (number.isascii() and number.isdigit()):
            _LOG.info("The config topic has an unusable task record at offset %d; it is ignored.", offset)
            return
        config = _properties(value, f"{records.TASK}{rest}", offset)
        if config is not None:
            self._waiting.setdefault(name, {})[int(number)] = config

    def _take_commit(self, name: str, value: bytes | None, offset: int) -> None:
        count = _whole(_object(value, f"{records.COMMIT}{name}", offset), "tasks")
        if count is None or not 0 <= count <= _MOST_TASKS:
            return
        waiting = self._waiting.pop(name, {})
        # More than the exact set may wait: the cleaner can remove the commit that a task belonged to.
        if all(task in waiting for task in range(count)):
            self.task_configs.setdefault(name, {}).update(waiting)
            self.inconsistent.discard(name)
        else:
            self.inconsistent.add(name)
        self.task_counts[name] = count

    def _take_target(self, name: str, value: bytes | None, offset: int) -> None:
        if value is None:
            self.targets.pop(name, None)
            self.target_offsets.pop(name, None)
            return
        found = _object(value, f"{records.TARGET_STATE}{name}", offset)
        state = found.get("state.v2") or found.get("state")
        if state in _STATES:
            if state != self.target(name):
                self.target_offsets[name] = offset
            self.targets[name] = str(state)
            if state == records.STOPPED:
                self._take_away(name, offset, "stopped")
        elif found:
            _LOG.warning("The config topic has an unknown target state of %s at offset %d.", name, offset)

    def _take_fencing(self, name: str, value: bytes | None, offset: int) -> None:
        count = _whole(_object(value, f"{records.TASKS_FENCING}{name}", offset), "task-count")
        if count is not None:
            self.fenced[name] = count

    def _take_restart(self, name: str, value: bytes | None, offset: int) -> None:
        if value is None:
            return
        found = _object(value, f"{records.RESTART}{name}", offset)
        include, only = found.get("include-tasks"), found.get("only-failed")
        self.restarts.append(Restart(offset, name, include is True, only is True, *_wanted_run(found.get("run"))))
        del self.restarts[:-_MOST_RESTARTS]

    def _take_logger(self, name: str, value: bytes | None, offset: int) -> None:
        level = _object(value, f"{records.LOGGER}{name}", offset).get("level")
        if isinstance(level, str):
            self.levels[name] = offset, level


def _wanted_run(run: Any) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Id and limits of a requested run; nothing if it is no request of ours (records.run_request)."""
    if not isinstance(run, dict) or not is_run_id(run.get("id")) or not isinstance(run.get("limits"), dict):
        return "", ()
    return run["id"], tuple((str(key), str(value)) for key, value in run["limits"].items() if key in records.RUN_LIMITS)


_Apply = Callable[[ConfigState, str, bytes | None, int], None]
_KINDS: tuple[tuple[str, _Apply], ...] = (
    (records.TARGET_STATE, ConfigState._take_target),
    (records.CONNECTOR, ConfigState._take_connector),
    (records.TASK, ConfigState._take_task),
    (records.COMMIT, ConfigState._take_commit),
    (records.TASKS_FENCING, ConfigState._take_fencing),
    (records.RESTART, ConfigState._take_restart),
    (records.LOGGER, ConfigState._take_logger),
)


def _decoded(key: bytes) -> str | None:
    try:
        return key.decode()
    except UnicodeDecodeError:
        return None


def _object(value: bytes | None, key: str, offset: int) -> Mapping[str, Any]:
    """The JSON object; {} with a warning if it is none. Values may hold secrets, so they are not logged."""
    try:
        found = None if value is None else json.loads(value)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found
    _LOG.warning("The record %s of the config topic at offset %d is not a JSON object; it is ignored.", key, offset)
    return {}


def _properties(value: bytes, key: str, offset: int) -> Properties | None:
    found = _object(value, key, offset)
    properties = found.get("properties")
    if isinstance(properties, dict) and all(v is None or isinstance(v, str) for v in properties.values()):
        return properties
    if found:
        _LOG.warning("The record %s of the config topic at offset %d has no properties; it is ignored.", key, offset)
    return None


def _whole(found: Mapping[str, Any], member: str) -> int | None:
    value = found.get(member)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
