"""The service's HTTP interface: who may ask, and what they get."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from airflow_connect import __version__
from airflow_connect.documentation import page_url
from airflow_connect.errors import AccessError, ConfigError, ConnectError, StateError
from airflow_connect.runtime.bounded_connections import BODY_WITHIN_S
from airflow_connect.runtime.driver_service.contract import (
    ATTEMPT,
    LOOK_PATH,
    MOST_RUNS_OF_A_LOOK,
    NO_SUCH_RUN,
    RUN_ID,
    RUNS_PATH,
    SERVICE_PATH,
)
from airflow_connect.runtime.spec import RunSpec

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from airflow_connect.runtime.driver_service.runs import DriverRuns

MOST_BODY_BYTES = 32 << 20
"""A plan of a hundred thousand ranges fits."""
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]", "::1"})
_NO_RUN_ID = "A run id has at most 100 letters, digits, dots, hyphens and underscores."
_Scope = MutableMapping[str, Any]
_Asgi = Callable[[_Scope, Any, Any], Awaitable[None]]


def create_app(runs: DriverRuns, token: str) -> Starlette:
    """The application.

    Args:
        runs: what it serves.
        token: what every request has to carry as `Authorization: Bearer`; "": none, and only requests that name a
            loopback address as their host and that no web page makes a browser send are answered.
    """
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware import Middleware
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def start(request: Request) -> Response:
        spec = _spec_of(await _body(request), request.path_params["run_id"])
        view = await run_in_threadpool(runs.start, spec)
        return JSONResponse(view.to_json())

    async def show(request: Request) -> Response:
        view = runs.view(request.path_params["run_id"])
        return _missing() if view is None else JSONResponse(view.to_json())

    async def end(request: Request) -> Response:
        attempt = request.query_params.get(ATTEMPT, "")
        view = await run_in_threadpool(runs.end, request.path_params["run_id"], attempt)
        return _missing() if view is None else JSONResponse(view.to_json())

    async def look(request: Request) -> Response:
        body = await _body(request)
        wanted = body.get("runs") if isinstance(body, dict) else None
        if not isinstance(wanted, list) or len(wanted) > MOST_RUNS_OF_A_LOOK:
            raise _wrong(f"The body has no list `runs` of at most {MOST_RUNS_OF_A_LOOK} run ids.")
        if not all(isinstance(run_id, str) and RUN_ID.fullmatch(run_id) for run_id in wanted):
            raise _wrong(_NO_RUN_ID)  # No answer could name half of a surrogate pair, for example.
        found = runs.news(wanted)
        return JSONResponse({"runs": {run_id: news.to_json() for run_id, news in found.items()}})

    async def service(_: Request) -> Response:
        limits = {"at_once": runs.limits.at_once, "lease_s": runs.limits.lease_s}
        return JSONResponse({"version": __version__, **limits, **runs.counts()})

    def refuse(_: Request, error: Exception) -> Response:
        assert isinstance(error, ConnectError)
        return JSONResponse(error.to_json(), 400 if isinstance(error, ConfigError) else 503)

    def _missing() -> Response:
        return JSONResponse({"message": NO_SUCH_RUN}, 404)

    a_run = f"{RUNS_PATH}/{{run_id}}"
    return Starlette(
        routes=[
            Route(a_run, start, methods=["PUT"]),
            Route(a_run, show, methods=["GET"]),
            Route(a_run, end, methods=["DELETE"]),
            Route(LOOK_PATH, look, methods=["POST"]),
            Route(SERVICE_PATH, service, methods=["GET"]),
        ],
        middleware=[Middleware(_Guard, token=token)],
        exception_handlers={ConnectError: refuse},
    )


class _Guard:
    """Answers requests without the token with 401 before anything of them is read."""

    def __init__(self, app: _Asgi, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: _Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and not self._is_allowed(dict(scope["headers"])):
            from starlette.responses import JSONResponse

            refusal = _refusal(has_token=bool(self._token))
            await JSONResponse(refusal.to_json(), 401)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_allowed(self, headers: dict[bytes, bytes]) -> bool:
        if not self._token:
            host = _host(headers.get(b"host", b"").decode("latin-1"))
            return host in LOOPBACK_HOSTS and not _is_of_a_page(headers)
        given = headers.get(b"authorization", b"")
        return hmac.compare_digest(given, f"Bearer {self._token}".encode())


def _is_of_a_page(headers: dict[bytes, bytes]) -> bool:
    """Whether a web page makes a browser send this (RFC 6454, W3C Fetch Metadata); the service has no pages itself."""
    return b"origin" in headers or headers.get(b"sec-fetch-site", b"none") != b"none"


def _host(header: str) -> str:
    """The name without the port."""
    host, _, port = header.rpartition(":")
    return host if host and port.isdigit() else header


def _refusal(*, has_token: bool) -> AccessError:
    if has_token:
        return AccessError(
            "The driver service refuses the token of this request.",
            code="driver_service.token",
            suggestion="Set the password of the connection to the token that the service was started with.",
        )
    return AccessError(
        "The driver service has no token, and the request is not addressed to a loopback host, or a web page sent it.",
        code="driver_service.token",
        suggestion="Start the service with a token, and set it as the password of the connection.",
    )


async def _body(request: Request) -> Any:
    """The body as JSON.

    Raises:
        ConfigError: it is too large, too slow, or no JSON.
    """
    try:
        raw = await asyncio.wait_for(_read(request), BODY_WITHIN_S)
    except TimeoutError:
        raise _wrong(f"The body did not arrive within {BODY_WITHIN_S:.0f} s.", "Send the request again.") from None
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        raise _wrong("The body is not JSON.") from None  # The error would quote it.


async def _read(request: Request) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MOST_BODY_BYTES:
            raise _wrong(f"The body is larger than {MOST_BODY_BYTES >> 20} MiB.")
        parts.append(part)
    return b"".join(parts)


def _spec_of(body: Any, run_id: str) -> RunSpec:
    """The specification in a body.

    Raises:
        ConfigError: it is none, or is of another run.
    """
    if RUN_ID.fullmatch(run_id) is None:
        raise _wrong(_NO_RUN_ID)
    try:
        spec = RunSpec.from_json(body)
    except StateError as error:
        raise _wrong(
            f"The body is not the specification of a run that this version knows: {error.message}",
            f"The service has version {__version__} of airflow-connect; install the same where tasks run.",
        ) from None
    if spec.run_id != run_id:
        raise _wrong(f"The body is not the specification of run {run_id}.")
    return spec


def _wrong(
    message: str, suggestion: str = f"Ask with ConnectorOperator, or see {page_url('how-to/free-the-worker-slot')}"
) -> ConfigError:
    return ConfigError(message, code="driver_service.request", suggestion=suggestion)
