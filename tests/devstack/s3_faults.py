"""An HTTP proxy in front of an S3 server that injects faults on demand, to test how a client reacts.

The server behind it is real, so the final effect of the client's requests can be inspected there. A signature
(SigV4) covers the `Host` header and the raw path. Both are passed on unchanged, and s3proxy checks the
signature against the header that it receives, so signatures stay valid.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qsl, unquote, urlsplit

from airflow_connect.devstack.launching.running import Running
from tests.devstack.s3_operations import operation_name

CHUNK_BYTES = 256 * 1024
UPSTREAM_TIMEOUT_S = 120.0
# They belong to one connection, not to the request (RFC 9110, 7.6.1). The proxy answers `Expect` itself.
HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "expect", "te", "upgrade"})

ERROR_BODY = """<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>{code}</Code><Message>{message}</Message><RequestId>fault</RequestId></Error>"""


class Fault(Enum):
    """What happens to a request instead of being passed on and answered."""

    INTERNAL_ERROR = "500 InternalError; the server never sees the request"
    SLOW_DOWN = "503 SlowDown; the server never sees the request"
    DROP = "the connection is closed; the server never sees the request"
    LOSE_ANSWER = "the server executes it, then the connection is closed without an answer"
    CUT_ANSWER = "the server executes it, then half of the answer is sent and the connection is closed"
    DAMAGE = "the last byte of the body is changed in transit; the server gets the request and answers"
    NONE = "the request is passed on and answered; for rules that only delay, count or call"


ANSWERS = {
    Fault.INTERNAL_ERROR: (500, "InternalError", "We encountered an internal error. Please try again."),
    Fault.SLOW_DOWN: (503, "SlowDown", "Please reduce your request rate."),
}


@dataclass(frozen=True)
class SeenRequest:
    """A request that reached the proxy.

    Attributes:
        operation: S3's name for it, `UploadPart`, `CompleteMultipartUpload`, ...
        bucket: first part of the path.
        key: object key, decoded, or "".
        query: parameters of the URL; the last value of each.
        fault: what was done to it.
    """

    method: str
    operation: str
    bucket: str
    key: str
    query: dict[str, str]
    fault: Fault


@dataclass
class Rule:
    """What to do with some requests. `hits` counts the requests that it was applied to.

    Attributes:
        fault: what to do.
        operation: apply only to this S3 operation; "" means all.
        matches: apply only if this returns True.
        skip: let this many matching requests pass first.
        times: apply to this many requests; None means all.
        delay_s: seconds to wait before anything else.
        on_hit: called, in the proxy's thread, before the fault; for a test that must act at this moment.
    """

    fault: Fault
    operation: str = ""
    matches: Callable[[SeenRequest], bool] = lambda request: True
    skip: int = 0
    times: int | None = 1
    delay_s: float = 0.0
    on_hit: Callable[[SeenRequest], None] = lambda request: None
    hits: int = field(default=0, init=False)

    def takes(self, request: SeenRequest) -> bool:
        """Return whether the rule is for this request, and count it."""
        if self.operation not in ("", request.operation) or not self.matches(request):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.times is not None and self.hits >= self.times:
            return False
        self.hits += 1
        return True


class S3FaultProxy(Running):
    """A running proxy; rules are tried in the order of `add`; the first that matches a request applies."""

    def __init__(self, upstream_url: str, tls: ssl.SSLContext | None = None) -> None:
        """Bind to a free port; use `start`."""
        self._scheme = "http" if tls is None else "https"
        upstream = urlsplit(upstream_url)
        self.upstream = (upstream.hostname or "127.0.0.1", upstream.port or 80)
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._rules: list[Rule] = []
        self._seen: list[SeenRequest] = []
        self._server = _Server(self, tls)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @classmethod
    def start(cls, upstream_url: str, tls: ssl.SSLContext | None = None) -> Self:
        """Start a proxy on a free port of 127.0.0.1 in front of the S3 server at `upstream_url`.

        Args:
            upstream_url: an http address.
            tls: serve https with these certificates, as a load balancer that terminates TLS does.
        """
        proxy = cls(upstream_url, tls)
        proxy._thread.start()
        return proxy

    @property
    def endpoint_url(self) -> str:
        """Return `http://127.0.0.1:<port>`, or https."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    def add(self, rule: Rule) -> Rule:
        """Apply a rule from now on; returns it, so that `hits` can be read."""
        with self._lock:
            self._rules.append(rule)
        return rule

    def clear(self) -> None:
        """Forget all rules and all requests seen."""
        with self._lock:
            self._rules.clear()
            self._seen.clear()

    def seen(self, operation: str = "") -> list[SeenRequest]:
        """Return the requests in order of arrival; only those of one S3 operation if given."""
        with self._lock:
            return [request for request in self._seen if operation in ("", request.operation)]

    def stop(self) -> None:
        """Close the port and every connection."""
        self.stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def decide(self, method: str, target: str) -> tuple[SeenRequest, Rule | None]:
        """Record a request and return it with the rule that applies."""
        url = urlsplit(target)
        bucket, _, key = unquote(url.path).lstrip("/").partition("/")
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        operation = operation_name(method, bool(bucket), bool(key), query)
        request = SeenRequest(method, operation, bucket, key, query, Fault.NONE)
        with self._lock:
            rule = next((rule for rule in self._rules if rule.takes(request)), None)
            if rule is not None:
                request = SeenRequest(method, operation, bucket, key, query, rule.fault)
            self._seen.append(request)
        return request, rule


