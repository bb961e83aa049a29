"""Maps in Arrow columns: made of entries, and taken apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from airflow_connect.api.schema import Schema

_MapArray: Any = pa.MapArray  # pyarrow-stubs do not know these arguments.


def map_column(offsets: Any, keys: Any, values: Any, schema: Schema) -> Any:
    """A column of maps without nulls.

    Args:
        offsets: where the entries of each map begin, and where the last ones end.
        keys, values: of all maps, one after the other.
        schema: of the maps.
    """
    assert schema.value_schema is not None
    kind: Any = pa.map_(
        pa.field("key", keys.type, nullable=False),
        pa.field("value", values.type, nullable=schema.value_schema.optional),
    )
    return _MapArray.from_arrays(offsets, keys, values, kind)


def has_key_twice(counts: NDArray[np.int64], keys: Any) -> bool:
    """Whether one of several maps has a key twice.

    Args:
        counts: entries of each map.
        keys: of all maps, one after the other; none is null.
    """
    if not len(counts) or np.max(counts) < 2:
        return False
    numbers = keys.dictionary_encode().indices.to_numpy().astype(np.int64)
    of_map = np.repeat(np.arange(len(counts)), counts) * (np.max(numbers) + 1) + numbers
    return len(np.unique(of_map)) < len(of_map)


def entries_of(column: Any) -> tuple[Any, Any, Any]:
    """Offsets from 0, keys and values of a column of maps; null maps have no entries."""
    if column.null_count:
        # Without entries that belong to none of them.
        column = column.take(pa.array(np.arange(len(column))))
    start, stop = column.offsets[0].as_py(), column.offsets[-1].as_py()
    return pc.subtract(column.offsets, start), column.keys[start:stop], column.items[start:stop]
