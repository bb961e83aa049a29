"""Records in columns, as the columnar path passes them from the reader to the sink."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.kafka.reading.message_headers import headers_array, no_headers

if TYPE_CHECKING:
    from airflow_connect.api.record import KafkaRecord

Records = Callable[[int, int], "list[KafkaRecord]"]
ReadHeaders = Callable[[int, int], "pa.ListArray[Any] | None"]
HeaderBytes = Callable[[int, int], Any]


@dataclass(frozen=True, slots=True, eq=False)
class ColumnBatch:
    """Consecutive records of one partition, in columns of equal length.

    Attributes:
        timestamp_type: one of api.record.TIMESTAMP_*, the same for all records of the batch.
        offsets: int64[n], ascending, not necessarily dense.
        timestamps: int64[n], milliseconds since the epoch; no meaning where `timestamp_type` says that there is none.
        keys, values: binary[n], null where the message has none.
        read_records: `(start, stop)` to the records `[start, stop)` as objects, headers included: the reference form
            of the same messages, for batches that are not vectorizable.
        read_headers: `(start, stop)` to the headers of the records `[start, stop)`, as `headers`; None: those of
            `read_records`.
        read_header_bytes: `(start, stop)` to the bytes of the headers of the records `[start, stop)`, as
            `header_bytes`; None: those of `read_records`.
    """

    topic: str
    partition: int
    timestamp_type: int
    offsets: NDArray[np.int64]
    timestamps: NDArray[np.int64]
    keys: pa.BinaryArray
    values: pa.BinaryArray
    read_records: Records
    read_headers: ReadHeaders | None = None
    read_header_bytes: HeaderBytes | None = None

    def __len__(self) -> int:
        """Number of records."""
        return len(self.offsets)

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of all records."""
        return TopicPartition(self.topic, self.partition)

    @property
    def size_bytes(self) -> int:
        """Bytes of all keys and values."""
        return _content_bytes(self.keys) + _content_bytes(self.values)

    def records(self) -> list[KafkaRecord]:
        """The same records as objects."""
        return self.read_records(0, len(self))

    def headers(self) -> pa.ListArray[Any] | None:
        """Headers of all records, of the type `message_headers.HEADERS`; None: no record has any."""
        return self._headers(0, len(self))

    def slice(self, start: int, stop: int) -> ColumnBatch:
        """The records `[start, stop)`; copies nothing."""
        read = self.read_records
        return ColumnBatch(
            self.topic,
            self.partition,
            self.timestamp_type,
            self.offsets[start:stop],
            self.timestamps[start:stop],
            self.keys.slice(start, stop - start),
            self.values.slice(start, stop - start),
            lambda first, end: read(start + first, start + end),
            lambda first, end: self._headers(start + first, start + end),
            lambda first, end: self._header_bytes(start + first, start + end),
        )

    def header_bytes(self) -> Any:
        """binary[n]: bytes that contain the values of all headers of a record, encoded in any way; null: it has none.

        To see what no header can have takes a tenth of the time of `headers`.
        """
        return self._header_bytes(0, len(self))

    def _header_bytes(self, start: int, stop: int) -> Any:
        if self.read_header_bytes is not None:
            return self.read_header_bytes(start, stop)
        records = self.read_records(start, stop)
        return pa.array([b"".join(value or b"" for _, value in record.headers) for record in records], pa.binary())

    def _headers(self, start: int, stop: int) -> pa.ListArray[Any] | None:
        if self.read_headers is not None:
            return self.read_headers(start, stop)
        records = self.read_records(start, stop)
        return headers_array([[(name.encode(), value) for name, value in record.headers] for record in records])


def join_batches(batches: Sequence[ColumnBatch]) -> ColumnBatch:
    """Batches of one partition that follow one another, with equal timestamp types, as one."""
    if len(batches) == 1:
        return batches[0]
    first = batches[0]
    ends = np.cumsum([len(batch) for batch in batches]).tolist()

    def parts(start: int, stop: int) -> list[tuple[ColumnBatch, int, int]]:
        """The batches that have these records, and which of theirs they are."""
        bounds = zip(batches, [0, *ends[:-1]], ends, strict=True)
        wanted = [(b, max(start, low) - low, min(stop, high) - low) for b, low, high in bounds]
        return [(b, low, high) for b, low, high in wanted if low < high]

    def read(start: int, stop: int) -> list[KafkaRecord]:
        return list(chain.from_iterable(b.read_records(low, high) for b, low, high in parts(start, stop)))

    def read_headers(start: int, stop: int) -> pa.ListArray[Any] | None:
        found = [(b.slice(low, high).headers(), high - low) for b, low, high in parts(start, stop)]
        if all(headers is None for headers, _ in found):
            return None
        joined: pa.ListArray[Any] = _concat([no_headers(n) if one is None else one for one, n in found])
        return joined

    def read_header_bytes(start: int, stop: int) -> Any:
        return _concat([b.slice(low, high).header_bytes() for b, low, high in parts(start, stop)])

    return ColumnBatch(
        first.topic,
        first.partition,
        first.timestamp_type,
        np.concatenate([batch.offsets for batch in batches]),
        np.concatenate([batch.timestamps for batch in batches]),
        _concat([batch.keys for batch in batches]),
        _concat([batch.values for batch in batches]),
        read,
        read_headers,
        read_header_bytes,
    )


def _concat(arrays: list[Any]) -> Any:
    return pa.concat_arrays(arrays)


def _content_bytes(column: Any) -> int:
    """Bytes between the first and the last offset of a binary column; nulls take none."""
    if len(column) == 0:
        return 0
    ends = np.frombuffer(column.buffers()[1], dtype=np.int32)
    return int(ends[column.offset + len(column)]) - int(ends[column.offset])
