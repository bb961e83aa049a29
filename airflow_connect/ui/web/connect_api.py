"""Kafka Connect's REST API in Airflow's API server, behind Airflow's login: `/connect`.

`/connect` answers for the first installation that Airflow's configuration names, and
`/connect/installations/CONN_ID` for each of them; `/connect/installations` lists them. Log levels are not there: they
are those of a worker's process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from airflow_connect.control.herder.refusals import RefusedError
from airflow_connect.control.rest.answers import Json, error
from airflow_connect.control.rest.app import CONNECTORS, create_app
from airflow_connect.control.rest.parameters import Served
from airflow_connect.control.rest.paths import Scope
from airflow_connect.errors import ConnectError
from airflow_connect.ui.web.access import Right, Visitor, visitor_of
from airflow_connect.ui.web.installations import Installation, Installations, worker_id
from airflow_connect.ui.web.same_site import SAFE_METHODS, refuse_other_sites
from airflow_connect.ui.web.visitor_herder import VisitorHerder

INSTALLATIONS = "installations"
MOST_AT_ONCE = 16
"""Requests that may wait for Kafka. They wait in the API server's 40 threads, which serve all requests."""
_VISITOR = "airflow_connect.visitor"
_OPERATES = frozenset({"pause_connector", "resume_connector", "stop_connector", "restart_connector", "restart_task"})
_IMPORTS = frozenset({"list_keys"})
"""Operations that only read, but import the class that the request names."""


@dataclass(frozen=True, slots=True)
class _Mounted:
    installation: Installation
    app: FastAPI


class ConnectApi:
    """The ASGI application that the plugin mounts."""

    def __init__(self, installations: Installations | None = None) -> None:
        """Opens nothing."""
        self._installations = installations or Installations()
        self._mounted: dict[str, _Mounted] = {}
        self._at_once = 0

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer a request; nothing of it is looked at before its user is known."""
        if scope["type"] != "http":
            raise RuntimeError(f"Kafka Connect's REST API does not speak {scope['type']}.")
        if self._at_once >= MOST_AT_ONCE:
            await error(503, "Too many requests are waiting for Kafka. Try again.")(scope, receive, send)
            return
        self._at_once += 1
        try:
            answer = await self._answer(scope)
            if isinstance(answer, Response):
                await answer(scope, receive, send)
            else:
                app, inner = answer
                await app(inner, receive, send)
        finally:
            self._at_once -= 1

    async def _answer(self, scope: Scope) -> Response | tuple[FastAPI, Scope]:
        request = Request(scope)
        try:
            visitor = await visitor_of(request)
            refuse_other_sites(request)
            conn_id, inner = self._chosen(scope)
            if conn_id is None:
                return Json(await run_in_threadpool(self._list, visitor, request))
            await visitor.refuse_without(Right.READ, conn_id)
            app = await run_in_threadpool(self._app, conn_id)
        except RefusedError as refused:
            return error(refused.status, refused.message)
        except ConnectError as failure:
            return error(503 if failure.retriable else 500, str(failure))
        return app, {**inner, _VISITOR: visitor}

    def _chosen(self, scope: Scope) -> tuple[str | None, Scope]:
        """The installation that a path names, and the scope of its application; None for the list."""
        raw = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1").partition("?")[0]
        root = scope.get("root_path", "")
        segments = raw.removeprefix(root).strip("/").split("/")
        if segments[0] != INSTALLATIONS:
            return self._installations.default_name(), scope
        if len(segments) == 1:
            return None, scope
        return unquote(segments[1]), {**scope, "root_path": f"{root}/{INSTALLATIONS}/{segments[1]}"}

    def _list(self, visitor: Visitor, request: Request) -> list[dict[str, str]]:
        base = f"{request.url.scheme}://{request.url.netloc}{request.scope.get('root_path', '')}"
        return [
            {"name": name, "url": f"{base}/{INSTALLATIONS}/{quote(name, safe='')}"}
            for name in self._installations.names()
            if visitor.may(Right.READ, name)
        ]

    def _app(self, conn_id: str) -> FastAPI:
        installation = self._installations.get(conn_id)
        mounted = self._mounted.get(conn_id)
        if mounted is None or mounted.installation is not installation:
            mounted = _Mounted(installation, _app_of(installation))
            self._mounted[conn_id] = mounted
        return mounted.app


def _app_of(installation: Installation) -> FastAPI:
    own_id = worker_id()

    def herder_of(request: Request) -> VisitorHerder:
        return VisitorHerder(installation, request.scope[_VISITOR], own_id)

    async def admit(request: Request, operation: str) -> None:
        right = _right_of(request.method, operation)
        if right is not Right.READ:  # which every request has been asked for
            visitor: Visitor = request.scope[_VISITOR]
            await visitor.refuse_without(right, installation.conn_id)

    return create_app(Served(herder_of, admit), CONNECTORS)


def _right_of(method: str, operation: str) -> Right:
    """What a request needs. Everything that is not known to be harmless needs most."""
    if operation in _OPERATES:
        return Right.OPERATE
    if method in SAFE_METHODS and operation not in _IMPORTS:
        return Right.READ
    return Right.CHANGE
