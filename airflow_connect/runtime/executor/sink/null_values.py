"""Which records of a batch have no value and may be left out, so that the others are columns.

The sink says what it does with them (`NullDroppingSinkTask`). Converter and transformations see them here, one by one:
a transformation may give them a value, drop them, or refuse them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from airflow_connect.api.columns import NullValues
from airflow_connect.runtime.executor.converting import ConversionError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from airflow_connect.kafka.reading.column_batch import ColumnBatch
    from airflow_connect.runtime.executor.converting import RecordConverter


def present_in(batch: ColumnBatch) -> NDArray[np.bool_]:
    """bool[n]: whether each record has a value."""
    found: NDArray[np.bool_] = batch.values.is_valid().to_numpy(zero_copy_only=False)
    return found


def left_to_sink(
    batch: ColumnBatch, converter: RecordConverter, nulls: NullValues, *, has_queue: bool
) -> NDArray[np.int64] | None:
    """Offsets of the records without value that the sink would get, and only leaves out; None: one is needed.

    Those that transformations drop are not among them. Keys and headers must be such that they can be converted.

    Args:
        batch: with some records without value.
        converter: of the task.
        nulls: what the sink does with them.
        has_queue: whether there is a dead letter queue.

    Raises:
        Exception: whatever the value converter raises for a missing value.
    """
    is_left_out = nulls is NullValues.LEFT_OUT or (nulls is NullValues.REPORTED and not has_queue)
    indexes = np.flatnonzero(~present_in(batch))
    if not converter.steps:
        is_null = converter.value.to_connect(batch.topic, None).value is None
        return batch.offsets[indexes] if is_left_out and is_null else None
    left = []
    for index in indexes.tolist():
        (record,) = batch.read_records(index, index + 1)
        try:
            transformed = converter.try_convert(record)
        except ConversionError:
            return None  # It is found again record by record, where errors are handled.
        if transformed is None:
            continue
        if transformed.value is not None or not is_left_out:
            return None
        left.append(record.offset)
    return np.array(left, dtype=np.int64)
