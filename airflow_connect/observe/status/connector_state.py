"""What Kafka holds of a connector between its runs: committed offsets, lag, history. Reads only, joins no group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_connect.api.json_document import JsonDocument
from airflow_connect.runtime.driver.kinds import kind_of

if TYPE_CHECKING:
    from airflow_connect.runtime.spec import RunSpec


@dataclass(frozen=True, slots=True)
class PartitionLag(JsonDocument):
    """Lag of a sink in one partition.

    Attributes:
        committed: next offset to copy; None: nothing is committed yet.
        end: where a run would stop now: the last stable offset, or the high watermark under read_uncommitted.
        lag: offsets that a run would copy. Gaps make it an upper bound of the records. It counts from `committed`; if
            nothing is committed, from where a run would start, which `auto.offset.reset` decides.
    """

    topic: str
    partition: int
    committed: int | None
    end: int
    lag: int


def committed_offsets(spec: RunSpec) -> list[dict[str, Any]]:
    """Committed offsets in the form of Kafka Connect's REST API (KIP-875): `[{"partition": {}, "offset": {}}]`.

    Raises:
        ConnectError: the configuration is wrong, or Kafka cannot be read.
    """
    return kind_of(spec).committed_offsets()


def lag_of(spec: RunSpec) -> list[PartitionLag]:
    """The lag of a sink in every partition of its topics, by topic and partition; as the lag sensor sees it.

    Raises:
        ConfigError: the connector is a source, or its configuration is wrong.
        OffsetError: a committed offset cannot be used, so that a run would fail.
        UnavailableError, AccessError: Kafka cannot be read.
    """
    from airflow_connect.observe.status.uncopied import uncopied
    from airflow_connect.planning.limits import RunLimits
    from airflow_connect.runtime.driver.reporting import now_ms
    from airflow_connect.runtime.driver.sink.kafka_session import SinkSession
    from airflow_connect.runtime.driver.sink.of_spec import only_sink

    configuration = only_sink(
        spec,
        "A source has no lag in Kafka: what it has not copied lies in its own system.",
        "Use the plan, or the offsets, of the connector.",
    )
    with configuration.references.hiding_errors(), SinkSession(configuration) as kafka:
        state, log = kafka.peek().state, kafka.log_state(RunLimits())
        ranges = uncopied(log, state, replace(configuration.policy, limits=RunLimits()), now_ms())
    return [
        PartitionLag(r.topic, r.partition, log.committed.get(r.topic_partition), log.end[r.topic_partition], len(r))
        for r in ranges
    ]


def recent_runs(spec: RunSpec, limit: int) -> list[dict[str, Any]]:
    """Reports of the connector's committed runs, the newest first; at most 100 are kept.

    Raises:
        ConnectError: the configuration is wrong, or Kafka cannot be read.
    """
    from airflow_connect.kafka.clients.short_lived import admin_client
    from airflow_connect.observe.status.history import documents_of

    configuration = kind_of(spec).configuration()
    with configuration.references.hiding_errors():
        admin, reader = admin_client(configuration.admin.settings), configuration.consumer.settings
        return documents_of(admin, reader, configuration.resolved.worker.runs_topic, configuration.name, limit)
