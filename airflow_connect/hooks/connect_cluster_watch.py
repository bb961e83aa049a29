"""Waits for a connector of a Kafka Connect cluster: the same look for a task that polls and for a trigger."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_connect.airflow.connections.official import extra_of, get_connection, worker_with_kafka
from airflow_connect.api.json_document import JsonDocument
from airflow_connect.errors import ConfigError, TaskFailedError

if TYPE_CHECKING:
    from airflow_connect.control.client.rest import ConnectorStatus, ConnectRest
    from airflow_connect.observe.status.cluster_lag import ClusterSink

FAILED_LOOKS = 2
"""A failure counts when it is seen this often in a row: a restart needs a moment until its status is known."""


@dataclass(frozen=True, slots=True)
class Goal(JsonDocument):
    """What is waited for. Holds no secret.

    Attributes:
        connector: its name.
        state: of the connector and all its tasks.
        ends: where a sink's topics ended when the waiting began; {}: its offsets do not matter.
        kafka_connect_conn_id: the cluster.
        kafka_conn_id: the brokers, needed for `ends`.
    """

    KNOWS_ALL = True

    connector: str
    state: str
    ends: dict[str, dict[str, int]] = field(default_factory=dict)
    kafka_connect_conn_id: str = ""
    kafka_conn_id: str = ""


class Watch:
    """Looks at a connector until its goal is reached."""

    def __init__(self, goal: Goal) -> None:
        """Reads nothing yet."""
        self.goal = goal
        self._rest: ConnectRest | None = None
        self._sink: ClusterSink | None = None
        self._failures = 0

    def look(self) -> tuple[bool, str]:
        """Whether the goal is reached, and a sentence about what was seen. Blocks; call it in a thread of its own.

        Raises:
            TaskFailedError: the connector or a task of it has failed.
            ConnectError: the cluster or Kafka cannot be asked.
        """
        if self._rest is None:
            from airflow_connect.hooks.kafka_connect import KafkaConnectHook

            self._rest = KafkaConnectHook(self.goal.kafka_connect_conn_id).rest
        status = self._rest.status(self.goal.connector)
        if status is None:
            return False, f"Connector {self.goal.connector} has no status yet."
        self._refuse_failure(status)
        seen = f"Connector {self.goal.connector} is {status}."
        if not status.is_all(self.goal.state):
            return False, seen
        if not self.goal.ends:
            return True, seen
        left = self._sink_of(self._rest).remaining(self.goal.ends)
        if not left:
            return True, f"{seen} It has copied everything that its topics held."
        return False, f"{seen} {sum(left.values())} offsets of {len(left)} partitions are not committed."

    def _refuse_failure(self, status: ConnectorStatus) -> None:
        self._failures = self._failures + 1 if status.has_failed else 0
        if self._failures >= FAILED_LOOKS:
            raise TaskFailedError(
                f"Connector {self.goal.connector} is {status}: {status.failure or 'it gives no reason'}",
                code="kafka_connect.failed",
                suggestion="Correct the cause, then restart what has failed with action='restart'.",
            )

    def _sink_of(self, rest: ConnectRest) -> ClusterSink:
        if self._sink is None:
            self._sink = cluster_sink(rest, self.goal.connector, self.goal.kafka_conn_id)
        return self._sink


def cluster_sink(rest: ConnectRest, connector: str, kafka_conn_id: str) -> ClusterSink:
    """A sink of the cluster, seen from Kafka.

    Raises:
        ConfigError: there is no such connector, it is a source, or the Kafka connection is missing or wrong.
        UnavailableError, AccessError: Kafka cannot be used.
    """
    from airflow_connect.observe.status.cluster_lag import ISOLATION, ClusterSink

    config = rest.config(connector)
    if config is None:
        raise ConfigError(f"The cluster has no connector called {connector!r}.", code="kafka_connect.missing")
    if rest.kind(connector) == "source":
        raise ConfigError(
            f"Connector {connector} is a source: Kafka does not know what it has not copied.",
            code="kafka_connect.source",
            suggestion="Wait for its state only.",
        )
    connection = get_connection(kafka_conn_id)
    kafka, extra = worker_with_kafka({}, kafka_conn_id, lambda _: connection), extra_of(connection)
    if extra.get(ISOLATION):
        kafka[ISOLATION] = extra[ISOLATION]
    return ClusterSink({**config, "name": connector}, kafka)
