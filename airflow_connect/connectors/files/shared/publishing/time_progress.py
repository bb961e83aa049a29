"""A connector's progress in record time: which time directories are complete, and which are still open.

Times are milliseconds since the epoch. Tasks report `PartitionTimes`. The time keeper combines them with the
`TimeProgress` of earlier runs into a `TimeStep`, which is kept with the commit. Gobblin calls the lowest time of all
partitions the completeness watermark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from airflow_connect.api.json_document import JsonDocument
from airflow_connect.api.offsets import TopicPartition

if TYPE_CHECKING:
    from airflow_connect.api.staging import StagedFile


@dataclass(frozen=True, slots=True)
class PartitionTimes(JsonDocument):
    """Times of the records of a topic-partition, in milliseconds, for a sink whose directories follow time.

    Attributes:
        highest_ms: latest time of a written record that this run commits. Records later than the run's clock do not
            count: they tell nothing about the records still to come. None: there was none.
        left_from_ms: earliest time of the records that are left for the next run, or None.
        late: records whose directory was announced as complete before the run, whether or not they were written.
        directories: each directory that records were written to, with the time of one of these records.
    """

    KNOWS_ALL = True

    highest_ms: int | None = None
    left_from_ms: int | None = None
    late: int = 0
    directories: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CopiedPartition:
    """What a run has copied of a partition.

    Attributes:
        partition: of the consumed topic.
        times: of its records; None if the task did not report them.
        leaves_records: whether records that were read are left for the next run, or reading stopped early.
    """

    partition: TopicPartition
    times: PartitionTimes | None = None
    leaves_records: bool = False


@dataclass(frozen=True, slots=True)
class TimeDirectory(JsonDocument):
    """A time directory with written records.

    Attributes:
        topic: the topic in the directory's path, after transformations that rename it.
        directory: key of the directory inside the store, without trailing delimiter: `topics/t/.../hour=13`.
        origin: a topic that its records were consumed from.
        start_ms, end_ms: the half-open time range of its records.
        records, files, size_bytes: in value files, since the connector began to track complete directories.
    """

    KNOWS_ALL = True

    topic: str
    directory: str
    origin: str
    start_ms: int
    end_ms: int
    records: int = 0
    files: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class TimeProgress(JsonDocument):
    """The state that is kept between runs.

    Attributes:
        watermarks: latest time of a committed record, per topic-partition.
        boundaries: per consumed topic: every directory that ends at this time or earlier has been announced, and a
            record for it is late. Never decreases.
        open_directories: directories with records that are not complete yet.
    """

    MAY_LACK = frozenset()

    watermarks: Mapping[TopicPartition, int] = field(default_factory=dict)
    boundaries: Mapping[str, int] = field(default_factory=dict)
    open_directories: tuple[TimeDirectory, ...] = ()

    def without(self, partitions: Iterable[TopicPartition]) -> TimeProgress:
        """A copy without the watermarks of partitions that are read again from an earlier offset."""
        gone = set(partitions)
        return replace(self, watermarks={tp: ms for tp, ms in self.watermarks.items() if tp not in gone})

    def without_topics(self, gone: Collection[str], forgotten: Collection[str]) -> TimeProgress:
        """A copy for topics that were deleted.

        Args:
            gone: without their watermarks. Their boundaries stay: what was announced as complete is complete, even if
                another topic with the same name writes there.
            forgotten: without their boundaries.
        """
        return replace(
            self,
            watermarks={tp: ms for tp, ms in self.watermarks.items() if tp.topic not in gone},
            boundaries={topic: ms for topic, ms in self.boundaries.items() if topic not in forgotten},
        )


@dataclass(frozen=True, slots=True)
class CopiedTimes:
    """The input that a run has seen.

    Attributes:
        now_ms: the run's frozen clock.
        every: all partitions of all topics that the connector consumes.
        at_end: those of them that the plan reads to the end of the log, with no open transaction after it.
        copied: the partitions with records to copy.
        files: their staged files.
    """

    now_ms: int
    every: Sequence[TopicPartition]
    at_end: frozenset[TopicPartition]
    copied: Sequence[CopiedPartition] = ()
    files: Sequence[StagedFile] = ()


@dataclass(frozen=True, slots=True)
class TimeStep:
    """The changes that take effect with a commit.

    Attributes:
        progress: the new progress.
        complete: directories that are complete now, by topic and time; each is announced only once.
        notes: sentences for people.
    """

    progress: TimeProgress
    complete: tuple[TimeDirectory, ...] = ()
    notes: tuple[str, ...] = ()
