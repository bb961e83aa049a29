"""What a task gets from the driver, as a key of its configuration: chains, each with its frozen files."""

from __future__ import annotations

import base64
import heapq
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.restore.backup import BackupFile
from airflow_connect.connectors.restore.progress import Progress
from airflow_connect.counting import plural

CHAINS = "airflow_connect.restore.chains"
"""Key of a task's configuration; set by the connector, not by users."""


ANY_TIME = (1, (1 << 63) - 1)
"""Kafka's client cannot write a timestamp of 0 or below."""


class Chain(NamedTuple):
    """A partition of the backup, as planned.

    Attributes:
        topic, partition: of the backup.
        progress: where the run begins.
        files: that are read, in the order of their start offsets.
        before: files that begin earlier, and are restored.
        before_ms: the last modification of those.
        deletes_before_ms: records that are older are deleted by Kafka soon; 0: none.
        end: offset of the first record that is not restored; -1: all are.
        first_ms, last_ms: the first and the last timestamp that the topic takes.
        needs_keys: whether the topic takes no records without a key.
        before_names: fingerprint of the names of the files before.
    """

    topic: str
    partition: int
    progress: Progress
    files: list[BackupFile]
    before: int = 0
    before_ms: int = 0
    deletes_before_ms: int = 0
    end: int = -1
    first_ms: int = ANY_TIME[0]
    last_ms: int = ANY_TIME[1]
    needs_keys: bool = False
    before_names: int = 0

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of the backup."""
        return TopicPartition(self.topic, self.partition)

    def claimed(
        self, progress: Progress, deletes_before_ms: int, first_ms: int, last_ms: int, needs_keys: bool
    ) -> Chain:
        """The same with what is known of its topic."""
        return self._replace(
            progress=progress,
            deletes_before_ms=deletes_before_ms,
            first_ms=first_ms,
            last_ms=last_ms,
            needs_keys=needs_keys,
        )

    @property
    def size_bytes(self) -> int:
        """Bytes to read."""
        return sum(file.size for file in self.files)


def divided(chains: Sequence[Chain], max_tasks: int) -> list[list[Chain]]:
    """Largest chain first, into the task with the fewest bytes (Graham 1969); no task is empty."""
    bins = [(0, number) for number in range(min(max_tasks, len(chains)))]
    contents: list[list[Chain]] = [[] for _ in bins]
    sizes = {chain.topic_partition: chain.size_bytes for chain in chains}
    for chain in sorted(chains, key=lambda one: (-sizes[one.topic_partition], one.topic_partition)):
        load, number = heapq.heappop(bins)
        contents[number].append(chain)
        # A file of one byte also costs a request.
        heapq.heappush(bins, (load + sizes[chain.topic_partition] + len(chain.files), number))
    return contents


def expected(files: Iterable[int]) -> tuple[int, str]:
    """What pages show of a run: how many files, and the words after their number; `files`: of each partition."""
    counts = [count for count in files if count]
    return sum(counts), f"files of {plural(len(counts), 'partition')}"


def task_config(config: Mapping[str, str], chains: Sequence[Chain]) -> dict[str, str]:
    """The configuration of a task."""
    rows = [chain._replace(progress=chain.progress.to_offset()) for chain in chains]  # type: ignore[arg-type]
    packed = zlib.compress(json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
    return {**config, CHAINS: base64.b64encode(packed).decode()}


def chains_of(config: Mapping[str, str]) -> list[Chain]:
    """The chains of a task."""
    rows = json.loads(zlib.decompress(base64.b64decode(config[CHAINS])).decode("utf-8", "surrogatepass"))
    return [
        Chain(topic, partition, Progress.of(progress), [BackupFile(*file) for file in files], *rest)
        for topic, partition, progress, files, *rest in rows
    ]
