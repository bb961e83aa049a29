"""A worker: the state topics, the REST API and the rounds of one process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.herder.loggers import Loggers
from airflow_connect.control.metrics.beans import WorkerMetrics
from airflow_connect.control.metrics.run_counts import RunCounts
from airflow_connect.control.rest.serving.settings import ServerSettings
from airflow_connect.control.rest.worker_state import WorkerState
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state.topics import StateTopics
from airflow_connect.control.worker.cluster_levels import ClusterLevels
from airflow_connect.control.worker.group_settings import timeouts_of
from airflow_connect.control.worker.rounds import Pace, Rounds
from airflow_connect.control.worker.sharing import LOOK_EVERY_S, Sharing
from airflow_connect.errors import AccessError, ConnectError, missing_package
from airflow_connect.kafka.admin.worker_membership import Timeouts, WorkerMembership
from airflow_connect.kafka.state import compacted_topics, worker_topics

if TYPE_CHECKING:
    from airflow_connect.config.resolved.worker import WorkerConfig
    from airflow_connect.control.rest.paths import Asgi
    from airflow_connect.control.rest.serving.servers import RestServers
    from airflow_connect.runtime.driver.run_in_progress import Engine

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """A worker configuration.

    Attributes:
        control: topics and clients.
        server: where it listens.
        timeouts: of the group of workers.
    """

    control: ControlSettings
    server: ServerSettings = field(default_factory=ServerSettings)
    timeouts: Timeouts = field(default_factory=Timeouts)

    @classmethod
    def from_worker(cls, raw: Mapping[str, Any]) -> WorkerSettings:
        """Check everything that can be checked without a server.

        Raises:
            ConfigError: names the key.
            UnavailableError: a config provider's server did not answer.
        """
        control = ControlSettings.from_worker(raw)
        with control.references.hiding_errors():
            resolved = control.references.resolve(raw)
            server = ServerSettings.from_worker(resolved)
            server.check()
            timeouts = timeouts_of(resolved)
        return cls(control, server, timeouts)


def work(settings: WorkerSettings, engine: Engine, stopping: threading.Event, tell: Callable[[str], None]) -> None:
    """Serve and run until `stopping` is set.

    Args:
        settings: checked.
        engine: the Spark session that all runs share; started by the first run that has something to copy.
        stopping: ends the worker; a run that has begun ends first.
        tell: writes a line of the worker's log.

    Raises:
        MissingPackageError: fastapi or uvicorn is not installed.
        NotStoppedError: live workers of Kafka Connect own the topics.
        ConfigError, UnavailableError, AccessError: the topics, the address or the certificate cannot be used.
    """
    topics = StateTopics(settings.control)
    topics.open()
    topics.refuse_live_workers()
    _ensure_topics_of_runs(topics, settings.control.worker, tell)
    servers = _servers(settings)
    servers.listen()
    herder = Herder(topics, settings.control, servers.worker_id)
    membership = _membership(settings, servers.worker_id)
    metrics = WorkerMetrics(topics, RunCounts(), servers.worker_id, membership)
    loggers = Loggers()
    levels = ClusterLevels(topics, loggers)
    sharing = Sharing(topics, settings.control, membership, servers.worker_id, tell)
    rounds = Rounds(topics, herder, engine, tell, sharing, metrics.counts)
    work = _Threads(stopping)
    try:
        routes = _metrics_routes(metrics)
        membership.join(settings.timeouts)
        work.start("watch", lambda: _watch(servers, membership, stopping))
        work.start("sharing", lambda: _keep_up(sharing, levels, stopping))
        work.start("rounds", lambda: rounds.run_until(stopping, _pace(settings.control)))
        servers.tell(tell)
        servers.run(herder, WorkerState(loggers, metrics.counts.running_s), routes)
    finally:
        stopping.set()
        servers.close()
        work.join()


def _pace(control: ControlSettings) -> Pace:
    return Pace(
        control.interval_s,
        looks_early=not control.has_own_interval,
        timeout_s=control.timeout_s,
        at_once=control.runs_at_once,
    )


def _ensure_topics_of_runs(topics: StateTopics, worker: WorkerConfig, tell: Callable[[str], None]) -> None:
    """Find or create the topics for runs and for offsets of sources, so that what is wrong with one is known now.

    Source: Kafka Connect's workers create their three topics when they start (DistributedHerder.startServices).
    """
    worker_topics.ensure_runs(topics.admin, worker, tell)
    offsets = worker_topics.offsets(worker, worker.sources.offsets_topic, tell)
    try:
        compacted_topics.ensure(topics.admin, offsets)
    except AccessError as error:  # An installation without sources may have no such permission.
        tell(f"Sources cannot run until this is repaired. {error}")


class _Threads:
    """Threads of a worker. If one of them ends, all do: a worker that does half of its work must not look healthy."""

    def __init__(self, stopping: threading.Event) -> None:
        """`stopping`: set when a thread ends."""
        self._stopping = stopping
        self._threads: list[threading.Thread] = []
        self._defects: list[BaseException] = []

    def start(self, name: str, work: Callable[[], None]) -> None:
        """Call `work` in a thread of its own."""

        def target() -> None:
            try:
                work()
            except BaseException as defect:  # noqa: BLE001 (raised again by `join`, in the thread of the caller)
                self._defects.append(defect)
            finally:
                self._stopping.set()

        thread = threading.Thread(target=target, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def join(self) -> None:
        """Wait for all of them; raises what ended the first one."""
        for thread in self._threads:
            thread.join()
        if self._defects:
            raise self._defects[0]


def _membership(settings: WorkerSettings, worker_id: str) -> WorkerMembership:
    control = settings.control
    return WorkerMembership(control.reader, control.group_id, control.config_topic.name, worker_id)


def _keep_up(sharing: Sharing, levels: ClusterLevels, stopping: threading.Event) -> None:
    """Follow the group and the config topic."""
    while not stopping.wait(LOOK_EVERY_S):
        sharing.look()
        try:
            levels.look()
        except ConnectError as error:
            _LOG.info("Log levels are looked for again: %s", error)


def _servers(settings: WorkerSettings) -> RestServers:
    try:
        from airflow_connect.control.rest.serving.servers import RestServers
    except ModuleNotFoundError as error:
        raise missing_package(error.name or "fastapi", "worker", purpose="A worker", where="") from error
    return RestServers(settings.server)


def _metrics_routes(metrics: WorkerMetrics) -> Callable[[Asgi], Asgi]:
    try:
        import prometheus_client  # noqa: F401 (named as missing at the start, not by the first scrape)

        from airflow_connect.control.metrics.serving import MetricsRoutes
    except ModuleNotFoundError as error:
        raise missing_package(error.name or "prometheus_client", "worker", purpose="A worker", where="") from error
    return lambda app: MetricsRoutes(app, metrics)


def _watch(servers: RestServers, membership: WorkerMembership, stopping: threading.Event) -> None:
    """When the worker ends, the others take its connectors at once: a run that goes on to its next step is fenced."""
    stopping.wait()
    membership.leave()
    servers.end()
