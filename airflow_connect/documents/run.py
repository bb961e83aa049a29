"""The documents of a run: frozen values that cross process borders as JSON.

Plan (what will be copied) -> TaskReport (what a task did) -> manifest (exactly_once/manifest.py) -> RunReport.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_connect.api.json_document import JsonDocument
from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.staging import StagedFile
from airflow_connect.documents.run_detail import ReasonRow, RunDetail
from airflow_connect.documents.run_lag import RunLag
from airflow_connect.documents.run_tables import TableCommit
from airflow_connect.documents.source_run import SourcePlan, SourceRunReport, SourceTaskReport

DONE, EMPTY, FAILED = "done", "empty", "failed"
"""`RunReport.status` of a run that has committed, of one that has found nothing to copy, and of one that has failed."""
STOPPED_BY_DEAD_LETTERS = "dead letters"
"""`PartitionReport.stopped_early` if a task has collected as many bytes of dead letters as one run may commit."""


@dataclass(frozen=True, slots=True)
class PartitionReport(JsonDocument):
    """The result of one topic-partition range in a task.

    Attributes:
        range: the range that was copied: the planned one, or its beginning if a limit stopped the task.
        position: the consumer's position when the task ended; the audit requires `>= range.end`.
        commit_offset: next offset to read after this run is committed, `range.start <= commit_offset <= range.end`.
        read: records delivered inside the range.
        written: records in the value files of this report.
        filtered: records that were dropped on purpose (ignored nulls, transformations).
        dead_lettered: records that go to the dead letter queue.
        left: records read but left for the next run (`flush.on.end=false`).
        size_bytes: encoded bytes of the partition's files.
        stopped_early: why the task narrowed the range (`run.max.bytes`, `run.max.seconds`, STOPPED_BY_DEAD_LETTERS), or
            "".
        details: what the task has returned for the connector's `state_after` (`SinkTask.details`).
    """

    LEFT_OUT = frozenset({"details"})
    MAY_LACK = frozenset()
    KNOWS_ALL = True

    range: OffsetRange
    position: int
    commit_offset: int
    read: int
    written: int
    filtered: int = 0
    dead_lettered: int = 0
    left: int = 0
    size_bytes: int = 0
    stopped_early: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """The visible output of one run, published now or earlier, for the steps after publishing.

    Attributes:
        run_id: the run that copied; not the current one if that one recovers it.
        created_ms: the frozen clock of the run that copied.
        files: every file of its manifest.
        complete: documents of what is complete with these files (`StateAfter.complete`).
        topics: every topic that the connector consumed, also those without new records.
        kept: what the connector keeps for the next run (`StateAfter.kept`).
    """

    run_id: str
    created_ms: int
    files: tuple[StagedFile, ...]
    complete: tuple[Mapping[str, Any], ...] = ()
    topics: tuple[str, ...] = ()
    kept: Mapping[str, Any] = field(default_factory=dict)


def with_sizes(reports: Sequence[PartitionReport], files: Sequence[StagedFile]) -> list[PartitionReport]:
    """The reports with the encoded bytes of their files filled in."""
    sizes: dict[tuple[str, int], int] = {}
    for file in files:
        place = (file.topic, file.partition)
        sizes[place] = sizes.get(place, 0) + file.size_bytes
    return [replace(r, size_bytes=sizes.get((r.range.topic, r.range.partition), 0)) for r in reports]


@dataclass(frozen=True, slots=True)
class TaskReport(JsonDocument):
    """The result row of one task attempt: what it staged and what it counted.

    Attributes:
        task: number of the Connect task, from 0.
        attempt: Spark's attempt number, from 0.
        partitions: one report per planned range of the task.
        files: value, key and header files staged by the task, in the order in which they were closed.
        dead_letters: records for the dead letter queue, as plain JSON (errors.py of the executor).
        timings_ms: phase name to milliseconds.
        host: where the task ran.
        peak_memory_bytes: highest resident set size of the task's process.
        failed: records that could not be converted or written and that `errors.tolerance=all` skipped.
        failed_places: the first of them, with stage and reason.
        source: the result of a source's task; None for sinks.
        notes: sentences of the task for the run's report.
        ended_ms: when it had staged everything, by the clock of its host; 0: an earlier release wrote the report.
        oldest_ms: of a sink, the oldest timestamp among the first records of its partitions; 0: none has one.
        skipped: failed records that were tolerated and get no dead letter, by their reason.
    """

    LEFT_OUT = frozenset({"oldest_ms", "skipped"})
    MAY_LACK = frozenset({"source", "notes", "ended_ms"})

    task: int
    attempt: int
    partitions: tuple[PartitionReport, ...]
    files: tuple[StagedFile, ...]
    dead_letters: tuple[dict[str, Any], ...] = ()
    timings_ms: dict[str, int] = field(default_factory=dict)
    host: str = ""
    peak_memory_bytes: int = 0
    failed: int = 0
    failed_places: tuple[str, ...] = ()
    source: SourceTaskReport | None = None
    notes: tuple[str, ...] = ()
    ended_ms: int = 0
    oldest_ms: int = 0
    skipped: tuple[ReasonRow, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskPlan(JsonDocument):
    """The ranges that one Connect task copies.

    Attributes:
        max_bytes: the task stops reading once it has read this many bytes of keys and values; 0: no limit.
        max_seconds: the task stops reading this long after it started; 0: no limit.
        max_dead_letter_bytes: once the task's dead letters have this size, each partition ends after its next one; 0:
            no limit.
    """

    MAY_LACK = frozenset({"max_dead_letter_bytes"})

    task: int
    ranges: tuple[OffsetRange, ...]
    max_bytes: int = 0
    max_seconds: float = 0.0
    max_dead_letter_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Plan(JsonDocument):
    """The frozen input of a run.

    Attributes:
        connector: connector name.
        run_id: identifier of the run, globally unique.
        created_ms: wall clock at planning, milliseconds since the epoch. It is *the* clock of the run: wall-clock
            partitioners use it, so that every attempt and every repeated copy puts records into the same files.
        tasks: work, one entry per Connect task; empty if there is nothing to copy.
        topic_ids: Kafka's topic ids at planning.
        notes: sentences for people about anything limited, resumed or unusual.
        source: where a source's run starts; None for sinks. Tasks of a source have no ranges.
        at_latest: starts that auto.offset.reset=latest chose. They have no records to copy, but a run that is bound to
            this plan must commit them: records that are written later belong to the next one.
    """

    LEFT_OUT = frozenset({"at_latest"})
    MAY_LACK = frozenset({"source"})

    connector: str
    run_id: str
    created_ms: int
    tasks: tuple[TaskPlan, ...]
    topic_ids: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    source: SourcePlan | None = None
    at_latest: dict[TopicPartition, int] = field(default_factory=dict)

    @property
    def ranges(self) -> tuple[OffsetRange, ...]:
        """All ranges, by topic and partition."""
        every = (r for t in self.tasks for r in t.ranges)
        return tuple(sorted(every, key=lambda r: (r.topic, r.partition, r.start)))

    @property
    def is_empty(self) -> bool:
        """True if all ranges are empty."""
        return not self.tasks


@dataclass(frozen=True, slots=True)
class RunReport(JsonDocument):
    """The outcome of a run, as printed, stored in the runs topic and summarised in XCom.

    Attributes:
        status: `done`, `empty` (nothing to copy) or `failed`.
        recovered_run_id: the earlier run whose open manifest this run rolled forward, or "".
        recovered: what that run had copied, and this one has published and committed: `records`, `files`,
            `size_bytes`, which are not part of this run's own counts; {}: nothing, and in entries of earlier releases.
        records: records written and committed by this run.
        files, size_bytes: published value, key and header files.
        committed: topic-partition (`topic-partition`) to the committed next offset, those of the earlier run included.
        phases_ms: phase name to milliseconds.
        ignored_keys: configuration keys that have no effect here.
        late: records for a part of the output that had been announced as complete before this run.
        complete: a document for each part of the output that is complete since this run (`StateAfter.complete`).
        error: `ConnectError.to_json()` of a failure, otherwise None.
        source: the result of a source's run; None for sinks.
        origin: who started the run, see `RunSpec.origin`; {} in entries of earlier releases.
        detail: its tasks, partitions and files; None if it had no tasks, and in entries of earlier releases.
        lag: of a sink, what it found and left; None if it made no plan, and in entries of earlier releases.
        tables: of a sink to tables of a lake, the snapshots that it has added. Those of a run that it has finished come
            first, and those that an earlier attempt of its Airflow task has added.
    """

    LEFT_OUT = frozenset({"origin", "detail", "lag", "recovered", "tables"})

    connector: str
    run_id: str
    status: str
    started_ms: int
    ended_ms: int
    delivery_guarantee: str = "exactly_once"
    recovered_run_id: str = ""
    recovered: dict[str, int] = field(default_factory=dict)
    records: int = 0
    filtered: int = 0
    dead_lettered: int = 0
    left: int = 0
    files: int = 0
    size_bytes: int = 0
    tasks: int = 0
    swept: int = 0
    peak_memory_bytes: int = 0
    committed: dict[str, int] = field(default_factory=dict)
    phases_ms: dict[str, int] = field(default_factory=dict)
    ignored_keys: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    late: int = 0
    complete: tuple[Mapping[str, Any], ...] = ()
    error: dict[str, Any] | None = None
    source: SourceRunReport | None = None
    origin: Mapping[str, str] = field(default_factory=dict)
    detail: RunDetail | None = None
    lag: RunLag | None = None
    tables: tuple[TableCommit, ...] = ()


__all__ = [
    "OffsetRange",
    "PartitionReport",
    "Plan",
    "PublishedRun",
    "RunReport",
    "StagedFile",
    "TaskPlan",
    "TaskReport",
    "TopicPartition",
]
