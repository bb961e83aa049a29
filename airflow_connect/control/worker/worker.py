"""A worker: the state topics, the REST API and the rounds of one process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state.topics import StateTopics
from airflow_connect.control.worker.rounds import Rounds
from airflow_connect.control.worker.settings import LISTENERS, ServerSettings
from airflow_connect.errors import UnavailableError, missing_package
from airflow_connect.runtime.listening import listen

if TYPE_CHECKING:
    import uvicorn

    from airflow_connect.runtime.driver.run_in_progress import Engine

_IDLE_S = 30
"""Seconds for which a connection without a request stays open."""


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
            server.tls()
        return cls(control, server)


def work(settings: WorkerSettings, engine: Engine, stopping: threading.Event, tell: Callable[[str], None]) -> None:
    """Serve and run until `stopping` is set.

    Args:
        settings: checked.
        engine: the Spark session that all runs share; started by the first run that has something to copy.
        stopping: ends the worker; a run that has begun ends first.
        tell: writes a line of the worker's log.

    Raises:
        MissingPackageError: uvicorn or starlette is not installed.
        NotStoppedError: live workers of Kafka Connect own the topics.
        ConfigError, UnavailableError, AccessError: the topics, the address or the certificate cannot be used.
    """
    topics = StateTopics(settings.control)
    topics.open()
    topics.refuse_live_workers()
    listener = _listen(settings.server)
    port = listener.getsockname()[1]
    herder = Herder(topics, settings.control, settings.server.worker_id(port))
    server = _server(settings, herder)
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
    threading.Thread(target=_watch, args=(server, stopping), name="watch", daemon=True).start()
    _tell_address(settings.server, port, tell)
    try:
        loop.start()
        server.run(sockets=[listener])
    finally:
        stopping.set()
        listener.close()
        loop.join()
    if defects:
        raise defects[0]


def _server(settings: WorkerSettings, herder: Herder) -> uvicorn.Server:
    try:
        import uvicorn

        from airflow_connect.control.rest.access import Guard
        from airflow_connect.control.rest.app import create_app
        from airflow_connect.control.rest.parameters import Served
    except ModuleNotFoundError as error:
        raise missing_package(error.name or "uvicorn", "driver-service", purpose="A worker", where="") from error
    app = Guard(create_app(Served(lambda _: herder)), settings.server.users)
    return uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_keep_alive=_IDLE_S,
            timeout_graceful_shutdown=1,
            server_header=False,
            **settings.server.tls(),  # type: ignore[arg-type]
        )
    )


def _watch(server: uvicorn.Server, stopping: threading.Event) -> None:
    stopping.wait()
    server.should_exit = True


def _tell_address(server: ServerSettings, port: int, tell: Callable[[str], None]) -> None:
    tell(f"The worker listens at {server.url(port)}.")
    if not server.users:
        tell(
            "It has no users: every user of this machine can read and change connectors, but no other machine."
            f" See {LISTENERS} and rest.extension.classes."
        )
    elif not server.certificate:
        tell("It has no certificate: passwords, and the configurations of connectors, cross the network as plain text.")


def _listen(server: ServerSettings) -> Any:
    try:
        return listen(server.host, server.port)
    except OSError as error:
        raise UnavailableError(
            f"The worker cannot listen on {server.host or 'every interface'}:{server.port}: {error.strerror or error}.",
            code="worker.address",
            suggestion=f"Choose another address: {LISTENERS}.",
        ) from error
