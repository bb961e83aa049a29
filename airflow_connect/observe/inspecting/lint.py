"""What works, but will probably disappoint: small files, keys without effect, records that Kafka deletes too soon."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.api.json_document import JsonDocument
from airflow_connect.runtime.driver.entry import validate_connector
from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
from airflow_connect.runtime.driver.sink.of_spec import sink_of
from airflow_connect.runtime.reporting.texts import format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from airflow_connect.observe.status.connector_state import PartitionLag
    from airflow_connect.runtime.spec import RunSpec

SMALL_BYTES = 16 << 20
"""Readers of object stores, such as Spark and Trino, are slow with many files below that size."""
FEW_FILES = 10
"""Files per run that do no harm, however small they are."""
RUNS = 10
WARN, NOTE = "warning", "note"
_USED = 0.5
"""Share of the retention time after which somebody should look."""


@dataclass(frozen=True, slots=True)
class Advice(JsonDocument):
    """One finding.

    Attributes:
        level: `error`, `warning` or `note`.
        about: the configuration key, or the topic-partition.
        found: a sentence.
        to_do: what helps, a sentence, or "".
    """

    level: str
    about: str
    found: str
    to_do: str = ""


def lint(spec: RunSpec) -> list[Advice]:
    """Every finding about a connector; reads Kafka, writes nothing.

    Raises:
        UnavailableError, AccessError: Kafka cannot be read.
        OffsetError: a committed offset cannot be used, so that a run would fail.
    """
    findings = validate_connector(spec)
    found = [Advice(_level(f["level"]), f["key"], f["message"], f.get("suggestion", "")) for f in findings]
    if any(advice.level == "error" for advice in found) or (configuration := sink_of(spec)) is None:
        return found
    from airflow_connect.observe.status.connector_state import lag_of, recent_runs

    lags, runs = lag_of(spec), recent_runs(spec, RUNS)
    of_lake = _of_lake(configuration, len(lags), runs)
    of_files = list(small_files(spec.connector, runs)) if of_lake is None else of_lake
    return [*found, *of_files, *_retention(lags, configuration)]


def _of_lake(configuration: SinkConfiguration, partitions: int, runs: list[dict[str, Any]]) -> list[Advice] | None:
    """What is to say of tables of a lake; None for other sinks."""
    from airflow_connect.connectors.iceberg.connector import IcebergSinkConnector

    if not issubclass(configuration.connector_class, IcebergSinkConnector):
        return None
    from airflow_connect.connectors.iceberg.tables import IcebergConfig
    from airflow_connect.observe.inspecting.lint_lake import advice

    config = IcebergConfig.from_config(configuration.resolved.connector.raw)
    return [Advice(WARN, *one) for one in advice(config, partitions, runs)]


def small_files(connector: Mapping[str, Any], runs: list[dict[str, Any]]) -> Iterator[Advice]:
    """The size of files in the newest runs is the best forecast of the next ones.

    Args:
        connector: the configuration.
        runs: reports, the newest first.
    """
    files, size = sum(run["files"] for run in runs), sum(run["size_bytes"] for run in runs)
    if not files or size / files >= SMALL_BYTES or files / len(runs) <= FEW_FILES:
        return
    days = max(1.0, (runs[0]["ended_ms"] - runs[-1]["started_ms"]) / 86_400_000)
    told = (
        f"The last {plural(len(runs), 'run')} wrote {plural(files, 'file')} of {format_bytes(size / files)} on average,"
        f" {plural(round(files / days), 'file')} a day."
    )
    records = sum(run["records"] for run in runs) / files
    flush = str(connector.get("flush.size") or "")
    if flush.isdigit() and records >= 0.9 * int(flush):
        wanted = max(1, round(int(flush) * SMALL_BYTES / max(1, size / files)))
        yield Advice(WARN, "flush.size", told, f"Files end at flush.size={flush} records. Raise it to about {wanted}.")
    else:
        yield Advice(
            WARN,
            "flush.on.end",
            told,
            "Files end before they are full. Run less often, partition into fewer directories, or set"
            " flush.on.end=false, so that a file waits until it is full.",
        )


def _level(level: str) -> str:
    return {"error": "error", "unknown": WARN}.get(level, NOTE)


def _retention(lags: Sequence[PartitionLag], configuration: SinkConfiguration) -> Iterator[Advice]:
    """Records that Kafka may delete before they are copied."""
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.errors import ConnectError
    from airflow_connect.kafka.admin.topic_settings import settings_of
    from airflow_connect.kafka.clients.short_lived import admin_client
    from airflow_connect.kafka.reading.first_timestamps import first_records

    behind = {TopicPartition(lag.topic, lag.partition): lag for lag in lags if lag.lag}
    if not behind:
        return
    with configuration.references.hiding_errors():
        admin = admin_client(configuration.admin.settings)
        kept_ms = {
            topic: int(settings["retention.ms"])
            for topic, settings in settings_of(admin, sorted({place.topic for place in behind})).items()
            if "delete" in settings["cleanup.policy"] and int(settings["retention.ms"]) > 0
        }
        starts = {place: lag.end - lag.lag for place, lag in behind.items() if place.topic in kept_ms}
        firsts = first_records(configuration.consumer.settings, starts, configuration.consumer.isolation_level)
    now_ms = time.time_ns() // 1_000_000
    for place, first in firsts.items():
        if isinstance(first, ConnectError):
            raise first
        if first.timestamp_ms is None:
            continue
        age_ms, most_ms = now_ms - first.timestamp_ms, kept_ms[place.topic]
        if age_ms > _USED * most_ms:
            yield Advice(
                WARN,
                str(place),
                f"The oldest record that is not copied is {format_seconds(age_ms / 1000)} old, and Kafka keeps records"
                f" for {format_seconds(most_ms / 1000)}.",
                f"Run the connector now, or raise retention.ms of {place.topic}. {plural(behind[place].lag, 'offset')}"
                " would be lost.",
            )
