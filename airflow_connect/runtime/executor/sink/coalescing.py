"""Joins small batches of a partition to larger ones, so that the cost per batch and per directory matters little."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from airflow_connect.kafka.reading.column_batch import join_batches

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.kafka.reading.column_batch import ColumnBatch

PARTITION_RECORDS = 16_384
ALL_BYTES = 16 << 20
"""Bytes of all partitions that wait, so that a task of 200 partitions needs no more memory than one of two."""


class BatchCoalescer:
    """Holds batches back until a partition has enough records. The order inside a partition is kept."""

    def __init__(self, most_records: int | None = None) -> None:
        """`most_records`: of all partitions; where there are more, the partition with the most is written."""
        self._most_records = most_records
        self._waiting: dict[TopicPartition, list[ColumnBatch]] = {}
        self._records: dict[TopicPartition, int] = {}
        self._bytes: dict[TopicPartition, int] = {}
        self._all_bytes = 0

    def add(self, batch: ColumnBatch, size_bytes: int) -> Iterator[ColumnBatch]:
        """Add a batch of `size_bytes`; yields the batches that are large enough to be written now."""
        tp = batch.topic_partition
        waiting = self._waiting.setdefault(tp, [])
        if waiting and waiting[0].timestamp_type != batch.timestamp_type:
            yield self._take(tp)
            waiting = self._waiting.setdefault(tp, [])
        waiting.append(batch)
        self._records[tp] = self._records.get(tp, 0) + len(batch)
        self._bytes[tp] = self._bytes.get(tp, 0) + size_bytes
        self._all_bytes += size_bytes
        if self._records[tp] >= PARTITION_RECORDS:
            yield self._take(tp)
        elif self._all_bytes >= ALL_BYTES:
            yield from self.take_all()
        elif self._most_records is not None and sum(self._records.values()) >= self._most_records:
            yield self._take(max(self._records, key=lambda tp: self._records[tp]))

    def take_all(self) -> Iterator[ColumnBatch]:
        """Everything that waits, one batch per partition."""
        for tp in list(self._waiting):
            yield self._take(tp)

    def _take(self, tp: TopicPartition) -> ColumnBatch:
        del self._records[tp]
        self._all_bytes -= self._bytes.pop(tp)
        return join_batches(self._waiting.pop(tp))
