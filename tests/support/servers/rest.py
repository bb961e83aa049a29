"""The REST application on a free port of loopback, over state topics of its own on the shared broker."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.rest.serving.listeners import Listener
from airflow_connect.control.rest.serving.servers import RestServers
from airflow_connect.control.rest.serving.settings import ServerSettings
from airflow_connect.control.rest.worker_state import WorkerState
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state.topics import StateTopics

JSON = {"Content-Type": "application/json", "Accept": "application/json"}
ANY_PORT = (Listener(port=0),)
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
JSONS = "org.apache.kafka.connect.json.JsonConverter"


class Answered(NamedTuple):
    """An answer; `body` is parsed, None if it is empty, and text if it is no JSON."""

    status: int
    headers: dict[str, str]
    body: Any


def worker_of(bootstrap: str, name: str, **more: str) -> dict[str, str]:
    """A worker configuration with topics of its own; `more` with `_` for `.`."""
    return {
        "bootstrap.servers": bootstrap,
        "group.id": name,
        "key.converter": JSONS,
        "value.converter": JSONS,
        **{f"{kind}.storage.topic": f"{name}-{kind}" for kind in ("config", "status", "offset", "runs")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "status", "offset")},
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def send(address: tuple[str, int], method: str, target: str, body: Any = None, headers: Any = None) -> Answered:
    """One request on its own connection; `target`, and a `body` of bytes or text, are sent as they are."""
    connection = http.client.HTTPConnection(*address, timeout=60)
    try:
        raw = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
        raw = raw.encode() if isinstance(raw, str) else raw
        connection.putrequest(method, target, skip_accept_encoding=True)
        for key, value in (JSON if headers is None else headers).items():
            connection.putheader(key, value)
        if raw is not None or method in ("POST", "PUT", "PATCH"):
            connection.putheader("Content-Length", str(len(raw or b"")))
        connection.endheaders(raw)
        answer = connection.getresponse()
        text = answer.read().decode()
        return Answered(answer.status, {k.lower(): v for k, v in answer.getheaders()}, _parsed(text))
    finally:
        connection.close()


def _parsed(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text


class RestServer:
    """A context manager. No worker runs the connectors.

    Attributes:
        topics, herder: what the application uses.
        address: where it listens first.
        urls: where it listens.
    """

    def __init__(
        self,
        worker: Mapping[str, str],
        users: Mapping[str, str] | None = None,
        server: ServerSettings | None = None,
        admin: Callable[[Any], Any] = lambda app: app,
        state: WorkerState | None = None,
    ) -> None:
        """Open the topics; `users`: password by name; `server`: by default a free port; the rest: as of RestServers."""
        settings = ControlSettings.from_worker(worker)
        self.topics = StateTopics(settings)
        self.topics.open()
        self._servers = RestServers(server or ServerSettings(ANY_PORT, users=users or {}))
        self._servers.listen()
        self.urls = self._servers.urls
        self.address = ("127.0.0.1", int(self.urls[0].rpartition(":")[2]))
        self.herder = Herder(self.topics, settings, self._servers.worker_id)
        self._thread = threading.Thread(target=self._servers.run, args=(self.herder, state, admin), daemon=True)

    def __enter__(self) -> Self:
        """Start it. It listens already, so requests wait until it answers."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self._servers.end()
        self._thread.join()
        self._servers.close()

    def send(self, method: str, target: str, body: Any = None, headers: Any = None) -> Answered:
        """One request."""
        return send(self.address, method, target, body, headers)
