"""Which directories of time are complete: what every partition of a topic has passed.

The watermark of a topic-partition is the latest time of its committed records, the boundary of a topic the lowest
watermark of its partitions less `complete.delay.ms`. A directory that ends at the boundary or before it is complete; it
is announced if records were written to it, once. Records for it that come later are late.

Precedents: the completeness watermark of Apache Gobblin, the partition finalizer of Pinterest's Secor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.time_progress import CopiedTimes, TimeDirectory, TimeProgress, TimeStep
from airflow_connect.connectors.storage.topic_names import TopicName
from airflow_connect.layout.object_names import directory_key, object_key, topic_of, without_topic

if TYPE_CHECKING:
    from airflow_connect.api.run import PartitionReport, StagedFile
    from airflow_connect.connectors.storage.complete_keys import CompleteConfig
    from airflow_connect.layout.object_names import NameSettings
    from airflow_connect.layout.time_grid import TimeGrid

MOST_OPEN = 10_000
"""Directories that are remembered until they are complete. More of them are of times that will not come soon."""


class StorageTimeKeeper:
    """The time keeper of a storage sink with a time based partitioner."""

    def __init__(
        self,
        config: CompleteConfig,
        grid: TimeGrid,
        names: NameSettings,
        *,
        follows_clock: bool,
        final_topics: Mapping[str, Sequence[TopicName]],
    ) -> None:
        """Of one configuration.

        Args:
            config: the keys.
            grid: when directories end.
            names: grammar of keys.
            follows_clock: whether the time of every record is the run's clock.
            final_topics: names that records of each consumed topic can have behind the transformations.
        """
        self._config = config
        self._grid = grid
        self._names = names
        self._follows_clock = follows_clock
        self._final_topics = final_topics

    def late_before(self, progress: TimeProgress, topics: Iterable[str]) -> dict[str, int]:
        """Boundaries, also of topics that are new and write into directories of others that have one."""
        found: dict[str, int] = {}
        for group in self._groups(topics):
            known = [progress.boundaries[topic] for topic in group if topic in progress.boundaries]
            found.update(dict.fromkeys(group, max(known)) if known else {})
        return found

    def advance(self, before: TimeProgress, seen: CopiedTimes) -> TimeStep:
        """Watermarks rise, boundaries follow the lowest of them, and what they pass is complete."""
        late_before = self.late_before(before, {tp.topic for tp in seen.every})
        watermarks = dict(before.watermarks)
        for report in seen.reports:
            highest = report.times.highest_ms if report.times else None
            tp = report.range.topic_partition
            if highest is not None:
                watermarks[tp] = max(watermarks.get(tp, highest), highest)
        boundaries = {**before.boundaries, **late_before, **self._boundaries(watermarks, late_before, seen)}
        open_directories = self._written(before, seen, late_before)
        complete = [d for d in open_directories if d.end_ms <= boundaries.get(d.origin, d.end_ms - 1)]
        still_open = [d for d in open_directories if d not in set(complete)]
        notes = []
        if len(still_open) > MOST_OPEN:
            still_open = sorted(still_open, key=lambda d: d.end_ms)[:MOST_OPEN]
            notes.append(
                f"More than {MOST_OPEN} directories are not complete; those that end after {still_open[-1].directory}"
                " are forgotten and will be announced only if records are written to them again."
            )
        progress = TimeProgress(watermarks, boundaries, tuple(still_open))
        return TimeStep(progress, tuple(sorted(complete, key=lambda d: (d.end_ms, d.directory))), tuple(notes))

    def _boundaries(
        self, watermarks: Mapping[TopicPartition, int], old: Mapping[str, int], seen: CopiedTimes
    ) -> dict[str, int]:
        """By topic; a topic with a partition of which nothing is known stays where it is."""
        reports = {report.range.topic_partition: report for report in seen.reports}
        found: dict[str, int] = {}
        for group in self._groups({tp.topic for tp in seen.every}):
            reached = [
                self._reached(watermarks.get(tp), reports.get(tp), tp in seen.at_end, seen.now_ms)
                for tp in seen.every
                if tp.topic in group
            ]
            known = [ms for ms in reached if ms is not None]
            if known and len(known) == len(reached):
                boundary = min(known) - self._config.delay_ms
                found.update({topic: max(old.get(topic, boundary), boundary) for topic in group})
        return found

    def _reached(self, watermark: int | None, report: PartitionReport | None, at_end: bool, now_ms: int) -> int | None:
        """How far a partition has come; None: nobody knows."""
        if self._follows_clock:  # What is still to come gets the clock of a later run.
            return now_ms
        left_from = report.times.left_from_ms if report is not None and report.times is not None else None
        if report is not None and (report.left or report.stopped_early):
            at_end = False
        if at_end and self._config.idle_ms >= 0:
            passed = now_ms - self._config.idle_ms
            watermark = passed if watermark is None else max(watermark, passed)
        if watermark is None or left_from is None:
            return watermark
        return min(watermark, left_from)

    def _written(
        self, before: TimeProgress, seen: CopiedTimes, late_before: Mapping[str, int]
    ) -> Sequence[TimeDirectory]:
        """Directories that hold records and are not announced, with what this run adds to them."""
        found = {d.directory: d for d in before.open_directories}
        files: dict[TopicPartition, list[StagedFile]] = {}
        for file in seen.files:
            if file.role == "value":
                files.setdefault(TopicPartition(file.topic, file.partition), []).append(file)
        for report in seen.reports:
            tp = report.range.topic_partition
            places = self._places(tp, report)
            for file in files.get(tp, ()):
                place = places.get(directory_key(file.key, tp.topic, tp.partition, file.start, self._names))
                # What is late was announced before, or its time had passed when nothing had been written there.
                if place is None or place.end_ms <= late_before.get(tp.topic, place.end_ms - 1):
                    continue
                known = found.get(place.directory, place)
                found[place.directory] = replace(
                    known,
                    records=known.records + file.records,
                    files=known.files + 1,
                    size_bytes=known.size_bytes + file.size_bytes,
                )
        return list(found.values())

    def _places(self, tp: TopicPartition, report: PartitionReport) -> dict[str, TimeDirectory]:
        """The directory of time that each directory of files belongs to, by the latter's key."""
        found: dict[str, TimeDirectory] = {}
        for directory, time_ms in (report.times.directories if report.times else {}).items():
            own, name = without_topic(directory), self._grid.directory(time_ms)
            delimiter = self._names.directory_delimiter
            if own != name and not own.startswith(name + delimiter) and not own.endswith(delimiter + name):
                continue
            key, topic = self._key_of(tp, directory)
            # With the schema's name behind the time, the directory of the time is the one above.
            marked = key[: len(key) - len(own) + len(name)] if own.startswith(name) else key
            start_ms, end_ms = self._grid.bounds_ms(time_ms)
            found[key] = TimeDirectory(topic, marked, tp.topic, start_ms, end_ms)
        return found

    def _key_of(self, tp: TopicPartition, directory: str) -> tuple[str, str]:
        """Key of a directory and the topic in it."""
        key = object_key(directory, tp.topic, tp.partition, 0, "", self._names)
        return directory_key(key, tp.topic, tp.partition, 0, self._names), topic_of(directory, tp.topic)

    def _groups(self, topics: Iterable[str]) -> list[set[str]]:
        """Topics that can write into the same directories, which are complete when all of them have passed."""
        groups: list[set[str]] = []
        for topic in sorted(topics):
            joined = [group for group in groups if any(self._may_meet(topic, other) for other in group)]
            groups = [group for group in groups if group not in joined]
            groups.append({topic}.union(*joined))
        return groups

    def _may_meet(self, first: str, second: str) -> bool:
        return any(
            _may_be_equal(one, other)
            for one in self._final_topics.get(first, (TopicName((first,)),))
            for other in self._final_topics.get(second, (TopicName((second,)),))
        )


def _may_be_equal(one: TopicName, other: TopicName) -> bool:
    """Whether two names of which parts may be unknown can be the same; rather yes than no."""
    if one.exact is not None and other.exact is not None:
        return one.exact == other.exact
    return one.head.startswith(other.head) or other.head.startswith(one.head)
