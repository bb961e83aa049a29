"""Headers that no stage and no sink of the columnar path needs: whether their converter would refuse one of them.

Record by record, every header is converted, and one that cannot be fails its record, whoever needs it. Of the
converters that the columnar path knows, only `SimpleHeaderConverter` refuses anything: lists and maps that are nested
too deeply, and numbers of too many digits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_connect.api.schema import MAX_SCHEMA_DEPTH
from airflow_connect.converters.simple_header_converter import SimpleHeaderConverter
from airflow_connect.errors import DataError
from airflow_connect.java.numbers import MAX_DECIMAL_DIGITS

if TYPE_CHECKING:
    from airflow_connect.kafka.reading.column_batch import ColumnBatch


def headers_are_convertible(converter: Any, batch: ColumnBatch) -> bool:
    """Whether `SimpleHeaderConverter` accepts every header of a batch; other converters accept all bytes.

    Most batches are seen to have neither as many brackets nor as many digits as it takes. Headers of the others are
    converted, those that are long enough.
    """
    if type(converter) is not SimpleHeaderConverter or not _may_be_refused(batch.header_bytes()):
        return True
    headers: Any = batch.headers()
    if headers is None:
        return True
    _, values = headers.flatten().flatten()
    sizes: Any = pc.binary_length(values)
    long = values.filter(pc.greater(sizes, pa.scalar(MAX_SCHEMA_DEPTH)))
    try:
        for value in long.unique().to_pylist():
            converter.to_connect_header("", "", value)
    except DataError:
        return False
    return True


def _may_be_refused(encoded: Any) -> bool:
    """Whether a record has more brackets than levels, or more bytes than digits, are allowed.

    Args:
        encoded: binary[n], see `ColumnBatch.header_bytes`.
    """
    if encoded.null_count == len(encoded):
        return False
    ends = np.frombuffer(encoded.buffers()[1], np.int32)[encoded.offset : encoded.offset + len(encoded) + 1]
    if int(np.diff(ends).max()) > MAX_DECIMAL_DIGITS:
        return True
    if int(ends[-1]) == int(ends[0]):
        return False
    data = np.frombuffer(encoded.buffers()[2], np.uint8)[ends[0] : ends[-1]]
    brackets = (data == ord("[")) | (data == ord("{"))
    if np.count_nonzero(brackets) <= MAX_SCHEMA_DEPTH:
        return False
    counts = np.concatenate([[0], np.cumsum(brackets)])[ends - ends[0]]
    return bool(np.diff(counts).max() > MAX_SCHEMA_DEPTH)
