"""A real Apache Kafka: one KRaft node, broker and controller in one JVM."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from airflow_connect.devstack.launching.java_server import JavaServer

DEFAULT_HEAP_MB = 512

# What `kafka-storage format` of 4.3.1 writes into bootstrap.checkpoint (metadata.version 30,
# transaction.version 2, group.version 1, share.version 1). Writing the bytes saves the start of a second JVM,
# about a second. Without this file the broker starts too, but silently with transaction.version 0 and
# group.version 0: no KIP-890, no KIP-848. Another version of Kafka needs other bytes.
CHECKPOINT = (
    "AAAAAAAAAAAAAABHAAAAAAKeQUVSACAAAAAAAAABoftcGPkAAAGh+1wY+f//////////////////AAAAASoAAAAIAAAAAxYAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAQAAAPEAAAAAAhYuohsAAAAAAAUAAAGh+1wZOwAAAaH7XBk7//////////////////8AAAAGOgAAAAEu"
    "AQwAEW1ldGFkYXRhLnZlcnNpb24AHgAAWgAAAgFOAQwAIWVsaWdpYmxlLmxlYWRlci5yZXBsaWNhcy52ZXJzaW9uAAEAADQAAAQB"
    "KAEMAA5ncm91cC52ZXJzaW9uAAEAADQAAAYBKAEMAA5zaGFyZS52ZXJzaW9uAAEAADgAAAgBLAEMABBzdHJlYW1zLnZlcnNpb24A"
    "AQAAQAAACgE0AQwAFHRyYW5zYWN0aW9uLnZlcnNpb24AAgAAAAAAAAAAAAcAAAA/AAAAAAISjZ3DACAAAAAAAAABoftcGUEAAAGh"
    "+1wZQf//////////////////AAAAARoAAAAIAAAABAYAAAAA"
)
META_PROPERTIES = "version=1\ncluster.id={1}\nnode.id={0}\ndirectory.id=AAAAAAAAAAAAAAAAAAAA{0}Q\n"

PROPERTIES = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "auto.create.topics.enable": "false",
    "num.partitions": "1",
    # One node cannot replicate, and one partition of each internal topic loads quickly.
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    # With the default retention of seven days, records with old timestamps would be deleted within a second.
    "log.retention.ms": "-1",
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "1000",
    # Compaction happens within three seconds, with little memory.
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.dedupe.buffer.size": str(8 << 20),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    # A node that restarts can register only after its earlier session has ended: at once after a controlled
    # shutdown, or after the session timeout (9 s by default) if it was killed.
    "controlled.shutdown.enable": "true",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "300",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
    "queued.max.requests": "100",
}


class KafkaBroker(JavaServer):
    """A running broker.

    Attributes:
        bootstrap: `127.0.0.1:<port>`, for `bootstrap.servers`.
        pid: process id of the broker.
        data_dir: folder with its log segments, its configuration and `server.log`.
    """

    name = "Kafka 4.3.1"
    lock_name = "kafka-4.3.1"
    port_count = 2
    node_id = 1

    def __init__(self, data_dir: Path | None, properties: Mapping[str, str], heap_mb: int) -> None:
        """Prepare a broker; use `start`."""
        super().__init__(data_dir, heap_mb)
        self._properties = dict(properties)
        self.cluster_id = new_cluster_id()

    @classmethod
    def start(
        cls,
        data_dir: Path | None = None,
        properties: Mapping[str, str] | None = None,
        heap_mb: int = DEFAULT_HEAP_MB,
    ) -> Self:
        """Start a broker on free ports and return when it answers.

        Args:
            data_dir: where its data is kept; a folder of an earlier broker is reused. Without
                it a temporary folder is used and removed by `stop()`.
            properties: broker configuration, takes precedence over PROPERTIES.
            heap_mb: largest Java heap in MiB; 512 was enough for millions of records.

        Raises:
            DevStackError: no Java, no jars, or the broker did not come up (with the end of its log).
        """
        broker = cls(data_dir, properties or {}, heap_mb)
        broker._start_on_free_ports()
        return broker

    @property
    def bootstrap(self) -> str:
        """Return `127.0.0.1:<port>`."""
        return f"127.0.0.1:{self.ports[0]}"

    def _program(self) -> Sequence[str]:
        port, controller_port = self.ports[:2]
        logs = self.data_dir / "log"
        if not (logs / "meta.properties").exists():
            logs.mkdir(exist_ok=True)
            (logs / "bootstrap.checkpoint").write_bytes(base64.b64decode(CHECKPOINT))
            (logs / "meta.properties").write_text(META_PROPERTIES.format(self.node_id, self.cluster_id))
        merged = {
            **PROPERTIES,
            "node.id": str(self.node_id),
            "controller.quorum.voters": ",".join(self._voters()),
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": str(logs),
            **self._properties,
        }
        config = self.data_dir / "server.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in merged.items()))
        return ["kafka.Kafka", str(config)]

    def _voters(self) -> Sequence[str]:
        """Return the controllers of the cluster, each as `<node.id>@<host>:<port>`."""
        return [self.voter]

    @property
    def voter(self) -> str:
        """Return this node's controller, for `controller.quorum.voters`."""
        return f"{self.node_id}@127.0.0.1:{self.ports[1]}"


def new_cluster_id() -> str:
    """Return an id as `kafka-storage random-uuid` does: 16 random bytes in 22 characters.

    Each cluster has its own, so that a broker refuses a controller of another cluster that looks for a node which had
    its port before.
    """
    return base64.urlsafe_b64encode(b"\x01" + secrets.token_bytes(15)).decode()[:22]  # never begins with a hyphen
