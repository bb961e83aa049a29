"""Records of one topic-partition to full files, directory by directory: `files.per.partition=compact`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.connectors.files.shared.writing.topic_partition_writer import OpenFile, TopicPartitionWriter
from airflow_connect.layout.code_groups import group_by_code
from airflow_connect.layout.compaction import FileSchemas

if TYPE_CHECKING:
    from concurrent.futures import Future

    from airflow_connect.api.offsets import OffsetRange
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.api.schema import Schema
    from airflow_connect.api.staging import StagedFile
    from airflow_connect.connectors.files.shared.writing.columns import LaidOut
    from airflow_connect.connectors.files.shared.writing.task_plan import StorageTaskPlan
    from airflow_connect.stores.store import Stager


class CompactWriter(TopicPartitionWriter):
    """Each file ends independently: when it has `flush.size` records of its directory and schema, or with the range.

    The offsets of files therefore interleave, and no offset inside a range separates written records from others. So
    everything that was read is staged, and the range is committed as a whole. A record is in one file only, and a file
    is named after its first record. So names are unique even if several files of a directory are open at the same
    time.
    """

    def __init__(self, planned: OffsetRange, plan: StorageTaskPlan, stager: Stager) -> None:
        """Opens nothing before the first record."""
        super().__init__(planned, plan, stager)
        self._schemas = FileSchemas(self._compatibility)
        self._flush_size = max(1, plan.layout.rotation.flush_size)

    def rotate(self) -> None:
        """End all open files, in the order of their first records."""
        for file in sorted(self._open.values(), key=lambda file: file.start):
            self._staged += self._close(file)
        self._open.clear()
        self._settle_times()

    def flush(self, *, must_flush: bool) -> None:
        """Always stage open files: nothing can be left for the next run."""
        super().flush(must_flush=True)

    def _put(self, directory: str, timestamp: int | None, record: SinkRecord) -> None:
        # Records without a value have a separate directory, and files without values.
        schema = None if record.value is None else self._schemas.of_file(directory, record.value_schema)
        if self._has_other_keys(directory, schema, record):
            self._staged += self._end(self._open[directory, schema])
        file = self._write(directory, schema, record, timestamp)
        self._schemas.written(directory, schema)
        if file.records >= self._flush_size:
            self._staged += self._end(file)

    def _put_columns(self, batch: LaidOut) -> None:
        """Equivalent to `put` of each record: files that end within the batch are staged in the order of their ends."""
        order, groups = group_by_code(batch.placed.codes)
        rows = batch.encoded if order is None else batch.encoded.take(order)
        offsets = batch.offsets if order is None else batch.offsets[order]
        schema = batch.placed.value_schema
        ended: list[tuple[int, list[Future[StagedFile]]]] = []
        for group in groups:
            directory = batch.placed.names[group.code]
            low = group.low
            while low < group.high:
                file = self._opened(batch, directory, schema, int(offsets[low]))
                high = min(group.high, low + self._flush_size - file.records)
                self._write_rows(file, batch, rows, low, high)
                file.end = int(offsets[high - 1]) + 1
                file.records += high - low
                if file.records >= self._flush_size:
                    ended.append((file.end, self._end(file)))
                low = high
            self._schemas.written(directory, schema)
        for _, staged in sorted(ended, key=lambda pair: pair[0]):
            self._staged += staged
        if self._times is not None:
            self._times.note_columns(batch.placed, 0, len(offsets))

    def _end(self, file: OpenFile) -> list[Future[StagedFile]]:
        del self._open[file.directory, file.value_schema]
        return self._close(file)

    def _needs_no_projection(self, schema: Schema | None) -> bool:
        return self._schemas.keeps_its_own(schema)
