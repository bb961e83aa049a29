"""What the history keeps of a run's tasks, partitions and files, so that a page can show where its time went.

Bounded: an entry of the history is one Kafka record, and a connector keeps a hundred of them. Rows are lists without
names, because a name in every row would double the size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from airflow_connect.api.json_document import JsonDocument

if TYPE_CHECKING:
    from airflow_connect.documents.run import TaskReport

MOST_PARTITIONS, MOST_TASKS, MOST_FILES, MOST_REASONS = 200, 200, 50, 20


class PartitionRow(NamedTuple):
    """The audit of one topic-partition: `read = written + filtered + dead_lettered + left`.

    Attributes:
        start, end: offsets, half-open.
    """

    topic: str
    partition: int
    start: int
    end: int
    read: int
    written: int
    filtered: int
    dead_lettered: int
    left: int
    size_bytes: int

    @property
    def is_balanced(self) -> bool:
        """Whether every record that was read is accounted for."""
        return self.read == self.written + self.filtered + self.dead_lettered + self.left


class TaskRow(NamedTuple):
    """One task: when and where it ran, in milliseconds since the epoch, and how much it did."""

    task: int
    attempt: int
    host: str
    started_ms: int
    ended_ms: int
    records: int
    size_bytes: int


class FileRow(NamedTuple):
    """One file that the run has published.

    Attributes:
        start, end: offsets of its records, half-open.
    """

    key: str
    topic: str
    partition: int
    start: int
    end: int
    records: int
    size_bytes: int


class ReasonRow(NamedTuple):
    """Failed records with one reason.

    Attributes:
        stage: Kafka Connect's name of the stage; "" for the sum of the reasons beyond `MOST_REASONS`.
        error: the code of the error, or the class of one that is not ours.
    """

    stage: str
    error: str
    records: int


@dataclass(frozen=True, slots=True)
class RunDetail(JsonDocument):
    """The rows of a run, and how many there were.

    Attributes:
        partitions, tasks, files: the first of them.
        all_partitions: number of partitions; the numbers of tasks and files are in the report.
        queue: the dead letter queue of the connector, or "".
        reasons: why records became dead letters or were skipped, the most frequent first; () in entries of earlier
            releases.
    """

    LEFT_OUT = frozenset({"reasons"})
    MAY_LACK = frozenset({"reasons"})

    partitions: tuple[PartitionRow, ...] = ()
    tasks: tuple[TaskRow, ...] = ()
    files: tuple[FileRow, ...] = ()
    all_partitions: int = 0
    queue: str = ""
    reasons: tuple[ReasonRow, ...] = ()

    @classmethod
    def of(cls, reports: Sequence[TaskReport], queue: str = "") -> RunDetail | None:
        """The detail of a run whose tasks have sent these reports; None if it had no tasks."""
        if not reports:
            return None
        parts = [p for report in reports for p in report.partitions]
        rows = [
            PartitionRow(
                p.range.topic, p.range.partition, p.range.start, p.commit_offset, p.read, p.written, p.filtered,
                p.dead_lettered, p.left, p.size_bytes,
            )
            for p in sorted(parts, key=lambda p: (p.range.topic, p.range.partition, p.range.start))[:MOST_PARTITIONS]
        ]  # fmt: skip
        files = [f for report in reports for f in report.files][:MOST_FILES]
        return cls(
            tuple(rows),
            tuple(_task_row(report) for report in sorted(reports, key=lambda r: r.task)[:MOST_TASKS]),
            tuple(FileRow(f.key, f.topic, f.partition, f.start, f.end, f.records, f.size_bytes) for f in files),
            len(parts),
            queue,
            _reasons(reports),
        )


def reason_rows(counts: Counter[tuple[str, str]]) -> tuple[ReasonRow, ...]:
    """Rows of numbers of records by stage and error, the most frequent first; the last one sums up what is too much."""
    rows = [
        ReasonRow(stage, error, count) for (stage, error), count in sorted(counts.items(), key=lambda i: (-i[1], i[0]))
    ]
    if len(rows) <= MOST_REASONS:
        return tuple(rows)
    others = sum(row.records for row in rows[MOST_REASONS - 1 :])
    return (*rows[: MOST_REASONS - 1], ReasonRow("", "other errors", others))


def _reasons(reports: Sequence[TaskReport]) -> tuple[ReasonRow, ...]:
    counts = Counter[tuple[str, str]]()
    for report in reports:
        counts.update(tuple(letter["reason"]) for letter in report.dead_letters if "reason" in letter)
        for stage, error, records in report.skipped:
            counts[stage, error] += records
    return reason_rows(counts)


def _task_row(report: TaskReport) -> TaskRow:
    source = report.source
    return TaskRow(
        task=report.task,
        attempt=report.attempt,
        host=report.host,
        started_ms=report.ended_ms - sum(report.timings_ms.values()),
        ended_ms=report.ended_ms,
        records=source.written if source else sum(p.read for p in report.partitions),
        size_bytes=source.size_bytes if source else sum(p.size_bytes for p in report.partitions),
    )
