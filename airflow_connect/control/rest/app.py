"""The application: routes, what they ask the herder, and how errors are answered."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route

from airflow_connect import __version__
from airflow_connect.control.herder import plugins
from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.herder.loggers import Loggers, checked_level
from airflow_connect.control.herder.refusals import RefusedError
from airflow_connect.control.herder.validation import validated
from airflow_connect.control.rest.access import Guard
from airflow_connect.control.rest.bodies import body_of, config_of, create_request_of
from airflow_connect.control.rest.negotiation import accepts_json
from airflow_connect.control.rest.paths import EncodedPaths, decoded
from airflow_connect.errors import ConnectError, NotStoppedError

_LOG = logging.getLogger(__name__)
_SIGNED = "Internal request missing required signature"
_READY = "Worker has completed startup and is ready to handle requests."
Answer = Any
Handler = Callable[[Request], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Served:
    """What the application serves.

    Attributes:
        herder: over open topics.
        worker: the worker configuration, as written.
        users: password by name; {}: no authentication.
        loggers: the log levels of this process.
    """

    herder: Herder
    worker: Mapping[str, Any] = field(repr=False)
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    loggers: Loggers = field(default_factory=Loggers)


def create_app(served: Served) -> Starlette:
    """The application, without a server around it."""
    routes = [
        Route(path, _answering(handler), methods=[method])  # A route for GET answers HEAD as well.
        for path, methods in _routes(served).items()
        for method, handler in methods.items()
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, users=served.users), Middleware(EncodedPaths)],
        exception_handlers={HTTPException: _answer_http_error},
    )


def _answering(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        if not accepts_json(request.headers.get("accept", "*/*")):
            return _error(406, "HTTP 406 Not Acceptable")
        try:
            found = await handler(request)
        except RefusedError as refused:
            return _error(refused.status, refused.message)
        except NotStoppedError as error:
            return _error(409, str(error))
        except ConnectError as error:
            return _error(503 if error.retriable else 500, str(error))
        except Exception:  # noqa: BLE001 (a defect must not end the server, nor show its inside)
            _LOG.exception("A request to %s failed.", request.url.path)
            return _error(500, "The request failed because of a defect. The log of the worker has its traceback.")
        return found if isinstance(found, Response) else JSONResponse(found)

    return answer


def _routes(served: Served) -> dict[str, dict[str, Handler]]:
    one = "/connectors/{connector}"
    return {
        **_of_server(served),
        **_of_connectors(served.herder),
        **_of_states(served.herder),
        **_of_offsets(served.herder),
        **_of_plugins(served),
        f"{one}/tasks": {"GET": _call(served.herder.tasks), "POST": _refuse_internal},
        f"{one}/fence": {"PUT": _refuse_internal},
    }


def _of_server(served: Served) -> dict[str, dict[str, Handler]]:
    async def root(_: Request) -> Answer:
        cluster = await run_in_threadpool(served.herder.server_info)
        return {"version": __version__, "commit": "unknown", **cluster}

    async def health(_: Request) -> Answer:
        await run_in_threadpool(served.herder.names)
        return {"status": "healthy", "message": _READY}

    async def levels(_: Request) -> Answer:
        return served.loggers.every()

    async def level(request: Request) -> Answer:
        return served.loggers.one(_part(request, "logger"))

    async def set_level(request: Request) -> Answer:
        name, wanted = _part(request, "logger"), checked_level(await body_of(request))
        if request.query_params.get("scope", "").lower() == "cluster":
            await run_in_threadpool(served.herder.set_cluster_level, name, wanted)
            served.loggers.set(name, wanted)
            return Response(status_code=204)
        return served.loggers.set(name, wanted)

    return {
        "/": {"GET": root},
        "/health": {"GET": health},
        "/admin/loggers": {"GET": levels},
        "/admin/loggers/{logger}": {"GET": level, "PUT": set_level},
    }


def _of_connectors(herder: Herder) -> dict[str, dict[str, Handler]]:
    async def every(request: Request) -> Answer:
        if "expand" not in request.query_params:
            return await run_in_threadpool(herder.names)
        return await run_in_threadpool(herder.expanded, frozenset(request.query_params.getlist("expand")))

    async def create(request: Request) -> Answer:
        wanted = create_request_of(await body_of(request))
        info = await run_in_threadpool(herder.create, *wanted)
        return _created(request, info)

    async def put_config(request: Request) -> Answer:
        name, config = _connector(request).strip(), config_of(await body_of(request))
        is_new, info = await run_in_threadpool(herder.put_config, name, config)
        return _created(request, info) if is_new else info

    async def patch_config(request: Request) -> Answer:
        patch = config_of(await body_of(request))
        return await run_in_threadpool(herder.patch_config, _connector(request), patch)

    async def delete(request: Request) -> Answer:
        await run_in_threadpool(herder.delete, _connector(request))
        return Response(status_code=204)

    one = "/connectors/{connector}"
    return {
        "/connectors": {"GET": every, "POST": create},
        one: {"GET": _call(herder.info), "DELETE": delete},
        f"{one}/config": {"GET": _call(herder.config), "PUT": put_config, "PATCH": patch_config},
        f"{one}/status": {"GET": _call(herder.status)},
    }


def _of_states(herder: Herder) -> dict[str, dict[str, Handler]]:
    async def restart(request: Request) -> Answer:
        flags = {
            "include_tasks": _is_true(request, "includeTasks"),
            "only_failed": _is_true(request, "onlyFailed"),
        }
        state = await run_in_threadpool(herder.restart, _connector(request), **flags)
        return JSONResponse(state, 202) if any(flags.values()) else Response(status_code=204)

    async def task_status(request: Request) -> Answer:
        return await run_in_threadpool(herder.task_status, _connector(request), _task(request))

    async def restart_task(request: Request) -> Answer:
        await run_in_threadpool(herder.restart_task, _connector(request), _task(request))
        return Response(status_code=204)

    one = "/connectors/{connector}"
    return {
        f"{one}/restart": {"POST": restart},
        f"{one}/pause": {"PUT": _call(herder.pause, 202)},
        f"{one}/resume": {"PUT": _call(herder.resume, 202)},
        f"{one}/stop": {"PUT": _call(herder.stop, 204)},
        f"{one}/tasks/{{task}}/status": {"GET": task_status},
        f"{one}/tasks/{{task}}/restart": {"POST": restart_task},
        f"{one}/topics": {"GET": _call(herder.active_topics)},
        f"{one}/topics/reset": {"PUT": _call(herder.reset_topics, 202)},
    }


def _of_offsets(herder: Herder) -> dict[str, dict[str, Handler]]:
    async def alter(request: Request) -> Answer:
        body = await body_of(request)
        return {"message": await run_in_threadpool(herder.alter_offsets, _connector(request), body)}

    async def reset(request: Request) -> Answer:
        return {"message": await run_in_threadpool(herder.reset_offsets, _connector(request))}

    return {"/connectors/{connector}/offsets": {"GET": _call(herder.offsets), "PATCH": alter, "DELETE": reset}}


def _of_plugins(served: Served) -> dict[str, dict[str, Handler]]:
    async def every(request: Request) -> Answer:
        only = request.query_params.get("connectorsOnly", "true").lower() == "true"
        return await run_in_threadpool(lambda: plugins.installed(connectors_only=only))

    async def keys(request: Request) -> Answer:
        return await run_in_threadpool(plugins.keys_of, _part(request, "plugin"))

    async def validate(request: Request) -> Answer:
        config = config_of(await body_of(request))
        return await run_in_threadpool(validated, _part(request, "plugin"), config, served.worker)

    return {
        "/connector-plugins": {"GET": every},
        "/connector-plugins/{plugin}/config": {"GET": keys},
        "/connector-plugins/{plugin}/config/validate": {"PUT": validate},
    }


def _call(operation: Callable[[str], Any], status: int = 200) -> Handler:
    """A handler of an operation that needs only the connector's name; without a body if the status is not 200."""

    async def handle(request: Request) -> Answer:
        found = await run_in_threadpool(operation, _connector(request))
        return found if status == 200 else Response(status_code=status)

    return handle


