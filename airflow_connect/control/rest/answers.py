"""Answers: JSON of any size, and what an error becomes."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from airflow_connect.control.herder.refusals import RefusedError
from airflow_connect.control.rest.negotiation import accepts_json
from airflow_connect.errors import ConnectError, NotStoppedError

_LOG = logging.getLogger(__name__)
LONGEST_S = 90.0
"""After which a request is answered although it has not ended: Kafka Connect's DEFAULT_REST_REQUEST_TIMEOUT_MS."""
_DEFECT = "The request failed because of a defect. The log of the worker has its traceback."
_running: set[asyncio.Future[Response]] = set()
"""Requests that go on after their answer; the event loop itself would forget them."""


class Json(Response):
    """A JSON body."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The bytes; half a surrogate pair and numbers over 64 bits, which Java writes too, take Python's slow way."""
        try:
            return orjson.dumps(content)
        except TypeError:
            return json.dumps(content, separators=(",", ":")).encode()


def error(status: int, message: str) -> Response:
    """The body of every error of Kafka Connect."""
    return Json({"error_code": status, "message": message}, status)


class AnsweringRoute(APIRoute):
    """A route whose errors are answered as Kafka Connect answers them, within `LONGEST_S`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler, and what surrounds it."""
        handle = super().get_route_handler()

        async def admitted(request: Request) -> Response:
            if (admit := request.app.state.served.admit) is not None:
                await admit(request, self.name)
            return await handle(request)

        async def answer(request: Request) -> Response:
            if not accepts_json(request.headers.get("accept", "*/*")):
                return error(406, "HTTP 406 Not Acceptable")
            return await _in_time(_answered(admitted, request))

        return answer


async def _answered(handle: Callable[[Request], Awaitable[Response]], request: Request) -> Response:
    try:
        return await handle(request)
    except RefusedError as refused:
        return error(refused.status, refused.message)
    except NotStoppedError as conflict:
        return error(409, str(conflict))
    except ConnectError as failure:
        return error(503 if failure.retriable else 500, str(failure))
    except Exception:  # noqa: BLE001 (a defect must not end the server, nor show its inside)
        _LOG.exception("A request to %s failed.", request.url.path)
        return error(500, _DEFECT)


async def _in_time(answering: Coroutine[Any, Any, Response]) -> Response:
    """The answer, or after `LONGEST_S` one that says so. The request goes on, as in Kafka Connect."""
    since = datetime.now(UTC)
    going_on = asyncio.ensure_future(answering)
    _running.add(going_on)
    going_on.add_done_callback(_running.discard)
    try:
        return await asyncio.wait_for(asyncio.shield(going_on), LONGEST_S)
    except TimeoutError:
        at = since.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return error(
            500, f"Request timed out. The worker is currently waiting for Kafka, which began at {at}. It may still end."
        )


async def answer_http_error(request: Request, failure: Exception) -> Response:
    """Unknown paths, and methods that a path does not have."""
    assert isinstance(failure, HTTPException)
    if failure.status_code == 405 and request.method == "OPTIONS":
        return Response(status_code=200, headers={"Allow": ",".join(sorted({*_allowed(request), "OPTIONS"}))})
    phrase = {404: "Not Found", 405: "Method Not Allowed"}.get(failure.status_code, str(failure.detail))
    return error(failure.status_code, f"HTTP {failure.status_code} {phrase}")


def _allowed(request: Request) -> set[str]:
    found: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, Route | APIRoute) and route.matches(request.scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return found | ({"HEAD"} if "GET" in found else set())
