"""What a sink keeps from run to run: one JSON document of its own, which the protocol carries and never reads.

`SinkConnector.plan_state` gets the document at the plan, and `SinkConnector.state_after` returns the next one once the
tasks are done. The protocol freezes the document for tasks with the plan, writes both into the manifest, and keeps the
last one in the connector's state in the runs topic. So all attempts of a task, a repeated copy, and a run that recovers
the manifest of another one find the same.

A document maps strings to JSON values. Its content and its version are the connector's: put a version number into it,
and read what earlier versions of the connector have written. A connector that gets the name of another one, of another
class, also gets its document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airflow_connect.api.json_document import JsonDocument, from_plain, to_plain

if TYPE_CHECKING:
    from airflow_connect.api.offsets import OffsetRange, TopicPartition
    from airflow_connect.api.staging import StagedFile
    from airflow_connect.documents.run import PartitionReport


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """What a run is going to do.

    Attributes:
        kept: the document that earlier runs kept; {} if there is none.
        now_ms: the run's frozen clock, milliseconds since the epoch.
        last_run_ms: when the last run was planned; 0 if there was none.
        ranges: what the run copies, by topic, partition and offset; empty if there is nothing to copy.
        partitions: all partitions of all topics that the connector consumes.
        at_end: those of them that the plan reads to the end of the log, with no open transaction after it.
        again: partitions that are read again, from an offset before the committed one.
        gone: topics that were deleted, or deleted and created again, since `kept` was written. Partitions and offsets
            of a topic that is gone mean nothing to a topic with the same name.
        forgotten: topics that were deleted so long ago that nothing else is remembered of them.
    """

    kept: Mapping[str, Any] = field(default_factory=dict)
    now_ms: int = 0
    last_run_ms: int = 0
    ranges: Sequence[OffsetRange] = ()
    partitions: Sequence[TopicPartition] = ()
    at_end: frozenset[TopicPartition] = frozenset()
    again: frozenset[TopicPartition] = frozenset()
    gone: frozenset[str] = frozenset()
    forgotten: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PlannedState:
    """What `SinkConnector.plan_state` returns.

    Attributes:
        for_tasks: the document that each task gets as `RoleContext.state`. Files that are lost after the manifest was
            written are copied again with the same document.
        kept: what replaces `PlannedRun.kept`, for example without topics that are gone; None: nothing has changed.
        leaves_nothing: whether the run must leave no record to the next one, whatever `flush.on.end` says.
        notes: sentences for the report.
        group_offsets: what the run commits to the consumer group before its tasks start, for a plugin that reads them
            there. Unlike an offset that the connector would set itself, Kafka refuses them if a newer run has begun.
    """

    for_tasks: Mapping[str, Any] = field(default_factory=dict)
    kept: Mapping[str, Any] | None = None
    leaves_nothing: bool = False
    notes: Sequence[str] = ()
    group_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CopiedRun:
    """What the tasks of a run have done.

    Attributes:
        planned: the run; its `kept` is the document that `plan_state` has returned.
        for_tasks: the document that the tasks got.
        reports: one for each range that was copied, by topic, partition and offset; `details` is what the task has
            returned for it. A partition may have several ranges.
        files: what the tasks staged.
    """

    planned: PlannedRun
    for_tasks: Mapping[str, Any] = field(default_factory=dict)
    reports: Sequence[PartitionReport] = ()
    files: Sequence[StagedFile] = ()


@dataclass(frozen=True, slots=True)
class StateAfter(JsonDocument):
    """What `SinkConnector.state_after` returns: it takes effect with the commit.

    Attributes:
        kept: the document for the next run.
        complete: a JSON document for each part of the output that is complete with this commit. They are in the report
            (`RunReport.complete`), in what `published` gets, and in one asset event each. A document has the member
            `directory`, the name of the part. If it has `origin`, a topic, its event has the offsets of the topic.
        counts: counts for the report. It has one: `late`, records for a part that was complete before the run.
        notes: sentences for the report.
    """

    LEFT_OUT = frozenset({"counts"})
    MAY_LACK = frozenset()

    kept: Mapping[str, Any] = field(default_factory=dict)
    complete: Sequence[Mapping[str, Any]] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form, without the counts."""
        return to_plain(replace(self, counts={}))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StateAfter:
        """Inverse of `to_json`."""
        read = from_plain(cls, data)
        return replace(read, complete=tuple(read.complete), notes=tuple(read.notes))
