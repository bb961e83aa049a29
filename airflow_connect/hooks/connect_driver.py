"""`ConnectDriverHook`: runs at a driver service (`airflow-connect driver-service`), by its HTTP interface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from airflow.sdk import BaseHook

from airflow_connect.airflow.connections.masking import mask_in_airflow
from airflow_connect.airflow.connections.official import extra_of, get_connection
from airflow_connect.airflow.connections.tls import client_tls
from airflow_connect.airflow.outcome import error_of
from airflow_connect.errors import AccessError, ConfigError, UnavailableError
from airflow_connect.retrying import REAL_TIME, Backoff, Retry, Timing
from airflow_connect.runtime.driver_service.contract import (
    ATTEMPT,
    DEFAULT_PORT,
    LOOK_PATH,
    MOST_RUNS_OF_A_LOOK,
    NO_SUCH_RUN,
    RUNS_PATH,
    SERVICE_PATH,
    RunNews,
    RunView,
)

if TYPE_CHECKING:
    import httpx
    from airflow.sdk import Connection

    from airflow_connect.runtime.spec import RunSpec

CONN_TYPE = "connect_driver"
RETRY_S = 60.0
"""For how long a request is repeated: a restart of the service takes seconds."""
TIMEOUT_S = 15.0
"""Ending a run takes up to eight seconds."""
_PAUSES = Backoff(0.2, longest_s=5.0)
_AWAY = frozenset({502, 503, 504})
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 401, 403, 404


class ConnectDriverHook(BaseHook):
    """A driver service: start runs there, ask after them, end them.

    The connection has the type `connect_driver`: host (with a scheme if it is not http), port, `schema` (`http` or
    `https`), and the token as password. Its extra: `verify` (false, or a file with certificates of authorities),
    `cert` and `key` (files, for a client certificate that a proxy wants).

    Args:
        driver_conn_id: the connection.
        retry_s: for how long a request is repeated while the service does not answer, in seconds; None: a minute.
        timeout_s: how long one request may take, in seconds.
        timing: for tests.
    """

    conn_name_attr = "driver_conn_id"
    default_conn_name = "connect_driver_default"
    conn_type = CONN_TYPE
    hook_name = "Driver service (airflow-connect)"

    def __init__(
        self,
        driver_conn_id: str = default_conn_name,
        *,
        retry_s: float | None = None,
        timeout_s: float = TIMEOUT_S,
        timing: Timing = REAL_TIME,
    ) -> None:
        super().__init__()
        self.driver_conn_id = driver_conn_id
        self._retry_s = RETRY_S if retry_s is None else retry_s
        self._timeout_s, self._timing = timeout_s, timing

    def start(self, spec: RunSpec) -> RunView:
        """Start a run; safe to repeat. An earlier attempt of the same task may have started it under another id.

        Raises:
            ConfigError: the connection is wrong, or the service does not understand the request.
            AccessError: the service refuses the token.
            UnavailableError: the service does not answer, or has too many runs.
        """
        return RunView.from_json(self._request("PUT", f"{RUNS_PATH}/{spec.run_id}", spec.to_json()))

    def view(self, run_id: str) -> RunView | None:
        """A run with its outcome; None: the service does not know it."""
        found = self._request("GET", f"{RUNS_PATH}/{run_id}")
        return None if found is None else RunView.from_json(found)

    def news(self, run_ids: Iterable[str]) -> dict[str, RunNews]:
        """What happened in some runs since the last look."""
        wanted = list(run_ids)
        found: dict[str, RunNews] = {}
        for first in range(0, len(wanted), MOST_RUNS_OF_A_LOOK):
            part = self._request("POST", LOOK_PATH, {"runs": wanted[first : first + MOST_RUNS_OF_A_LOOK]})
            found |= {run_id: RunNews.from_json(news) for run_id, news in part["runs"].items()}
        return found

    def end(self, run_id: str, attempt: str = "") -> RunView | None:
        """End a run and have the service forget it; returns when its processes are gone. None: it is not known.

        With `attempt`, the `run_id` that `start` was given, a run that a later attempt has taken over goes on.
        """
        path = f"{RUNS_PATH}/{run_id}"
        found = self._request("DELETE", f"{path}?{urlencode({ATTEMPT: attempt})}" if attempt else path)
        return None if found is None else RunView.from_json(found)

    def test_connection(self) -> tuple[bool, str]:
        """Ask the service what it does: the button of the connection form."""
        try:
            hook = ConnectDriverHook(self.driver_conn_id, retry_s=0, timeout_s=5)
            told = hook._request("GET", SERVICE_PATH)
        except (ConfigError, AccessError, UnavailableError) as error:
            return False, f"{error.message} {error.suggestion}".strip()
        return True, (
            f"The driver service of airflow-connect {told['version']} answers: {told['running']} of {told['at_once']}"
            f" drivers run, {told['waiting']} wait."
        )

    def for_ending(self, timeout_s: float) -> ConnectDriverHook:
        """A hook with a client of its own and no repeated requests, ready for use in a signal handler.

        The handler may have interrupted this hook, which then holds its locks.

        Raises:
            ConfigError: the connection is missing or wrong.
        """
        other = ConnectDriverHook(self.driver_conn_id, retry_s=0, timeout_s=timeout_s)
        other._client = _client_of(self._connection, timeout_s)
        return other

    @cached_property
    def _connection(self) -> Connection:
        return get_connection(self.driver_conn_id)

    @cached_property
    def _client(self) -> httpx.Client:
        return _client_of(self._connection, self._timeout_s)

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer as JSON; None for a run that is not known."""
        import httpx

        tries = Retry(_PAUSES, within_s=self._retry_s, timing=self._timing)
        while True:
            try:
                answer = self._client.request(method, path, json=body)
                if answer.status_code not in _AWAY:
                    return self._understood(answer)
                error = self._away(answer)
            except httpx.HTTPError as failure:
                self._raise_if_untrusted(failure)
                error = self._unreachable(failure)
            if not tries.pause():
                raise error

    def _understood(self, answer: httpx.Response) -> Any:
        told = _json_of(answer)
        # The 404 of a proxy says nothing about the run, which may go on.
        if answer.status_code == _NOT_FOUND and told == {"message": NO_SUCH_RUN}:
            return None
        if answer.is_success and isinstance(told, dict):
            return told
        if isinstance(told, dict) and {"code", "message", "type"} <= told.keys():
            raise error_of(told)
        if answer.status_code in (_UNAUTHORIZED, _FORBIDDEN):
            raise AccessError(
                f"{self._name} refuses the request with status {answer.status_code}.",
                code="driver_service.token",
                suggestion="Check the token, which is the password of the connection.",
            )
        raise ConfigError(
            f"{self._name} answered with status {answer.status_code}, which is not the answer of a driver service.",
            code="driver_service.request",
            suggestion="Check host and port of the connection.",
        )

    def _away(self, answer: httpx.Response) -> UnavailableError:
        told = _json_of(answer)
        if isinstance(told, dict) and {"code", "message"} <= told.keys():
            return UnavailableError(told["message"], code=told["code"], suggestion=told.get("suggestion", ""))
        return UnavailableError(
            f"{self._name} answered with status {answer.status_code}.",
            code="driver_service.unavailable",
            suggestion="Check the proxy before the service.",
        )

    def _unreachable(self, failure: Exception) -> UnavailableError:
        return UnavailableError(
            f"{self._name} does not answer: {failure or type(failure).__name__}.",
            code="driver_service.unavailable",
            suggestion="Check that `airflow-connect driver-service` runs, and host and port of the connection.",
        )

    def _raise_if_untrusted(self, failure: Exception) -> None:
        if "CERTIFICATE_VERIFY_FAILED" in str(failure):
            raise ConfigError(
                f"The certificate of {self._name[:1].lower()}{self._name[1:]} is not trusted: {failure}.",
                code="driver_service.certificate",
                config_path="verify",
                suggestion="Set `verify` in the extra of the connection to the certificate of the authority.",
            ) from failure

    @property
    def _name(self) -> str:
        return f"The driver service of connection {self.driver_conn_id!r}"


