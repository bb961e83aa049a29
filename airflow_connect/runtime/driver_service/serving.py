"""Serves the application: address, token, certificate; sweeps meanwhile and ends all runs at the end."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_connect.errors import ConfigError, UnavailableError, missing_package
from airflow_connect.runtime.driver_service.contract import DEFAULT_PORT
from airflow_connect.runtime.driver_service.runs import DriverRuns, Limits
from airflow_connect.runtime.listening import in_url, is_loopback, listen

if TYPE_CHECKING:
    import uvicorn

TOKEN_ENV = "AIRFLOW_CONNECT_DRIVER_TOKEN"
MIN_TOKEN_LENGTH = 16
SWEEP_EVERY_S = 1.0
_IDLE_S = 30
"""Seconds for which a connection without a request stays open."""
MOST_CONNECTIONS = 1000
"""A connection above this number gets 503 at once."""


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Where the service listens, and what it allows.

    Attributes:
        host: address or name to listen on.
        port: 0: a free one.
        token: what clients have to know; "": none.
        certfile, keyfile: PEM files of the certificate; "": no TLS.
        limits: of its runs.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    token: str = field(default="", repr=False)
    certfile: str = ""
    keyfile: str = ""
    limits: Limits = field(default_factory=Limits)

    def check(self) -> None:
        """Refuse settings that would let strangers start programs here.

        Raises:
            ConfigError: names the option.
        """
        if not self.token and not is_loopback(self.host):
            raise ConfigError(
                f"The driver service would listen on {self.host} without a token.",
                code="driver_service.no_token",
                config_path="--host",
                suggestion="Whoever can reach it could start programs on this machine. Give --token-file, or set "
                f"{TOKEN_ENV}.",
            )
        if self.token and len(self.token) < MIN_TOKEN_LENGTH:
            raise ConfigError(
                f"The token is shorter than {MIN_TOKEN_LENGTH} characters.",
                code="driver_service.no_token",
                config_path="--token-file",
                suggestion="Create one with: openssl rand -hex 32",
            )
        if self.keyfile and not self.certfile:
            raise ConfigError(
                "--key is given without --cert.",
                config_path="--cert",
                suggestion="Give both, or a --cert file that holds certificate and key.",
            )


def read_token(path: str, environment: Mapping[str, str] = os.environ) -> str:
    """The token: the content of the file, else of the environment variable, else "".

    Raises:
        ConfigError: the file cannot be read, is empty, or other users may read it.
    """
    if not path:
        return environment.get(TOKEN_ENV, "").strip()
    try:
        mode, token = Path(path).stat().st_mode, Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"The token cannot be read from {path}: {error.__class__.__name__}.",
            config_path="--token-file",
            suggestion="Name a text file that holds the token and nothing else.",
        ) from error
    if not token or mode & 0o007:
        why = "is empty" if not token else "can be read or written by every user of this machine"
        raise ConfigError(
            f"The token file {path} {why}.",
            config_path="--token-file",
            suggestion=f"Run: chmod 640 {path}" if token else "Create a token with: openssl rand -hex 32",
        )
    return token


def serve(
    settings: ServiceSettings,
    tell: Callable[[str], None],
    stopping: threading.Event,
    on_listening: Callable[[str], None],
) -> None:
    """Serve until `stopping` is set, then end all runs.

    Args:
        settings: checked.
        tell: writes a line of the service's log.
        stopping: ends the service.
        on_listening: gets the URL, once requests are answered.

    Raises:
        MissingPackageError: uvicorn or starlette is not installed.
        ConfigError: the certificate cannot be used.
        UnavailableError: the address cannot be listened on.
    """
    try:
        import uvicorn

        from airflow_connect.runtime.bounded_connections import BoundedHeads, bounded_protocol
        from airflow_connect.runtime.driver_service.app import create_app

        runs = DriverRuns(settings.limits, tell)
        app = BoundedHeads(create_app(runs, settings.token))
    except ModuleNotFoundError as error:
        raise missing_package(
            error.name or "uvicorn", "driver-service", purpose="The driver service", where=""
        ) from error
    tls = _checked_certificate(settings)
    config = uvicorn.Config(
        app,
        http=bounded_protocol(),
        ws="none",
        limit_concurrency=MOST_CONNECTIONS,
        log_config=None,  # A line for each request would only hide the lines about runs.
        access_log=False,
        lifespan="off",
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=1,
        server_header=False,
        **tls,  # type: ignore[arg-type]
    )
    listener = _listen(settings)
    server = uvicorn.Server(config)
    threading.Thread(target=_sweep, args=(runs, stopping, server), name="sweep", daemon=True).start()
    scheme, port = "https" if tls else "http", listener.getsockname()[1]
    if settings.token and not tls and not is_loopback(settings.host):
        tell("It has no certificate: the token, and the secrets of connectors, cross the network as plain text.")
    on_listening(f"{scheme}://{in_url(settings.host)}:{port}")
    try:
        server.run(sockets=[listener])
    finally:
        runs.close()
        listener.close()


def _sweep(runs: DriverRuns, stopping: threading.Event, server: uvicorn.Server) -> None:
    while not stopping.wait(SWEEP_EVERY_S):
        runs.sweep()
    server.should_exit = True


def _checked_certificate(settings: ServiceSettings) -> dict[str, str]:
    """Arguments of uvicorn; {} without TLS."""
    if not settings.certfile:
        return {}
    try:
        # No prompt for a passphrase: there may be no terminal.
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
            settings.certfile, settings.keyfile or None, password=lambda: ""
        )
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError.
        raise ConfigError(
            f"The certificate cannot be used: {error}.",
            code="driver_service.certificate",
            config_path="--cert",
            suggestion="Give PEM files of a certificate and its key, without a passphrase.",
        ) from error
    return {"ssl_certfile": settings.certfile, **({"ssl_keyfile": settings.keyfile} if settings.keyfile else {})}


def _listen(settings: ServiceSettings) -> socket.socket:
    try:
        return listen(settings.host, settings.port)
    except OSError as error:
        raise UnavailableError(
            f"The driver service cannot listen on {settings.host}:{settings.port}: {error.strerror or error}.",
            code="driver_service.address",
            suggestion="Choose another --host or --port.",
        ) from error
