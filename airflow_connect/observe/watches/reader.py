"""Answers many watches of one cluster in one round of requests.

A round sends the same few requests whether one or a thousand watches wait: one for the topics, one ListOffsets per
broker for the ends of all logs, one for their beginnings, and a read of what was appended to the runs topic. Committed
offsets need a request per group (librdkafka has no other), but only where they can decide something: see `lag`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from airflow_connect.errors import ConnectError, UnavailableError
from airflow_connect.exactly_once.kafka_journal import END, RUN, STATE
from airflow_connect.kafka.clients.short_lived import Admin, admin_client
from airflow_connect.kafka.state.runs_tail import RunsTail
from airflow_connect.observe.watches.cluster_view import ClusterView
from airflow_connect.observe.watches.conditions import Condition, LagReaches, RunEnds, TimePassed, TopicsHold
from airflow_connect.observe.watches.lag_rounds import LagMemory, LagRound, LagWatch
from airflow_connect.observe.watches.observation import Observation
from airflow_connect.observe.watches.runs import observe_run
from airflow_connect.observe.watches.target import Cluster, Target
from airflow_connect.observe.watches.topics_data import observe_data, observe_time

Answer = Observation | ConnectError
_Documents = Mapping[str, Mapping[str, bytes] | ConnectError]


class Watch(NamedTuple):
    """A condition on a target."""

    target: Target
    condition: Condition


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class ClusterReader:
    """Clients for one cluster, and what earlier rounds have learnt. Used by one thread at a time."""

    def __init__(self, cluster: Cluster, now_ms: Callable[[], int] = _now_ms) -> None:
        """Connects at the first round."""
        self._cluster = cluster
        self._consumer = dict(cluster.consumer)
        self._now_ms = now_ms
        self._admin: Admin | None = None
        self._runs = RunsTail(cluster.runs_topic, self._consumer)
        self._lags = LagMemory()

    def observe(self, watches: Sequence[Watch]) -> list[Answer]:
        """The answer to each watch, in their order. A failure of one does not concern the others.

        Raises:
            ConnectError: the cluster cannot be reached, which concerns all of them.
        """
        admin = self._admin or admin_client(dict(self._cluster.admin))
        self._admin = None
        answers = self._round(admin, watches)
        # A client keeps the leaders that it knows. After an error a new one asks for them again.
        if not any(isinstance(answer, UnavailableError) for answer in answers):
            self._admin = admin
        return answers

    def close(self) -> None:
        """Release the clients, and forget; the next round begins again."""
        self._admin = None
        self._runs = RunsTail(self._cluster.runs_topic, self._consumer)
        self._lags = LagMemory()

    def _round(self, admin: Admin, watches: Sequence[Watch]) -> list[Answer]:
        isolation, now_ms = self._cluster.isolation_level, self._now_ms()
        view = ClusterView(admin, isolation)
        wanted = _documents_wanted(watches)
        _load(view, watches, [self._runs.name] if wanted else [])
        documents = self._documents(admin, view, wanted)
        lags = [w for w in watches if isinstance(w.condition, LagReaches)]
        lag_round = LagRound(admin, self._consumer, isolation, view, self._lags, now_ms)
        lag_watches = [
            LagWatch(w.target, w.condition, documents[w.target.name])
            for w in lags
            if isinstance(w.condition, LagReaches)
        ]
        of_lags = iter(lag_round.observe(lag_watches))
        return [
            next(of_lags) if isinstance(w.condition, LagReaches) else _answer(view, w, documents, now_ms)
            for w in watches
        ]

    def _documents(self, admin: Admin, view: ClusterView, wanted: Mapping[str, set[str]]) -> _Documents:
        """What the runs topic says about the connectors of lag and run watches."""
        if not wanted:
            return {}
        try:
            return self._runs.refresh(admin, view.topic(self._runs.name), wanted)
        except ConnectError as error:
            return dict.fromkeys(wanted, error)


def _documents_wanted(watches: Sequence[Watch]) -> dict[str, set[str]]:
    """Connectors with the kinds of documents that watches need of them."""
    wanted: dict[str, set[str]] = {}
    for target, condition in watches:
        if isinstance(condition, LagReaches):
            wanted.setdefault(target.name, set()).add(STATE)
        elif isinstance(condition, RunEnds):
            wanted.setdefault(target.name, set()).update((STATE, RUN, END))
    return wanted


def _load(view: ClusterView, watches: Sequence[Watch], other_topics: Sequence[str]) -> None:
    """Ask for everything that the watches need of the topics."""

    def targets_of(*kinds: type[Condition]) -> list[Target]:
        return [target for target, condition in watches if isinstance(condition, kinds)]

    view.load_topics(targets_of(LagReaches, TopicsHold, TimePassed), other_topics)
    view.load_ends(view.partitions_of_all(targets_of(LagReaches, TopicsHold)))
    whole = [w.target for w in watches if isinstance(w.condition, TopicsHold) and w.condition.since_ms is None]
    view.load_beginnings(view.partitions_of_all([*targets_of(LagReaches), *whole]))
    times = [(w.target, w.condition.since_ms) for w in watches if isinstance(w.condition, TopicsHold)]
    times += [(w.target, w.condition.time_ms) for w in watches if isinstance(w.condition, TimePassed)]
    view.load_times((tp, ms) for target, ms in times if ms is not None for tp in view.partitions_of_all([target]))
    idle = [w.target for w in watches if isinstance(w.condition, TimePassed) and w.condition.idle_ms is not None]
    tps = view.partitions_of_all(idle)
    # High watermarks first: what lies between one and the stable end read after it is an open transaction.
    view.load_highs(tps)
    view.load_ends(tps)


def _answer(view: ClusterView, watch: Watch, documents: _Documents, now_ms: int) -> Answer:
    target, condition = watch
    try:
        if isinstance(condition, TopicsHold):
            return observe_data(view, target, condition)
        if isinstance(condition, TimePassed):
            return observe_time(view, target, condition, now_ms)
        if isinstance(condition, RunEnds):
            found = documents[target.name]
            if isinstance(found, ConnectError):
                raise found
            return observe_run(target.name, found, condition)
    except ConnectError as error:
        return error
    raise TypeError(f"A {type(condition).__name__} is answered elsewhere.")
