"""Several real Kafka brokers, each a separate process, so that tests can stop one or move the partitions it leads."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self

from airflow_connect.devstack.kafka import DEFAULT_HEAP_MB, KafkaBroker
from airflow_connect.devstack.launching.errors import DevStackError
from airflow_connect.devstack.launching.process import log_tail
from airflow_connect.devstack.launching.running import Running

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

START_S = 90.0
START_ATTEMPTS = 3
LOOK_EVERY_S = 0.25
"""Each look is a client of its own, which three brokers answer while they are starting."""
REQUEST_S = 15.0
TRANSACTIONS = "__transaction_state"
GROUPS = "__consumer_offsets"
COORDINATOR_PARTITIONS = 3
"""Partitions of each of both topics: enough for ids with different coordinators."""

PROPERTIES = {
    "offsets.topic.num.partitions": str(COORDINATOR_PARTITIONS),
    "transaction.state.log.num.partitions": str(COORDINATOR_PARTITIONS),
    # Leaders move when a broker dies or a caller requests it, never by themselves.
    "auto.leader.rebalance.enable": "false",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.election.backoff.max.ms": "200",
}


class KafkaNode(KafkaBroker):
    """One broker of a cluster; also a controller."""

    def __init__(self, node_id: int, properties: Mapping[str, str], heap_mb: int) -> None:
        """`node_id`: from 1. Nothing runs yet."""
        super().__init__(None, properties, heap_mb)
        self.node_id = node_id
        self.voters: Sequence[str] = ()

    def _voters(self) -> Sequence[str]:
        return self.voters


class KafkaCluster(Running):
    """Running brokers that replicate everything to each other; one of three may be down.

    Attributes:
        nodes: each with `.node_id`, `.pid`, `.bootstrap`, `.kill()` and `.restart()`, which keep its ports and data.
    """

    def __init__(self, brokers: int, properties: Mapping[str, str], heap_mb: int) -> None:
        """Prepare a cluster; use `start`."""
        copies = str(brokers)
        replicated = {
            "default.replication.factor": copies,
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.replication.factor": copies,
            # As many as remain when one is down, so that confirmed data is never lost.
            "min.insync.replicas": str(max(1, brokers - 1)),
            "transaction.state.log.min.isr": str(max(1, brokers - 1)),
        }
        merged = {**PROPERTIES, **replicated, **properties}
        self.nodes = [KafkaNode(number, merged, heap_mb) for number in range(1, brokers + 1)]
        for node in self.nodes:
            node.voters = [other.voter for other in self.nodes]
            node.cluster_id = self.nodes[0].cluster_id

    @classmethod
    def start(
        cls, brokers: int = 3, properties: Mapping[str, str] | None = None, heap_mb: int = DEFAULT_HEAP_MB
    ) -> Self:
        """Start all brokers on free ports and return when all are ready; about six seconds for three.

        Args:
            brokers: how many.
            properties: broker configuration of all of them, takes precedence over PROPERTIES.
            heap_mb: largest Java heap of each in MiB.

        Raises:
            DevStackError: no Java, no jars, or a broker did not come up (with the end of its log).
        """
        for attempt in range(START_ATTEMPTS):
            cluster = cls(brokers, properties or {}, heap_mb)
            try:
                cluster.restart()
                break
            except DevStackError:
                # A port that was taken meanwhile is known to all nodes, and nodes that found no leader do not always
                # recover on a busy machine: new nodes on new ports.
                cluster.stop()
                if attempt == START_ATTEMPTS - 1:
                    raise
            except BaseException:
                cluster.stop()
                raise
        return cluster

    @property
    def bootstrap(self) -> str:
        """Return the addresses of all brokers, for `bootstrap.servers`."""
        return ",".join(node.bootstrap for node in self.nodes)

    def restart(self) -> None:
        """End the running brokers and start all again with their ports and data; all are ready when this returns."""
        _at_once([node.restart for node in self.nodes])
        self.wait_until_in_sync()

    def start_missing(self) -> None:
        """Start the brokers that were killed; when this returns, all are ready and have caught up."""
        missing = [node.restart for node in self.nodes if not node.is_running]
        if missing:
            _at_once(missing)
        self.wait_until_in_sync()

    def wait_until_in_sync(self) -> None:
        """Return when every broker is up and every copy of every partition is up to date.

        Raises:
            DevStackError: not within 90 s.
        """
        try:
            self._wait_until(self._is_in_sync, "every copy of every partition is up to date")
        except DevStackError as error:
            logs = "\n".join(f"Broker {node.node_id}: {log_tail(node.log_path)}" for node in self.nodes)
            raise DevStackError(f"{error.message} {self._state()}\n{logs}", code=error.code) from None

    def stop(self) -> None:
        """End all brokers and remove their data."""
        for node in self.nodes:
            node.kill()  # An orderly stop would make them wait for each other, and the data is not needed.
            node.stop()

    def coordinator(self, transactional_id: str) -> KafkaNode:
        """Return the broker that coordinates a transactional id; one must have been used before."""
        return self.leader(TRANSACTIONS, coordinator_partition(transactional_id))

    def group_coordinator(self, group: str) -> KafkaNode:
        """Return the broker that keeps the offsets of a group; one must have been used before."""
        return self.leader(GROUPS, coordinator_partition(group))

    def leader(self, topic: str, partition: int) -> KafkaNode:
        """Return the broker that leads a partition; waits until one does.

        Raises:
            DevStackError: none does within 90 s.
        """
        self._wait_until(lambda: self._leader(topic, partition) > 0, f"{topic}-{partition} has a leader")
        return self.nodes[self._leader(topic, partition) - 1]

    def displace(self, topic: str, partition: int) -> KafkaNode:
        """Make another broker than the first replica lead a partition, so that `move_back` can move it.

        Returns the broker that leads it now. If the first replica is the leader, its broker is killed and restarted.
        """
        if self._leader(topic, partition) == self._first(topic, partition):
            node = self.leader(topic, partition)
            node.kill()
            self.leader(topic, partition)  # waits for the next one
            node.restart()
        self.wait_until_in_sync()
        return self.leader(topic, partition)

    def move_back(self, topic: str, partition: int) -> KafkaNode:
        """Make the first replica lead a partition, without a failure; returns its broker.

        This moves the leader, or coordinator, between two healthy brokers, as administrators and rebalancing tools do.

        Raises:
            DevStackError: not within 90 s.
        """
        from confluent_kafka import ElectionType, KafkaError, TopicPartition

        asked, first = TopicPartition(topic, partition), self._first(topic, partition)
        # The client must exist until it has the answer. No timeouts: confluent-kafka 2.16 fails with either of them.
        admin = self._admin()
        problem = admin.elect_leaders(ElectionType.PREFERRED, [asked]).result(REQUEST_S)[asked]
        if problem is not None and problem.code() != KafkaError.ELECTION_NOT_NEEDED:
            raise DevStackError(f"{topic}-{partition} was not moved: {problem}.", code="devstack.kafka")
        self._wait_until(lambda: self._leader(topic, partition) == first, f"broker {first} leads {topic}-{partition}")
        return self.nodes[first - 1]

    def _state(self) -> str:
        """Say in a sentence which processes run and what the brokers tell of each other."""
        ended = [node.node_id for node in self.nodes if not node.is_running]
        if len(ended) == len(self.nodes):
            return "All brokers have ended."
        found = self._metadata()
        behind = [
            f"{name}-{number}: {len(p.isrs)} of {len(p.replicas)}"
            for name, topic in found.topics.items()
            for number, p in topic.partitions.items()
            if len(p.isrs) != len(p.replicas)
        ]
        return f"Ended: {ended}. Registered: {sorted(found.brokers)}. Behind: {behind}."

    def _is_in_sync(self) -> bool:
        found = self._metadata()
        partitions = (p for topic in found.topics.values() for p in topic.partitions.values())
        return len(found.brokers) == len(self.nodes) and all(len(p.isrs) == len(p.replicas) for p in partitions)

    def _first(self, topic: str, partition: int) -> int:
        """Number of the broker that leads a partition by default: its first replica."""
        return int(self._metadata().topics[topic].partitions[partition].replicas[0])

    def _leader(self, topic: str, partition: int) -> int:
        """Number of the living broker that leads a partition, 0 while there is none."""
        found = self._metadata().topics.get(topic)
        leader = found.partitions[partition].leader if found and partition in found.partitions else 0
        return leader if leader > 0 and self.nodes[leader - 1].is_running else 0

    def _metadata(self) -> Any:
        """What the running brokers tell a new client."""
        return self._admin().list_topics(timeout=REQUEST_S)

    def _admin(self) -> AdminClient:
        from confluent_kafka.admin import AdminClient

        running = ",".join(node.bootstrap for node in self.nodes if node.is_running)
        return AdminClient({"bootstrap.servers": running, "log_level": 0})

    @staticmethod
    def _wait_until(condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + START_S
        while not condition():
            if time.monotonic() > deadline:
                raise DevStackError(f"After {START_S:.0f} s it is still not true that {what}.", code="devstack.start")
            time.sleep(LOOK_EVERY_S)


def coordinator_partition(name: str) -> int:
    """Return the partition whose leader coordinates a group or a transactional id.

    Source: kafka.coordinator.transaction.TransactionStateManager.partitionFor and its counterpart for groups, which
    use Java's String.hashCode without its sign.
    """
    code = 0
    for unit in memoryview(name.encode("utf-16-le")).cast("H"):
        code = (31 * code + unit) & 0xFFFFFFFF
    return (code & 0x7FFFFFFF) % COORDINATOR_PARTITIONS


def _at_once(steps: Sequence[Callable[[], None]]) -> None:
    with ThreadPoolExecutor(len(steps)) as pool:
        for done in [pool.submit(step) for step in steps]:
            done.result()
