"""Reads an installation in one round: what is registered, what has run, and how far each sink is behind."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from airflow_connect.api.coverage import Coverage
from airflow_connect.api.offsets import TopicPartition
from airflow_connect.control.herder.task_configs import SOURCE, UNKNOWN, kind_of
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state.records import STARTED
from airflow_connect.control.state.status_fold import Status
from airflow_connect.errors import ConnectError, UnavailableError
from airflow_connect.kafka.admin import many_offsets
from airflow_connect.kafka.admin.topics import TopicInfo
from airflow_connect.kafka.clients.short_lived import Admin, admin_client
from airflow_connect.observe.status.uncopied import uncopied
from airflow_connect.observe.watches.cluster_view import ClusterView
from airflow_connect.observe.watches.needed_keys import without_unneeded
from airflow_connect.observe.watches.target import Target, target_of
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.ui.overview import connector_states
from airflow_connect.ui.overview.dag_schedules import DagSchedule, ReadSchedules, note_of, problem_of
from airflow_connect.ui.overview.model import Connector, Overview, Position, State, dags_of
from airflow_connect.ui.overview.topic_tails import Histories, History, Registry, TopicTail

_DAG_SINK = "sink"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class _Lag:
    """How far a sink is behind, or why that is not known."""

    positions: tuple[Position, ...] = ()
    lag: int | None = None
    problem: str = ""


class InstallationReader:
    """Clients for one installation, and what earlier rounds have read. Used by one thread at a time."""

    def __init__(
        self,
        settings: ControlSettings,
        read_schedules: ReadSchedules = lambda _: {},
        now_ms: Callable[[], int] = _now_ms,
    ) -> None:
        """Connects at the first round.

        Args:
            settings: of the installation.
            read_schedules: when Airflow runs DAGs; called once in a round, for all of them.
            now_ms: the clock.
        """
        self._settings, self._read_schedules = settings, read_schedules
        self._references = settings.references.values
        self._now_ms = now_ms
        self._admin: Admin | None = None
        self._registry, self._histories = Registry(), Histories()
        reader = settings.reader
        self._config = TopicTail(settings.config_topic.name, reader, self._registry.begin_config)
        self._status = TopicTail(settings.status_topic.name, reader, self._registry.begin_status)
        self._runs = TopicTail(settings.worker.runs_topic, reader, self._histories.begin)
        self._targets: dict[str, tuple[object, Target | ConnectError]] = {}

    def read(self) -> Overview:
        """The installation now.

        Raises:
            UnavailableError, AccessError: Kafka.
        """
        admin = self._admin or admin_client(self._settings.admin)
        self._admin = None  # A client keeps the leaders that it knows. After an error a new one asks for them again.
        topics = self._topics_of_state(admin)
        for tail, info in zip(self._tails, topics, strict=True):
            tail.refresh(admin, info)
        names = sorted({*self._registry.config.connectors, *self._histories.of})
        targets = {name: found for name in names if (found := self._target(name)) is not None}
        lags = {name: _Lag(problem=str(found)) for name, found in targets.items() if isinstance(found, ConnectError)}
        lags |= self._lags(admin, {name: found for name, found in targets.items() if isinstance(found, Target)})
        self._admin = admin
        now_ms = self._now_ms()
        schedules = self._schedules()
        connectors = {name: self._connector(name, lags.get(name, _Lag()), schedules, now_ms) for name in names}
        workers = connector_states.workers_of(self._registry.status, self._registry.config)
        return Overview(now_ms, connectors, workers, is_set_up=any(info is not None for info in topics))

    @property
    def _tails(self) -> tuple[TopicTail, ...]:
        return self._config, self._status, self._runs

    def _topics_of_state(self, admin: Admin) -> list[TopicInfo | None]:
        answers = many_offsets.describe_each(admin, [tail.name for tail in self._tails])
        found: list[TopicInfo | None] = []
        for tail in self._tails:
            answer = answers[tail.name]
            if isinstance(answer, ConnectError) and answer.code != "kafka.no_topic":
                raise answer
            found.append(None if isinstance(answer, ConnectError) else answer)
        return found

    # --- lag -----------------------------------------------------------------------------------------------------

    def _target(self, name: str) -> Target | ConnectError | None:
        """Where a sink reads; None: it is a source, or nothing is known of its topics."""
        registered = self._registry.config.connectors.get(name)
        if registered is None:
            return self._target_of_dag(self._histories.of[name])
        if kind_of(registered.config) in (SOURCE, UNKNOWN):
            return None
        known = self._targets.get(name)
        if known is None or known[0] != registered.offset or isinstance(known[1], ConnectError):
            connector, worker = without_unneeded(registered.config, self._settings.raw)
            try:
                found: Target | ConnectError = target_of(RunSpec(connector, worker, references=self._references))
            except ConnectError as error:
                found = error
            self._targets[name] = registered.offset, found
        return self._targets[name][1]

    def _target_of_dag(self, history: History) -> Target | None:
        """A connector that only DAGs know: its last commit names its topics; its group has Kafka Connect's name."""
        state = history.state
        if state is None or not state.committed:
            return None
        own = self._own_target()
        topics = tuple(sorted({place.topic for place in state.committed}))
        return Target(own.cluster, history.name, f"connect-{history.name}", topics)

    def _own_target(self) -> Target:
        return target_of(RunSpec({"name": ""}, self._settings.raw, references=self._references), reads_topics=False)

    def _lags(self, admin: Admin, targets: Mapping[str, Target]) -> dict[str, _Lag]:
        """The lag of each sink. Those that reach Kafka in another way than the worker are not looked at."""
        own = dict(self._own_target().cluster.admin)
        found = {
            name: _Lag(problem="Its client settings reach another cluster, or as another user: this page does not.")
            for name, target in targets.items()
            if dict(target.cluster.admin) != own
        }
        by_isolation: dict[str, dict[str, Target]] = defaultdict(dict)
        for name, target in targets.items():
            if name not in found:
                by_isolation[target.cluster.isolation_level][name] = target
        for isolation, of_it in by_isolation.items():
            view = ClusterView(admin, isolation)
            view.load_topics(of_it.values())
            places = view.partitions_of_all(of_it.values())
            view.load_ends(places)
            view.load_beginnings(places)
            committed = self._committed(admin, view, of_it)
            found.update({name: self._lag(view, target, committed) for name, target in of_it.items()})
        return found

    def _committed(
        self, admin: Admin, view: ClusterView, targets: Mapping[str, Target]
    ) -> dict[str, dict[TopicPartition, int] | ConnectError]:
        wanted: dict[str, list[TopicPartition]] = {}
        for target in targets.values():
            wanted.setdefault(target.group, []).extend(sorted(view.partitions_of_all([target])))
        return many_offsets.committed_of_each(admin, wanted)

    def _lag(
        self, view: ClusterView, target: Target, groups: Mapping[str, dict[TopicPartition, int] | ConnectError]
    ) -> _Lag:
        try:
            committed = groups.get(target.group, UnavailableError("Kafka did not send the committed offsets in time."))
            if isinstance(committed, ConnectError):
                raise committed
            log = view.log_state(target, committed)
            history = self._histories.of.get(target.name)
            state = history.state if history else None
            ranges = uncopied(log, state, target.policy, self._now_ms())
        except ConnectError as error:
            return _Lag(problem=str(error))
        positions = tuple(
            Position(
                r.topic, r.partition, log.committed.get(r.topic_partition), r.start,
                log.earliest[r.topic_partition], log.end[r.topic_partition],
            )
            for r in ranges
        )  # fmt: skip
        return _Lag(positions, sum(position.lag for position in positions))

    def _statuses(self, name: str) -> tuple[Status, ...]:
        status = self._registry.status
        own = status.connectors.get(name)
        tasks = status.tasks.get(name, {})
        return (*([own] if own else []), *(tasks[number] for number in sorted(tasks)))

    # --- connectors ----------------------------------------------------------------------------------------------

    def _schedules(self) -> Mapping[str, DagSchedule] | UnavailableError:
        """The schedules of all DAGs of connectors that are not registered, or why they are not known."""
        of_dags = [h for name, h in self._histories.of.items() if name not in self._registry.config.connectors]
        wanted = {dag_id for history in of_dags for dag_id in dags_of(history.newest_first())}
        try:
            return self._read_schedules(wanted) if wanted else {}
        except UnavailableError as error:
            return error

    def _connector(
        self, name: str, lag: _Lag, schedules: Mapping[str, DagSchedule] | UnavailableError, now_ms: int
    ) -> Connector:
        registered = self._registry.config.connectors.get(name)
        history = self._histories.of.get(name) or History(name)
        runs = history.newest_first()
        dag_ids = () if registered else dags_of(runs)
        known = {} if isinstance(schedules, UnavailableError) else schedules
        own = tuple(known[dag_id] for dag_id in dag_ids if dag_id in known)
        facts = connector_states.Facts(
            config=registered.config if registered else None,
            target=self._registry.config.target(name) if registered else STARTED,
            statuses=self._statuses(name),
            runs=runs,
            is_copying=bool(history.copying),
            lag=lag.lag,
            is_lag_unknown=bool(lag.problem),
            interval_s=self._settings.interval_s,
            schedules=own,
        )
        state, error = connector_states.state_of(facts, now_ms)
        kind = kind_of(registered.config) if registered else _kind_of_dag(history)
        return Connector(
            name=name,
            kind=kind,
            config=dict(registered.config) if registered else None,
            state=state,
            problem=error.get("message", "") or history.damage,
            advice=error.get("suggestion", ""),
            lag_problem=lag.problem,
            change=self._registry.changes.get(name),
            positions=lag.positions,
            lag=lag.lag,
            runs=runs,
            next_run_ms=connector_states.next_run_ms(facts),
            missed_run_ms=connector_states.missed_run_ms(facts, now_ms) if state is State.LATE else None,
            schedule_note=note_of(own),
            schedule_problem=str(schedules) if isinstance(schedules, UnavailableError) else problem_of(dag_ids, own),
            target=facts.target if registered else "",
            lag_of_hours=history.state.lag_of_hours if history.state else (),
            copying=history.copying,
            progress=history.progress,
            coverage=_coverage(history),
        )


def _coverage(history: History) -> Coverage:
    """What the runs of a backup have copied; {} for any other connector."""
    try:
        return Coverage() if history.state is None else Coverage.of(history.state.kept)
    except (KeyError, TypeError, ValueError, AttributeError):
        return Coverage()  # another plugin may use this name for something else


def _kind_of_dag(history: History) -> str:
    state = history.state
    if state is None:
        return UNKNOWN
    return _DAG_SINK if state.committed or state.begun else SOURCE
