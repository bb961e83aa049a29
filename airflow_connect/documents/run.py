"""The documents of a run: frozen values that cross process borders as JSON.

Plan (what will be copied) -> TaskReport (what a task did) -> manifest (exactly_once/manifest.py) -> RunReport.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.staging import StagedFile
from airflow_connect.documents.run_detail import RunDetail
from airflow_connect.documents.run_lag import RunLag
from airflow_connect.documents.source_run import SourcePlan, SourceRunReport, SourceTaskReport

DONE, EMPTY, FAILED = "done", "empty", "failed"
"""`RunReport.status` of a run that has committed, of one that has found nothing to copy, and of one that has failed."""
STOPPED_BY_DEAD_LETTERS = "dead letters"
"""`PartitionReport.stopped_early` if a task has collected as many bytes of dead letters as one run may commit."""

_EARLIER_DETAILS = ("times", "value_schema")
"""Members of a report that earlier releases had: since then they are members of `details`, as they were."""


@dataclass(frozen=True, slots=True)
class PartitionReport:
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

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {name: value for name, value in asdict(self).items() if name != "details" or value}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> PartitionReport:
        """Inverse of `to_json`."""
        own = {name: value for name, value in data.items() if name not in _EARLIER_DETAILS}
        # Earlier releases had two members in place of `details`.
        earlier = {name: data[name] for name in _EARLIER_DETAILS if data.get(name)}
        return cls(**{"details": earlier, **own, "range": OffsetRange.from_json(data["range"])})


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """The visible output of one run, published now or earlier, for the steps after publishing.

    Attributes:
        run_id: the run that copied; not the current one if that one recovers it.
        created_ms: the frozen clock of the run that copied.
        files: every file of its manifest.
        complete: documents of what is complete with these files (`StateAfter.complete`).
    """

    run_id: str
    created_ms: int
    files: tuple[StagedFile, ...]
    complete: tuple[Mapping[str, Any], ...] = ()


def with_sizes(reports: Sequence[PartitionReport], files: Sequence[StagedFile]) -> list[PartitionReport]:
    """The reports with the encoded bytes of their files filled in."""
    sizes: dict[tuple[str, int], int] = {}
    for file in files:
        place = (file.topic, file.partition)
        sizes[place] = sizes.get(place, 0) + file.size_bytes
    return [replace(r, size_bytes=sizes.get((r.range.topic, r.range.partition), 0)) for r in reports]


@dataclass(frozen=True, slots=True)
class TaskReport:
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
    """

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

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {
            "task": self.task,
            "attempt": self.attempt,
            "partitions": [p.to_json() for p in self.partitions],
            "files": [f.to_json() for f in self.files],
            "dead_letters": list(self.dead_letters),
            "timings_ms": self.timings_ms,
            "host": self.host,
            "peak_memory_bytes": self.peak_memory_bytes,
            "failed": self.failed,
            "failed_places": list(self.failed_places),
            "source": self.source.to_json() if self.source else None,
            "notes": list(self.notes),
            "ended_ms": self.ended_ms,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TaskReport:
        """Inverse of `to_json`."""
        return cls(
            task=data["task"],
            attempt=data["attempt"],
            partitions=tuple(PartitionReport.from_json(p) for p in data["partitions"]),
            files=tuple(StagedFile.from_json(f) for f in data["files"]),
            dead_letters=tuple(data["dead_letters"]),
            timings_ms=dict(data["timings_ms"]),
            host=data["host"],
            peak_memory_bytes=data["peak_memory_bytes"],
            failed=data["failed"],
            failed_places=tuple(data["failed_places"]),
            source=SourceTaskReport.from_json(data["source"]) if data.get("source") else None,
            notes=tuple(data.get("notes", ())),
            ended_ms=data.get("ended_ms", 0),
        )


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """The ranges that one Connect task copies.

    Attributes:
        max_bytes: the task stops reading once it has read this many bytes of keys and values; 0: no limit.
        max_seconds: the task stops reading this long after it started; 0: no limit.
        max_dead_letter_bytes: once the task's dead letters have this size, each partition ends after its next one; 0:
            no limit.
    """

    task: int
    ranges: tuple[OffsetRange, ...]
    max_bytes: int = 0
    max_seconds: float = 0.0
    max_dead_letter_bytes: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {
            "task": self.task,
            "ranges": [r.to_json() for r in self.ranges],
            "max_bytes": self.max_bytes,
            "max_seconds": self.max_seconds,
            "max_dead_letter_bytes": self.max_dead_letter_bytes,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TaskPlan:
        """Inverse of `to_json`."""
        ranges = tuple(OffsetRange.from_json(r) for r in data["ranges"])
        return cls(data["task"], ranges, data["max_bytes"], data["max_seconds"], data.get("max_dead_letter_bytes", 0))


@dataclass(frozen=True, slots=True)
class Plan:
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

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        at_latest = [[*tp, offset] for tp, offset in sorted(self.at_latest.items())]
        return {
            "connector": self.connector,
            "run_id": self.run_id,
            "created_ms": self.created_ms,
            "tasks": [t.to_json() for t in self.tasks],
            "topic_ids": self.topic_ids,
            "notes": list(self.notes),
            "source": asdict(self.source) if self.source else None,
            **({"at_latest": at_latest} if at_latest else {}),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Plan:
        """Inverse of `to_json`."""
        return cls(
            connector=data["connector"],
            run_id=data["run_id"],
            created_ms=data["created_ms"],
            tasks=tuple(TaskPlan.from_json(t) for t in data["tasks"]),
            topic_ids=dict(data["topic_ids"]),
            notes=tuple(data["notes"]),
            source=SourcePlan.from_json(data["source"]) if data.get("source") else None,
            at_latest={TopicPartition(t, p): offset for t, p, offset in data.get("at_latest", ())},
        )


_OPTIONAL = frozenset({"origin", "detail", "lag", "recovered"})
"""Members of a report that are left out if they are empty."""


@dataclass(frozen=True, slots=True)
class RunReport:
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
    """

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

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        lists = {name: list(getattr(self, name)) for name in ("ignored_keys", "notes")}
        found = {**asdict(self), **lists, "complete": [dict(one) for one in self.complete]}
        found.update(origin=dict(self.origin), detail=self.detail.to_json() if self.detail else None)
        return {name: value for name, value in found.items() if value or name not in _OPTIONAL}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RunReport:
        """Inverse of `to_json`; also of an entry of the history, which has a version, and may be of another release."""
        source, detail, lag = data.get("source"), data.get("detail"), data.get("lag")
        return cls(
            **{
                **{name: value for name, value in data.items() if name in cls.__slots__},
                "ignored_keys": tuple(data.get("ignored_keys", ())),
                "notes": tuple(data.get("notes", ())),
                "complete": tuple(data.get("complete", ())),
                "source": SourceRunReport.from_json(source) if source else None,
                "detail": RunDetail.from_json(detail) if detail else None,
                "lag": RunLag.from_json(lag) if lag else None,
            }
        )


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
