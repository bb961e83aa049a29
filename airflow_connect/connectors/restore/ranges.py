"""A part of each partition of a backup: between offsets, or from a point in time on.

Where a partition begins counts until something of it is restored. From then on its position counts, because records
can no longer come before those that are in the topic.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.restore.backup import BackupFile
from airflow_connect.connectors.restore.keys import RestoreKeys
from airflow_connect.connectors.restore.work import Chain
from airflow_connect.counting import names
from airflow_connect.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Ranges:
    """Between which offsets partitions are restored.

    Attributes:
        begin: the first offset, by partition.
        end: the first offset that is not restored, by partition.
        from_ms: the time from which on partitions are restored of which nothing is yet; None: from their beginnings.
        note: receives sentences.
    """

    begin: Mapping[TopicPartition, int]
    end: Mapping[TopicPartition, int]
    from_ms: int | None
    note: Callable[[str], None]

    def check(self, known: Collection[TopicPartition]) -> None:
        """Check that each partition exists: one that was mistyped would be restored as a whole.

        Raises:
            ConfigError: the backup does not have one, or it is not chosen.
        """
        for key, offsets in ((RestoreKeys.from_offsets, self.begin), (RestoreKeys.until_offsets, self.end)):
            if unknown := sorted(tp for tp in offsets if tp not in known):
                raise ConfigError(
                    f"{key} names partitions that are not restored: {names(unknown)}.",
                    code="restore.range",
                    config_path=key.name,
                    suggestion=f"Name partitions that the backup has, of topics that {RestoreKeys.topics} or"
                    f" {RestoreKeys.topics_regex} choose, by their names in the backup.",
                )

    def of(self, chains: Sequence[Chain]) -> list[Chain]:
        """The chains without what lies outside their ranges; without those of which nothing is left."""
        begun = [chain.topic_partition for chain in chains if chain.progress.passed]
        if begun and self.from_ms is not None:
            self.note(f"{RestoreKeys.from_ms} has no effect for partitions that were begun before: {names(begun)}.")
        bounded = (self._ended(self._begun(chain)) for chain in chains)
        return [chain for chain in bounded if chain.files]

    def _begun(self, chain: Chain) -> Chain:
        tp, progress = chain.topic_partition, chain.progress
        begin = self.begin.get(tp)
        if begin is None or (begin == progress.position and not progress.passed):
            return chain
        if progress.passed:
            self.note(
                f"{tp} was restored up to offset {progress.position}, so {RestoreKeys.from_offsets} has no effect."
            )
            return chain
        if begin < progress.position:
            self.note(f"{tp} of the backup begins at offset {progress.position}, and not before.")
            return chain
        self.note(f"{tp} of the backup begins at offset {progress.position}, and is restored from {begin} on.")
        return chain._replace(progress=progress.after(position=begin))

    def _ended(self, chain: Chain) -> Chain:
        tp, end = chain.topic_partition, self.end.get(chain.topic_partition)
        if end is None:
            return chain
        if chain.progress.passed and chain.progress.position > end:
            self.note(f"{tp} was restored up to offset {chain.progress.position}, beyond {RestoreKeys.until_offsets}.")
        if not chain.progress.passed and chain.progress.position >= end:
            self.note(
                f"{tp} of the backup begins at offset {chain.progress.position}, so nothing of it is before"
                f" {RestoreKeys.until_offsets}."
            )
        if chain.progress.position >= end:
            return chain._replace(files=[])
        count = bisect_left(chain.files, end, key=_start)
        return chain._replace(files=chain.files[:count], end=end)


def first_to_read(chain: Chain) -> BackupFile:
    """The file that has the first record to restore, as far as names tell."""
    return chain.files[max(0, bisect_right(chain.files, chain.progress.position, key=_start) - 1)]


def _start(file: BackupFile) -> int:
    return file.start
