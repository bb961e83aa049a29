"""The doctor's checks of an installation: what is registered, what has failed, whether a worker is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from airflow_connect.control.herder.changes import FAILED
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state.records import STARTED
from airflow_connect.control.state.topics import State, StateTopics, transactional_id
from airflow_connect.counting import counted, names
from airflow_connect.errors import AccessError
from airflow_connect.kafka.admin.permissions import missing_on_topics
from airflow_connect.kafka.admin.worker_group import described, live_workers
from airflow_connect.kafka.writing.transactions import TransactionalWriter
from airflow_connect.observe.inspecting.doctor import Check, told_permissions


class _Seen(NamedTuple):
    started: list[str]
    others: int
    failed: list[str]


def check_installation(worker: Mapping[str, Any]) -> Iterator[Check]:
    """Look at the connectors of a worker configuration, at what is needed to change them, and at its group.

    Creates nothing.

    Raises:
        ConnectError: the state topics or the group cannot be read, or a worker would refuse the topics.
    """
    settings = ControlSettings.from_worker(worker)
    topics = StateTopics(settings)
    is_there = topics.find()
    topics.check()
    if not is_there:
        yield Check("registered connectors", f"None: {settings.config_topic.name} does not exist.")
        return
    seen = topics.look(_seen)
    yield _of_connectors(seen)
    yield from _of_changes(settings, topics)
    group = settings.group_id
    found = described(topics.admin, group, f"looking for the workers of group {group}")
    yield _of_workers(group, sum(len(entry.members) for entry in found), len(seen.started))


def _seen(state: State) -> _Seen:
    started = [name for name in state.config.connectors if state.config.target(name) == STARTED]
    failed = [name for name in started if _has_failed(state, name)]
    return _Seen(sorted(started), len(state.config.connectors) - len(started), sorted(failed))


def _has_failed(state: State, name: str) -> bool:
    own = state.status.connectors.get(name)
    every = [*([own] if own is not None else []), *state.status.tasks.get(name, {}).values()]
    return any(status.state == FAILED for status in every)


def _of_connectors(seen: _Seen) -> Check:
    told = f"{counted(len(seen.started), 'connector is', 'connectors are')} started"
    told += f", {seen.others} paused or stopped." if seen.others else "."
    if not seen.failed:
        return Check("registered connectors", told)
    return Check(
        "registered connectors",
        f"{told} Failed: {names(seen.failed)}.",
        "airflow-connect connectors status NAME shows why. Restart each of them when the reason is gone.",
        is_ok=False,
    )


def _of_changes(settings: ControlSettings, topics: StateTopics) -> Iterator[Check]:
    """Whether connectors can be changed and their states be written; Kafka Connect's own workers are left alone."""
    did = "changes of connectors"
    names_of = list(dict.fromkeys((settings.config_topic.name, settings.status_topic.name)))
    missing = missing_on_topics(topics.admin, names_of, ("READ", "WRITE"))
    if any(missing.values()):
        yield from told_permissions(did, {place: what for place, what in missing.items() if what}, "", "")
        return
    if live_workers(topics.admin, settings.group_id):
        return  # Taking the id would end the transaction that their leader may have begun.
    writer = TransactionalWriter(settings.producer, transactional_id(settings))
    try:
        writer.fence()  # A change that another process makes just now is decided again.
    except AccessError as error:
        acls = "--operation WRITE --operation DESCRIBE"
        to_do = f"kafka-acls.sh --add --allow-principal User:... {acls} --transactional-id {writer.transactional_id}"
        yield Check(did, error.message, to_do, is_ok=False)
    else:
        yield Check(did, f"{names(names_of)} may be read and written, with transactional id {writer.transactional_id}.")
    finally:
        writer.close()


def _of_workers(group: str, members: int, started: int) -> Check:
    if members or not started:
        return Check("workers", f"{counted(members, 'worker is a member', 'workers are members')} of group {group}.")
    return Check(
        "workers",
        f"No worker is a member of group {group}, so nothing runs the"
        f" {counted(started, 'connector that is', 'connectors that are')} started.",
        "Start one with: airflow-connect worker FILE. If DAGs or a program run these connectors, no worker is needed.",
        is_ok=False,
    )
