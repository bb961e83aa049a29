"""The calls of Kafka Connect's REST API that tests need, each with the wait that makes its effect certain.

A worker answers before it has carried out a request, and with 409 or 500 while it rebalances. Kafka's own system tests
then retry, as this client does.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from airflow_connect.devstack.launching.errors import DevStackError

TIMEOUT_S = 60.0
POLL_S = 0.05
RUNNING, PAUSED, STOPPED = "RUNNING", "PAUSED", "STOPPED"
PASSING = ("rebalanc", "stale configuration", "conflicting operation", "leader")
"""Words in answers that mean: try again."""


class ConnectRest:
    """A client of one worker."""

    def __init__(self, port: int) -> None:
        """`port` of 127.0.0.1."""
        self._port = port

    def is_healthy(self) -> bool:
        """Return whether the worker has joined its group and read its topics (KIP-1017).

        Raises:
            OSError, http.client.HTTPException: it does not answer at all.
        """
        return self._ask("GET", "/health", None)[0] == http.HTTPStatus.OK

    def create(self, name: str, config: Mapping[str, str]) -> None:
        """Register a connector; returns when it and a task of it run.

        Raises:
            DevStackError: it was refused, failed, or does not run in time.
        """
        self._do("PUT", f"/connectors/{quote(name, safe='')}/config", dict(config))
        self.wait_for(name, RUNNING)

    def stop(self, name: str) -> None:
        """Stop a connector; returns when its tasks are gone, so their offsets are committed."""
        self._do("PUT", f"/connectors/{quote(name, safe='')}/stop")
        self.wait_for(name, STOPPED)

    def pause(self, name: str) -> None:
        """Pause a connector; its tasks stay where they are."""
        self._do("PUT", f"/connectors/{quote(name, safe='')}/pause")
        self.wait_for(name, PAUSED)

    def resume(self, name: str) -> None:
        """Resume a stopped connector; returns when the connector and a task of it are running."""
        self._do("PUT", f"/connectors/{quote(name, safe='')}/resume")
        self.wait_for(name, RUNNING)

    def names(self) -> Sequence[str]:
        """Return the names of the registered connectors."""
        return list(self._do("GET", "/connectors"))

    def plugins(self) -> Sequence[Mapping[str, Any]]:
        """Return every plugin: connectors, transformations, predicates, converters."""
        return list(self._do("GET", "/connector-plugins?connectorsOnly=false"))

    def plugin_keys(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return the keys of a plugin."""
        return list(self._do("GET", f"/connector-plugins/{name}/config"))

    def validate(self, name: str, config: Mapping[str, str]) -> Mapping[str, Any]:
        """Return what a connector class says about a configuration."""
        return dict(self._do("PUT", f"/connector-plugins/{name}/config/validate", config))

    def delete(self, name: str) -> None:
        """Delete a connector, if it is registered; its offsets stay."""
        if name in self.names():
            self._do("DELETE", f"/connectors/{quote(name, safe='')}")

    def status(self, name: str) -> Mapping[str, Any]:
        """Return `{"connector": {"state": ...}, "tasks": [...]}`."""
        return dict(self._do("GET", f"/connectors/{quote(name, safe='')}/status"))

    def offsets(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return `[{"partition": {...}, "offset": {...}}, ...]` of a connector."""
        return list(self._do("GET", f"/connectors/{quote(name, safe='')}/offsets")["offsets"])

    def alter_offsets(self, name: str, offsets: Sequence[Mapping[str, Any]]) -> str:
        """Set offsets of a stopped connector; returns the worker's message."""
        body = {"offsets": list(offsets)}
        return str(self._do("PATCH", f"/connectors/{quote(name, safe='')}/offsets", body)["message"])

    def wait_for(self, name: str, state: str) -> None:
        """Return when the connector is in `state`, with tasks that run, or with none if it is STOPPED.

        Raises:
            DevStackError: one of them failed, or it took longer than a minute.
        """

        def is_there() -> bool:
            found = self.status(name)
            tasks = [task["state"] for task in found["tasks"]]
            if "FAILED" in (found["connector"]["state"], *tasks):
                raise DevStackError(f"Connector {name} failed: {json.dumps(found)[:2000]}", code="devstack.connect")
            wanted = not tasks if state == STOPPED else bool(tasks) and set(tasks) == {state}
            return found["connector"]["state"] == state and wanted

        _wait(is_there, f"connector {name} to be {state}")

    def _do(self, method: str, path: str, body: object = None) -> Any:
        """Ask until the worker can answer; returns the parsed answer, None for an empty one."""
        answer: list[tuple[int, Any]] = []

        def is_answered() -> bool:
            status, found = self._ask(method, path, body)
            answer[:] = [(status, found)]
            text = json.dumps(found).lower()
            is_passing = status in (http.HTTPStatus.CONFLICT, http.HTTPStatus.INTERNAL_SERVER_ERROR) and any(
                word in text for word in PASSING
            )
            # A connector that was just registered has no status yet.
            return not (is_passing or (status == http.HTTPStatus.NOT_FOUND and "status" in path))

        _wait(is_answered, f"an answer to {method} {path}")
        ((status, found),) = answer
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise DevStackError(
                f"Kafka Connect answered {method} {path} with {status}: {json.dumps(found)[:2000]}",
                code="devstack.connect",
            )
        return found

    def _ask(self, method: str, path: str, body: object) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_S)
        try:
            payload = None if body is None else json.dumps(body)
            connection.request(method, path, payload, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            text = reply.read()
            # Jetty's own pages, such as the 404 before the API is there, are HTML.
            is_json = bool(text) and "json" in (reply.getheader("Content-Type") or "")
            return reply.status, json.loads(text) if is_json else text.decode() or None
        finally:
            connection.close()


def _wait(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise DevStackError(f"Gave up after {TIMEOUT_S:.0f} s of waiting for {what}.", code="devstack.connect")
        time.sleep(POLL_S)
