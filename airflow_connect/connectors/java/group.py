"""Sinks that commit the offsets of their consumer group themselves, as a member of it.

Their plugin takes the consumer of its worker out of the context. Its host joins the group with the partitions that the
plan has for the task, and reads none of them: the run does. So Kafka refuses offsets of a task whose run is over.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.own_offsets import MEMBER_CLIENT, SESSION_TIMEOUT, SESSION_TIMEOUT_MS
from airflow_connect.connectors.java.iceberg_names import ICEBERG_SINK
from airflow_connect.connectors.java.keys import ALWAYS, AUTO, JavaSinkKeys
from airflow_connect.counting import names
from airflow_connect.errors import TaskFailedError

if TYPE_CHECKING:
    from airflow_connect.api.sink_roles import SinkGroup

GROUP = "airflow.java.task.group"
"""In the configuration of a task, as JSON: the group's name, and settings of clients. They may be secret."""
PARTITIONS = "partitions"
"""In the document for tasks: every partition of the run, as pairs of topic and number."""
WRITTEN_BEFORE = "written_before"
"""In the details of a partition: the offset up to which another attempt or run had written it."""
JOIN_TIMEOUT_S = 120.0
"""How long a task waits for the other tasks of its run."""
_PAUSE_S = 0.25

Call = Callable[..., Any]


def is_member(class_name: str, config: Mapping[str, str]) -> bool:
    """Whether tasks of this plugin join the group: `airflow.java.group.member`."""
    given = JavaSinkKeys.from_config(config).group_member
    return given == ALWAYS or (given == AUTO and class_name == ICEBERG_SINK)


def group_json(group: SinkGroup) -> str:
    """What a task needs of the group."""
    return json.dumps({"id": group.name, "java": dict(group.java), "client": dict(group.client)})


class Written(Protocol):
    """Finds out whether the plugin has made everything final that a task has passed to it."""

    def is_done(self, last: Mapping[TopicPartition, int]) -> bool:
        """`last`: the offset of the last record of each partition that the plugin has got."""

    def close(self) -> None:
        """Close clients; idempotent."""


@dataclass
class Membership:
    """The membership of one task, from its start to the end of the run.

    Attributes:
        facts: `GROUP` of its configuration.
        everyone: all partitions of the run.
        starts: where the plan begins, of the partitions of this task.
        run_id: of the run.
        plugin: its class, for messages.
        longest_s: how long the plugin may take at the end.
    """

    facts: Mapping[str, Any]
    everyone: Sequence[TopicPartition]
    starts: Mapping[TopicPartition, int]
    run_id: str
    plugin: str
    longest_s: float
    _is_finished: bool = False

    def request(self) -> dict[str, Any]:
        """What the host needs to join."""
        return group_request(self.facts, self.everyone)

    def finish(self, call: Call, put: Callable[[], None], last: Mapping[TopicPartition, int], written: Written) -> None:
        """Wait until everything of this task is final, and then until that is so of all tasks of the run.

        No member may leave before: the group would be balanced again while the plugin of another one commits.

        Args:
            call: asks the host.
            put: lets the plugin work; it must be called again and again.
            last: as for `Written`.
            written: how this plugin shows it.

        Raises:
            TaskFailedError: it takes too long.
            JavaGroupError: the group has changed.
        """
        if self._is_finished:
            return
        deadline, is_mine_done = time.monotonic() + self.longest_s, False
        while True:
            put()
            if not is_mine_done and written.is_done(last):
                self._mark(call)
                is_mine_done = True
            if is_mine_done and self._are_all_done(call):
                self._is_finished = True
                return
            if not is_mine_done and time.monotonic() >= deadline:
                raise self._too_early(last)
            time.sleep(_PAUSE_S)

    def committed(self, call: Call, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, tuple[int, str]]:
        """What the group has committed, with notes."""
        return committed_in(call, partitions)

    def _mark(self, call: Call) -> None:
        """Tell the other tasks, by a note at the offsets of this one: they share nothing else but the group."""
        found = self.committed(call, list(self.starts))
        offsets = [[*tp, found.get(tp, (start, ""))[0], self._note] for tp, start in self.starts.items()]
        call("group_commit", offsets=offsets)

    def _are_all_done(self, call: Call) -> bool:
        found = self.committed(call, self.everyone)
        return all(found.get(tp, (0, ""))[1] == self._note for tp in self.everyone)

    @property
    def _note(self) -> str:
        return f"run {self.run_id} is done"

    def _too_early(self, last: Mapping[TopicPartition, int]) -> TaskFailedError:
        got = [f"{tp}@{offset}" for tp, offset in sorted(last.items())]
        return TaskFailedError(
            f"{self.plugin} has not committed the records up to {names(got)} within {self.longest_s:g} s after it had"
            " got all of them.",
            code="java.ends_too_early",
            suggestion="The next run continues at the offsets of the consumer group, and finishes what the plugin has"
            f" begun. Raise {JavaSinkKeys.flush_timeout_ms}, and look into the log airflow_connect.java for what the"
            " plugin says.",
        )


class CommittedOffsets:
    """A plugin is done when the group has its offsets."""

    def __init__(self, call: Call) -> None:
        """`call`: asks the host."""
        self._call = call

    def is_done(self, last: Mapping[TopicPartition, int]) -> bool:
        """See `Written`."""
        found = committed_in(self._call, list(last))
        return all(found.get(tp, (-1, ""))[0] > offset for tp, offset in last.items())

    def close(self) -> None:
        """There is nothing to close: the host has the client."""


def committed_in(call: Call, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, tuple[int, str]]:
    """What the group of a host has committed, with notes; partitions without an offset are left out."""
    found = call("group_committed", partitions=[list(tp) for tp in partitions]).result["value"] if partitions else []
    return {TopicPartition(topic, number): (offset, note) for topic, number, offset, note in found}


def group_request(facts: Mapping[str, Any], everyone: Sequence[TopicPartition]) -> dict[str, Any]:
    """The member `group` of the request that starts a task."""
    return {
        "id": facts["id"],
        "config": {SESSION_TIMEOUT: SESSION_TIMEOUT_MS, **facts["java"], "client.id": MEMBER_CLIENT},
        "partitions": [list(tp) for tp in everyone],
        "timeout_ms": int(JOIN_TIMEOUT_S * 1000),
    }
