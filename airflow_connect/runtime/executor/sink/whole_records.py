"""Passes messages to a sink that takes them whole: no converter and no transformation touches them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_connect.api.record import TIMESTAMP_NOT_AVAILABLE, SinkRecord
from airflow_connect.api.whole_record import TIMESTAMP_TYPES, WHOLE_RECORD, whole_record
from airflow_connect.errors import DataError
from airflow_connect.runtime.executor.converting import ConversionError
from airflow_connect.runtime.executor.error_policy import HEADER_CONVERTER, Failure
from airflow_connect.runtime.executor.unread_counts import UnreadCounts

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.record import KafkaRecord
    from airflow_connect.kafka.reading.column_batch import ColumnBatch


class WholeRecordConverter:
    """Takes the place of `RecordConverter`.

    Attributes:
        unread: counts nothing, because nothing is left out.
        has_known_headers: bytes are not converted.
    """

    has_known_headers = True

    def __init__(self) -> None:
        """Needs no configuration."""
        self.unread = UnreadCounts(None, None)

    def close(self) -> None:
        """Nothing is open."""

    def accepts_keys(self, topic: str, keys: Any) -> bool:
        """Bytes are never refused."""
        return True

    def accepts_headers(self, batch: ColumnBatch) -> bool:
        """Nor are those of headers; `WholeRecordPath` looks at their names."""
        return True

    def convert(self, record: KafkaRecord) -> SinkRecord:
        """A record whose value is the whole message.

        Raises:
            ConversionError: the name of a header may have lost bytes.
        """
        try:
            value = whole_record(record)
        except DataError as error:
            raise ConversionError(Failure(HEADER_CONVERTER, type(self).__name__, error)) from error
        return SinkRecord(
            topic=record.topic,
            partition=record.partition,
            value_schema=WHOLE_RECORD,
            value=value,
            offset=record.offset,
            timestamp=record.timestamp,
            timestamp_type=record.timestamp_type,
            consumed=record,
        )


class WholeRecordPath:
    """The columnar form, see `ColumnPath`."""

    refused_by = ""
    nulls = None

    def convert(self, batch: ColumnBatch) -> list[RecordColumns]:
        """The records of a batch as one piece; always vectorizable."""
        import numpy as np

        from airflow_connect.api.columns import RecordColumns, ValueColumns

        return [
            RecordColumns(
                topic=batch.topic,
                original_topic=batch.topic,
                original_partition=batch.partition,
                offsets=batch.offsets,
                timestamps=batch.timestamps,
                timestamp_type=batch.timestamp_type,
                key=None,
                value=ValueColumns(WHOLE_RECORD, _values(batch)),
                read_records=lambda indexes: [batch.read_records(int(n), int(n) + 1)[0] for n in indexes],
                indexes=np.arange(len(batch), dtype=np.int64),
            )
        ]


def _values(batch: ColumnBatch) -> pa.Array[Any]:
    import pyarrow as pa

    count = len(batch)
    has_time = batch.timestamp_type != TIMESTAMP_NOT_AVAILABLE
    kind = TIMESTAMP_TYPES.get(batch.timestamp_type)
    columns: dict[str, Any] = {
        "topic": _repeated(batch.topic, count, pa.string()),
        "partition": _repeated(batch.partition, count, pa.int32()),
        "offset": pa.array(batch.offsets, pa.int64()),
        "timestamp": pa.array(batch.timestamps, pa.int64()) if has_time else pa.nulls(count, pa.int64()),
        "timestamp_type": _repeated(kind, count, pa.string()),
        "key": batch.keys,
        "value": batch.values,
        "headers": _headers(batch),
    }
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


def _repeated(value: Any, count: int, kind: Any) -> Any:
    import pyarrow as pa

    scalar: Any = pa.scalar(value, kind)
    return pa.repeat(scalar, count)


def _headers(batch: ColumnBatch) -> Any:
    """The headers of each record; [] where there are none."""
    from airflow_connect.kafka.reading.message_headers import no_headers

    found = batch.headers()
    return no_headers(len(batch)) if found is None else found
