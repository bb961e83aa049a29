"""What Kafka holds of a connector between its runs: committed offsets, lag, history. Reads only, joins no group."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.errors import ConfigError
from airflow_connect.runtime.driver.source.configuration import SourceConfiguration, is_source

if TYPE_CHECKING:
    from airflow_connect.runtime.driver.sink.configuration import RunConfiguration
    from airflow_connect.runtime.spec import RunSpec


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """Lag of a sink in one partition.

    Attributes:
        committed: next offset to copy; None: nothing is committed yet.
        end: where a run would stop now: the last stable offset, or the high watermark under read_uncommitted.
        lag: offsets from `committed`, or the start of the log, to `end`. Gaps make it an upper bound of the records.
    """

    topic: str
    partition: int
    committed: int | None
    end: int
    lag: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        return asdict(self)


def committed_offsets(spec: RunSpec) -> list[dict[str, Any]]:
    """Committed offsets in the form of Kafka Connect's REST API (KIP-875): `[{"partition": {}, "offset": {}}]`.

    Raises:
        ConnectError: the configuration is wrong, or Kafka cannot be read.
    """
    if is_source(spec):
        return _offsets_of_source(spec)
    return [
        {
            "partition": {"kafka_topic": found.topic, "kafka_partition": found.partition},
            "offset": {"kafka_offset": found.committed},
        }
        for found in lag_of(spec)
        if found.committed is not None
    ]


def lag_of(spec: RunSpec) -> list[PartitionLag]:
    """The lag of a sink in every partition of its topics, by topic and partition.

    Raises:
        ConfigError: the connector is a source, or its configuration is wrong.
        UnavailableError, AccessError: Kafka cannot be read.
    """
    if is_source(spec):
        raise ConfigError(
            "A source has no lag in Kafka: what it has not copied lies in its own system.",
            config_path="connector.class",
            suggestion="Use the plan, or the offsets, of the connector.",
        )
    from airflow_connect.planning.limits import RunLimits
    from airflow_connect.runtime.driver.sink.kafka_session import KafkaSession

    configuration = _sink(spec)
    with configuration.references.hiding_errors(), KafkaSession(configuration) as kafka:
        log = kafka.log_state(RunLimits())
    found = []
    for place, end in sorted(log.end.items()):
        committed = log.committed.get(place)
        start = log.earliest[place] if committed is None else committed
        found.append(PartitionLag(place.topic, place.partition, committed, end, max(0, end - start)))
    return found


def recent_runs(spec: RunSpec, limit: int) -> list[dict[str, Any]]:
    """Reports of the connector's committed runs, the newest first; at most 100 are kept.

    Raises:
        ConnectError: the configuration is wrong, or Kafka cannot be read.
    """
    from airflow_connect.exactly_once.kafka_journal import RUN
    from airflow_connect.kafka.clients.short_lived import admin_client
    from airflow_connect.kafka.state import runs_topic

    configuration = SourceConfiguration.from_spec(spec) if is_source(spec) else _sink(spec)
    name = configuration.name
    with configuration.references.hiding_errors():
        admin = admin_client(configuration.admin.settings)
        topic = runs_topic.find(admin, configuration.resolved.worker.runs_topic)
        if topic is None:
            return []
        records = runs_topic.read(admin, configuration.consumer.settings, topic, name)
    run_ids = sorted(runs_topic.document_names(records, RUN), reverse=True)[:limit]
    found = (runs_topic.decode_document(RUN, name, records, run_id) for run_id in run_ids)
    return [document for document in found if document is not None]


def _offsets_of_source(spec: RunSpec) -> list[dict[str, Any]]:
    from airflow_connect.runtime.driver.source.kafka_session import SourceSession

    configuration = SourceConfiguration.from_spec(spec)
    with configuration.references.hiding_errors(), SourceSession(configuration) as kafka:
        return [
            {"partition": dict(partition), "offset": dict(offset)} for partition, offset in kafka.read_offsets().items()
        ]


def _sink(spec: RunSpec) -> RunConfiguration:
    from airflow_connect.runtime.driver.sink.configuration import RunConfiguration

    return RunConfiguration.from_spec(spec)
