"""Executor role of FileStreamSink: stages one segment of lines per topic-partition. It has no way to publish one.

Source of the line: org.apache.kafka.connect.file.FileStreamSinkTask prints `record.value()`, Java's text of the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.run import PartitionReport, StagedFile
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.connectors.file.config import FileSinkConfig
from airflow_connect.converters.java_text import java_string
from airflow_connect.stores.local_staging import LocalStager, LocalStagingFile
from airflow_connect.stores.staging import results
from airflow_connect.stores.store import FileIdentity

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.record import SinkRecord

ROOT, PREFIX = "root", "prefix"
"""Keys of a task's own configuration: the driver says where to stage, whatever directory an executor works in."""
MEMORY_BYTES = 64 << 20
"""Bytes of lines that all partitions of a task hold in memory before they are appended to their segments."""


def open_task(context: RoleContext, ranges: Sequence[OffsetRange]) -> FileSinkTask:
    """A task that copies `ranges`; nothing is written yet.

    Raises:
        ConfigError: a key of the sink is wrong.
    """
    config = FileSinkConfig.from_config(context.config)
    if context.task_config:
        config = replace(config, root=context.task_config[ROOT], prefix=context.task_config[PREFIX])
    return FileSinkTask(LocalStager(config.root, context.run_id), config.prefix, ranges)


@dataclass(slots=True)
class _Partition:
    """One planned range and what became of its records."""

    planned: OffsetRange
    segment: LocalStagingFile | None = None
    start: int = 0
    end: int = 0
    read: int = 0
    written: int = 0
    filtered: int = 0
    dead_lettered: int = 0


class FileSinkTask:
    """Values to lines. See `api.sink_roles.SinkWriter`."""

    needs_keys = False

    def __init__(self, stager: LocalStager, prefix: str, ranges: Sequence[OffsetRange]) -> None:
        """`prefix`: what keys of segments begin with."""
        self._stager = stager
        self._prefix = prefix
        self._partitions = {(r.topic, r.partition): _Partition(r) for r in ranges}
        self._staged: list[Future[StagedFile]] = []
        self._closed: list[LocalStagingFile] = []
        self._held_bytes = 0

    def put(self, record: SinkRecord) -> bool:
        """Write one line."""
        line = f"{java_string(record.value_schema, record.value)}\n".encode("utf-8", "replace")
        state = self._partitions[record.original_topic, record.original_partition]
        if state.segment is None:
            state.segment = self._open(state.planned, record.offset)
            state.start = record.offset
        state.segment.write(line)
        state.end = record.offset + 1
        state.read += 1
        state.written += 1
        self._held_bytes += len(line)
        if self._held_bytes >= MEMORY_BYTES:
            self._spill()
        return True

    def count_dead_letter(self, tp: TopicPartition, *, already_read: bool) -> None:
        """Account for a dead letter of `tp`, which never came to `put`: that one refuses nothing."""
        state = self._partitions[tp.topic, tp.partition]
        state.read += 1
        state.dead_lettered += 1

    def count_skipped(self, tp: TopicPartition) -> None:
        """Account for a record of `tp` that is dropped on purpose."""
        state = self._partitions[tp.topic, tp.partition]
        state.read += 1
        state.filtered += 1

    def accepts_columns(self) -> bool:
        """No: what a line is, is said of one value."""
        return False

    def put_columns(self, pieces: Sequence[RecordColumns], count: int) -> bool:
        """Never: see `accepts_columns`."""
        return False

    def finish(self, tp: TopicPartition, position: int, *, end: int | None, reason: str) -> PartitionReport:
        """End a range, and its segment."""
        state = self._partitions[tp.topic, tp.partition]
        if state.segment is not None:
            self._closed.append(state.segment)
            self._staged.append(state.segment.close(state.end, state.written))
            state.segment = None
        copied = state.planned if end is None else replace(state.planned, end=end)
        return PartitionReport(
            range=copied,
            position=position,
            commit_offset=copied.end,
            read=state.read,
            written=state.written,
            filtered=state.filtered,
            dead_lettered=state.dead_lettered,
            stopped_early=reason,
        )

    def staged_files(self) -> list[StagedFile]:
        """Wait until every segment is on the disk.

        Raises:
            UnavailableError, AccessError: the file system refused.
        """
        return results(self._staged)

    def abort(self) -> None:
        """Discard every segment, also those that were staged, and release the stager."""
        for state in self._partitions.values():
            if state.segment is not None:
                state.segment.abort()
                state.segment = None
        for segment in self._closed:
            segment.abort()
        self._stager.close()

    def close(self) -> None:
        """Release the stager; what was staged stays."""
        self._stager.close()

    def _open(self, planned: OffsetRange, start: int) -> LocalStagingFile:
        topic, partition = planned.topic, planned.partition
        return self._stager.open(FileIdentity(f"{self._prefix}{topic}/{partition}+{start}", topic, partition, start))

    def _spill(self) -> None:
        self._held_bytes = 0
        for state in self._partitions.values():
            if state.segment is not None:
                state.segment.spill()
