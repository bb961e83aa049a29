"""The documents of a source's run that cross process borders: its start, the tasks' results, the overall result.

A connector may have 100,000 source partitions, so documents contain only the first few offsets and the total number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.api.json_document import JsonDocument

SHOWN_OFFSETS = 100
"""Maximum number of source partitions whose offsets a document contains."""


@dataclass(frozen=True, slots=True)
class OffsetMove(JsonDocument):
    """Where reading of a source partition began and where it resumes.

    Attributes:
        partition: the source partition.
        before: committed offset at the start of the run, or of the task; None: there was none.
        after: committed offset now; None: deleted, or in a plan: not known yet.
    """

    partition: dict[str, Any]
    before: dict[str, Any] | None
    after: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SourcePlan(JsonDocument):
    """Where a source's run starts. Its tasks freeze where it ends when they start.

    Attributes:
        offsets: committed offsets, the first `SHOWN_OFFSETS`.
        partitions: number of source partitions with an offset.
        delivery_guarantee: what the run promises.
        boundary: where transactions end, `poll`, `interval` or `connector`; "" without transactions.
        offsets_topics: the topics that hold offsets, in order of precedence.
    """

    offsets: tuple[OffsetMove, ...] = ()
    partitions: int = 0
    delivery_guarantee: str = ""
    boundary: str = ""
    offsets_topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOutPart(JsonDocument):
    """A part of the source that could not be copied, although others were.

    Attributes:
        name: within a sentence: `the table shop.public.orders`.
        reason: what was wrong and what to do, complete sentences.
    """

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class SourceTaskReport(JsonDocument):
    """What one attempt of a source's task has committed.

    Attributes:
        written: records in Kafka and committed.
        filtered: records that a transformation dropped.
        discarded: records of transactions that the task itself aborted.
        size_bytes: keys and values written.
        transactions: commits, or writes of offsets if there are no transactions.
        topics: records written, by topic.
        partitions: number of source partitions whose offset was committed.
        offsets: the first `SHOWN_OFFSETS` of them.
        ended_by: `end` (reported by the task), `idle`, or the key of the limit.
        notes: sentences of the task for the report of the run.
        left_out: parts that could not be copied: the run fails because of them when it has committed the rest.
    """

    MAY_LACK = frozenset({"notes", "left_out"})
    KNOWS_ALL = True

    written: int = 0
    filtered: int = 0
    discarded: int = 0
    size_bytes: int = 0
    transactions: int = 0
    topics: dict[str, int] = field(default_factory=dict)
    partitions: int = 0
    offsets: tuple[OffsetMove, ...] = ()
    ended_by: str = ""
    notes: tuple[str, ...] = ()
    left_out: tuple[LeftOutPart, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceRunReport(JsonDocument):
    """What a source's run has committed, in addition to the counts in every report.

    Attributes:
        discarded, transactions, topics, partitions, offsets: as in `SourceTaskReport`, over all tasks.
        ended_by: why tasks ended, by number of tasks.
        settled: offsets that the connector itself rewrote between tasks.
        failed: records that errors.tolerance=all skipped.
        size_bytes: keys and values written.
    """

    discarded: int = 0
    transactions: int = 0
    topics: dict[str, int] = field(default_factory=dict)
    partitions: int = 0
    offsets: tuple[OffsetMove, ...] = ()
    ended_by: dict[str, int] = field(default_factory=dict)
    settled: int = 0
    failed: int = 0
    size_bytes: int = 0

    @classmethod
    def of(cls, tasks: Sequence[SourceTaskReport], settled: int, failed: int) -> SourceRunReport:
        """The sum of the tasks' reports."""
        return cls(
            discarded=sum(task.discarded for task in tasks),
            transactions=sum(task.transactions for task in tasks),
            topics=_summed(task.topics for task in tasks),
            partitions=sum(task.partitions for task in tasks),
            offsets=tuple(move for task in tasks for move in task.offsets)[:SHOWN_OFFSETS],
            ended_by=_summed({task.ended_by: 1} for task in tasks),
            settled=settled,
            failed=failed,
            size_bytes=sum(task.size_bytes for task in tasks),
        )


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in counts:
        for name, count in part.items():
            total[name] = total.get(name, 0) + count
    return dict(sorted(total.items()))
