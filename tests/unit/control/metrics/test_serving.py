"""Who gets metrics, and how."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any, NamedTuple

import pytest

from airflow_connect.control.metrics.beans import WorkerMetrics
from airflow_connect.control.metrics.serving import PROMETHEUS, MetricsRoutes
from airflow_connect.control.rest.serving.guard import Guard
from airflow_connect.control.state.topics import State
from airflow_connect.errors import UnavailableError

LOGIN = {"authorization": f"Basic {base64.b64encode(b'ann:secret').decode()}"}


class Topics:
    """State topics without a connector, or ones that cannot be read."""

    def __init__(self, error: UnavailableError | None = None) -> None:
        self._error = error

    def look(self, use: Any) -> Any:
        if self._error is not None:
            raise self._error
        return use(State())


class Answer(NamedTuple):
    status: int
    media: str
    body: bytes


def ask(path: str, method: str = "GET", error: UnavailableError | None = None, **headers: str) -> Answer:
    """The answer to a request at a server whose only user is ann; other paths are answered with 204."""
    sent: list[dict[str, Any]] = []

    async def other(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    app = Guard(MetricsRoutes(other, WorkerMetrics(Topics(error))), {"ann": "secret"})  # type: ignore[arg-type]
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": raw, "query_string": b""}
    asyncio.run(app(scope, receive, send))
    shown = dict(sent[0]["headers"])
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return Answer(sent[0]["status"], shown.get(b"content-type", b"").decode(), body)


@pytest.mark.parametrize("path", ["/metrics", "/jmx"])
def test_metrics_need_a_user_as_everything_else(path):
    assert ask(path).status == 401
    assert ask(path, **LOGIN).status == 200


def test_prometheus_gets_text_whatever_it_accepts():
    answer = ask("/metrics", accept="application/openmetrics-text;version=1.0.0,text/plain", **LOGIN)
    assert (answer.status, answer.media) == (200, PROMETHEUS)
    assert b"\nkafka_connect_worker_connector_count 0.0\n" in answer.body


def test_jmx_is_json():
    answer = ask("/jmx", **LOGIN)
    assert answer.media == "application/json" and json.loads(answer.body)["beans"]


def test_other_methods_are_refused_and_other_paths_passed_on():
    assert ask("/metrics", "POST", **LOGIN).status == 405
    assert ask("/metrics/", **LOGIN).status == ask("/connectors", "POST", **LOGIN).status == 204


def test_state_topics_that_cannot_be_read_are_told():
    answer = ask("/metrics", error=UnavailableError("No broker answers."), **LOGIN)
    assert answer.status == 503 and "No broker answers" in json.loads(answer.body)["message"]
