"""The application: its routes, and what happens around each page."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from importlib.resources import files
from urllib.parse import parse_qs, quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from airflow_connect.control.herder.refusals import BAD_REQUEST, RefusedError
from airflow_connect.errors import ConnectError
from airflow_connect.plugin import AIRFLOW_APP
from airflow_connect.ui.pages import actions
from airflow_connect.ui.pages.asking import Console
from airflow_connect.ui.pages.calls import MOUNT, Call
from airflow_connect.ui.pages.rendering import render
from airflow_connect.ui.pages.views import (
    airflow_tabs,
    cluster,
    connector,
    create,
    doctor,
    edit,
    letters,
    listing,
    live,
    offsets,
    problems,
    run,
    run_now,
)
from airflow_connect.ui.web.access import Right, visitor_of
from airflow_connect.ui.web.dag_places import DagPlaces
from airflow_connect.ui.web.installations import Installations
from airflow_connect.ui.web.same_site import refuse_other_sites

_LOG = logging.getLogger(__name__)
_DEFECT = "The page failed because of a defect. The log of the API server has its traceback."
IN_AIRFLOW = "/plugin/kafka-connect"
"""Airflow's own page around these, as `plugin.py` registers it."""
MOST_BODY_BYTES = 1_000_000
_STATIC = {"pages.css": "text/css", "pages.js": "text/javascript", "form.js": "text/javascript"}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; connect-src 'self'; img-src 'self';"
        " form-action 'self'; frame-ancestors 'self'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


Handler = Callable[[Call], "str | tuple[int, str]"]
"""Returns the HTML of a page; or its status and its HTML; or a path to go to."""


def create_app(console: Console | None = None) -> Starlette:
    """The application, without a server around it."""
    asked = console or Console(Installations(DagPlaces()))

    def page(handler: Handler, right: Right = Right.READ) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return await _answered(request, asked, handler, right)

        return answer

    routes = [
        Route("/", page(airflow_tabs.home)),
        Route("/of", page(airflow_tabs.of_airflow)),
        Route("/problems", page(airflow_tabs.problems)),
        Route("/static/{file}", _static),
        Route("/{conn_id}", page(listing.page)),
        Route("/{conn_id}", page(actions.change_states, Right.OPERATE), methods=["POST"]),
        Route("/{conn_id}/connector", page(connector.page)),
        Route("/{conn_id}/connector", page(connector.request_plan, Right.OPERATE), methods=["POST"]),
        Route("/{conn_id}/run", page(run.page)),
        Route("/{conn_id}/run-now", page(run_now.start, Right.OPERATE), methods=["POST"]),
        Route("/{conn_id}/begun", page(run_now.begun)),
        Route("/{conn_id}/create", page(create.page, Right.CHANGE)),
        Route("/{conn_id}/create", page(actions.create, Right.CHANGE), methods=["POST"]),
        Route("/{conn_id}/edit", page(edit.page, Right.CHANGE)),
        Route("/{conn_id}/edit", page(edit.save, Right.CHANGE), methods=["POST"]),
        Route("/{conn_id}/form", page(live.look, Right.CHANGE), methods=["POST"]),
        Route("/{conn_id}/replay", page(letters.preview, Right.OPERATE)),
        Route("/{conn_id}/replay", page(actions.replay_letters, Right.OPERATE), methods=["POST"]),
        Route("/{conn_id}/problems", page(problems.page)),
        Route("/{conn_id}/cluster", page(cluster.page)),
        Route("/{conn_id}/doctor", page(doctor.page)),
        Route("/{conn_id}/offsets", page(offsets.page)),
        Route("/{conn_id}/offsets", page(actions.change_offsets, Right.OPERATE), methods=["POST"]),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _unknown})


async def _answered(request: Request, console: Console, handler: Handler, right: Right) -> Response:
    """Everything that a handler does happens in a thread: it may wait for Kafka or for Airflow's database."""
    try:
        visitor = await visitor_of(request)
        refuse_other_sites(request)
        conn_id = request.path_params.get("conn_id", "")
        if conn_id:
            await run_in_threadpool(console.installations.refuse_unknown, conn_id)
        of = await run_in_threadpool(console.installations.conn_id_of, conn_id) if conn_id else "-"
        await visitor.refuse_without(right, of)
        root = request.scope.get("root_path", "").rstrip("/")
        query = {name: value.replace("\0", "") for name, value in request.query_params.items()}
        call = Call(console, visitor, root, conn_id, query, await _form(request), request.scope.get(AIRFLOW_APP))
        found = await run_in_threadpool(handler, call)
    except RefusedError as refused:
        return _problem(request, refused.status, refused.message)
    except ConnectError as error:
        return _problem(request, 503 if error.retriable else BAD_REQUEST, str(error))
    except Exception:  # noqa: BLE001 (a defect must not end the server, nor show its inside)
        _LOG.exception("The page %s failed.", request.url.path)
        return _problem(request, 500, _DEFECT)
    if isinstance(found, tuple):
        return HTMLResponse(found[1], found[0], headers=_HEADERS)
    if found.startswith("/"):
        return RedirectResponse(found, 303, headers=_HEADERS)
    return HTMLResponse(found, headers=_HEADERS)


async def _form(request: Request) -> dict[str, list[str]]:
    """The fields of a form.

    Raises:
        RefusedError: the body is too large, or no form.
    """
    if request.method != "POST":
        return {}
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BODY_BYTES:
            raise RefusedError(f"The form has more than {MOST_BODY_BYTES} bytes.", 413)
    try:
        return parse_qs(body.decode(), keep_blank_values=True, max_num_fields=10_000)
    except ValueError as error:
        raise RefusedError("The body of the request is not a form.", BAD_REQUEST) from error


def _problem(request: Request, status: int, message: str) -> Response:
    root = request.scope.get("root_path", "").rstrip("/")
    conn_id = request.path_params.get("conn_id", "")
    login = _inside_airflow(request, root, conn_id) if status == 401 else ""
    html = render("problem.html", root=root, status=status, message=message, conn_id=conn_id, login=login)
    return HTMLResponse(html, status, headers=_HEADERS)


def _inside_airflow(request: Request, root: str, conn_id: str) -> str:
    """The same page inside Airflow's own, which asks for a login first and then comes back; without a query.

    A page that was sent (POST) cannot be opened by its address: this leads to the list of its installation.
    """
    page = request.url.path.removeprefix(root) if request.method == "GET" else f"/{conn_id}"
    query = f"?{request.url.query}" if request.method == "GET" and request.url.query else ""
    return f"{root.removesuffix(MOUNT)}{IN_AIRFLOW}{MOUNT}{quote(page)}{query}"


async def _unknown(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = {404: "There is no such page.", 405: "This page cannot be used in this way."}
    return _problem(request, error.status_code, what.get(error.status_code, str(error.detail)))


async def _static(request: Request) -> Response:
    """The style sheet and the script. They are part of the package, so everybody may have them."""
    name = request.path_params["file"]
    if name not in _STATIC:
        return _problem(request, 404, "There is no such file.")
    content = await run_in_threadpool(files("airflow_connect.ui.pages").joinpath("static", name).read_bytes)
    headers = {"Cache-Control": "private, max-age=300", "X-Content-Type-Options": "nosniff"}
    return Response(content, media_type=_STATIC[name], headers=headers)
