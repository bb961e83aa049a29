"""Records of a sink's topics, decoded and transformed as a run would do it, without writing anything."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.api.json_document import JsonDocument
from airflow_connect.runtime.driver.sink.of_spec import only_sink

if TYPE_CHECKING:
    from airflow_connect.api.offsets import OffsetRange
    from airflow_connect.api.record import KafkaRecord, SinkRecord
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
    from airflow_connect.runtime.executor.converting import ConversionError, RecordConverter
    from airflow_connect.runtime.executor.sink.whole_records import WholeRecordConverter
    from airflow_connect.runtime.spec import RunSpec

MOST_BEFORE = 10_000
"""Offsets before the end that are read at most to find the last records: offsets have gaps."""


@dataclass(frozen=True, slots=True)
class SeenRecord(JsonDocument):
    """A record.

    Attributes:
        where: `topic-partition@offset`.
        timestamp_ms: milliseconds since the epoch, or None.
        key, value: after converters and transformations, as plain Python; None if it failed or was dropped.
        topic: what a transformation has made of the topic.
        outcome: `written`, `dropped` by a transformation, or `failed`.
        error: what failed, and where.
    """

    where: str
    timestamp_ms: int | None
    key: Any
    value: Any
    topic: str
    outcome: str
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        """JSON form; values may need a text form of their own."""
        return asdict(self)


def look_at_records(spec: RunSpec, limit: int, *, oldest: bool = False) -> list[SeenRecord]:
    """Records of every partition of a sink's topics; joins no group.

    Args:
        spec: the connector and its worker.
        limit: at most so many of each partition, the newest unless `oldest`.
        oldest: begin with the first ones.

    Raises:
        ConfigError: the connector is a source, or its configuration is wrong.
        UnavailableError, AccessError: Kafka or the registry cannot be read.
    """
    from airflow_connect.runtime.driver.sink.kafka_session import SinkSession

    configuration = only_sink_of(spec)
    converter = converter_of(configuration)
    try:
        with configuration.references.hiding_errors(), SinkSession(configuration) as kafka:
            from airflow_connect.planning.limits import RunLimits

            log = kafka.log_state(RunLimits())
            ranges = _ranges(log.earliest, log.end, None if oldest else max(limit, MOST_BEFORE))
            found = _some(configuration, ranges, limit, oldest=oldest)
            return [_seen(record, converter) for record in found]
    finally:
        converter.close()


def only_sink_of(spec: RunSpec) -> SinkConfiguration:
    """The configuration of a sink.

    Raises:
        ConfigError: the connector is a source, or its configuration is wrong.
    """
    return only_sink(
        spec,
        f"Connector {spec.connector.get('name')} is a source: its records are not in Kafka before it runs.",
        "Look at a sink's topics, or run the source with run.max.records.",
    )


def converter_of(configuration: SinkConfiguration) -> RecordConverter | WholeRecordConverter:
    """What makes the records that the sink gets: a backup of whole records has no converters.

    Raises:
        ConfigError: the settings of a converter or a transformation are wrong.
    """
    from airflow_connect.connectors.files.shared.connector import StorageSinkConnector
    from airflow_connect.runtime.executor.converting import RecordConverter
    from airflow_connect.runtime.executor.sink.whole_records import WholeRecordConverter

    if issubclass(configuration.connector_class, StorageSinkConnector):
        config = dict(configuration.resolved.connector.raw)
        with configuration.sink as sink:
            storage, _ = sink.call("storage", lambda connector: connector.storage(config))
            if storage.stores_records:
                return WholeRecordConverter()
    return RecordConverter(configuration.resolved)


def first_records(configuration: SinkConfiguration, most: int) -> list[KafkaRecord]:
    """The first records, `most` of all partitions together, as they are in Kafka; joins no group.

    Each partition with records gives an equal part; one that has fewer gives what it has.

    Raises:
        UnavailableError, AccessError: a topic cannot be read.
    """
    from airflow_connect.planning.limits import RunLimits
    from airflow_connect.runtime.driver.sink.kafka_session import SinkSession

    found: list[KafkaRecord] = []
    with configuration.references.hiding_errors(), SinkSession(configuration) as kafka:
        log = kafka.log_state(RunLimits())
        ranges = [one for one in _ranges(log.earliest, log.end, None) if len(one)]
        part = -(-most // max(1, len(ranges)))
        for one in ranges:
            if len(found) < most:
                found.extend(_some(configuration, [one], min(part, most - len(found)), oldest=True))
    return found


def failed_where(error: ConversionError) -> str:
    """The stage that refused a record, and why."""
    failure = error.failure
    return f"{failure.stage}: {type(failure.error).__name__}: {failure.error}"


def _ranges(earliest: Any, ends: Any, most: int | None) -> list[OffsetRange]:
    from airflow_connect.api.offsets import OffsetRange

    return [
        OffsetRange(tp.topic, tp.partition, low if most is None else max(low, ends[tp] - most), max(low, ends[tp]))
        for tp, low in sorted(earliest.items())
    ]


def _some(
    configuration: SinkConfiguration, ranges: list[OffsetRange], limit: int, *, oldest: bool
) -> Iterator[KafkaRecord]:
    from airflow_connect.kafka.reading.topic_contents import committed_records

    for one in ranges:
        kept: deque[KafkaRecord] = deque(maxlen=limit)
        for record in committed_records(configuration.consumer.settings, [one]):
            kept.append(record)
            if oldest and len(kept) == limit:
                break
        yield from kept


def _seen(record: KafkaRecord, converter: RecordConverter | WholeRecordConverter) -> SeenRecord:
    from airflow_connect.runtime.executor.converting import ConversionError

    try:
        converted: SinkRecord | None = converter.convert(record)
    except ConversionError as error:
        return SeenRecord(record.where, record.timestamp, None, None, record.topic, "failed", failed_where(error))
    if converted is None:
        return SeenRecord(record.where, record.timestamp, None, None, record.topic, "dropped")
    return SeenRecord(
        record.where, converted.timestamp, converted.key, converted.value, str(converted.topic), "written"
    )