def _json_of(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def _client_of(connection: Connection, timeout_s: float) -> httpx.Client:
    """A client for a connection of type `connect_driver`.

    Raises:
        ConfigError: the connection cannot be used.
    """
    import httpx

    if connection.conn_type != CONN_TYPE:
        raise ConfigError(
            f"Connection {connection.conn_id!r} is of type {connection.conn_type}, not {CONN_TYPE}.",
            code="airflow.connection_type",
            config_path="driver_conn_id",
            suggestion=f"driver_conn_id takes a connection of type {CONN_TYPE}.",
        )
    token = connection.password or ""
    mask_in_airflow([token])
    try:
        return httpx.Client(
            base_url=_url_of(connection),
            headers={"Authorization": f"Bearer {token}"} if token else None,
            verify=client_tls(extra_of(connection)),
            timeout=timeout_s,
            follow_redirects=False,  # Token and specification would go wherever it leads.
            # A hook has no end at which it could close connections.
            limits=httpx.Limits(max_keepalive_connections=0),
        )
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"Connection {connection.conn_id!r} cannot be used: {error.__class__.__name__}.",
            code="airflow.connection_extra",
            suggestion="verify, cert and key are paths of PEM files on the machine that runs the task; the token has "
            "plain ASCII characters only.",
        ) from None  # The error may quote the token.


def _url_of(connection: Connection) -> str:
    host = (connection.host or "").strip().rstrip("/")
    if not host:
        raise ConfigError(
            f"Connection {connection.conn_id!r} has no host.",
            code="airflow.connection_field",
            config_path="host",
            suggestion="Set it to the address of the driver service.",
        )
    scheme, found, rest = host.rpartition("://")
    if not found:
        scheme = connection.schema or "http"
    has_port = rest.rpartition(":")[2].isdigit() and not rest.endswith("]")
    return f"{scheme}://{rest}" if has_port else f"{scheme}://{rest}:{connection.port or DEFAULT_PORT}"
