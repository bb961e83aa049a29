"""A loopback HTTP server that answers S3 requests as told, and passes the others on to a real server.

For replies that s3proxy never gives; what goes wrong on the way is `devstack.s3_faults`' work.
"""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Seen:
    """A request that arrived; header names are lower-case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """A reply; `body` shorter than `declared` is a reply cut off on its way."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    declared: int = -1


class Dropped(Exception):  # noqa: N818 (an order to the server, no error)
    """Close the connection without a reply."""


Rule = Callable[[Seen, Callable[[], Answer]], Answer | None]
"""Gets the request and a way to ask the real server; None lets the next rule decide."""


def error(status: int, code: str, **headers: str) -> Answer:
    """S3's error document."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    text = f"<Error><Code>{code}</Code><Message>said so</Message><RequestId>r1</RequestId></Error>"
    return Answer(status, text.encode(), named)


def times(count: int, answer: Answer | type[Dropped], *, method: str = "", query: str = "") -> Rule:
    """The first `count` matching requests get `answer` and never reach the real server."""
    left = [count]

    def rule(seen: Seen, _: Callable[[], Answer]) -> Answer | None:
        if left[0] == 0 or method not in ("", seen.method) or query not in seen.query:
            return None
        left[0] -= 1
        if isinstance(answer, Answer):
            return answer
        raise answer

    return rule


class S3Interceptor:
    """Use as a context manager; `rules` may be changed at any time, `seen` grows."""

    def __init__(self, *rules: Rule, upstream: str = "", tls: ssl.SSLContext | None = None) -> None:
        """Bind to a free port.

        Args:
            rules: asked in order.
            upstream: URL of the real server for requests that no rule answers; without it they get 200.
            tls: serve https with these certificates.
        """
        self._scheme = "https" if tls is not None else "http"
        self.rules = list(rules)
        self.seen: list[Seen] = []
        self._upstream = urlsplit(upstream).netloc
        interceptor = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                interceptor._serve(self)

            do_PUT = do_GET = do_HEAD = do_DELETE = do_POST  # noqa: N815 (names of the standard library)

            def log_message(self, *_: Any) -> None:
                """Tests look at `seen` instead."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        body = handler.rfile.read(int(handler.headers.get("content-length", "0")))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        seen = Seen(handler.command, parts.path, parts.query, headers, body)
        self.seen.append(seen)
        try:
            answer = self._answer(seen, handler.path)
        except Dropped:
            handler.close_connection = True
            return
        handler.send_response(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        if "content-length" not in answer.headers:
            length = answer.declared if answer.declared >= 0 else len(answer.body)
            handler.send_header("content-length", str(length))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(answer.body)
        if answer.declared >= 0:
            handler.close_connection = True

    def _answer(self, seen: Seen, target: str) -> Answer:
        def ask() -> Answer:
            return self._ask(seen, target)

        for rule in list(self.rules):
            answer = rule(seen, ask)
            if answer is not None:
                return answer
        return ask() if self._upstream else Answer(200)

    def _ask(self, seen: Seen, target: str) -> Answer:
        connection = http.client.HTTPConnection(self._upstream, timeout=30)
        try:
            connection.putrequest(seen.method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in seen.headers.items():
                connection.putheader(name, value)
            connection.endheaders(seen.body)
            reply = connection.getresponse()
            body = reply.read()
            keep = {"etag", "last-modified", "content-type", "content-length"}
            headers = {
                name.lower(): value
                for name, value in reply.getheaders()
                if name.lower() in keep or name.lower().startswith("x-amz-")
            }
            if seen.method != "HEAD":
                headers.pop("content-length", None)
            return Answer(reply.status, body, headers)
        finally:
            connection.close()
