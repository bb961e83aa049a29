"""What pages ask: installations, connectors, single runs, dead letters, plans; each answer is remembered."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from airflow_connect.airflow.config_provider import PROVIDER_NAME, AirflowConfigProvider
from airflow_connect.config_providers.resolving import resolve_references
from airflow_connect.errors import ConfigError
from airflow_connect.runtime.reporting.redaction import Redactor
from airflow_connect.ui.overview.reader import InstallationReader
from airflow_connect.ui.overview.watching import Memory, Remembered, Seen
from airflow_connect.ui.web.dag_schedules import DagSchedules
from airflow_connect.ui.web.installations import Installation, Installations
from airflow_connect.ui.web.known_classes import unknown_classes

if TYPE_CHECKING:
    from airflow_connect.api.config.references import ResolvedReferences
    from airflow_connect.control.state.config_fold import Registered
    from airflow_connect.documents.run import Plan
    from airflow_connect.observe.inspecting.doctor import Check
    from airflow_connect.observe.inspecting.samples import Samples
    from airflow_connect.runtime.driver.dead_letters.replay import Replayed, ReplayRequest
    from airflow_connect.runtime.spec import RunSpec
    from airflow_connect.ui.overview.details import DeadLetters, FullRun
    from airflow_connect.ui.overview.model import Connector, Overview
    from airflow_connect.ui.overview.problems import Problem
    from airflow_connect.ui.overview.retention import Deadline
    from airflow_connect.ui.web.dag_tasks import DagTask

Config = Mapping[str, str | None]
_Value = TypeVar("_Value")
FRESH_S = 4.0
"""A page that is loaded again sooner shows what is known; the script loads pages every five seconds."""
WAIT_S = 1.5
"""How long a page waits for its first answer."""
DETAILS_FRESH_S = 20.0
DETAILS_WAIT_S = 0.1
"""A page that does not have everything yet is loaded again by its script after a second."""
MOST_SAMPLES = 10
DOCTOR_WITHIN_S = 60.0
DOCTOR_FRESH_S = 70.0
"""Longer than the checks may take: a page that waits for them must not begin them again."""


@dataclass(frozen=True, slots=True)
class Look:
    """How an answer is looked at.

    Attributes:
        wait_s: how long the page may wait for it.
        is_new: whether somebody has asked for a new one; without a script, the page waits for that.
    """

    wait_s: float = DETAILS_WAIT_S
    is_new: bool = False

    @property
    def fresh_s(self) -> float:
        """How old the answer may be."""
        if not self.is_new:
            return DOCTOR_FRESH_S
        return 0.0 if self.wait_s > DETAILS_WAIT_S else 0.5


class Oldest(NamedTuple):
    """The time of the oldest record that waits; None: not known, or nothing waits."""

    record_ms: int | None


class Console:
    """Answers for pages. Threads may share it."""

    def __init__(self, installations: Installations) -> None:
        """Asks for nothing yet."""
        self.installations = installations
        self._memory = Memory(Redactor([]))
        self._readers: dict[str, tuple[Installation, InstallationReader]] = {}
        self._problems: dict[str, tuple[Overview, Mapping[str, Deadline], int, tuple[Problem, ...]]] = {}

    def overview(self, conn_id: str, *, now: bool = False) -> Seen[Overview]:
        """The installation; `now`: as it is after a change, if Kafka answers within `WAIT_S`."""
        remembered = self._memory.of(("overview", conn_id), lambda: self._read(conn_id))
        return remembered.look(0.0 if now else FRESH_S, WAIT_S)

    def known(self, conn_id: str, fresh_s: float | None = None) -> Seen[Overview]:
        """The installation as it was read last, without waiting; read in the background if that is too long ago."""
        remembered = self._memory.of(("overview", conn_id), lambda: self._read(conn_id))
        return remembered.look(FRESH_S if fresh_s is None else fresh_s, 0.0)

    def run(self, conn_id: str, connector: str, run_id: str, *, is_known: bool) -> Seen[FullRun]:
        """One run with everything that the history has of it.

        `is_known`: whether the run has ended. What was found before does not tell what the history has now.
        """

        def ask() -> FullRun:
            from airflow_connect.ui.overview.details import full_run

            return full_run(self.installations.get(conn_id).settings, connector, run_id)

        return self._detail(("run", conn_id, connector, run_id, is_known), conn_id, ask)

    def dead_letters(self, conn_id: str, name: str, queue: str) -> Seen[DeadLetters]:
        """The newest dead letters of a sink."""

        def ask() -> DeadLetters:
            from airflow_connect.ui.overview.details import newest_letters

            return newest_letters(self.installations.get(conn_id).settings, name, queue)

        return self._detail(("letters", conn_id, name, queue), conn_id, ask)

    def plan(self, conn_id: str, name: str, config: Config, look: Look | None = None) -> Seen[Plan]:
        """What the next run of a registered connector would copy."""

        def ask() -> Plan:
            from airflow_connect.runtime.driver.entry import plan_connector

            return plan_connector(self._spec(conn_id, config))

        return self._detail(("plan", conn_id, name, _mark(config)), conn_id, ask, look)

    def plan_of_dag(self, conn_id: str, name: str, config: Config, *, ask: bool) -> Seen[Plan] | None:
        """The same of a connector of a DAG. It reaches the servers that the DAG names, so it is made on request only.

        Args:
            conn_id, name, config: as `plan`.
            ask: make it, for a user who may run the DAG; otherwise: what was made for this configuration, or None.

        Raises:
            ConfigError: a class is named that the API server must not import because of a DAG.
        """
        if ask:
            if found := self.unknown_classes(conn_id, config):
                raise ConfigError(
                    f"{', '.join(found)}: the class that is named there is neither part of this package nor an entry"
                    " point, and the API server imports no other class because a DAG names it.",
                    code="airflow.unknown_class",
                    suggestion="ConnectorTaskGroup shows the plan in Airflow, airflow-connect plan in a terminal.",
                )
            self._memory.forget(("plan", conn_id, name, _mark(config)))
            return self.plan(conn_id, name, config)
        known = self._memory.known(("plan", conn_id, name, _mark(config)))
        return None if known is None else cast("Seen[Plan]", known.look(float("inf"), DETAILS_WAIT_S))

    def unknown_classes(self, conn_id: str, config: Config) -> list[str]:
        """Keys of a DAG's configuration, or of its worker's, that name classes which must not be imported here."""
        return unknown_classes({**self.worker(conn_id), **config})

    def dag_task(self, conn_id: str, dag_id: str, task_id: str, connector: str) -> Seen[DagTask]:
        """The task of a DAG that runs a connector."""

        def ask() -> DagTask:
            from airflow_connect.ui.web.dag_tasks import read_task

            return read_task(dag_id, task_id, connector)

        return self._detail(("task", dag_id, task_id, connector), conn_id, ask)

    def registered(self, conn_id: str, name: str, *, now: bool = False) -> Seen[Registered]:
        """A registered configuration and the offset of its record; `now`: as it is, if Kafka answers in time."""
        remembered = self._memory.of(
            ("registered", conn_id, name), lambda: self.installations.get(conn_id).herder.registered(name)
        )
        return remembered.look(0.0 if now else FRESH_S, WAIT_S)

    def forget_registered(self, conn_id: str, name: str) -> None:
        """It was changed."""
        self._memory.forget(("registered", conn_id, name))

    def deadlines(
        self, conn_id: str, *, fresh_s: float | None = None, wait_s: float = DETAILS_WAIT_S
    ) -> Seen[dict[str, Deadline]]:
        """When topics lose records that no sink has copied. Ask only for an installation that was read."""

        def ask() -> dict[str, Deadline]:
            from airflow_connect.ui.overview.retention import deadlines

            overview = self.overview(conn_id).value
            connectors = list(overview.connectors.values()) if overview else []
            return deadlines(self.installations.get(conn_id).settings, connectors)

        remembered = self._remembered(("deadlines", conn_id), conn_id, ask)
        return remembered.look(DETAILS_FRESH_S if fresh_s is None else fresh_s, wait_s)

    def oldest(self, conn_id: str, connector: Connector) -> Seen[Oldest]:
        """Since when the oldest record waits that a sink has not copied."""

        def ask() -> Oldest:
            from airflow_connect.ui.overview.retention import oldest_ms

            overview = self.overview(conn_id).value
            known = overview.connectors.get(connector.name, connector) if overview else connector
            return Oldest(oldest_ms(self.installations.get(conn_id).settings, known.positions))

        return self._detail(("oldest", conn_id, connector.name), conn_id, ask)

    def problems(self, conn_id: str, overview: Overview, deadlines: Mapping[str, Deadline]) -> tuple[Problem, ...]:
        """What is wrong with connectors: found once for each reading of Kafka, and each minute. Every page asks."""
        from airflow_connect.ui.overview.problems import problems_of

        now_ms = time.time_ns() // 1_000_000
        minute, known = now_ms // 60_000, self._problems.get(conn_id)
        if known is None or known[0] is not overview or known[1] is not deadlines or known[2] != minute:
            known = overview, deadlines, minute, tuple(problems_of(overview, deadlines, now_ms))
            self._problems[conn_id] = known
        return known[3]

    def doctor(self, conn_id: str, name: str, config: Config | None, look: Look = Look()) -> Seen[list[Check]]:
        """Whether everything that runs need is there: of the installation, or also of one connector.

        Ends after `DOCTOR_WITHIN_S`, whatever does not answer: checks that were not made are missing, and the last
        entry says so.
        """

        def ask() -> list[Check]:
            from airflow_connect.observe.inspecting.doctor import examine
            from airflow_connect.runtime.spec import RunSpec
            from airflow_connect.ui.pages.examining import checks_within

            worker, providers = self.worker(conn_id), {PROVIDER_NAME: AirflowConfigProvider}
            references = self.references(conn_id, config or {})
            specs = [] if config is None else [RunSpec(config, worker, references=references.values)]
            # The API server starts no run, so it may have no Spark.
            checks = examine(worker, specs, deep=True, providers=providers, runs_here=False)
            return checks_within(checks, self._redactor(conn_id, config or {}), DOCTOR_WITHIN_S)

        return self._detail(("doctor", conn_id, name, _mark(config or {})), conn_id, ask, look)

    def samples(self, conn_id: str, name: str, config: Config, look: Look) -> Seen[Samples]:
        """The first records of a sink's topics, before and after conversion."""

        def ask() -> Samples:
            from airflow_connect.observe.inspecting.samples import look_at_samples

            found = look_at_samples(self._spec(conn_id, config), MOST_SAMPLES)
            redact = self._redactor(conn_id, config)
            records = tuple(replace(record, error=redact(record.error)) for record in found.records)
            return replace(found, records=records)

        return self._detail(("samples", conn_id, name, _mark(config)), conn_id, ask, look)

    def worker(self, conn_id: str) -> dict[str, Any]:
        """The worker configuration of an installation, references unresolved."""
        return self.installations.get(conn_id).worker

    def references(self, conn_id: str, config: Config) -> ResolvedReferences:
        """The values of references, Airflow's connections and variables included.

        Raises:
            ConfigError, UnavailableError: one of them has no value.
        """
        providers = {PROVIDER_NAME: AirflowConfigProvider}
        return resolve_references(config, self.worker(conn_id), providers=providers)

    def _redactor(self, conn_id: str, config: Config) -> Redactor:
        from airflow_connect.runtime.reporting.redaction import secret_values

        return Redactor(secret_values(self.worker(conn_id), config), self.references(conn_id, config))

    def set_offsets(self, conn_id: str, config: Config, entries: list[dict[str, Any]]) -> None:
        """Set offsets of a connector that is not registered, fenced as a run is; takes as long as it takes."""
        from airflow_connect.runtime.driver.entry import set_offsets

        with self.installations.get(conn_id).settings.references.hiding_errors():
            set_offsets(self._spec(conn_id, config), entries)

    def replayed(self, conn_id: str, name: str, config: Config, request: ReplayRequest) -> Replayed:
        """Replay dead letters of a registered sink, or say what a replay would do; takes as long as it takes."""
        from airflow_connect.runtime.driver.dead_letters.replay import replay
        from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration

        configuration = SinkConfiguration.from_spec(self._spec(conn_id, config))
        with configuration.references.hiding_errors():
            found = replay(configuration, request)
        if not request.dry_run:
            self._memory.forget(("letters", conn_id, name, found.queue))
        return found

    def _spec(self, conn_id: str, config: Config) -> RunSpec:
        from airflow_connect.runtime.spec import RunSpec

        return RunSpec(config, self.worker(conn_id), references=self.references(conn_id, config).values)

    def _detail(self, key: Hashable, conn_id: str, ask: Callable[[], _Value], look: Look | None = None) -> Seen[_Value]:
        fresh_s, wait_s = (look.fresh_s, look.wait_s) if look else (DETAILS_FRESH_S, DETAILS_WAIT_S)
        return self._remembered(key, conn_id, ask).look(fresh_s, wait_s)

    def _remembered(self, key: Hashable, conn_id: str, ask: Callable[[], _Value]) -> Remembered[_Value]:
        def hiding() -> _Value:
            with self.installations.get(conn_id).settings.references.hiding_errors():
                return ask()

        return self._memory.of(key, hiding)

    def _read(self, conn_id: str) -> Overview:
        """In the one thread that asks for this installation."""
        installation = self.installations.get(conn_id)
        known = self._readers.get(conn_id)
        if known is None or known[0] is not installation:
            reader = InstallationReader(installation.settings, DagSchedules().read)
            known = self._readers[conn_id] = installation, reader
        with installation.settings.references.hiding_errors():
            return known[1].read()


def _mark(config: Config) -> int:
    """Another number for another configuration, which itself is not kept: it may hold secrets."""
    return hash(frozenset(config.items()))
