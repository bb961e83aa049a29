"""A client of the REST API of a Kafka Connect cluster.

A worker answers 409 while its cluster rebalances, and 500 or 503 while it has no leader or restarts. Such requests are
repeated with a bound: all of them may be sent twice, because a configuration is written with PUT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_connect.control.client.connectors import no_connector
from airflow_connect.errors import AccessError, ConfigError, ConnectError, UnavailableError
from airflow_connect.retrying import REAL_TIME, AtDeadline, Backoff, Retry, Timing
from airflow_connect.runtime.reporting.redaction import Redactor, secret_values

if TYPE_CHECKING:
    import httpx

RETRY_S = 60.0
"""How long a request is repeated: a rebalance waits `scheduled.rebalance.max.delay.ms` only for its tasks."""
_PAUSES = Backoff(0.2, longest_s=5.0)
_BUSY = frozenset({409, 502, 503, 504})
_PASSING = ("rebalanc", "stale configuration", "conflicting operation", "leader", "timed out")
"""Words in an answer of status 500 that mean: the cluster is changing."""
_MOST_TRACE_LINES = 3


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    """What a cluster says about a connector.

    Attributes:
        state: of the connector: `RUNNING`, `PAUSED`, `STOPPED`, `FAILED`, `UNASSIGNED`, `RESTARTING`.
        tasks: states of its tasks, by their number.
        failure: the first lines of the trace of what failed, or "".
    """

    state: str
    tasks: tuple[str, ...] = ()
    failure: str = ""

    @property
    def has_failed(self) -> bool:
        """Whether the connector or one of its tasks has failed; it stays so until it is restarted."""
        return "FAILED" in (self.state, *self.tasks)

    def is_all(self, state: str) -> bool:
        """Whether connector and tasks are in `state`: some task, unless it is `STOPPED`, when there are none."""
        if self.state != state:
            return False
        return not self.tasks if state == "STOPPED" else set(self.tasks) == {state}

    def __str__(self) -> str:
        """`RUNNING, tasks RUNNING, FAILED`."""
        return f"{self.state}, tasks {', '.join(self.tasks)}" if self.tasks else f"{self.state} without tasks"


class ConnectRest:
    """Requests to the workers of one cluster; the next worker is tried when one does not answer.

    Attributes:
        place: the address of the first worker.
    """

    def __init__(
        self,
        urls: Sequence[str],
        client: httpx.Client,
        redact: Redactor | None = None,
        retry_s: float = RETRY_S,
        timing: Timing = REAL_TIME,
    ) -> None:
        """Use `client` for requests below each of `urls`; `redact` hides the login of the connection."""
        self._urls = list(urls)
        self.place = self._urls[0]
        self._client = client
        self._redact = redact or Redactor(())
        self._retry_s, self._timing = retry_s, timing

    def at_once(self) -> ConnectRest:
        """The same client without repetitions, for a person who waits."""
        return ConnectRest(self._urls, self._client, self._redact, 0.0, self._timing)

    def names(self) -> list[str]:
        """Names of the registered connectors."""
        return sorted(self.request("GET", "/connectors"))

    def version(self) -> str:
        """Version of the worker that answers."""
        return str(self.request("GET", "/").get("version", "?"))

    def kafka_cluster_id(self) -> str | None:
        """The id of the Kafka cluster that the workers use; None: they do not tell it."""
        found = self.request("GET", "/").get("kafka_cluster_id")
        return None if found is None else str(found)

    def config(self, name: str) -> dict[str, str] | None:
        """The configuration of a connector as it is stored, secrets included; None: there is no such connector."""
        found = self.request("GET", f"{_path(name)}/config", missing_ok=True)
        return None if found is None else dict(found)

    def apply(self, name: str, config: Mapping[str, Any]) -> str:
        """Create or update a connector.

        Returns:
            `created`, `updated`, or `unchanged` if it has this configuration already; nothing is written then.

        Raises:
            ConfigError: the cluster refuses the configuration, with its messages.
        """
        wanted = {key: _text(value) for key, value in {**config, "name": name}.items() if value is not None}
        known = self.config(name)
        if known == wanted:
            return "unchanged"
        self.request("PUT", f"{_path(name)}/config", wanted, secrets=secret_values(wanted))
        return "created" if known is None else "updated"

    def status(self, name: str) -> ConnectorStatus | None:
        """State of a connector and its tasks; None: not known yet, or there is no such connector."""
        found = self.request("GET", f"{_path(name)}/status", missing_ok=True)
        if found is None:
            return None
        parts = [found["connector"], *sorted(found["tasks"], key=lambda task: int(task["id"]))]
        traces = [str(part.get("trace") or "") for part in parts if part["state"] == "FAILED"]
        failure = "\n".join(traces[0].splitlines()[:_MOST_TRACE_LINES]) if traces else ""
        states = [str(part["state"]) for part in parts]
        return ConnectorStatus(states[0], tuple(states[1:]), self._redact(failure))

    def expanded(self) -> dict[str, dict[str, Any]]:
        """`status` and `info` of every connector, by name (KIP-465)."""
        return dict(self.request("GET", "/connectors?expand=status&expand=info"))

    def info(self, name: str) -> dict[str, Any]:
        """ConnectorInfo: `config`, `tasks`, `type`."""
        return dict(self._of(name, "GET", ""))

    def states(self, name: str) -> dict[str, Any]:
        """ConnectorStateInfo, with workers and traces."""
        return dict(self._of(name, "GET", "/status"))

    def tasks(self, name: str) -> list[dict[str, Any]]:
        """TaskInfo of every task."""
        return list(self._of(name, "GET", "/tasks"))

    def topics(self, name: str) -> list[str]:
        """Topics that the connector has used since the last reset (KIP-558)."""
        if self.config(name) is None:
            raise self._missing(name, "/topics")
        return list(self._of(name, "GET", "/topics")[name]["topics"])

    def reset_topics(self, name: str) -> None:
        """Forget the topics that it has used."""
        if self.config(name) is None:
            raise self._missing(name, "/topics")
        self._of(name, "PUT", "/topics/reset")

    def create(self, name: str, config: Mapping[str, Any], initial_state: str | None = None) -> None:
        """Register a connector, in a state of its own if one is given (KIP-980).

        Raises:
            ConfigError: the name is taken, or the cluster refuses the configuration.
        """
        wanted = {key: _text(value) for key, value in {**config, "name": name}.items() if value is not None}
        state = {} if initial_state is None else {"initial_state": initial_state}
        body = {"name": name, "config": wanted, **state}
        self.request("POST", "/connectors", body, secrets=secret_values(wanted))

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task."""
        self._of(name, "POST", f"/tasks/{task}/restart")

    def plugins(self, *, connectors_only: bool) -> list[dict[str, str]]:
        """Installed plugins: `class`, `type`, `version` (KIP-769)."""
        return list(self.request("GET", f"/connector-plugins?connectorsOnly={_text(connectors_only)}"))

    def plugin_keys(self, plugin: str) -> list[dict[str, Any]]:
        """ConfigKeyInfo of every key of a plugin (KIP-769)."""
        return list(self.request("GET", f"/connector-plugins/{quote(plugin, safe='')}/config"))

    def loggers(self) -> dict[str, dict[str, Any]]:
        """Log levels of the worker that answers (KIP-495)."""
        return dict(self.request("GET", "/admin/loggers"))

    def set_level(self, logger: str, level: str, *, cluster: bool) -> list[str]:
        """Set a log level in the worker that answers, or in every worker (KIP-976)."""
        scope = "?scope=cluster" if cluster else ""
        return list(self.request("PUT", f"/admin/loggers/{quote(logger, safe='')}{scope}", {"level": level}))

    def kind(self, name: str) -> str:
        """`sink` or `source`, as the class of the connector says; "" for a connector that is not there."""
        found = self.request("GET", _path(name), missing_ok=True)
        return "" if found is None else str(found.get("type") or "")

    def pause(self, name: str) -> None:
        """Pause a connector; its tasks stay where they are."""
        self._of(name, "PUT", "/pause")

    def resume(self, name: str) -> None:
        """Resume a paused or stopped connector."""
        self._of(name, "PUT", "/resume")

    def stop(self, name: str) -> None:
        """Stop a connector: its tasks end, its configuration and offsets stay (KIP-875)."""
        self._of(name, "PUT", "/stop")

    def restart(self, name: str, *, only_failed: bool = True) -> None:
        """Restart a connector and its tasks, or those of them that have failed (KIP-745)."""
        self._of(name, "POST", f"/restart?includeTasks=true&onlyFailed={str(only_failed).lower()}")

    def delete(self, name: str) -> bool:
        """Delete a connector; its offsets stay. Returns False if there was none."""
        known = name in self.names()
        self.request("DELETE", _path(name), missing_ok=True)
        return known

    def offsets(self, name: str) -> list[dict[str, Any]]:
        """Committed offsets: `[{"partition": {...}, "offset": {...}}]` (KIP-875)."""
        return list(self._of(name, "GET", "/offsets")["offsets"])

    def alter_offsets(self, name: str, offsets: Sequence[Mapping[str, Any]]) -> str:
        """Set offsets of a stopped connector; an offset of None resets it. Returns the cluster's message."""
        return str(self._of(name, "PATCH", "/offsets", {"offsets": list(offsets)})["message"])

    def reset_offsets(self, name: str) -> str:
        """Delete all offsets of a stopped connector. Returns the cluster's message."""
        return str(self._of(name, "DELETE", "/offsets")["message"])

    def findings(self, config: Mapping[str, Any]) -> list[dict[str, str]]:
        """What the cluster's plugin refuses about a configuration: `key` and `message` of every error.

        Raises:
            ConfigError: the cluster does not know `connector.class`.
        """
        wanted = {key: _text(value) for key, value in config.items() if value is not None}
        kind = quote(wanted.get("connector.class", "").rpartition(".")[2] or "?", safe="")
        path, secrets = f"/connector-plugins/{kind}/config/validate", secret_values(wanted)
        found = self.request("PUT", path, wanted, secrets=secrets)
        hide = Redactor(secrets)
        values = [entry["value"] for entry in found["configs"]]
        return [
            {"key": value["name"], "message": hide(message)} for value in values for message in value.get("errors", ())
        ]

    def _of(self, name: str, method: str, path: str, body: Any = None) -> Any:
        """A request about a connector that must exist."""
        found = self.request(method, f"{_path(name)}{path}", body, missing_ok=True)
        if found is None:
            raise self._missing(name, path)
        return found

    def request(
        self, method: str, path: str, body: Any = None, *, missing_ok: bool = False, secrets: Sequence[str] = ()
    ) -> Any:
        """One request, repeated while the cluster cannot answer.

        Args:
            method: HTTP method.
            path: below the address of a worker, encoded.
            body: JSON document, or None.
            missing_ok: return None if Kafka Connect answers that there is no such thing.
            secrets: hidden in messages, which may quote the body.

        Returns:
            The parsed answer; {} for an empty one.

        Raises:
            UnavailableError: no worker answered, or the cluster was rebalancing until the bound.
            AccessError: the login was refused.
            ConfigError: the request was refused; the message is the cluster's.
        """
        import httpx

        tries = Retry(_PAUSES, within_s=self._retry_s, at_deadline=AtDeadline.STOP, timing=self._timing)
        while True:
            url = f"{self._urls[0]}{path}"
            try:
                response = self._client.request(method, url, json=body)
            except httpx.TransportError as error:
                failure = f"{self._urls[0]} gave no answer ({type(error).__name__}: {error})"
                self._urls.append(self._urls.pop(0))
            else:
                if missing_ok and _is_missing(response):
                    return None
                if not _is_passing(response):
                    return self._answer(response, f"{method} {path}", Redactor(secrets))
                failure = f"{url} answered with status {response.status_code}: {_message(response)}"
            if not tries.pause():
                raise UnavailableError(
                    f"Kafka Connect could not carry out {method} {path} within {self._retry_s:.0f} s. The last reason: "
                    f"{self._redact(failure)}.",
                    code="kafka_connect.unavailable",
                )

    def _answer(self, response: httpx.Response, request: str, hide: Redactor) -> Any:
        status = response.status_code
        if response.is_success:
            try:
                return response.json() if response.content else {}
            except ValueError:
                raise ConfigError(
                    f"The answer to {request} (status {status}) is not JSON, so it does not come from Kafka Connect.",
                    code="kafka_connect.answer",
                    suggestion="Set the host of the connection to the address of the workers themselves.",
                ) from None
        message = self._redact(hide(_message(response)))
        if status in (401, 403):
            raise AccessError(
                f"Kafka Connect refused {request} with status {status}: {message}",
                code="kafka_connect.refused",
                suggestion="Check login and password of the connection.",
            )
        if response.is_redirect:
            raise ConfigError(
                f"Kafka Connect answered {request} with a redirect (status {status}), which is not followed, because"
                " requests carry secrets.",
                code="kafka_connect.redirect",
                suggestion="Set the host of the connection to the address of the workers themselves.",
            )
        error = UnavailableError if status >= 500 else ConfigError
        raise error(f"Kafka Connect answered {request} with status {status}: {message}", code="kafka_connect.answer")

    def _missing(self, name: str, path: str) -> ConnectError:
        known = self.names()
        if name in known:
            return ConfigError(
                f"Kafka Connect {self.version()} does not know {path} of connector {name!r}.",
                code="kafka_connect.unsupported",
                suggestion="Offsets and stopping need Kafka Connect 3.6 or newer.",
            )
        return no_connector(name, known, "The cluster")


def _path(name: str) -> str:
    return f"/connectors/{quote(name, safe='')}"


def _text(value: Any) -> str:
    """Connect's configurations are text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_passing(response: httpx.Response) -> bool:
    if response.status_code == 409 and "already exists" in _message(response):
        return False
    if response.status_code in _BUSY:
        return True
    return response.status_code == 500 and any(word in _message(response).lower() for word in _PASSING)


def _is_missing(response: httpx.Response) -> bool:
    """Whether Kafka Connect says so. The 404 of a proxy, or of a wrong path, must not look like a deleted connector."""
    if response.status_code != 404:
        return False
    try:
        found = response.json()
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("error_code") == 404


def _message(response: httpx.Response) -> str:
    """The message of the answer; answers of a proxy in front of the cluster are not JSON."""
    try:
        found = response.json()
    except ValueError:
        return response.text[:500].strip() or response.reason_phrase
    return str(found.get("message") or found) if isinstance(found, dict) else str(found)
