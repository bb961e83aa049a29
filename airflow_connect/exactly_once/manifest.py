"""The manifest: everything a run staged, and the offsets that belong to it. Writing it is the point of no return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.staging import StagedFile
from airflow_connect.documents.run import PartitionReport, Plan, TaskReport
from airflow_connect.documents.time_progress import TimeDirectory, TimeStep
from airflow_connect.errors import StateError
from airflow_connect.exactly_once import packed_files, value_schemas
from airflow_connect.exactly_once.parts import committed_up_to, in_order

VERSION = 3
"""Since 2 `files` may be packed. Since 3 `partitions` may have several parts of one partition; only such a manifest has
version 3, so that an older release can still roll the others forward. All versions are read."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a run has staged, and what its commit will store.

    Fields marked (layout) are needed to lay out a lost file again.

    Attributes:
        connector, run_id: the run that wrote it.
        created_ms: the run's frozen clock (layout).
        files: staged files, in publishing order.
        partitions: one report per copied range, by topic, partition and offset. `commit` stores `commit_offset` of
            the last range of each partition.
        topic_ids: Kafka's topic ids at planning.
        config: the connector's configuration without secrets (layout).
        reference_marks: by key of `config`: a mark of the value behind a config provider reference, by which a later
            run notices that the value has changed.
        late_before: by topic, the time before which a record counted as late in this run (layout).
        schemas_before: the schema with which each topic-partition began (layout).
        time: the time progress that its commit stores; None where the run does not track time.
        notes: sentences for the report of the run that commits it: lost files whose records were given up.
        counts: sums for the run history (`records`, `filtered`, ...).
        also_commit: offsets of partitions that had nothing to copy but get an offset, such as new or reset ones.
        dead_letters: records that `commit` writes to the dead letter queue, as JSON from the executors.
    """

    connector: str
    run_id: str
    created_ms: int
    files: tuple[StagedFile, ...]
    partitions: tuple[PartitionReport, ...]
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    also_commit: Mapping[TopicPartition, int] = field(default_factory=dict)
    dead_letters: tuple[dict[str, Any], ...] = ()
    reference_marks: Mapping[str, str] = field(default_factory=dict)
    late_before: Mapping[str, int] = field(default_factory=dict)
    schemas_before: Mapping[TopicPartition, str] = field(default_factory=dict)
    time: TimeStep | None = None
    notes: tuple[str, ...] = ()

    @property
    def offsets(self) -> dict[TopicPartition, int]:
        """Next offset to read per topic-partition, once this manifest is published."""
        return {**self.also_commit, **self.offsets_copied}

    @property
    def offsets_copied(self) -> dict[TopicPartition, int]:
        """The offsets of partitions that were copied, up to the first hole between their parts (parts.py)."""
        return committed_up_to(self.partitions)

    @property
    def complete(self) -> tuple[TimeDirectory, ...]:
        """Directories of time that are complete, once this manifest is published."""
        return self.time.complete if self.time else ()

    @property
    def ranges(self) -> tuple[OffsetRange, ...]:
        """The ranges that were copied."""
        return tuple(p.range for p in self.partitions)

    def to_json(self) -> dict[str, Any]:
        """Versioned JSON form, chunked by the runs topic."""
        return {
            "v": VERSION if len(self.offsets_copied) < len(self.partitions) else 2,
            "connector": self.connector,
            "run_id": self.run_id,
            "created_ms": self.created_ms,
            "files": packed_files.to_json(self.files),
            "partitions": [p.to_json() for p in self.partitions],
            "topic_ids": dict(self.topic_ids),
            "config": dict(self.config),
            "counts": dict(self.counts),
            "also_commit": [[tp.topic, tp.partition, offset] for tp, offset in sorted(self.also_commit.items())],
            "dead_letters": list(self.dead_letters),
            "reference_marks": dict(self.reference_marks),
            "late_before": dict(self.late_before),
            "time": self.time.to_json() if self.time else None,
            **value_schemas.to_json("schemas_before", self.schemas_before),
            **({"notes": list(self.notes)} if self.notes else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Manifest:
        """Inverse of `to_json`.

        Raises:
            StateError: written by a newer version, or damaged.
        """
        check_version(data, VERSION, "manifest")
        return cls(
            connector=data["connector"],
            run_id=data["run_id"],
            created_ms=data["created_ms"],
            files=packed_files.from_json(data["files"]),
            partitions=tuple(PartitionReport.from_json(p) for p in data["partitions"]),
            topic_ids=dict(data["topic_ids"]),
            config=dict(data["config"]),
            counts=dict(data["counts"]),
            also_commit={TopicPartition(t, p): offset for t, p, offset in data["also_commit"]},
            dead_letters=tuple(data["dead_letters"]),
            # Earlier releases did not write it.
            reference_marks=dict(data.get("reference_marks", {})),
            # Earlier releases did not track time.
            late_before=dict(data.get("late_before", {})),
            schemas_before=value_schemas.from_json("schemas_before", data),
            time=TimeStep.from_json(data["time"]) if data.get("time") else None,
            notes=tuple(data.get("notes", ())),
        )


def manifest_of(
    plan: Plan,
    reports: Sequence[TaskReport],
    config: Mapping[str, str],
    also_commit: Mapping[TopicPartition, int] | None = None,
    reference_marks: Mapping[str, str] | None = None,
) -> Manifest:
    """The manifest of a run whose tasks returned `reports`; `config` must not hold secrets."""
    partitions = tuple(in_order(p for r in reports for p in r.partitions))
    files = tuple(f for r in reports for f in r.files)
    counts = {
        "records": sum(p.written for p in partitions),
        "filtered": sum(p.filtered for p in partitions),
        "dead_lettered": sum(p.dead_lettered for p in partitions),
        "left": sum(p.left for p in partitions),
        "late": sum(p.times.late for p in partitions if p.times),
        "files": len(files),
        "size_bytes": sum(f.size_bytes for f in files),
    }
    return Manifest(
        connector=plan.connector,
        run_id=plan.run_id,
        created_ms=plan.created_ms,
        files=files,
        partitions=partitions,
        topic_ids=dict(plan.topic_ids),
        config=dict(config),
        counts=counts,
        also_commit=dict(also_commit or {}),
        dead_letters=tuple(d for r in reports for d in r.dead_letters),
        reference_marks=dict(reference_marks or {}),
    )


def check_version(data: Mapping[str, Any], newest: int, what: str) -> None:
    """Refuse a document that a newer version of this package wrote.

    Raises:
        StateError: names both versions.
    """
    version = data.get("v")
    if not isinstance(version, int) or not 1 <= version <= newest:
        raise StateError(
            f"The {what} in the runs topic has version {version!r}; this release reads versions 1 to {newest}.",
            suggestion="Run the connector with the release that wrote it, or a newer one.",
        )
