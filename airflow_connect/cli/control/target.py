"""Where the requests of a command go: to the REST API of a worker, or straight to Kafka."""

from __future__ import annotations

import os
import shlex
from argparse import Action, ArgumentParser, Namespace, _ArgumentGroup
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_connect.cli.inputs import complete_files, configuration_files
from airflow_connect.cli.terminal import Terminal
from airflow_connect.errors import ConfigError, UnavailableError, missing_package
from airflow_connect.runtime.config_files import read_worker_file
from airflow_connect.runtime.reporting.redaction import secret_values

if TYPE_CHECKING:
    from airflow_connect.control.client.connectors import Connectors
    from airflow_connect.control.client.over_kafka import KafkaConnectors
    from airflow_connect.control.client.rest import ConnectRest

URL_ENV, WORKER_ENV, LOGIN_ENV = "AIRFLOW_CONNECT_URL", "AIRFLOW_CONNECT_WORKER", "AIRFLOW_CONNECT_LOGIN"
DEFAULT_URL = "http://127.0.0.1:8083"
TIMEOUT_S, RETRY_S = 30.0, 20.0
"""Of one request, and for how long it is repeated: a person waits."""
COMPLETE_WITHIN_S = 1.5


def add_target(parser: ArgumentParser) -> None:
    """The arguments that say where the requests go."""
    group = parser.add_argument_group("where the connectors are registered")
    group.add_argument(
        "--url",
        default=None,
        metavar="URL",
        help=f"REST API of a worker, also of Kafka Connect (default: ${URL_ENV}, or {DEFAULT_URL})",
    )
    complete_files(
        group.add_argument(
            "--worker",
            default=None,
            metavar="FILE",
            help=f"worker configuration: straight to its topics in Kafka, without a server (default: ${WORKER_ENV})",
        )
    )
    add_login(group)


def add_login(parser: ArgumentParser | _ArgumentGroup) -> None:
    """The arguments about a login and certificates."""
    parser.add_argument(
        "--login-file",
        default="",
        metavar="FILE",
        help=f"file with user:password for the REST API (default: ${LOGIN_ENV})",
    )
    parser.add_argument(
        "--ca", default="", metavar="FILE", help="certificates of authorities for https, PEM (default: the system's)"
    )


def connectors_of(arguments: Namespace, terminal: Terminal) -> Connectors:
    """What carries out the requests.

    Raises:
        ConfigError: the arguments contradict each other, or a file cannot be used.
        MissingPackageError: httpx is not installed.
        UnavailableError, AccessError: Kafka.
    """
    worker = worker_file_of(arguments)
    if worker is not None:
        return _over_kafka(worker, terminal)
    url = arguments.url or os.environ.get(URL_ENV) or DEFAULT_URL
    client = rest_client(url, arguments, terminal)
    _refuse_silence(url, client)
    return client


def kafka_of(arguments: Namespace, terminal: Terminal, purpose: str) -> KafkaConnectors:
    """The same, for what only Kafka knows.

    Raises:
        ConfigError: there is no worker file.
    """
    return _over_kafka(worker_configuration(arguments, purpose), terminal)


def worker_configuration(arguments: Namespace, purpose: str) -> Mapping[str, Any]:
    """The worker configuration, for what needs the brokers.

    Raises:
        ConfigError: none is given; says that `purpose` needs it.
    """
    worker = worker_file_of(arguments)
    if worker is None:
        raise ConfigError(
            f"{purpose} needs the brokers, and a REST API does not give access to them.",
            suggestion=f"Name a worker configuration: --worker worker.properties, or ${WORKER_ENV}.",
        )
    return worker


def worker_file_of(arguments: Namespace) -> Mapping[str, Any] | None:
    """The worker configuration; None if requests go to a URL. What is given beats the environment.

    Raises:
        ConfigError: both are given, or the file cannot be read.
    """
    if arguments.url and arguments.worker:
        raise ConfigError("Both --url and --worker are given.", suggestion="Use one of them.")
    path = arguments.worker or ("" if arguments.url else os.environ.get(WORKER_ENV, ""))
    return read_worker_file(path) if path else None


def target_options(arguments: Namespace) -> str:
    """The options that lead another command to the same place, with a blank before them; "" if it goes there anyway."""
    given = (("--worker", arguments.worker), ("--url", arguments.url), ("--login-file", arguments.login_file))
    return "".join(f" {option} {shlex.quote(value)}" for option, value in given if value)


