"""Headers in columns, see `RecordColumns.headers`: made, added, taken away."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

TEXTS: Any = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
"""The type of the column."""


def header_lists(ends: NDArray[np.int32], names: Any, values: Any) -> Any:
    """A column of headers.

    Args:
        ends: int32[n + 1]: the headers of record i are `[ends[i], ends[i + 1])`.
        names, values: string[m] of all headers.
    """
    headers: Any = pa.StructArray.from_arrays([names, values], fields=list(TEXTS.value_type))
    made: Any = pa.ListArray
    return made.from_arrays(pa.array(ends, pa.int32()), headers, type=TEXTS)


def parts_of(headers: Any) -> tuple[NDArray[np.int32], Any, Any]:
    """Ends, names and values of a list column without null lists, which begin at its first record."""
    ends = np.zeros(len(headers) + 1, np.int32)
    np.cumsum(pc.list_value_length(headers).to_numpy(), out=ends[1:])
    names, values = headers.flatten().flatten()
    return ends, names, values


def with_headers(headers: Any, names: Sequence[str], values: Sequence[Any]) -> Any:
    """Each record with more headers after its own.

    Args:
        headers: of n records.
        names: of the new headers.
        values: of each new header: string[n], or one text (None: null) for all records.
    """
    ends, old_names, old_values = parts_of(headers)
    records, added, old = len(headers), len(names), len(old_names)
    columns = [pa.array([value] * records, pa.string()) if _is_one(value) else value for value in values]
    new_names = pa.array([name for name in names for _ in range(records)], pa.string())
    order = np.empty(old + added * records, np.int64)
    # A header moves on by as many as were added to the records before its own.
    order[np.arange(old) + added * np.repeat(np.arange(records), np.diff(ends))] = np.arange(old)
    for number in range(added):
        places = ends[1:] + added * np.arange(records) + number
        order[places] = old + number * records + np.arange(records)
    taken: Any = pa.array(order)
    all_names: Any = pa.concat_arrays([old_names, new_names])
    all_values: Any = pa.concat_arrays([old_values, *columns])
    more = (ends + added * np.arange(records + 1)).astype(np.int32)
    return header_lists(more, all_names.take(taken), all_values.take(taken))


def as_texts(column: Any) -> Any:
    """Texts of a column of texts, whole numbers or booleans."""
    return column.cast(pa.string())


def without_headers(headers: Any, names: Collection[str]) -> Any:
    """Each record without the headers of these names."""
    ends, all_names, all_values = parts_of(headers)
    kept: Any = pc.invert(pc.is_in(all_names, pa.array(list(names), pa.string())))
    counts = np.concatenate([[0], np.cumsum(kept.to_numpy(zero_copy_only=False))])
    return header_lists(counts[ends].astype(np.int32), all_names.filter(kept), all_values.filter(kept))


def _is_one(value: Any) -> bool:
    return value is None or isinstance(value, str)
