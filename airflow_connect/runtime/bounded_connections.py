"""Connections that end: uvicorn waits without a limit for a request, for its head, and for a client to read.

Above `MOST_IDLE` connections of a server that are not being answered, a new one closes the one that has been idle for
longest. So clients that open connections and send nothing do not keep others out.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from functools import cache
from itertools import count
from typing import Any

HEAD_WITHIN_S = 30.0
"""For TLS, the pause before a request, and its head. Bodies have a limit of their own: `BODY_WITHIN_S`."""
BODY_WITHIN_S = 30.0
"""For the body of a request."""
MOST_IDLE = 500
"""Connections of a server whose request has not arrived. Above `limit_concurrency`, which is more, it answers 503."""
READ_WITHIN_S = 60.0
"""For a client to take some of what was sent to it."""
MOST_HEAD_BYTES = 64 << 10
TOO_LARGE = 431
"""Request Header Fields Too Large (RFC 6585)."""
_BESIDE_A_HEADER = len(": \r\n")
_turns = count()
"""Order in which connections became idle: the clock of a loop stands still during one of its turns."""
_Asgi = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]


@cache
def bounded_protocol() -> type[asyncio.Protocol]:
    """The protocol for `uvicorn.Config`; only servers have uvicorn installed."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    return type("BoundedProtocol", (Bounded, AutoHTTPProtocol), {})


class BoundedHeads:
    """Middleware: refuses a head above `MOST_HEAD_BYTES` that has arrived as a whole; `Bounded` sees only parts."""

    def __init__(self, app: _Asgi) -> None:
        """`app`: answers all other requests."""
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Answer or pass on."""
        if scope["type"] != "http" or _head_bytes(scope) <= MOST_HEAD_BYTES:
            await self._app(scope, receive, send)
            return
        message = f"The head of the request is larger than {MOST_HEAD_BYTES >> 10} KiB."
        body = json.dumps({"error_code": TOO_LARGE, "message": message}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        await send({"type": "http.response.start", "status": TOO_LARGE, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _head_bytes(scope: MutableMapping[str, Any]) -> int:
    line = len(scope["raw_path"]) + len(scope["query_string"])
    return line + sum(len(name) + len(value) + _BESIDE_A_HEADER for name, value in scope["headers"])


class Bounded:
    """A connection that is closed if a request does not begin, its head does not end, or its answer is not read.

    Goes in front of uvicorn's protocol, which has the transport, the loop and the answer that is being sent (`cycle`).
    """

    transport: Any
    loop: asyncio.AbstractEventLoop
    cycle: Any
    connections: set[Any]
    _idle_since: int | None = None
    _waiting: asyncio.TimerHandle | None = None
    _sending: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)  # type: ignore[misc]
        self._idle_since = next(_turns)
        self._make_room()
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Look whether a request has begun to be answered."""
        super().data_received(data)  # type: ignore[misc]
        if self._is_answering():
            self._idle_since = None
            self._end_waiting()
            return
        self._head_bytes += len(data)
        if self._head_bytes > MOST_HEAD_BYTES:
            self.transport.close()
        elif self._waiting is None:
            self._wait()

    def on_response_complete(self) -> None:
        """The connection is idle again, unless the client has sent its next request already."""
        super().on_response_complete()  # type: ignore[misc]
        if not self._is_answering():
            self._idle_since = next(_turns)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._end_waiting()
        self._end_sending()
        super().connection_lost(exc)  # type: ignore[misc]

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()  # type: ignore[misc]
        self._sending = self.loop.call_later(READ_WITHIN_S, self._cut_off)

    def resume_writing(self) -> None:
        """The client reads again."""
        self._end_sending()
        super().resume_writing()  # type: ignore[misc]

    def _cut_off(self) -> None:
        self._sending = None
        if self.cycle is not None:
            self.cycle.disconnected = True  # It would write the rest of its answer to the closed connection.
        self.transport.abort()

    def _end_sending(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None

    def _make_room(self) -> None:
        if len(self.connections) <= MOST_IDLE:
            return
        idle = [known for known in self.connections if known._idle_since is not None]
        if len(idle) > MOST_IDLE:
            oldest = min(idle, key=lambda known: known._idle_since)
            oldest._idle_since = None
            oldest.transport.abort()  # With TLS, `close` would wait for the client.

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(HEAD_WITHIN_S, self._expire)

    def _end_waiting(self) -> None:
        self._head_bytes = 0
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _expire(self) -> None:
        self._waiting = None
        if not self._is_answering():
            self.transport.close()