def _refuse_silence(url: str, client: ConnectRest) -> None:
    """Requests are repeated while a cluster rebalances; an address where nothing listens is told at once."""
    try:
        client.at_once().version()
    except UnavailableError as error:
        raise UnavailableError(
            f"No worker answers at {url}. {error.message}",
            code=error.code,
            suggestion=f"Name another one with --url or ${URL_ENV}, or go straight to Kafka with --worker"
            " worker.properties.",
        ) from error


def rest_client(url: str, arguments: Namespace, terminal: Terminal, retry_s: float = RETRY_S) -> ConnectRest:
    """A client of a REST API, which is a `Connectors` as well.

    Raises:
        ConfigError: the URL has another form or holds a password, or a file cannot be used.
        MissingPackageError: httpx is not installed.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"--url is {url!r}, which is not a URL.", suggestion=f"Write it as {DEFAULT_URL}.")
    if "@" in parts.netloc:
        raise ConfigError(
            "The URL holds a login, but all users of this machine can read command lines.",
            suggestion=f"Write user:password into a file, and use --login-file, or set ${LOGIN_ENV}.",
        )
    try:
        import httpx
    except ModuleNotFoundError as error:
        raise missing_package("httpx", "rest", purpose="A request to a REST API", where="") from error
    from airflow_connect.control.client.rest import ConnectRest
    from airflow_connect.runtime.reporting.redaction import Redactor

    login = _login(arguments)
    secrets = [login[1]] if login else []
    terminal.hide({}, secrets)
    try:
        client = httpx.Client(
            auth=login,
            verify=_authorities(arguments.ca),
            timeout=min(TIMEOUT_S, retry_s + 1),
            follow_redirects=False,  # Headers and configurations with secrets would go wherever it leads.
            limits=httpx.Limits(max_keepalive_connections=0),  # A command ends without closing its client.
        )
    except (OSError, ValueError) as error:
        raise ConfigError(f"--ca {arguments.ca} cannot be used: {error}.", suggestion="Give a PEM file.") from error
    return ConnectRest([url.rstrip("/")], client, Redactor(secrets), retry_s)


def complete_names(action: Action, *, or_file: bool = False) -> None:
    """Let shells complete the argument with the names of registered connectors; `or_file`: also configuration files."""
    action.completer = _names_and_files if or_file else _names  # type: ignore[attr-defined] # as argcomplete wants it


def _names_and_files(prefix: str, parsed_args: Namespace, **_: object) -> list[str]:
    return [*configuration_files(prefix), *_names(prefix, parsed_args)]


def _names(prefix: str, parsed_args: Namespace, **_: object) -> list[str]:
    """Live names; none if the server does not answer in time. Nothing may be printed: a shell is waiting."""
    import threading

    found: list[str] = []

    def ask() -> None:
        try:
            found.extend(_quick(parsed_args).names())
        except Exception:  # noqa: BLE001 (a shell offers nothing then; the command itself says what is wrong)
            found.clear()

    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 2)  # librdkafka logs there.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(COMPLETE_WITHIN_S)
    return [name for name in list(found) if name.startswith(prefix)]


def _quick(arguments: Namespace) -> Connectors:
    quiet = Terminal()
    worker = worker_file_of(arguments)
    if worker is not None:
        return _over_kafka(worker, quiet)
    url = arguments.url or os.environ.get(URL_ENV) or DEFAULT_URL
    return rest_client(url, arguments, quiet, retry_s=0.0)


def _over_kafka(worker: Mapping[str, Any], terminal: Terminal) -> KafkaConnectors:
    from airflow_connect.control.client.over_kafka import KafkaConnectors

    terminal.hide({}, secret_values(worker))
    found = KafkaConnectors(worker)
    terminal.hide(found.settings.references.values)
    return found


def _login(arguments: Namespace) -> tuple[str, str] | None:
    text = os.environ.get(LOGIN_ENV, "")
    if arguments.login_file:
        try:
            text = Path(arguments.login_file).read_text("utf-8").strip()
        except OSError as error:
            raise ConfigError(f"The login file {arguments.login_file} cannot be read: {error.strerror}.") from error
    if not text:
        return None
    user, separator, password = text.partition(":")
    if not separator or not user:
        raise ConfigError(
            "The login is not user:password.", suggestion="Write the name, a colon and the password in one line."
        )
    return user, password


def _authorities(path: str) -> Any:
    import ssl

    return ssl.create_default_context(cafile=path) if path else True
