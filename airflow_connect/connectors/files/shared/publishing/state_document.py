"""The document that a storage sink keeps from run to run, the one that its tasks get, and the one that they return.

Version 1; 2 if ids of schemas are kept, 3 if the offsets are that were copied: an older release would drop them.
Documents without a version are of releases that had these members in the manifest and in the state record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airflow_connect.api.coverage import COVERAGE, Coverage
from airflow_connect.connectors.files.shared.publishing import schemas_between_runs
from airflow_connect.connectors.files.shared.publishing.schemas_between_runs import OF_LAST_FILE
from airflow_connect.connectors.files.shared.publishing.time_progress import (
    CopiedPartition,
    PartitionTimes,
    TimeProgress,
)
from airflow_connect.connectors.files.shared.schema_ids import joined
from airflow_connect.errors import StateError

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.api.sink_state import PlannedRun
    from airflow_connect.documents.run import PartitionReport

VERSION = 3
SCHEMA_IDS = "schema_ids"
_TIME, _SCHEMAS, _SCHEMAS_BEFORE, _LATE_BEFORE, _TIMES = (
    "time", "value_schemas", "schemas_before", "late_before", "times",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeptState:
    """What is kept from run to run.

    Attributes:
        time: which directories were announced as complete, and what is known about the others.
        value_schemas: schema of the last file of each topic-partition, if the next run continues with it.
        schema_ids: for each topic of a backup what `SchemaIds.to_json` has found in it since its first run.
        coverage: the offsets that runs of a backup have copied.
    """

    time: TimeProgress = field(default_factory=TimeProgress)
    value_schemas: Mapping[TopicPartition, str] = field(default_factory=dict)
    schema_ids: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)

    def without_topics_of(self, run: PlannedRun) -> KeptState:
        """A copy without what is known of topics that are gone."""
        return replace(
            self,
            time=self.time.without_topics(run.gone, run.forgotten),
            value_schemas={tp: text for tp, text in self.value_schemas.items() if tp.topic not in run.gone},
            schema_ids={topic: ids for topic, ids in self.schema_ids.items() if topic not in run.gone},
            coverage=self.coverage.without(run.gone),
        )

    def to_json(self) -> dict[str, Any]:
        """The document; {} if nothing is known."""
        time = {_TIME: self.time.to_json()} if self.time != TimeProgress() else {}
        ids = {SCHEMA_IDS: {topic: dict(found) for topic, found in self.schema_ids.items()}} if self.schema_ids else {}
        covered = {COVERAGE: self.coverage.to_json()} if self.coverage else {}
        return _versioned({**time, **schemas_between_runs.to_json(_SCHEMAS, self.value_schemas), **ids, **covered})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> KeptState:
        """Inverse of `to_json`.

        Raises:
            StateError: written by a newer version.
        """
        _check_version(data)
        time = TimeProgress.from_json(data[_TIME]) if _TIME in data else TimeProgress()
        schemas = schemas_between_runs.from_json(_SCHEMAS, data)
        return cls(time, schemas, dict(data.get(SCHEMA_IDS, {})), Coverage.of(data))


@dataclass(frozen=True, slots=True)
class TaskState:
    """What tasks get.

    Attributes:
        late_before: per consumed topic, milliseconds since the epoch. Records for time directories that end at or
            before this time are late, because those directories were announced as complete.
        schemas_before: schema of the last file of each topic-partition, as JsonConverter writes it (`null` for none),
            if the sink continues with it.
    """

    late_before: Mapping[str, int] = field(default_factory=dict)
    schemas_before: Mapping[TopicPartition, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The document; {} if there is nothing to tell."""
        late = {_LATE_BEFORE: dict(self.late_before)} if self.late_before else {}
        return _versioned({**late, **schemas_between_runs.to_json(_SCHEMAS_BEFORE, self.schemas_before)})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TaskState:
        """Inverse of `to_json`.

        Raises:
            StateError: written by a newer version.
        """
        _check_version(data)
        return cls(dict(data.get(_LATE_BEFORE, {})), schemas_between_runs.from_json(_SCHEMAS_BEFORE, data))


def details_of(times: PartitionTimes | None, schema: str) -> dict[str, Any]:
    """What a task returns about a range: the times of its records, and the schema of its last file ("": none)."""
    return {**({_TIMES: times.to_json()} if times else {}), **({OF_LAST_FILE: schema} if schema else {})}


def times_of(details: Mapping[str, Any]) -> PartitionTimes | None:
    """The times in what a task has returned; None if it did not look at times."""
    return PartitionTimes.from_json(details[_TIMES]) if details.get(_TIMES) else None


def schema_ids_of(
    known: Mapping[str, Mapping[str, Any]], reports: Iterable[PartitionReport]
) -> Mapping[str, Mapping[str, Any]]:
    """The ids that are known of each topic after a run: those of before, and what its tasks have found."""
    found = {topic: [ids] for topic, ids in known.items()}
    for report in reports:
        if more := report.details.get(SCHEMA_IDS):
            found.setdefault(report.range.topic, []).append(more)
    return {topic: joined(several) for topic, several in sorted(found.items())}


def copied_partitions(reports: Iterable[PartitionReport]) -> list[CopiedPartition]:
    """One entry per partition: the sum of its ranges, which are in the order of offsets."""
    found: dict[TopicPartition, CopiedPartition] = {}
    for report in reports:
        tp = report.range.topic_partition
        own = CopiedPartition(tp, times_of(report.details), bool(report.left or report.stopped_early))
        known = found.get(tp)
        if known is not None:
            leaves = known.leaves_records or own.leaves_records
            own = CopiedPartition(tp, _joined(known.times, own.times), leaves)
        found[tp] = own
    return list(found.values())


def _joined(first: PartitionTimes | None, second: PartitionTimes | None) -> PartitionTimes | None:
    if first is None or second is None:
        return first or second
    highest = [ms for ms in (first.highest_ms, second.highest_ms) if ms is not None]
    left = [ms for ms in (first.left_from_ms, second.left_from_ms) if ms is not None]
    return PartitionTimes(
        max(highest, default=None),
        min(left, default=None),
        first.late + second.late,
        {**second.directories, **first.directories},
    )


def _versioned(members: dict[str, Any]) -> dict[str, Any]:
    version = VERSION if COVERAGE in members else 2 if SCHEMA_IDS in members else 1
    return {"v": version, **members} if members else {}


def _check_version(data: Mapping[str, Any]) -> None:
    version = data.get("v", VERSION)
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        raise StateError(
            f"What the sink has kept in the runs topic has version {version!r}; this release reads versions 1 to"
            f" {VERSION}.",
            suggestion="Run the connector with the release that wrote it, or a newer one. If a connector of another"
            " class had this name before, use another name.",
        )