async def _refuse_internal(_: Request) -> Answer:
    """Requests between Kafka Connect's workers are signed (KIP-507); this installation has no such requests."""
    raise RefusedError(_SIGNED)


def _connector(request: Request) -> str:
    return _part(request, "connector")


def _part(request: Request, name: str) -> str:
    return decoded(request.path_params[name])


def _task(request: Request) -> int:
    """The number of a task: an int of Java; everything else is no path of the API."""
    text = _part(request, "task")
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or not -(1 << 31) <= int(digits[:12]) < 1 << 31 or len(digits) > 11:
        raise RefusedError("HTTP 404 Not Found", 404)
    return int(text)


def _is_true(request: Request, parameter: str) -> bool:
    return bool(request.query_params.get(parameter, "").lower() == "true")


def _created(request: Request, info: Mapping[str, Any]) -> Response:
    from urllib.parse import quote

    base = f"{request.url.scheme}://{request.url.netloc}"
    return JSONResponse(info, 201, {"Location": f"{base}/connectors/{quote(info['name'], safe='')}"})


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error_code": status, "message": message}, status)


async def _answer_http_error(request: Request, error: Exception) -> Response:
    """Unknown paths, and methods that a path does not have."""
    assert isinstance(error, HTTPException)
    allowed = _allowed(request)
    if error.status_code == 405 and request.method == "OPTIONS":
        return Response(status_code=200, headers={"Allow": ",".join(sorted({*allowed, "OPTIONS"}))})
    phrase = {404: "Not Found", 405: "Method Not Allowed"}.get(error.status_code, str(error.detail))
    return _error(error.status_code, f"HTTP {error.status_code} {phrase}")


def _allowed(request: Request) -> set[str]:
    found: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return found
