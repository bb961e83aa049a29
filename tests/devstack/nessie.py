"""A real Nessie server: a catalog of Iceberg with branches, by its REST endpoint. Its tables are in S3."""

from __future__ import annotations

import http.client
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from airflow_connect.devstack.launching.java_server import JavaServer
from airflow_connect.devstack.s3 import S3Server
from tests.devstack.jars import LOCKS

DEFAULT_HEAP_MB = 512
WAREHOUSE = "lake"


class Nessie(JavaServer):
    """A running server; its state is in memory.

    Attributes:
        uri: for `iceberg.catalog.uri`.
        pid: process id of the server.
    """

    name = "Nessie 0.99.0"
    lock_name = "nessie-0.99.0"
    locks = LOCKS
    port_count = 2
    min_java = 21

    def __init__(self, data_dir: Path | None, s3: S3Server, bucket: str, heap_mb: int) -> None:
        """Prepare a server; use `start`."""
        super().__init__(data_dir, heap_mb)
        self._s3, self._bucket = s3, bucket

    @classmethod
    def start(cls, s3: S3Server, bucket: str, data_dir: Path | None = None, heap_mb: int = DEFAULT_HEAP_MB) -> Self:
        """Start a server on a free port and return when it answers.

        Args:
            s3: where the tables are.
            bucket: of the warehouse.
            data_dir: where its log goes; a temporary folder unless given.
            heap_mb: largest Java heap in MiB.

        Raises:
            DevStackError: it could not be fetched (240 MB, once) or did not come up (with the end of its log).
        """
        server = cls(data_dir, s3, bucket, heap_mb)
        server._start_on_free_ports()
        return server

    @property
    def uri(self) -> str:
        """Return `http://127.0.0.1:<port>/iceberg`."""
        return f"http://127.0.0.1:{self.ports[0]}/iceberg"

    def _flags(self) -> list[str]:
        s3, keys = "nessie.catalog.service.s3.default-options", "urn:nessie-secret:quarkus:test.access-key"
        settings = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": str(self.ports[0]),
            "quarkus.management.host": "127.0.0.1",
            "quarkus.management.port": str(self.ports[1]),
            "nessie.version.store.type": "IN_MEMORY",
            "nessie.catalog.default-warehouse": WAREHOUSE,
            f"nessie.catalog.warehouses.{WAREHOUSE}.location": f"s3://{self._bucket}/nessie",
            f"{s3}.endpoint": self._s3.endpoint_url,
            f"{s3}.region": self._s3.region,
            f"{s3}.path-style-access": "true",
            f"{s3}.request-signing-enabled": "false",
            f"{s3}.access-key": keys,
            "test.access-key.name": self._s3.access_key,
            "test.access-key.secret": self._s3.secret_key,
        }
        return [*super()._flags(), *(f"-D{key}={value}" for key, value in settings.items())]

    def _program(self) -> Sequence[str]:
        return ["io.quarkus.runner.GeneratedMain"]

    def _is_ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[0], timeout=5)
        try:
            connection.request("GET", "/iceberg/v1/config")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
