"""The servers of a worker: one for each listener, all in one event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import uvicorn
from starlette.middleware.cors import CORSMiddleware

from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.rest import app as application
from airflow_connect.control.rest.parameters import Served
from airflow_connect.control.rest.paths import Asgi
from airflow_connect.control.rest.serving.guard import Guard
from airflow_connect.control.rest.serving.listeners import ADMIN_LISTENERS, HTTPS, LISTENERS, Listener
from airflow_connect.control.rest.serving.origins import HEADERS
from airflow_connect.control.rest.serving.response_headers import ResponseHeaders
from airflow_connect.control.rest.serving.settings import ServerSettings
from airflow_connect.control.rest.worker_state import WorkerState
from airflow_connect.runtime.bounded_connections import BoundedHeads, bounded_protocol

IDLE_S = 30
"""Seconds for which a connection without a request stays open."""
MOST_CONNECTIONS = 1000


def surrounded(app: Asgi, settings: ServerSettings) -> Asgi:
    """The application behind users, and with the headers that the settings name."""
    app = Guard(app, settings.users, settings.origins)
    if settings.origins.patterns:
        # Around the guard: a browser asks without a password whether it may send one (Fetch, CORS preflight).
        app = CORSMiddleware(
            app,
            allow_origin_regex=settings.origins.expression(),
            allow_methods=settings.origins.methods,
            allow_headers=HEADERS,
            allow_credentials=True,
        )
    return ResponseHeaders(app, settings.headers) if settings.headers else app


class RestServers:
    """The servers. `listen`, then `run` in a thread, until `end` is called in another one."""

    def __init__(self, settings: ServerSettings) -> None:
        """Opens nothing."""
        self._settings = settings
        self._open: list[tuple[Listener, socket.socket]] = []
        self._servers: list[uvicorn.Server] = []
        self._is_ended = False

    def listen(self) -> None:
        """Take all addresses.

        Raises:
            UnavailableError: one is taken.
        """
        try:
            for listener in (*self._settings.listeners, *(self._settings.admin_listeners or ())):
                self._open.append((listener, listener.open()))
        except BaseException:
            self.close()
            raise

    @property
    def worker_id(self) -> str:
        """host:port of the advertised listener."""
        wanted = self._settings.advertised()
        return self._settings.worker_id(next(_port(taken) for listener, taken in self._open if listener is wanted))

    @property
    def urls(self) -> list[str]:
        """Where they can be reached from this machine."""
        return [listener.url(_port(taken)) for listener, taken in self._open]

    def tell(self, say: Callable[[str], None]) -> None:
        """Say where they listen, and what is dangerous about it."""
        for url in self.urls:
            say(f"The worker listens at {url}.")
        if not self._settings.users:
            say(
                "It has no users: every user of this machine can read and change connectors, but no other machine."
                f" See {LISTENERS} and rest.extension.classes."
            )
        elif any(listener.scheme != HTTPS for listener, _ in self._open):
            say(
                "It has no certificate: passwords, and the configurations of connectors, cross the network as"
                " plain text."
            )

    def run(
        self, herder: Herder, worker: WorkerState | None = None, admin: Callable[[Asgi], Asgi] = lambda app: app
    ) -> None:
        """Answer requests until `end` is called.

        Args:
            herder: carries them out.
            worker: what it says about this process.
            admin: surrounds the application of listeners that have administrative paths, to answer more of them.

        Raises:
            ConfigError, MissingPackageError: a certificate cannot be used.
        """
        served = Served(lambda _: herder, worker=worker or WorkerState())
        apart = self._settings.admin_listeners is not None
        apps = {LISTENERS: application.create_app(served, application.CONNECTORS if apart else application.EVERYTHING)}
        if apart:
            apps[ADMIN_LISTENERS] = application.create_app(served, application.ADMIN)
        with_admin = ADMIN_LISTENERS if apart else LISTENERS
        ready = {key: surrounded(admin(app) if key == with_admin else app, self._settings) for key, app in apps.items()}
        self._servers = [self._server(ready[listener.key], listener) for listener, _ in self._open]
        if self._is_ended:  # before there was a server that could be told
            return
        with asyncio.Runner(loop_factory=self._servers[0].config.get_loop_factory()) as runner:
            runner.run(self._serve())

    def end(self) -> None:
        """Let `run` return, now or when it begins."""
        self._is_ended = True
        for server in self._servers:
            server.should_exit = True

    def close(self) -> None:
        """Give the addresses up."""
        for _, taken in self._open:
            taken.close()
        self._open.clear()

    def _server(self, app: Asgi, listener: Listener) -> uvicorn.Server:
        config = uvicorn.Config(
            BoundedHeads(app),
            http=bounded_protocol(),
            ws="none",
            log_config=None,
            access_log=False,
            lifespan="off",
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=IDLE_S,
            timeout_graceful_shutdown=1,
            server_header=False,
        )
        config.load()
        config.ssl = self._settings.context_of(listener)
        return uvicorn.Server(config)

    async def _serve(self) -> None:
        pairs = zip(self._servers, self._open, strict=True)
        await asyncio.gather(*(server.serve(sockets=[taken]) for server, (_, taken) in pairs))


def _port(taken: socket.socket) -> int:
    port: int = taken.getsockname()[1]
    return port
