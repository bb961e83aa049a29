"""How the workers of a group share the connectors.

The status topic says who has a connector: `worker_id` of its state. A worker runs those that name it. When the members
of the group change, or the connectors do, each worker computes the same assignment. It takes connectors whose worker is
gone, and gives away those of its own that another worker should have, never one that is running. Both are changes of
the status topic, which are decided one after the other, so no two workers take the same connector.

Nothing here protects data: each run is fenced. A wrong view of the group costs time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from airflow_connect.control.herder.changes import FAILED, SHOWN
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state import records
from airflow_connect.control.state.records import Record
from airflow_connect.control.state.status_fold import Status
from airflow_connect.control.state.topics import Change, State, StateTopics
from airflow_connect.control.worker.assignment import balanced, placed
from airflow_connect.control.worker.costs import busy_seconds, costs
from airflow_connect.counting import counted, names
from airflow_connect.errors import ConfigError, ConnectError
from airflow_connect.kafka.admin.worker_membership import View, WorkerMembership

LOOK_EVERY_S = 0.5
BALANCE_EVERY_S = 600.0
"""Loads change slowly; between two changes of members or connectors, this is enough."""
TAKE_ANYWAY_S = 3.0
"""A connector that nobody takes for so long, because views differ, is taken by whoever sees it."""
REBALANCING = "worker.rebalancing"


@dataclass(slots=True)
class _Seen:
    """What the last looks have seen.

    Attributes:
        busy: seconds per hour of each connector.
        busy_of: the generation and the time slot for which `busy` was read.
        balanced: the members, connectors and time slot for which this worker has given away what it should.
        orphans: connectors without a live worker, with the time since when.
    """

    busy: Mapping[str, float] = field(default_factory=dict)
    busy_of: tuple[int, int] = (-1, -1)
    balanced: tuple[frozenset[str], frozenset[str], int] | None = None
    orphans: dict[str, float] = field(default_factory=dict)


class _Now(NamedTuple):
    members: frozenset[str]
    slot: int
    now_s: float


class Sharing:
    """This worker's part of the work."""

    def __init__(
        self,
        topics: StateTopics,
        settings: ControlSettings,
        membership: WorkerMembership,
        worker_id: str,
        tell: Callable[[str], None],
    ) -> None:
        """`worker_id`: host:port of this process; `tell`: writes a line of the worker's log."""
        self._topics = topics
        self._settings = settings
        self._membership = membership
        self._me = worker_id
        self._tell = tell
        self._seen = _Seen()
        self._told = ""
        self._may_run = False
        self._running: set[str] = set()

    @property
    def may_run(self) -> bool:
        """Whether this process was a member at its last look, and the only one with its worker id."""
        return self._may_run

    def own(self, state: State) -> set[str]:
        """Connectors of this worker."""
        return {name for name, status in state.status.connectors.items() if status.worker_id == self._me}

    def begin(self, name: str) -> None:
        """A run begins: the connector is not given away. Call it in the look that finds the connector."""
        self._running.add(name)

    def end(self, name: str) -> None:
        """It has ended."""
        self._running.discard(name)

    def look(self) -> None:
        """Take and give away what has to be. A failure is told, once, and tried again at the next look."""
        try:
            view = self._membership.view(self._topics.admin)
            self._refuse_twin(view)
            self._may_run = True
        except ConnectError as error:
            self._may_run = False
            if error.code != REBALANCING:
                self._tell_once(f"This worker runs no connector now. {error}")
            return
        try:
            self._share(view)
            self._told = ""
        except ConnectError as error:
            self._tell_once(f"Connectors are not shared now. {error}")

    def _share(self, view: View) -> None:
        now_s = time.monotonic()
        now = _Now(frozenset((*view.tokens, self._me)), int(now_s // BALANCE_EVERY_S), now_s)
        if len(now.members) > 1:
            self._read_busy(view.generation, now.slot)
        if not self._topics.look(lambda state: self._moves(state, now)):
            return
        moved: dict[str, str] = {}

        def decide(state: State) -> Change:
            moved.clear()
            moved.update(self._moves(state, now))
            return Change((), [record for name, worker in moved.items() for record in moved_to(state, name, worker)])

        self._topics.change(decide, lambda _: None)
        self._report(moved)

    def _read_busy(self, generation: int, slot: int) -> None:
        if self._seen.busy_of != (generation, slot):
            every = self._topics.look(lambda state: list(state.config.connectors))
            now_ms = time.time_ns() // 1_000_000
            self._seen.busy = busy_seconds(self._topics.admin, self._settings, every, now_ms)
            self._seen.busy_of = generation, slot

    def _moves(self, state: State, now: _Now) -> dict[str, str]:
        """What this worker has to write: the new worker, by connector."""
        cost = costs(state.config, self._seen.busy)
        owners = {name: status.worker_id for name, status in state.status.connectors.items() if name in cost}
        orphans = [name for name in cost if owners.get(name) not in now.members]
        self._seen.orphans = {name: self._seen.orphans.get(name, now.now_s) for name in orphans}
        if orphans:  # What was balanced with a worker that has gone is not, if it comes back under the same address.
            self._seen.balanced = None
        where = placed(now.members, cost, owners)
        moves = {
            name: self._me
            for name, since in self._seen.orphans.items()
            if where[name] == self._me or now.now_s - since >= TAKE_ANYWAY_S
        }
        key = now.members, frozenset(cost), now.slot
        if not orphans and self._seen.balanced != key:
            best = balanced(now.members, cost, owners)
            given = {name: worker for name, worker in best.items() if owners[name] == self._me != worker}
            moves.update({name: worker for name, worker in given.items() if name not in self._running})
            if not given:
                self._seen.balanced = key
        return moves

    def _report(self, moved: Mapping[str, str]) -> None:
        taken = [name for name, worker in moved.items() if worker == self._me]
        given = [name for name, worker in moved.items() if worker != self._me]
        if taken:
            self._tell(f"This worker now has {counted(len(taken), 'more connector')}: {names(taken)}.")
        if given:
            self._tell(
                f"{counted(len(given), 'connector has', 'connectors have')} been given to other workers:"
                f" {names(given)}."
            )

    def _refuse_twin(self, view: View) -> None:
        oldest = min(view.tokens.get(self._me, ()), default=self._membership.token)
        if self._membership.token == oldest:
            return
        raise ConfigError(
            f"Another live worker of the group {self._settings.group_id} has the same address, {self._me}.",
            code="worker.same_address",
            config_path="rest.advertised.host.name",
            suggestion="Give each worker its own rest.advertised.host.name and rest.advertised.port. If this worker was"
            " killed and started again, nothing has to be done: the session of the killed one ends by itself.",
        )

    def _tell_once(self, text: str) -> None:
        if text != self._told:
            self._tell(text)
            self._told = text


def moved_to(state: State, name: str, worker: str) -> list[Record]:
    """Status records that give a connector to a worker. What has failed stays failed until the next run."""
    shown = SHOWN[state.config.target(name)]

    def moved(status: Status) -> Status:
        return replace(status, worker_id=worker, state=FAILED if status.state == FAILED else shown)

    own = state.status.connectors.get(name) or Status(shown, worker)
    return [
        records.connector_status(name, moved(own).to_json()),
        *(
            records.task_status(name, task, moved(status).to_json())
            for task, status in state.status.tasks.get(name, {}).items()
        ),
    ]
