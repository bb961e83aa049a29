"""The manifest: everything a run staged, and the offsets that belong to it. Writing it is the point of no return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_connect.api.json_document import JsonDocument, from_plain, to_plain
from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.sink_state import StateAfter
from airflow_connect.api.staging import StagedFile
from airflow_connect.documents.run import PartitionReport, Plan, TaskReport
from airflow_connect.errors import StateError
from airflow_connect.exactly_once import earlier, packed_files
from airflow_connect.exactly_once.parts import committed_up_to, in_order

VERSION = 4
"""Since 2 `files` may be packed. Since 3 `partitions` may have several parts of one partition. Since 4 documents of the
connector have replaced members about times and schemas. Only a manifest that has the new has the new version, so that
an older release can still roll the others forward, and refuses those that it would misread. All versions are read."""


@dataclass(frozen=True, slots=True)
class Manifest(JsonDocument):
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
        for_tasks: the connector's document for tasks (layout).
        after: what the connector keeps after the commit; None: what it has kept before.
        is_earlier: read from a document of an earlier release: `after` is completed with the state (earlier.py).
        notes: sentences for the report of the run that commits it: lost files whose records were given up.
        said: sentences of the run itself, but those that follow from the configuration: a run that ends before its
            commit has no report, and the one that commits the manifest tells them.
        counts: sums for the run history (`records`, `filtered`, ...).
        also_commit: offsets of partitions that had nothing to copy but get an offset, such as new or reset ones.
        dead_letters: records that `commit` writes to the dead letter queue, as JSON from the executors.
    """

    LEFT_OUT = frozenset({"for_tasks", "after", "notes", "said", "is_earlier"})
    MAY_LACK = frozenset({"reference_marks"})

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
    for_tasks: Mapping[str, Any] = field(default_factory=dict)
    after: StateAfter | None = None
    notes: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    is_earlier: bool = field(default=False, compare=False)

    @property
    def offsets(self) -> dict[TopicPartition, int]:
        """Next offset to read per topic-partition, once this manifest is published."""
        return {**self.also_commit, **self.offsets_copied}

    @property
    def offsets_copied(self) -> dict[TopicPartition, int]:
        """The offsets of partitions that were copied, up to the first hole between their parts (parts.py)."""
        return committed_up_to(self.partitions)

    @property
    def complete(self) -> tuple[Mapping[str, Any], ...]:
        """Documents of what is complete, once this manifest is published."""
        return tuple(self.after.complete) if self.after else ()

    @property
    def version(self) -> int:
        """The lowest one with everything that this manifest has."""
        if self.for_tasks or self.after or any(p.details for p in self.partitions):
            return VERSION
        return 3 if len(self.offsets_copied) < len(self.partitions) else 2

    @property
    def ranges(self) -> tuple[OffsetRange, ...]:
        """The ranges that were copied."""
        return tuple(p.range for p in self.partitions)

    def to_json(self) -> dict[str, Any]:
        """Versioned JSON form, chunked by the runs topic."""
        plain = to_plain(replace(self, files=(), is_earlier=False))
        return {"v": self.version, **plain, "files": packed_files.to_json(self.files)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Manifest:
        """Inverse of `to_json`.

        Raises:
            StateError: written by a newer version, or damaged.
        """
        check_version(data, VERSION, "manifest")
        known = earlier.manifest(data) if earlier.has_members(data) else data
        if isinstance(known.get("files"), str):
            known = {**known, "files": packed_files.rows_of(known["files"])}
        return from_plain(cls, known)


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
