"""The tables of an Iceberg sink against its topics and its committed offsets; changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_connect.api.json_document import JsonDocument
from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.counting import plural
from airflow_connect.errors import ConfigError
from airflow_connect.runtime.driver.sink.of_spec import sink_of

if TYPE_CHECKING:
    from airflow_connect.connectors.iceberg.audit import Coverage, RunSnapshot, TableHistory
    from airflow_connect.connectors.iceberg.publisher import IcebergPublisher
    from airflow_connect.connectors.iceberg.tables import IcebergConfig
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
    from airflow_connect.runtime.spec import RunSpec

_MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class PartitionAudit(JsonDocument):
    """One partition of a topic.

    Attributes:
        topic, partition: which.
        start, end: from the first to the last record that the table's snapshots say they hold; both are the first
            offset of the log if they hold none.
        committed: next offset of the connector's group, or None.
        missing: offsets from `start` to `committed` that no snapshot has.
        missing_records: records that a consumer gets there; None if they were not read.
        records: records of all offsets that snapshots have; None if they were not read.
    """

    topic: str
    partition: int
    start: int
    end: int
    committed: int | None
    missing: int
    missing_records: int | None = None
    records: int | None = None


@dataclass(frozen=True, slots=True)
class TableAudit:
    """What the snapshots of a table say.

    Attributes:
        table, branch: which.
        snapshots: of the connector's runs, oldest first.
        partitions: of its topics.
        findings: sentences; each is something that an exact copy does not have.
        notes: what cannot be said.
    """

    table: str
    branch: str
    snapshots: tuple[RunSnapshot, ...]
    partitions: tuple[PartitionAudit, ...]
    findings: tuple[str, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """JSON form."""
        return {
            "table": self.table,
            "branch": self.branch,
            "snapshots": [one.to_json() for one in self.snapshots],
            "partitions": [one.to_json() for one in self.partitions],
            "findings": list(self.findings),
            "notes": list(self.notes),
        }


def audit_tables(spec: RunSpec, tables: Iterable[str] = (), *, reads: bool = False) -> list[TableAudit]:
    """Compare the offsets in the snapshots of tables with those of the connector's group.

    Args:
        spec: the connector and its worker.
        tables: names; by default those of `iceberg.tables`.
        reads: read the topics from the first record that a table has, and count.

    Raises:
        ConfigError: the connector is no Iceberg sink, or it has no fixed tables and none is named.
        IcebergError: a table does not exist.
        UnavailableError, AccessError: Kafka or the catalog cannot be read.
    """
    from airflow_connect.connectors.iceberg.tables import IcebergConfig

    configuration = _iceberg_sink(spec)
    with configuration.references.hiding_errors(), configuration.sink as sink:
        typed = IcebergConfig.from_config(configuration.resolved.connector.raw)
        names = tuple(tables) or typed.tables
        if not names:
            raise ConfigError(
                f"Connector {spec.connector.get('name')} takes the names of its tables from records.",
                config_path="iceberg.tables",
                suggestion="Name tables with --table.",
            )
        publisher: IcebergPublisher = sink.call("publisher", lambda connector: connector.publisher())
        return [_audit(configuration, typed, publisher, name, reads=reads) for name in names]


def _iceberg_sink(spec: RunSpec) -> SinkConfiguration:
    configuration = sink_of(spec)
    if configuration is not None:
        from airflow_connect.connectors.iceberg.connector import IcebergSinkConnector

        if issubclass(configuration.connector_class, IcebergSinkConnector):
            return configuration
    raise ConfigError(
        f"Connector {spec.connector.get('name')} does not write tables of a lake.",
        config_path="connector.class",
        suggestion="IcebergSinkConnector does.",
    )


def _audit(
    configuration: SinkConfiguration, typed: IcebergConfig, publisher: IcebergPublisher, name: str, *, reads: bool
) -> TableAudit:
    from airflow_connect.connectors.iceberg.audit import coverage_of, history_of
    from airflow_connect.connectors.iceberg.publisher import no_table

    table, branch = publisher.table(name), typed.settings_of(name).branch
    if table is None:
        raise no_table(name)
    history = history_of(table, configuration.resolved.connector.name, branch)
    committed = _committed(configuration)
    earliest = _earliest(configuration, committed)
    # Otherwise their snapshots may have expired, or have had no room for offsets.
    says_all = not history.has_expired and all(one.offsets for one in history.snapshots)
    begins = {tp: offset for tp, offset in earliest.items() if says_all and offset < committed[tp]}
    coverage = coverage_of(history.snapshots, committed, begins)
    counted = _counted(configuration, coverage, committed, earliest) if reads else None
    partitions = tuple(_partition(span, coverage, committed, counted) for span in coverage.spans)
    return TableAudit(
        table=name,
        branch=branch,
        snapshots=history.snapshots,
        partitions=partitions,
        findings=tuple(_findings(coverage, committed, partitions)),
        notes=tuple(_notes(history, partitions, begins)),
    )


def _committed(configuration: SinkConfiguration) -> dict[TopicPartition, int]:
    from airflow_connect.kafka.admin.consumer_group import every_committed_offset
    from airflow_connect.kafka.clients.short_lived import admin_client

    return every_committed_offset(admin_client(configuration.admin.settings), configuration.resolved.consumer_group)


def _earliest(configuration: SinkConfiguration, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """First offset of each log. Kafka forgets the committed offsets of a topic that is deleted."""
    from airflow_connect.kafka.admin import watermarks
    from airflow_connect.kafka.clients.short_lived import admin_client

    return watermarks.earliest_offsets(admin_client(configuration.admin.settings), tps)


@dataclass(frozen=True, slots=True)
class _Counted:
    """Records that were read, by partition."""

    held: Counter[TopicPartition]
    missing: Counter[TopicPartition]


def _counted(
    configuration: SinkConfiguration,
    coverage: Coverage,
    committed: Mapping[TopicPartition, int],
    earliest: Mapping[TopicPartition, int],
) -> _Counted:
    """Read each partition once, from its first record in the table to the committed offset.

    Records that Kafka has deleted meanwhile are not there to be counted.
    """
    from airflow_connect.kafka.admin import watermarks
    from airflow_connect.kafka.clients.short_lived import admin_client
    from airflow_connect.kafka.reading.topic_contents import committed_records

    without = [one.topic_partition for one in coverage.spans if one.topic_partition not in earliest]
    earliest = {**earliest, **_earliest(configuration, without)}
    # A topic that was created again may end before what the table holds.
    ends = watermarks.log_ends(
        admin_client(configuration.admin.settings), [one.topic_partition for one in coverage.spans]
    )
    ranges = []
    for one in coverage.spans:
        tp = one.topic_partition
        start = max(one.start, earliest[tp])
        end = min(max(one.end, committed.get(tp, 0)), ends[tp].offset)
        ranges.append(OffsetRange(*tp, start, max(start, end)))
    missing: dict[TopicPartition, list[OffsetRange]] = {one.topic_partition: [] for one in coverage.spans}
    for gap in coverage.missing:
        missing[gap.topic_partition].append(gap)
    counted = _Counted(Counter(), Counter())
    for record in committed_records(configuration.consumer.settings, [one for one in ranges if not one.is_empty]):
        tp = TopicPartition(record.topic, record.partition)
        gaps = missing[tp]
        while gaps and gaps[0].end <= record.offset:  # Both are in the order of offsets.
            gaps.pop(0)
        is_missing = bool(gaps) and gaps[0].start <= record.offset
        (counted.missing if is_missing else counted.held)[tp] += 1
    return counted


def _partition(
    span: OffsetRange, coverage: Coverage, committed: Mapping[TopicPartition, int], counted: _Counted | None
) -> PartitionAudit:
    tp = span.topic_partition
    return PartitionAudit(
        topic=span.topic,
        partition=span.partition,
        start=span.start,
        end=span.end,
        committed=committed.get(tp),
        missing=sum(len(gap) for gap in coverage.missing if gap.topic_partition == tp),
        missing_records=None if counted is None else counted.missing[tp],
        records=None if counted is None else counted.held[tp],
    )


def _findings(
    coverage: Coverage, committed: Mapping[TopicPartition, int], partitions: Iterable[PartitionAudit]
) -> Iterable[str]:
    for twice in coverage.twice[:_MOST_NAMED]:
        yield (
            f"Two snapshots, {twice.first} and {twice.second}, hold {twice.offsets}: rows of these records may be in"
            " the table twice, as after offsets that were set back, or a topic that was created again."
        )
    if len(coverage.twice) > _MOST_NAMED:
        yield f"So do {len(coverage.twice) - _MOST_NAMED} more pairs."
    for span in coverage.spans:
        reached = committed.get(span.topic_partition)
        if reached is None or reached < span.end:
            yield (
                f"The table holds {span.topic_partition} up to {span.end}, but the committed offset is"
                f" {'missing' if reached is None else reached}: a run has not committed its offsets yet, or somebody"
                " has set them back."
            )
    for one in partitions:
        if one.missing_records:
            yield (
                f"{plural(one.missing_records, 'record')} of {one.topic}-{one.partition} from {one.start} to"
                f" {one.committed} {'is' if one.missing_records == 1 else 'are'} in no snapshot of the table. Reports"
                " of runs name records that were left out, dropped, or sent to another table or to the dead letter"
                " topic; others are lost."
            )


def _notes(
    history: TableHistory, partitions: Iterable[PartitionAudit], begins: Mapping[TopicPartition, int]
) -> Iterable[str]:
    if history.has_expired:
        yield "Earlier snapshots have expired: nothing is said about the records before the first one shown."
    late = [one for one in partitions if one.start > begins.get(TopicPartition(one.topic, one.partition), one.start)]
    for one in late[:_MOST_NAMED]:
        begin = begins[TopicPartition(one.topic, one.partition)]
        yield (
            f"The first snapshot begins with {one.topic}-{one.partition} at {one.start}, but Kafka has offsets from"
            f" {begin}: the connector began there, earlier records were left out or sent elsewhere, or"
            " rows went with a table that was dropped or replaced."
        )
    if len(late) > _MOST_NAMED:
        yield f"The same holds for {plural(len(late) - _MOST_NAMED, 'more partition')}."
    without = sum(1 for one in history.snapshots if not one.offsets)
    if without:
        yield f"{plural(without, 'snapshot')} did not have room for offsets: they are missing here."
    if any(one.missing and one.missing_records is None for one in partitions):
        yield (
            "Offsets without a record, such as the ends of transactions, are in no snapshot. --records reads the topics"
            " and counts what is missing."
        )
