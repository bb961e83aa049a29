"""Which offsets of a topic a sink's output holds: a member of the document that the sink keeps from run to run.

A sink that wants pages to show it keeps `{"coverage": {topic: {partition: {"ranges": [[start, end], ...]}}}}`, as
`Coverage.to_json` returns it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import TopicPartition

if TYPE_CHECKING:
    from airflow_connect.api.staging import StagedFile
    from airflow_connect.documents.run import PartitionReport

COVERAGE = "coverage"
MOST_RANGES = 100
"""Of one partition; the document is written with every commit, so the oldest ones are no longer kept then."""
_RANGES, _LEFT_OUT, _FILES = "ranges", "left_out", "files"


@dataclass(frozen=True, slots=True)
class Covered:
    """What runs have copied of a partition.

    Attributes:
        ranges: offsets `[start, end)`, ascending, with at least one offset between two of them.
        left_out: records in them that are not in the output: filtered, skipped, or in the dead letter queue.
        files: how many were written; None: not known, because offsets were copied again, which replaces files.
    """

    ranges: tuple[tuple[int, int], ...]
    left_out: int = 0
    files: int | None = 0

    @property
    def start(self) -> int:
        """The first offset."""
        return self.ranges[0][0]

    @property
    def end(self) -> int:
        """The offset after the last one."""
        return self.ranges[-1][1]

    @property
    def gaps(self) -> tuple[tuple[int, int], ...]:
        """Offsets `[start, end)` between the ranges, which no run has copied."""
        return tuple((before[1], after[0]) for before, after in zip(self.ranges, self.ranges[1:], strict=False))

    def and_also(self, start: int, end: int, left_out: int = 0, files: int = 0) -> Covered:
        """The same with the offsets `[start, end)`, which may have been copied before."""
        is_again = bool(self.ranges) and start < self.end
        found: list[tuple[int, int]] = []
        for first, after in sorted([*self.ranges, (start, end)]):
            if found and first <= found[-1][1]:
                found[-1] = found[-1][0], max(found[-1][1], after)
            else:
                found.append((first, after))
        number = None if self.files is None or is_again else self.files + files
        return Covered(tuple(found[-MOST_RANGES:]), self.left_out + left_out, number)

    def joined(self, other: Covered) -> Covered:
        """What both have copied."""
        first, second = sorted((self, other), key=lambda one: one.start)
        found = first
        for number, (start, end) in enumerate(second.ranges):
            files = second.files or 0
            found = found.and_also(start, end, *((0, 0) if number else (second.left_out, files)))
        return replace(found, files=None) if second.files is None else found


class Coverage(dict[TopicPartition, Covered]):
    """What runs have copied, by partition."""

    def after(self, reports: Iterable[PartitionReport], files: Iterable[StagedFile] = ()) -> Coverage:
        """The same, and what a run has copied.

        Args:
            reports: of its tasks, by topic, partition and offset.
            files: that they have written.
        """
        found, written = Coverage(self), Counter(TopicPartition(file.topic, file.partition) for file in files)
        for report in reports:
            start, end, tp = report.range.start, report.commit_offset, report.range.topic_partition
            if start < end:
                left_out = report.filtered + report.dead_lettered
                found[tp] = found.get(tp, Covered(())).and_also(start, end, left_out, written.pop(tp, 0))
        return found

    def and_also(self, other: Mapping[TopicPartition, Covered]) -> Coverage:
        """What two connectors have copied that write to the same place."""
        found = Coverage(self)
        for tp, covered in other.items():
            known = found.get(tp)
            found[tp] = covered if known is None else known.joined(covered)
        return found

    def without(self, topics: Iterable[str]) -> Coverage:
        """The same without topics that are gone: the offsets of others with their names mean something else."""
        gone = set(topics)
        return Coverage({tp: covered for tp, covered in self.items() if tp.topic not in gone})

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        found: dict[str, Any] = {}
        for tp, covered in sorted(self.items()):
            found.setdefault(tp.topic, {})[str(tp.partition)] = {
                _RANGES: [list(one) for one in covered.ranges],
                _LEFT_OUT: covered.left_out,
                _FILES: covered.files,
            }
        return found

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Coverage:
        """What a document tells that has the member `coverage`; {} if it has none.

        Raises:
            KeyError, TypeError, ValueError: the member has another form.
        """
        return cls(
            {
                TopicPartition(topic, int(number)): Covered(
                    tuple((int(start), int(end)) for start, end in one[_RANGES]),
                    int(one[_LEFT_OUT]),
                    None if one[_FILES] is None else int(one[_FILES]),
                )
                for topic, partitions in document.get(COVERAGE, {}).items()
                for number, one in partitions.items()
            }
        )
