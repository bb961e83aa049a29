"""What Spark asks of the masters of other clusters: an API server of Kubernetes, a ResourceManager of YARN.

Neither runs an executor. Both show what a session sends them, which is as far as the driver's side goes.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
_LISTS = {
    "pods": "PodList",
    "configmaps": "ConfigMapList",
    "services": "ServiceList",
    "persistentvolumeclaims": "PersistentVolumeClaimList",
}


class ApiServer:
    """Takes every object that Spark creates and has none to show."""

    def __init__(self) -> None:
        """Serve on a free port."""
        self.requests: list[tuple[str, str, str]] = []
        self.tokens: set[str] = set()
        self._server = ThreadingHTTPServer((HOST, 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def master(self) -> str:
        """`k8s://http://host:port`."""
        return f"k8s://http://{HOST}:{self._server.server_port}"

    def created(self, kind: str) -> list[Any]:
        """Objects of a kind that were sent to be created: `pods`, `configmaps`."""
        found = [json.loads(body) for method, path, body in self.requests if method == "POST" and path.endswith(kind)]
        return [item for one in found for item in one.get("items", [one])]

    def stop(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()


def _handler(server: ApiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _take(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            path = self.path.partition("?")[0]
            server.requests.append((self.command, path, body))
            server.tokens.add(self.headers.get("Authorization", ""))
            if self.command == "POST":
                self._answer(201, json.loads(body) | {"status": {}})
            elif self.command in ("GET", "DELETE") and (kind := _LISTS.get(path.rpartition("/")[2])):
                self._answer(200, {"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []})
            else:
                self._answer(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404})

        do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = _take  # noqa: N815 (names of http.server)

        def _answer(self, status: int, answer: Any) -> None:
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """The test looks at `requests`."""

    return Handler


@contextmanager
def resource_manager(conf_dir: Path, on_call: Callable[[], None]) -> Iterator[None]:
    """Be the ResourceManager that `conf_dir` names: hear each connection, and close it without an answer."""
    listener = socket.create_server((HOST, 0))
    conf_dir.mkdir()
    address = f"{HOST}:{listener.getsockname()[1]}"
    yarn = {
        "yarn.resourcemanager.address": address,
        "yarn.resourcemanager.connect.max-wait.ms": "1",
        "yarn.resourcemanager.connect.retry-interval.ms": "1",
    }
    (conf_dir / "yarn-site.xml").write_text(_site(yarn))
    (conf_dir / "core-site.xml").write_text(_site({"fs.defaultFS": "file:///"}))

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return  # closed: the test is over
            on_call()
            connection.close()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def _site(properties: dict[str, str]) -> str:
    rows = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in properties.items())
    return f"<configuration>{rows}</configuration>"
