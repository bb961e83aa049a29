"""The executor role of every storage sink: one writer per topic-partition under one memory budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_connect.connectors.storage.compact_writer import CompactWriter
from airflow_connect.connectors.storage.topic_partition_writer import TopicPartitionWriter
from airflow_connect.connectors.storage.value_schemas import once_each
from airflow_connect.stores.staging import results

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.offsets import OffsetRange, TopicPartition
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.api.run import PartitionReport, StagedFile
    from airflow_connect.connectors.storage.columns import ColumnPath
    from airflow_connect.connectors.storage.task_plan import StorageTaskPlan
    from airflow_connect.stores.store import Stager

CHECK_MEMORY_EVERY = 2000
"""Records between two looks at the memory budget: adding up thousands of open files has a cost too."""


class StorageSinkTask:
    """Routes records to the writer of their topic-partition. Kafka's own coordinates decide, not transformed ones."""

    needs_keys = False  # A configuration that stores them goes record by record.

    def __init__(self, plan: StorageTaskPlan, stager: Stager, ranges: Sequence[OffsetRange]) -> None:
        """One writer per planned range."""
        self._plan = plan
        self._stager = stager
        writer = CompactWriter if plan.layout.rotation.is_compact else TopicPartitionWriter
        self._writers = {r.topic_partition: writer(r, plan, stager) for r in ranges}
        self._by_name = {(tp.topic, tp.partition): w for tp, w in self._writers.items()}
        self._since_check = 0
        self._columns: ColumnPath | None = None

    def put(self, record: SinkRecord) -> bool:
        """Write one record; see `TopicPartitionWriter.put`."""
        writer = self._by_name[record.original_topic, record.original_partition]
        self._since_check += 1
        if self._since_check >= CHECK_MEMORY_EVERY or writer.added_bytes >= self._plan.memory_budget_bytes >> 4:
            self._keep_memory_bounded()
        return writer.put(record)

    def count_dead_letter(self, tp: TopicPartition, *, already_read: bool) -> None:
        """Account for a dead letter of `tp`."""
        self._writers[tp].dead_letter(already_read=already_read)

    def count_skipped(self, tp: TopicPartition) -> None:
        """Account for a record of `tp` that is dropped on purpose."""
        self._writers[tp].skip()

    def accepts_columns(self) -> bool:
        """Whether format and directories of this configuration have a columnar form."""
        from airflow_connect.connectors.storage.columns import column_path

        self._columns = column_path(self._plan)
        return self._columns is not None

    def put_columns(self, pieces: Sequence[RecordColumns], count: int) -> bool:
        """Write a batch, or False, with nothing written, when its records have to be put one by one.

        Raises:
            DataError: as `put`.
        """
        if self._columns is None:
            raise TypeError("This sink was not configured for the columnar path.")
        writer = self._by_name[pieces[0].original_topic, pieces[0].original_partition]
        if not writer.can_join(pieces):
            return False
        laid_out = self._columns.lay_out(pieces)
        if laid_out is None:
            return False
        skipped = 0
        for batch in laid_out:
            writer.put_columns(batch, skipped)
            skipped = int(batch.dropped[-1])
        writer.skip(count - sum(map(len, pieces)) - skipped)
        self._since_check += count
        if self._since_check >= CHECK_MEMORY_EVERY:
            self._keep_memory_bounded()
        return True

    def finish(self, tp: TopicPartition, position: int, *, end: int | None, reason: str) -> PartitionReport:
        """End the range of `tp`."""
        return self._writers[tp].finish(position, end=end, reason=reason)

    def staged_files(self) -> list[StagedFile]:
        """All staged files, in the order in which each writer ended them.

        Raises:
            ConnectError: the first upload that failed for good, as soon as it has failed.
        """
        staged = [future for writer in self._writers.values() for future in writer.staged]
        return once_each(results(staged))

    def abort(self) -> None:
        """Discard every file, also those that were staged, and release the stager."""
        for writer in self._writers.values():
            writer.discard()
        self._stager.close()

    def close(self) -> None:
        """Release the stager; what was staged stays."""
        self._stager.close()

    def _keep_memory_bounded(self) -> None:
        """Spill the largest files until half of the budget is free, so that spilling does not happen all the time."""
        self._since_check = 0
        for writer in self._writers.values():
            writer.added_bytes = 0
        budget = self._plan.memory_budget_bytes
        streams = [(s.buffered_bytes, s) for w in self._writers.values() for s in w.streams()]
        held = sum(size for size, _ in streams)
        if held <= budget:
            return
        streams.sort(key=lambda pair: pair[0], reverse=True)
        for size, stream in streams:
            if held <= budget // 2:
                break
            stream.spill()
            held -= size