class _Server(ThreadingHTTPServer):
    request_queue_size = 128

    def __init__(self, proxy: S3FaultProxy, tls: ssl.SSLContext | None) -> None:
        self.proxy = proxy
        self._connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)
        if tls is not None:
            # Not in `accept`: a client that does not finish its handshake would block the others.
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def process_request(self, request: socket.socket, client_address: tuple[str, int]) -> None:  # type: ignore[override]
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]
        self._connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):  # just closed by its own thread
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore disconnected clients, because tests provoke them. Report everything else."""
        import sys

        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def handle_any(self) -> None:
        proxy = self.server.proxy
        request, rule = proxy.decide(self.command, self.path)
        if rule is not None:
            rule.on_hit(request)
            proxy.stopping.wait(rule.delay_s)
        if request.fault is Fault.DROP:
            self.close_connection = True
        elif request.fault in ANSWERS:
            self._answer_error(request.fault)
        else:
            self._forward(request.fault)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815 - names of the standard library

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing; `S3FaultProxy.seen` is the log."""

    def _answer_error(self, fault: Fault) -> None:
        for _ in self._request_body():
            pass  # a client that is still sending would take an early answer for a broken connection
        status, code, message = ANSWERS[fault]
        body = b"" if self.command == "HEAD" else ERROR_BODY.format(code=code, message=message).encode()
        self._send_head(status, code, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
        self.wfile.write(body)

    def _forward(self, fault: Fault) -> None:
        upstream = http.client.HTTPConnection(*self.server.proxy.upstream, timeout=UPSTREAM_TIMEOUT_S)
        with contextlib.closing(upstream):
            self._send_upstream(upstream, is_damaged=fault is Fault.DAMAGE)
            answer = upstream.getresponse()
            if fault is Fault.LOSE_ANSWER:
                answer.read()
                self.close_connection = True
            elif fault is Fault.CUT_ANSWER:
                self._send_half(answer)
            else:
                self._send_answer(answer)

    def _send_upstream(self, upstream: http.client.HTTPConnection, *, is_damaged: bool) -> None:
        upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in HOP_BY_HOP:
                upstream.putheader(name, value)
        is_chunked = self._is_chunked
        if is_chunked:
            upstream.putheader("Transfer-Encoding", "chunked")
        upstream.endheaders()
        body = _damaged(self._request_body()) if is_damaged else self._request_body()
        for chunk in body:
            upstream.send(b"%x\r\n%s\r\n" % (len(chunk), chunk) if is_chunked else chunk)
        if is_chunked:
            upstream.send(b"0\r\n\r\n")

    @property
    def _is_chunked(self) -> bool:
        return self.headers.get("Transfer-Encoding", "").lower() == "chunked"

    def _request_body(self) -> Iterator[bytes]:
        if self._is_chunked:
            while size := int(self.rfile.readline().split(b";")[0], 16):
                yield self._read_exactly(size)
                self.rfile.readline()
            while self.rfile.readline() not in (b"\r\n", b"\n", b""):
                continue  # trailers of the transfer encoding; S3's own trailers are inside the body
        else:
            left = int(self.headers.get("Content-Length", 0))
            while left:
                chunk = self._read_exactly(min(left, CHUNK_BYTES))
                left -= len(chunk)
                yield chunk

    def _read_exactly(self, size: int) -> bytes:
        data = self.rfile.read(size)
        if len(data) < size:
            raise ConnectionResetError("the client disconnected in the middle of its request")
        return data

    def _send_head(self, status: int, reason: str, headers: list[tuple[str, str]]) -> None:
        self.send_response_only(status, reason)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def _send_answer(self, answer: http.client.HTTPResponse) -> None:
        headers = [(name, value) for name, value in answer.getheaders() if name.lower() not in HOP_BY_HOP]
        is_chunked = bool(answer.chunked)
        if is_chunked:
            headers.append(("Transfer-Encoding", "chunked"))
        elif answer.length is None:
            # Such a body ends with the connection (RFC 9112, 6.3).
            self.close_connection = True
            headers.append(("Connection", "close"))
        self._send_head(answer.status, answer.reason, headers)
        while chunk := answer.read(CHUNK_BYTES):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk) if is_chunked else chunk)
        if is_chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _send_half(self, answer: http.client.HTTPResponse) -> None:
        """Send half of the body, or half of the status line if there is no body, and close the connection.

        Half of the headers would not work: clients take the part that arrived for the whole answer.
        """
        self.close_connection = True
        body = answer.read()
        if not body:
            self.wfile.write(b"HTTP/1.1 2")
            return
        headers = [(name, value) for name, value in answer.getheaders() if name.lower() not in HOP_BY_HOP]
        kept = [(name, value) for name, value in headers if name.lower() != "content-length"]
        self._send_head(answer.status, answer.reason, [*kept, ("Content-Length", str(len(body)))])
        self.wfile.write(body[: len(body) // 2])


def _damaged(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes, with one bit of the last byte changed."""
    held = b""
    for chunk in chunks:
        if held:
            yield held
        held = chunk
    if held:
        yield held[:-1] + bytes([held[-1] ^ 1])
