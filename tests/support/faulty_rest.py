"""A proxy before a REST catalog that loses, delays, repeats and invents answers of requests that add snapshots."""

from __future__ import annotations

import http.client
import http.server
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

FAULTS = (
    "drop before", "drop after", "500 after", "503 before", "503 after", "504 late", "twice", "409 after", "400 after",
)  # fmt: skip
LATEST_S = 3.0


@dataclass
class FaultyRest:
    """A running proxy.

    Attributes:
        uri: its own address.
        share: of the commits, from 0 to 1, that it spoils.
        seen: how often it has done what.
    """

    uri: str
    share: float
    seen: Counter[str] = field(default_factory=Counter)


class _Handler(http.server.BaseHTTPRequestHandler):
    """Passes requests on; a subclass says from which proxy, and where to."""

    protocol_version = "HTTP/1.1"
    proxy: FaultyRest
    target: tuple[str, int]

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""

    def parse_request(self) -> bool:
        """Every method is passed on in the same way."""
        is_right = super().parse_request()
        setattr(self, f"do_{self.command}", self._pass_on)
        return is_right

    def _pass_on(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(size) if size else None
        fault = "none"
        if self.command == "POST" and b"add-snapshot" in (body or b"") and random.random() < self.proxy.share:
            fault = random.choice(FAULTS)
            self.proxy.seen[fault] += 1
        self._answer(fault, body)

    def _answer(self, fault: str, body: bytes | None) -> None:
        if fault == "drop before":
            self.close_connection = True
        elif fault == "503 before":
            self._refuse(503)
        elif fault == "504 late":
            threading.Thread(target=self._later, args=(body,), daemon=True).start()
            self._refuse(504)
        else:
            status, data = self._forwarded(body)
            if fault == "drop after":
                self.close_connection = True
            elif fault.endswith("after"):
                self._refuse(int(fault[:3]))
            else:
                self._reply(*(self._forwarded(body) if fault == "twice" else (status, data)))

    def _later(self, body: bytes | None) -> None:
        time.sleep(random.uniform(0.05, LATEST_S))
        self._forwarded(body)

    def _forwarded(self, body: bytes | None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(*self.target, timeout=30)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "accept-encoding")}
        try:
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def _refuse(self, status: int) -> None:
        self._reply(status, json.dumps({"error": {"message": "made up", "type": "X", "code": status}}).encode())

    def _reply(self, status: int, data: bytes) -> None:
        try:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)
        except OSError:
            self.close_connection = True  # Who asked is dead.


@contextmanager
def faulty_rest(target: str, share: float) -> Iterator[FaultyRest]:
    """A proxy before the catalog at `target`."""
    proxy, where = FaultyRest("", share), urlsplit(target)
    handler = type("Handler", (_Handler,), {"proxy": proxy, "target": (where.hostname, where.port)})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    proxy.uri = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
