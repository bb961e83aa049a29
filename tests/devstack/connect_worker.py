"""A real Apache Kafka Connect worker with the file connectors, to move connectors to it and back."""

from __future__ import annotations

import http.client
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from airflow_connect.devstack.launching.java_server import LOCKS as STACK_LOCKS
from airflow_connect.devstack.launching.java_server import JavaServer
from airflow_connect.jvm.jars import locked_jars
from tests.devstack.connect_rest import ConnectRest
from tests.devstack.jars import LOCKS, fetch_jars

DEFAULT_HEAP_MB = 256
BROKER_LOCK = "kafka-4.3.1"
DISTRIBUTED = "org.apache.kafka.connect.cli.ConnectDistributed"
STANDALONE = "org.apache.kafka.connect.cli.ConnectStandalone"
OFFSETS_FILE = "connect.offsets"

PROPERTIES = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    # Plugins are on the class path and listed in META-INF/services; scanning every jar takes seconds longer.
    "plugin.discovery": "service_load",
    "offset.flush.interval.ms": "500",
}
CLUSTER_PROPERTIES = {
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "5",
    "status.storage.replication.factor": "1",
    "status.storage.partitions": "1",
    # The only worker of a cluster need not wait for others.
    "scheduled.rebalance.max.delay.ms": "0",
}


class ConnectWorker(JavaServer):
    """A running worker of Kafka Connect 4.3.1 with `FileStreamSource` and `FileStreamSink`.

    Attributes:
        rest: its REST API, with waits.
        group_id: `group.id`; "" for a standalone worker.
        pid: process id of the worker.
    """

    name = "Kafka Connect 4.3.1"
    lock_name = "kafka-connect-4.3.1"
    locks = LOCKS
    port_count = 1

    def __init__(
        self, data_dir: Path | None, bootstrap: str, group_id: str, properties: Mapping[str, str], heap_mb: int
    ) -> None:
        """Prepare a worker; use `start` or `start_standalone`."""
        super().__init__(data_dir, heap_mb)
        self.group_id = group_id
        self._bootstrap = bootstrap
        self._properties = dict(properties)

    @classmethod
    def start(
        cls,
        bootstrap: str,
        group_id: str,
        properties: Mapping[str, str] | None = None,
        data_dir: Path | None = None,
        heap_mb: int = DEFAULT_HEAP_MB,
    ) -> Self:
        """Start a distributed worker and return when it has joined its group and answers.

        Args:
            bootstrap: the Kafka brokers.
            group_id: its cluster of workers.
            properties: of the worker; they take precedence over PROPERTIES and CLUSTER_PROPERTIES. Its topics are
                named after the group, so that runs on the same broker make those with the default names themselves.
            data_dir: where its configuration and its log go; a temporary folder unless given.
            heap_mb: largest Java heap in MiB.

        Raises:
            DevStackError: no Java, no jars, or it did not come up (with the end of its log).
        """
        topics = {f"{kind}.storage.topic": f"{group_id}-{kind}" for kind in ("config", "offset", "status")}
        worker = cls(data_dir, bootstrap, group_id, {**CLUSTER_PROPERTIES, **topics, **(properties or {})}, heap_mb)
        worker._start_on_free_ports()
        return worker

    @classmethod
    def start_standalone(
        cls,
        bootstrap: str,
        properties: Mapping[str, str] | None = None,
        data_dir: Path | None = None,
        heap_mb: int = DEFAULT_HEAP_MB,
    ) -> Self:
        """Start a standalone worker: the same arguments without a group; source offsets are in `offsets_file`.

        Raises:
            DevStackError: no Java, no jars, or it did not come up (with the end of its log).
        """
        worker = cls(data_dir, bootstrap, "", properties or {}, heap_mb)
        worker._start_on_free_ports()
        return worker

    @property
    def url(self) -> str:
        """Return `http://127.0.0.1:<port>`."""
        return f"http://127.0.0.1:{self.ports[0]}"

    @property
    def rest(self) -> ConnectRest:
        """Return the client of its REST API."""
        return ConnectRest(self.ports[0])

    @property
    def offsets_file(self) -> Path:
        """Return where a standalone worker keeps source offsets."""
        return Path(self._properties.get("offset.storage.file.filename", str(self.data_dir / OFFSETS_FILE)))

    def _class_path(self) -> list[Path]:
        """Return the broker's jars, which hold the clients that a worker needs, and the worker's own."""
        return [*locked_jars.fetch_jars(BROKER_LOCK, STACK_LOCKS), *fetch_jars(self.lock_name)]

    def _program(self) -> Sequence[str]:
        where = {"group.id": self.group_id} if self.group_id else {"offset.storage.file.filename": self.offsets_file}
        merged = {
            "bootstrap.servers": self._bootstrap,
            "listeners": self.url,
            **where,
            **PROPERTIES,
            **self._properties,
        }
        config = self.data_dir / "worker.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in merged.items()))
        return [DISTRIBUTED if self.group_id else STANDALONE, str(config)]

    def _is_ready(self) -> bool:
        """Return whether it has read the config topic and, if distributed, joined its group (KIP-1017)."""
        try:
            return self.rest.is_healthy()
        except (OSError, http.client.HTTPException):
            return False
