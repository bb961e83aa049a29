"""The paths of requests, before routing.

A connector's name may hold any character. Segments therefore stay percent-encoded until a handler decodes its own, so
`a%2Fb` is one name. Kafka Connect's server refuses such paths, and a connector with that name can never be deleted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote

Scope = MutableMapping[str, Any]
Asgi = Callable[[Scope, Any, Any], Awaitable[None]]


class EncodedPaths:
    """Middleware: routes see the path as it was sent, without matrix parameters and without a slash at its end."""

    def __init__(self, app: Asgi) -> None:
        """`app`: what follows."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Pass the request on."""
        if scope["type"] == "http":
            raw = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1").partition("?")[0]
            segments = [segment.partition(";")[0] for segment in raw.split("/")]
            path = "/".join(segments)
            scope = {**scope, "path": path.removesuffix("/") or "/"}
        await self._app(scope, receive, send)


def decoded(segment: str) -> str:
    """A segment as text."""
    return unquote(segment, errors="replace")
