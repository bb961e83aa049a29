"""A worker: the state topics, the REST API and the rounds of one process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.rest.serving.settings import ServerSettings
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state.topics import StateTopics
from airflow_connect.control.worker.rounds import Rounds
from airflow_connect.errors import missing_package

if TYPE_CHECKING:
    from airflow_connect.control.rest.serving.servers import RestServers
    from airflow_connect.runtime.driver.run_in_progress import Engine


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """A worker configuration.

    Attributes:
        control: topics and clients.
        server: where it listens.
    """

    control: ControlSettings
    server: ServerSettings = field(default_factory=ServerSettings)

    @classmethod
    def from_worker(cls, raw: Mapping[str, Any]) -> WorkerSettings:
        """Check everything that can be checked without a server.

        Raises:
            ConfigError: names the key.
            UnavailableError: a config provider's server did not answer.
        """
        control = ControlSettings.from_worker(raw)
        with control.references.hiding_errors():
            server = ServerSettings.from_worker(control.references.resolve(raw))
            server.check()
        return cls(control, server)


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
    servers = _servers(settings)
    servers.listen()
    herder = Herder(topics, settings.control, servers.worker_id)
    rounds = Rounds(topics, herder, engine, tell)
    defects: list[BaseException] = []

    def run_rounds() -> None:
        try:
            rounds.run_until(stopping, settings.control.interval_s)
        except BaseException as defect:  # noqa: BLE001 (raised again below, in the thread of the caller)
            defects.append(defect)
        finally:
            stopping.set()  # A worker that no longer runs connectors must not look healthy.

    loop = threading.Thread(target=run_rounds, name="rounds", daemon=True)
    threading.Thread(target=_watch, args=(servers, stopping), name="watch", daemon=True).start()
    servers.tell(tell)
    try:
        loop.start()
        servers.run(herder)
    finally:
        stopping.set()
        servers.close()
        loop.join()
    if defects:
        raise defects[0]


def _servers(settings: WorkerSettings) -> RestServers:
    try:
        from airflow_connect.control.rest.serving.servers import RestServers
    except ModuleNotFoundError as error:
        raise missing_package(error.name or "fastapi", "worker", purpose="A worker", where="") from error
    return RestServers(settings.server)


def _watch(servers: RestServers, stopping: threading.Event) -> None:
    stopping.wait()
    servers.end()
