"""Converted records in columns: the data that stages of the columnar path pass to each other.

Stages with a columnar form can be combined freely. A stage returns None if it cannot vectorize a batch. The records of
that batch then take the reference path, which implements every rule and every error. A property test checks that both
paths give equal results.

How values are represented in Arrow, by the types of `airflow_connect.api.schema`: INT8 to INT64 are int8 to
int64, FLOAT32 and FLOAT64 float32 and float64, BOOLEAN bool, STRING string, BYTES binary, ARRAY list, MAP map,
STRUCT struct with the schema's fields in their order. Date, Time and Timestamp are their integers (int32, int32,
int64); Decimal is binary, Connect's big-endian two's complement unscaled number. Nulls occur only if the schema is
optional. A field with a default that is null in a record is null here too: the reader replaces it with the default, as
`Struct.get` does in Java, or returns None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from airflow_connect.api.record import KafkaRecord
    from airflow_connect.api.schema import Schema


NO_PARTITION = -1


@runtime_checkable
class ColumnarSinkConnector(Protocol):
    """Optional methods of a sink connector, with which a plan tells what keeps records out of columns.

    They are called after `start`, only if a plan is shown, and open no connections. A connector whose tasks say
    `needs_headers` has a method of that name, too: `needs_headers() -> bool`. One whose tasks write only some types in
    columns may have `stage_without_columns_of(schema: Schema | None) -> str`, which is `stage_without_columns` for
    values of one schema; it is asked if the schema is known without a record.
    """

    def stage_without_columns(self) -> str:
        """What of this configuration makes the tasks take all records one by one, as a noun; "": nothing does.

        It follows "because of" in a sentence, such as "the partitioner (DailyPartitioner)".
        """

    def takes_whole_records(self) -> bool:
        """Whether the tasks take messages as they are, so converters and transformations do not matter."""


class NullValues(Enum):
    """What a sink task does with a record whose value is null, after all transformations."""

    NEEDED = "needed"
    """It gets such records: columns hold none, so a batch with one is put record by record."""
    LEFT_OUT = "left out"
    """It only calls `leave_out(record)`."""
    REPORTED = "reported"
    """It only calls `leave_out(record, reason)`: as `LEFT_OUT` if there is no dead letter queue, else `NEEDED`."""


@runtime_checkable
class NullDroppingSinkTask(Protocol):
    """Optional members of a columnar sink task that leaves out records without a value.

    Batches that have some are then columns of the others, and are not put record by record.
    """

    @property
    def null_values(self) -> NullValues:
        """What it does with them now; read before each batch that has some."""

    def count_null_values(self, count: int) -> None:
        """So many of them were left out without `put`; called after `put_columns` of the other records."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueColumns:
    """Values of one schema.

    Attributes:
        schema: of every value; None is schemaless: `values` is then binary, one JSON document with a line feed each, as
            written by JsonFormat. Schemaless values are never null here.
        values: Arrow array, n long; nulls are allowed where the schema is optional.
    """

    schema: Schema | None
    values: pa.Array[Any]

    def __len__(self) -> int:
        """Number of values."""
        return len(self.values)


@dataclass(frozen=True, slots=True, eq=False)
class RecordColumns:
    """n consecutive records of one partition, after conversion.

    `original_topic`, `original_partition` and `offsets` are Kafka's coordinates and identify records in all
    bookkeeping, even if a transformation renames the topic (KIP-793).

    Attributes:
        topic: of all records, after transformations.
        original_topic, original_partition: their origin; the partition is `NO_PARTITION` for records of a source, which
            are on their way to Kafka and have neither a partition nor offsets yet.
        offsets: int64[n], ascending; no meaning for records of a source.
        timestamps: int64[n], milliseconds since the epoch; no meaning where `timestamp_type` says that there is none.
        timestamp_type: one of api.record.TIMESTAMP_*.
        key, value: converted; `key` is None if all keys are null, or if no stage and no sink needs keys.
        read_records: `(indexes)` to the same records as objects before conversion: the reference form of this batch.
            For sinks only.
        indexes: int64[n], ascending: positions of these records in the batch that was read, for `read_records`. A gap
            is a dropped record, or a record with another schema in another `RecordColumns` of the same batch.
        headers: of each record, in order: list<struct<key: string, value: string>>, n long, no list null. Values are
            texts as Connect's `Values.convertToString` writes them, null where the header has none: Arrow has no
            column for values of several types. None if the sink does not need headers.
    """

    topic: str
    original_topic: str
    original_partition: int
    offsets: NDArray[np.int64]
    timestamps: NDArray[np.int64]
    timestamp_type: int
    key: ValueColumns | None
    value: ValueColumns
    read_records: Callable[[NDArray[np.int64]], list[KafkaRecord]]
    indexes: NDArray[np.int64]
    headers: pa.ListArray[Any] | None = None

    def __len__(self) -> int:
        """Number of records."""
        return len(self.offsets)

    @property
    def is_from_kafka(self) -> bool:
        """Whether the records have Kafka coordinates: true for those of a sink, false for those of a source."""
        return self.original_partition != NO_PARTITION

    def changed(self, **attributes: Any) -> RecordColumns:
        """A copy with other attributes; columns keep their length."""
        return replace(self, **attributes)

    def records(self) -> list[KafkaRecord]:
        """The same records as objects, before conversion."""
        return self.read_records(self.indexes)

    def filter(self, keep: NDArray[np.bool_]) -> RecordColumns:
        """The records where `keep` (bool[n]) is true, in order."""
        import numpy as np
        import pyarrow as pa

        bits: Any = np.packbits(keep, bitorder="little")
        mask: Any = pa.Array.from_buffers(pa.bool_(), len(keep), [None, pa.py_buffer(bits)])
        return replace(
            self,
            offsets=self.offsets[keep],
            timestamps=self.timestamps[keep],
            key=None if self.key is None else ValueColumns(self.key.schema, self.key.values.filter(mask)),
            value=ValueColumns(self.value.schema, self.value.values.filter(mask)),
            indexes=self.indexes[keep],
            headers=None if self.headers is None else self.headers.filter(mask),
        )
