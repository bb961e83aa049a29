"""Lines of a batch in columns: text and null values, which are what StringConverter gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_connect.api.schema import Type

if TYPE_CHECKING:
    from airflow_connect.api.columns import ValueColumns

_join: Any = pc.binary_join_element_wise
_LARGEST_BYTES = 1 << 30
"""The offsets of Arrow's text have 32 bits: with "null" and line feeds, lines of more bytes may not fit."""


def column_lines(value: ValueColumns) -> memoryview | None:
    """The lines of all values, each with its line feed; None if one may be anything but text or null."""
    schema, texts = value.schema, value.values
    if schema is None or schema.type is not Type.STRING or not pa.types.is_string(texts.type):
        return None
    if texts.null_count and schema.default is not None:
        return None  # The reference form decides whether such a value is null or the default.
    if texts.nbytes > _LARGEST_BYTES:
        return None
    joined = _join(texts, "", "\n", null_handling="replace", null_replacement="null")
    ends = np.frombuffer(joined.buffers()[1], np.int32)[joined.offset : joined.offset + len(joined) + 1]
    return memoryview(joined.buffers()[2])[int(ends[0]) : int(ends[-1])]
