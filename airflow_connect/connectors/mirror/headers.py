"""Headers as a mirror copies them, and those that Kafka's client cannot write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.api.record import Header
from airflow_connect.api.schema import BYTES, OPTIONAL_BYTES
from airflow_connect.errors import DataError
from airflow_connect.kafka.writing.header_names import first_unwritable
from airflow_connect.kafka.writing.produced import name_of

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.kafka.reading.column_batch import ColumnBatch


def ensure_writable(batch: ColumnBatch, headers: pa.ListArray[Any] | None) -> None:
    """Check the names of all headers of a batch: its `headers()`.

    Raises:
        DataError: one contains a zero byte.
    """
    wrong = first_unwritable(headers)
    if wrong is None:
        return
    record, name = wrong
    offset = int(batch.offsets[record])
    raise DataError(
        f"{batch.topic_partition}@{offset} has a header whose name contains a zero byte ({name!r}). Kafka's client"
        " would write a copy with a shorter name, so nothing of this transaction was copied.",
        suggestion=f"To go on without the records up to this one, set the offset of this partition to {offset}.",
    )


def header_of(one: Mapping[str, Any]) -> Header:
    """A header of a column as an object; its name keeps all bytes, also those that are not UTF-8."""
    value = one["value"]
    return Header(name_of(one["key"]), OPTIONAL_BYTES if value is None else BYTES, value)
