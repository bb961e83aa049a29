"""The paths and methods of requests, before routing.

A connector's name may hold any character. Segments therefore stay percent-encoded until a handler decodes its own, so
`a%2Fb` is one name. Kafka Connect's server refuses such paths, and a connector with that name can never be deleted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote

Scope = MutableMapping[str, Any]
WITHOUT_USER = "airflow_connect.without_user"
"""Set in the scope of a request that is answered although nobody is known to have sent it: without any detail."""
Asgi = Callable[[Scope, Any, Any], Awaitable[None]]


class EncodedPaths:
    """Middleware: routes see the path as it was sent, without matrix parameters and without a slash at its end.

    HEAD is answered as GET is, without a body (RFC 9110, 9.3.2).
    """

    def __init__(self, app: Asgi) -> None:
        """`app`: what follows."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        raw = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1").partition("?")[0]
        path = "/".join(segment.partition(";")[0] for segment in raw.split("/")).removesuffix("/")
        is_root = path == scope.get("root_path", "").removesuffix("/")
        scope = {**scope, "path": f"{path}/" if is_root else path}
        if scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_head(message: MutableMapping[str, Any]) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self._app({**scope, "method": "GET"}, receive, send_head)


def decoded(segment: str) -> str:
    """A segment as text."""
    return unquote(segment, errors="replace")
