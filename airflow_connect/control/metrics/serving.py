"""`/metrics` and `/jmx` in front of the REST application."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow_connect.control.metrics.beans import Bean, WorkerMetrics
from airflow_connect.control.metrics.texts import jmx_json, prometheus_text
from airflow_connect.control.rest.paths import Asgi, Scope
from airflow_connect.errors import ConnectError

if TYPE_CHECKING:
    from starlette.responses import Response

_LOG = logging.getLogger(__name__)
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
JSON = "application/json"
_TEXTS: dict[str, tuple[Callable[[list[Bean]], bytes], str]] = {
    "/metrics": (prometheus_text, PROMETHEUS),
    "/jmx": (jmx_json, JSON),
}


class MetricsRoutes:
    """Answers the two paths, and passes everything else on. It does not check who asks."""

    def __init__(self, app: Asgi, metrics: WorkerMetrics) -> None:
        """`app`: what answers other paths."""
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer or pass on."""
        wanted = _TEXTS.get(scope.get("path", "")) if scope["type"] == "http" else None
        if wanted is None:
            await self._app(scope, receive, send)
            return
        answer = await self._answer(scope["method"], *wanted)
        await answer(scope, receive, send)

    async def _answer(self, method: str, text_of: Callable[[list[Bean]], bytes], media: str) -> Response:
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import JSONResponse, Response

        if method not in ("GET", "HEAD"):
            return JSONResponse({"error_code": 405, "message": "HTTP 405 Method Not Allowed"}, 405)
        try:
            text = await run_in_threadpool(lambda: text_of(self._metrics.beans()))
        except ConnectError as error:
            _LOG.info("Metrics are not available: %s", error)
            return JSONResponse({"error_code": 503, "message": str(error)}, 503)
        return Response(text, 200, {"Content-Type": media})
