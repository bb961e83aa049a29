"""Records of one topic-partition to full files, directory by directory: `files.per.partition=compact`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.connectors.storage.topic_partition_writer import VALUE, OpenFile, TopicPartitionWriter
from airflow_connect.layout.code_groups import group_by_code
from airflow_connect.layout.compaction import FileSchemas

if TYPE_CHECKING:
    from concurrent.futures import Future

    from airflow_connect.api.offsets import OffsetRange
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.api.run import PartitionReport, StagedFile
    from airflow_connect.api.schema import Schema
    from airflow_connect.connectors.storage.columns import LaidOut
    from airflow_connect.connectors.storage.task_plan import StorageTaskPlan
    from airflow_connect.stores.store import Stager


class CompactWriter(TopicPartitionWriter):
    """Each file ends by itself, when `flush.size` records of its directory and schema are in it, or with the range.

    Offsets of files interleave then, so that no offset in the middle of a range says what is written: everything that
    was read is staged, and the range is committed as a whole. A record is in one file only, and a file is named after
    its first record, so names are unique although several files of a directory can be open at once.
    """

    def __init__(self, planned: OffsetRange, plan: StorageTaskPlan, stager: Stager) -> None:
        """Nothing is opened until the first record comes."""
        super().__init__(planned, plan, stager)
        self._schemas = FileSchemas(self._compatibility)
        self._flush_size = max(1, plan.layout.rotation.flush_size)

    def rotate(self) -> None:
        """End all open files, in the order of their first records."""
        for file in sorted(self._open.values(), key=lambda file: file.start):
            self._staged += self._close(file)
        self._open.clear()
        self._settle()

    def finish(self, position: int, *, end: int | None = None, reason: str = "") -> PartitionReport:
        """End the range: stage what is open; nothing can be left for the next run."""
        self.rotate()
        return super().finish(position, end=end, reason=reason)

    def _put(self, directory: str, timestamp: int | None, record: SinkRecord) -> None:
        # Records without value have a directory of their own, and files without values.
        schema = None if record.value is None else self._schemas.of_file(directory, record.value_schema)
        file = self._write(directory, schema, record, timestamp)
        self._schemas.written(directory, schema)
        self._pending.read += 1
        if file.records >= self._flush_size:
            self._staged += self._end(file)

    def _put_columns(self, batch: LaidOut, skipped: int) -> None:
        """Equal to `put` of each record: also files that end within the batch are staged in the order of their ends."""
        order, groups = group_by_code(batch.placed.codes)
        rows, offsets = (batch.rows, batch.offsets) if order is None else (batch.rows.take(order), batch.offsets[order])
        schema = batch.placed.value_schema
        ended: list[tuple[int, list[Future[StagedFile]]]] = []
        for group in groups:
            directory = batch.placed.names[group.code]
            low = group.low
            while low < group.high:
                file = self._opened(directory, schema, int(offsets[low]))
                high = min(group.high, low + self._flush_size - file.records)
                rows.write(self._stream(file, VALUE, schema, self._plan.value), low, high)
                file.end = int(offsets[high - 1]) + 1
                file.records += high - low
                if file.records >= self._flush_size:
                    ended.append((file.end, self._end(file)))
                low = high
            self._schemas.written(directory, schema)
        for _, staged in sorted(ended, key=lambda pair: pair[0]):
            self._staged += staged
        self._pending.read += len(offsets)
        self._pending.written += len(offsets)
        if self._times is not None:
            self._times.note_columns(batch.placed, 0, len(offsets))
        self.skip(int(batch.dropped[-1]) - skipped)

    def _end(self, file: OpenFile) -> list[Future[StagedFile]]:
        del self._open[file.directory, file.value_schema]
        return self._close(file)

    def _needs_no_projection(self, schema: Schema | None) -> bool:
        return self._schemas.keeps_its_own(schema)
