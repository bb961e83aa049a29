"""A proxy in front of a search server that loses answers, or gives its own."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Fault = Callable[[int, str], "str | tuple[int, bytes] | None"]
LOSE, CUT_BEFORE = "lose the answer", "cut the request"


class SearchProxy:
    """Passes requests on, but for those for which `fault` says otherwise.

    `fault` gets the number of the request and its path. It returns None, LOSE (executed, but the connection breaks
    instead of the answer), CUT_BEFORE (not executed), or an answer in place of the server's.
    """

    def __init__(self, port: int, fault: Fault) -> None:
        self.fault = fault
        self.bodies: list[bytes] = []
        self.bulk_sizes: list[int] = []
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()
        self._port = port
        self._bulks = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()

    def _number(self, path: str, body: bytes) -> int:
        with self._lock:
            if "/_bulk" in path:
                self._bulks += 1
                self.bodies.append(body)
                self.bulk_sizes.append(body.count(b'{"index":'))
            return self._bulks if "/_bulk" in path else 0

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                proxy.headers.append({name.lower(): value for name, value in self.headers.items()})
                number = proxy._number(self.path, body)
                fault = proxy.fault(number, self.path) if number else None
                if fault == CUT_BEFORE:
                    return self._cut()
                if isinstance(fault, tuple):
                    return self._answer(fault[0], fault[1])
                status, answer = self._ask(body)
                if fault == LOSE:
                    return self._cut()
                return self._answer(status, answer)

            def _ask(self, body: bytes) -> tuple[int, bytes]:
                connection = http.client.HTTPConnection("127.0.0.1", proxy._port, timeout=60)
                headers = {"content-type": self.headers.get("content-type") or "application/json"}
                connection.request(self.command, self.path, body or None, headers)
                response = connection.getresponse()
                try:
                    return response.status, response.read()
                finally:
                    connection.close()

            def _answer(self, status: int, answer: bytes) -> None:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer)

            def _cut(self) -> None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)

            do_GET = do_PUT = do_POST = do_HEAD = _pass  # noqa: N815

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        return Handler


@contextmanager
def search_proxy(port: int, fault: Fault) -> Iterator[SearchProxy]:
    """A proxy in front of the server on a port of this machine."""
    proxy = SearchProxy(port, fault)
    try:
        yield proxy
    finally:
        proxy.close()
