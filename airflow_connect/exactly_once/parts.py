"""Parts: the ranges of one partition that several tasks of a run have copied.

A committed offset says that everything before it is done. So a run commits the parts of a partition only up to the
first one that is not complete (it ended early, or leaves records). What later tasks have copied behind that hole is
given up: their files are not in the manifest, their dead letters are not written, and the next run copies it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.counting import agreeing, plural
from airflow_connect.documents.run import PartitionReport, Plan, TaskReport


@dataclass(frozen=True, slots=True)
class Contiguous:
    """The reports of a run without the ranges after a gap.

    Attributes:
        reports: one per task, as before; possibly without some of its partitions.
        given_up: ranges whose copies are not used, by topic, partition and offset.
    """

    reports: tuple[TaskReport, ...]
    given_up: tuple[OffsetRange, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for the report, if something was given up."""
        if not self.given_up:
            return ()
        first, offsets = self.given_up[0], sum(map(len, self.given_up))
        where = len({r.topic_partition for r in self.given_up})
        note = (
            f"{plural(offsets, 'offset')} of {plural(where, 'partition')} {agreeing(offsets, 'were')} copied, but not"
            f" committed, because the range before"
            f" them ended early: the next run copies them again, as from {first.topic_partition}@{first.start}."
        )
        return (note,)


def contiguous(plan: Plan, reports: Sequence[TaskReport]) -> Contiguous:
    """Leave out the parts behind the first one of their partition that is not complete."""
    reached = {(p.range.topic_partition, p.range.start): p.commit_offset for r in reports for p in r.partitions}
    given_up = []
    for parts in by_partition(plan.ranges).values():
        holes = [n for n, part in enumerate(parts) if reached.get(_place(part), part.end) < part.end]
        given_up += parts[holes[0] + 1 :] if holes else []
    if not given_up:
        return Contiguous(tuple(reports))
    return Contiguous(tuple(_without(report, given_up) for report in reports), tuple(given_up))


def _without(report: TaskReport, given_up: Sequence[OffsetRange]) -> TaskReport:
    gone = {_place(r) for r in given_up}
    mine = [r for r in given_up if any(_place(p.range) == _place(r) for p in report.partitions)]
    if not mine:
        return report

    def is_kept(topic: str, partition: int, offset: int) -> bool:
        return not any(r.holds(topic, partition, offset) for r in mine)

    return replace(
        report,
        partitions=tuple(p for p in report.partitions if _place(p.range) not in gone),
        files=tuple(f for f in report.files if is_kept(f.topic, f.partition, f.start)),
        dead_letters=tuple(d for d in report.dead_letters if is_kept(*d["origin"])),
    )


def _place(r: OffsetRange) -> tuple[TopicPartition, int]:
    return r.topic_partition, r.start


def by_partition(ranges: Iterable[OffsetRange]) -> dict[TopicPartition, list[OffsetRange]]:
    """The ranges of each partition, in order."""
    found: dict[TopicPartition, list[OffsetRange]] = {}
    for r in sorted(ranges, key=lambda r: (r.topic, r.partition, r.start)):
        found.setdefault(r.topic_partition, []).append(r)
    return found


def committed_up_to(parts: Iterable[PartitionReport]) -> dict[TopicPartition, int]:
    """The next offset to read, by partition: the end of the parts that follow each other without a hole."""
    found: dict[TopicPartition, int] = {}
    for report in in_order(parts):
        tp = report.range.topic_partition
        if report.range.start == found.get(tp, report.range.start):
            found[tp] = report.commit_offset
    return found


def in_order(parts: Iterable[PartitionReport]) -> list[PartitionReport]:
    """By topic, partition and offset."""
    return sorted(parts, key=lambda p: (p.range.topic, p.range.partition, p.range.start))
