"""Which ids of schemas the records of a backup contain: the first bytes of keys and values, as serializers write them.

Source: Confluent's wire format: a zero byte, then the id of the schema in four bytes, big endian. Serializers that put
the schema's GUID into a header instead write no id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

MOST_IDS = 1_000
"""Of one topic-partition, for keys and for values. Other data may begin with a zero byte: numbers of eight bytes do."""
KEY, VALUE = "key", "value"
_PREFIX_BYTES = 5


class SchemaIds:
    """The ids in the keys and in the values of one topic-partition."""

    def __init__(self) -> None:
        """None yet."""
        self._found: dict[str, set[int]] = {KEY: set(), VALUE: set()}

    def add(self, record: Mapping[str, Any]) -> None:
        """Look at one whole record."""
        for part, ids in self._found.items():
            data = record[part]
            if data is not None and len(data) >= _PREFIX_BYTES and data[0] == 0 and len(ids) <= MOST_IDS:
                ids.add(int.from_bytes(data[1:_PREFIX_BYTES], "big"))

    def add_columns(self, values: Any) -> None:
        """Look at an array of structs."""
        for part, ids in self._found.items():
            if len(ids) <= MOST_IDS:
                ids.update(_ids(values.field(part)))

    def to_json(self) -> dict[str, Any]:
        """Sorted ids by part; a part without any is left out, one with too many has none and is null."""
        return {
            part: sorted(ids) if len(ids) <= MOST_IDS else None for part, ids in self._found.items() if ids
        }  # fmt: skip


def joined(found: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The sum of several results of `SchemaIds.to_json`."""
    ids: dict[str, set[int] | None] = {}
    for one in found:
        for part, more in one.items():
            known = ids.get(part, set())
            both = None if known is None or more is None else known | set(more)
            ids[part] = None if both is None or len(both) > MOST_IDS else both
    return {part: None if found is None else sorted(found) for part, found in sorted(ids.items())}


def _ids(column: pa.Array[Any]) -> Iterable[int]:
    """The distinct ids of a column of bytes."""
    import numpy as np
    import pyarrow as pa

    kind = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    _, offsets_buffer, data_buffer = column.buffers()
    if offsets_buffer is None or data_buffer is None or not len(column):
        return ()
    offsets: Any = np.frombuffer(memoryview(offsets_buffer), dtype=kind)[
        column.offset : column.offset + len(column) + 1
    ]
    data: Any = np.frombuffer(memoryview(data_buffer), dtype=np.uint8)
    starts = offsets[:-1][np.diff(offsets) >= _PREFIX_BYTES]
    starts = starts[data[starts] == 0]
    found = np.zeros(len(starts), dtype=np.int64)
    for place in range(1, _PREFIX_BYTES):
        found = (found << 8) | data[starts + place]
    ids: list[int] = np.unique(found).tolist()
    return ids
