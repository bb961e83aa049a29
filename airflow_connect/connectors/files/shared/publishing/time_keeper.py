"""Which time directories are complete: those that every partition of a topic has passed.

The watermark of a topic-partition is the latest time of its committed records, the boundary of a topic the lowest
watermark of its partitions minus `complete.delay.ms`. A directory that ends at or before the boundary is complete. It
is announced once, if records were written to it. Later records for it are late.

Precedents: the completeness watermark of Apache Gobblin, the partition finalizer of Pinterest's Secor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.files.shared.publishing.time_progress import (
    CopiedPartition,
    CopiedTimes,
    TimeDirectory,
    TimeProgress,
    TimeStep,
)
from airflow_connect.connectors.files.shared.publishing.topic_names import TopicName
from airflow_connect.layout.names.object_names import directory_key, object_key, topic_of, without_topic

if TYPE_CHECKING:
    from airflow_connect.api.staging import StagedFile
    from airflow_connect.connectors.files.shared.settings.complete_keys import CompleteConfig
    from airflow_connect.layout.names.object_names import NameSettings
    from airflow_connect.layout.time_grid import TimeGrid

MOST_OPEN = 10_000
"""How many incomplete directories are remembered. If there are more, the latest ones are far in the future."""


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
        """For one configuration.

        Args:
            config: the keys.
            grid: the times at which directories end.
            names: the grammar of keys.
            follows_clock: whether every record has the time of the run's clock.
            final_topics: the names that records of each consumed topic can have after the transformations.
        """
        self._config = config
        self._grid = grid
        self._names = names
        self._follows_clock = follows_clock
        self._final_topics = final_topics

    def late_before(self, progress: TimeProgress, topics: Iterable[str]) -> dict[str, int]:
        """Boundaries, including those of new topics that write to directories of topics with a boundary."""
        found: dict[str, int] = {}
        for group in self._groups(topics):
            known = [progress.boundaries[topic] for topic in group if topic in progress.boundaries]
            found.update(dict.fromkeys(group, max(known)) if known else {})
        return found

    def advance(self, before: TimeProgress, seen: CopiedTimes) -> TimeStep:
        """Advance watermarks and boundaries; directories that a boundary has passed are complete."""
        late_before = self.late_before(before, {tp.topic for tp in seen.every})
        watermarks = dict(before.watermarks)
        for copied in seen.copied:
            highest = copied.times.highest_ms if copied.times else None
            tp = copied.partition
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
                f"More than {MOST_OPEN} directories are incomplete. Those that end after {still_open[-1].directory}"
                " are no longer tracked, and are announced only if records are written to them again."
            )
        progress = TimeProgress(watermarks, boundaries, tuple(still_open))
        return TimeStep(progress, tuple(sorted(complete, key=lambda d: (d.end_ms, d.directory))), tuple(notes))

    def _boundaries(
        self, watermarks: Mapping[TopicPartition, int], old: Mapping[str, int], seen: CopiedTimes
    ) -> dict[str, int]:
        """By topic; the boundary of a topic does not move if one of its partitions has an unknown time."""
        by_partition = {copied.partition: copied for copied in seen.copied}
        found: dict[str, int] = {}
        for group in self._groups({tp.topic for tp in seen.every}):
            reached = [
                self._reached(watermarks.get(tp), by_partition.get(tp), tp in seen.at_end, seen.now_ms)
                for tp in seen.every
                if tp.topic in group
            ]
            known = [ms for ms in reached if ms is not None]
            if known and len(known) == len(reached):
                boundary = min(known) - self._config.delay_ms
                found.update({topic: max(old.get(topic, boundary), boundary) for topic in group})
        return found

    def _reached(self, watermark: int | None, copied: CopiedPartition | None, at_end: bool, now_ms: int) -> int | None:
        """The watermark of a partition; None: unknown."""
        if self._follows_clock:  # Later records get the clock of a later run.
            return now_ms
        left_from = copied.times.left_from_ms if copied is not None and copied.times is not None else None
        if copied is not None and copied.leaves_records:
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
        """Directories with records that are not announced yet, including what this run adds to them."""
        found = {d.directory: d for d in before.open_directories}
        files: dict[TopicPartition, list[StagedFile]] = {}
        for file in seen.files:
            if file.role == "value":
                files.setdefault(TopicPartition(file.topic, file.partition), []).append(file)
        for copied in seen.copied:
            tp = copied.partition
            places = self._places(copied)
            for file in files.get(tp, ()):
                place = places.get(directory_key(file.key, tp.topic, tp.partition, file.start, self._names))
                # A late record's directory was announced before, or was still empty when its time had passed.
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

    def _places(self, copied: CopiedPartition) -> dict[str, TimeDirectory]:
        """The time directory of each directory with files, by the key of the latter."""
        found: dict[str, TimeDirectory] = {}
        tp = copied.partition
        for directory, time_ms in (copied.times.directories if copied.times else {}).items():
            own, name = without_topic(directory), self._grid.directory(time_ms)
            delimiter = self._names.directory_delimiter
            if own != name and not own.startswith(name + delimiter) and not own.endswith(delimiter + name):
                continue
            key, topic = self._key_of(tp, directory)
            # If the schema's name follows the time, the time directory is its parent.
            marked = key[: len(key) - len(own) + len(name)] if own.startswith(name) else key
            start_ms, end_ms = self._grid.bounds_ms(time_ms)
            found[key] = TimeDirectory(topic, marked, tp.topic, start_ms, end_ms)
        return found

    def _key_of(self, tp: TopicPartition, directory: str) -> tuple[str, str]:
        """Key of a directory, and its topic."""
        key = object_key(directory, tp.topic, tp.partition, 0, "", self._names)
        return directory_key(key, tp.topic, tp.partition, 0, self._names), topic_of(directory, tp.topic)

    def _groups(self, topics: Iterable[str]) -> list[set[str]]:
        """Groups of topics that can write to the same directories, which are complete when all of them have passed."""
        groups: list[set[str]] = []
        for topic in sorted(topics):
            joined = [group for group in groups if any(self._may_share_a_directory(topic, other) for other in group)]
            groups = [group for group in groups if group not in joined]
            groups.append({topic}.union(*joined))
        return groups

    def _may_share_a_directory(self, first: str, second: str) -> bool:
        return any(
            _may_be_equal(one, other)
            for one in self._final_topics.get(first, (TopicName((first,)),))
            for other in self._final_topics.get(second, (TopicName((second,)),))
        )


def _may_be_equal(one: TopicName, other: TopicName) -> bool:
    """Whether two names, parts of which may be unknown, can be equal; True in doubt."""
    if one.exact is not None and other.exact is not None:
        return one.exact == other.exact
    return one.head.startswith(other.head) or other.head.startswith(one.head)
