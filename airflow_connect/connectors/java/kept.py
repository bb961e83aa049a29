"""Records on their way to a sink's plugin: as a frame, and kept, because the plugin may report them later."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.record import SinkRecord

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.jvm.frames import Frame


class Kept(Protocol):
    """Records of one `put`."""

    def __len__(self) -> int:
        """How many."""

    def place(self, row: int) -> tuple[TopicPartition, int]:
        """Partition and offset of one of them."""

    def ends(self, without: Collection[int]) -> Iterable[tuple[TopicPartition, int]]:
        """The last offset of each partition, without some rows."""

    def find(self, tp: TopicPartition, offset: int) -> SinkRecord | None:
        """The record there, if it is one of these."""


class KeptColumns:
    """Records in columns, all of one partition."""

    def __init__(self, batch: RecordColumns) -> None:
        """Keep the columns."""
        self._batch = batch
        self._tp = TopicPartition(batch.original_topic, batch.original_partition)

    def __len__(self) -> int:
        """See `Kept`."""
        return len(self._batch)

    def place(self, row: int) -> tuple[TopicPartition, int]:
        """See `Kept`."""
        return self._tp, int(self._batch.offsets[row])

    def ends(self, without: Collection[int]) -> Iterable[tuple[TopicPartition, int]]:
        """See `Kept`."""
        out = frozenset(without)
        last = next((row for row in reversed(range(len(self))) if row not in out), None)
        return () if last is None else (self.place(last),)

    def find(self, tp: TopicPartition, offset: int) -> SinkRecord | None:
        """See `Kept`."""
        import numpy as np

        offsets = self._batch.offsets
        at = int(np.searchsorted(offsets, offset))
        if tp != self._tp or at == len(offsets) or offsets[at] != offset:
            return None
        consumed = self._batch.read_records(self._batch.indexes[at : at + 1])[0]
        return SinkRecord(
            topic=consumed.topic,
            partition=consumed.partition,
            offset=consumed.offset,
            timestamp=consumed.timestamp,
            timestamp_type=consumed.timestamp_type,
            consumed=consumed,
        )


class KeptRecords:
    """Records as objects."""

    def __init__(self, records: Sequence[SinkRecord]) -> None:
        """Keep the records."""
        self._records = records

    def __len__(self) -> int:
        """See `Kept`."""
        return len(self._records)

    def place(self, row: int) -> tuple[TopicPartition, int]:
        """See `Kept`."""
        record = self._records[row]
        return TopicPartition(record.original_topic, record.original_partition), record.offset

    def ends(self, without: Collection[int]) -> Iterable[tuple[TopicPartition, int]]:
        """See `Kept`."""
        out = frozenset(without)
        return dict(self.place(row) for row in range(len(self)) if row not in out).items()

    def find(self, tp: TopicPartition, offset: int) -> SinkRecord | None:
        """See `Kept`."""
        rows = (row for row in range(len(self)) if self.place(row) == (tp, offset))
        return next((self._records[row] for row in rows), None)


def frame_of_columns(batch: RecordColumns) -> Frame:
    """The frame of whole messages in columns (`api/whole_record.py`)."""
    import pyarrow as pa

    messages: Any = batch.value.values
    first: Any = pa.scalar(0, pa.int32())
    return _frame(messages, [batch.original_topic], pa.repeat(first, len(messages)), batch.timestamp_type)


def frame_of_records(records: Sequence[SinkRecord]) -> Frame:
    """The frame of whole messages as objects, all with one kind of timestamp."""
    import pyarrow as pa

    topics = list(dict.fromkeys(record.original_topic for record in records))
    numbers = {topic: number for number, topic in enumerate(topics)}
    messages: Any = pa.array([record.value for record in records], _message_type())
    indexes = pa.array([numbers[record.original_topic] for record in records], pa.int32())
    return _frame(messages, topics, indexes, records[0].timestamp_type)


def _message_type() -> Any:
    import pyarrow as pa

    header: Any = pa.struct([("key", pa.binary()), ("value", pa.binary())])
    return pa.struct(
        [
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.int64()),
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("headers", pa.list_(header)),
        ]
    )


def _frame(messages: Any, topics: Sequence[str], indexes: Any, timestamp_type: int) -> Frame:
    import pyarrow as pa
    import pyarrow.compute as pc

    from airflow_connect.jvm.frames import Frame

    headers, stamps = messages.field("headers"), messages.field("timestamp")
    return Frame(
        topics=topics,
        topic=indexes,
        partition=messages.field("partition"),
        offset=messages.field("offset"),
        timestamp=pc.if_else(pc.is_null(stamps), pa.scalar(-1, pa.int64()), stamps),
        keys=messages.field("key"),
        values=messages.field("value"),
        headers=headers if len(headers.flatten()) else None,
        timestamp_type=timestamp_type - 1,  # librdkafka's numbers begin at 0, Kafka's at -1.
    )
