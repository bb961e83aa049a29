"""Proxies in front of a search server: one that loses answers, checks logins and ends TLS, and a forward proxy."""

from __future__ import annotations

import http.client
import json
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

Fault = Callable[[int, str], "str | tuple[int, bytes] | None"]
LOSE, CUT_BEFORE = "lose the answer", "cut the request"
_PASSED_ON = ("content-type", "content-encoding")
_DENIED = json.dumps(
    {"error": {"type": "security_exception", "reason": "unable to authenticate user"}, "status": 401}
).encode()


class SearchProxy:
    """Passes requests on, but for those for which `fault` says otherwise.

    `fault` gets the number of the bulk request and its path. It returns None, LOSE (executed, but the connection breaks
    instead of the answer), CUT_BEFORE (not executed), or an answer in place of the server's.

    Attributes:
        early_faults: the same for the first requests that are not bulk requests.
        logins: values of the header `authorization` that are accepted; empty: everybody is.
        rewrite: changes the paths of bulk requests.
        rewrite_answer: changes the answers to bulk requests.
        product: value of the header by which Elastic's clients recognize Elasticsearch, or "".
    """

    def __init__(self, port: int, fault: Fault, tls: ssl.SSLContext | None = None) -> None:
        self.fault = fault
        self.early_faults: list[str | tuple[int, bytes]] = []
        self.logins: tuple[str, ...] = ()
        self.rewrite: Callable[[str], str] = str
        self.rewrite_answer: Callable[[bytes], bytes] = bytes
        self.product = ""
        self.bodies: list[bytes] = []
        self.bulk_sizes: list[int] = []
        self.requests: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()
        self._port = port
        self._bulks = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        if tls is not None:
            # The handshake belongs in the thread of a connection: here it would hold up all others.
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()

    def _fault_of(self, path: str, body: bytes) -> str | tuple[int, bytes] | None:
        with self._lock:
            if "/_bulk" not in path:
                return self.early_faults.pop(0) if self.early_faults else None
            self._bulks += 1
            number = self._bulks
            self.bodies.append(body)
            self.bulk_sizes.append(body.count(b'{"index":'))
        return self.fault(number, path)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                proxy.requests.append((self.command, self.path))
                proxy.headers.append({name.lower(): value for name, value in self.headers.items()})
                if proxy.logins and self.headers.get("authorization") not in proxy.logins:
                    return self._answer(401, _DENIED)
                fault = proxy._fault_of(self.path, body)
                if fault == CUT_BEFORE:
                    return self._cut()
                if isinstance(fault, tuple):
                    return self._answer(fault[0], fault[1])
                status, answer = self._ask(body)
                if fault == LOSE:
                    return self._cut()
                return self._answer(status, answer)

            def _ask(self, body: bytes) -> tuple[int, bytes]:
                path = proxy.rewrite(self.path) if "/_bulk" in self.path else self.path
                status, answer = _pass_on(self, f"127.0.0.1:{proxy._port}", path, body)
                return status, proxy.rewrite_answer(answer) if "/_bulk" in self.path else answer

            def _answer(self, status: int, answer: bytes) -> None:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                if proxy.product:
                    self.send_header("X-Elastic-Product", proxy.product)
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
def search_proxy(port: int, fault: Fault = lambda *_: None, tls: ssl.SSLContext | None = None) -> Iterator[SearchProxy]:
    """A proxy in front of the server on a port of this machine."""
    proxy = SearchProxy(port, fault, tls)
    try:
        yield proxy
    finally:
        proxy.close()


class ForwardProxy:
    """A proxy for `proxy.host`: passes on requests with whole URLs, and tunnels TLS."""

    def __init__(self, login: str) -> None:
        """`login`: value of the header `proxy-authorization`, without which nothing is passed on."""
        self.targets: list[str] = []
        forward = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _allow(self, target: str) -> bool:
                forward.targets.append(target)
                if self.headers.get("proxy-authorization") == login:
                    return True
                self.send_response(407)
                self.send_header("content-length", "0")
                self.end_headers()
                return False

            def do_CONNECT(self) -> None:
                if not self._allow(f"CONNECT {self.path}"):
                    return
                host, _, port = self.path.rpartition(":")
                self.close_connection = True
                with socket.create_connection((host, int(port)), timeout=60) as server:
                    self.send_response(200)
                    self.end_headers()
                    _copy_both(self.connection, server)

            def _pass(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                url = urlsplit(self.path)
                if not self._allow(f"{self.command} {url.netloc}"):
                    return
                status, answer = _pass_on(self, url.netloc, f"{url.path}?{url.query}", body)
                self.send_response(status)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer)

            do_GET = do_PUT = do_POST = do_HEAD = _pass  # noqa: N815

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> ForwardProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _pass_on(handler: BaseHTTPRequestHandler, address: str, path: str, body: bytes) -> tuple[int, bytes]:
    """Send the request of a handler to a server; returns status and answer."""
    with closing(http.client.HTTPConnection(address, timeout=60)) as connection:
        headers = {name: handler.headers[name] for name in _PASSED_ON if name in handler.headers}
        connection.request(handler.command, path, body or None, headers)
        response = connection.getresponse()
        return response.status, response.read()


def _copy_both(one: socket.socket, other: socket.socket) -> None:
    """Copy bytes in both directions until one side ends."""
    while True:
        readable, _, _ = select.select([one, other], [], [], 60)
        if not readable:
            return
        for source in readable:
            data = source.recv(65536)
            if not data:
                return
            (other if source is one else one).sendall(data)
