"""What a task of a source sends to Kafka: records, or many of them in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa


class ProducedRecord(NamedTuple):
    """A record for a topic, in bytes.

    Attributes:
        partition: None: determined by the key as in Java (murmur2); without a key any.
        timestamp: milliseconds since the epoch; None: now.
    """

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int | None = None


class ProducedColumns(NamedTuple):
    """Many records for a topic.

    Attributes:
        keys, values: text or bytes, of equal length; `keys` None: no keys.
        partition: of all of them; None: as in `ProducedRecord`.
        timestamps: int64, milliseconds since the epoch, without nulls; None: now.
        headers: lists of structs of the binary fields `key` and `value`; None: no record has any.
    """

    topic: str
    keys: pa.Array[Any] | None
    values: pa.Array[Any]
    partition: int | None = None
    timestamps: pa.Array[Any] | None = None
    headers: pa.ListArray[Any] | None = None

    def slice(self, start: int, length: int) -> ProducedColumns:
        """Some of the records."""
        keys = None if self.keys is None else self.keys.slice(start, length)
        stamps = None if self.timestamps is None else self.timestamps.slice(start, length)
        headers: Any = None if self.headers is None else self.headers.slice(start, length)
        values = self.values.slice(start, length)
        return self._replace(keys=keys, values=values, timestamps=stamps, headers=headers)


def value_bytes(values: pa.Array[Any]) -> int:
    """Bytes of the values only."""
    import pyarrow.compute as pc

    lengths: Any = pc.binary_length(values)  # type: ignore[call-overload]
    return int(pc.sum(lengths).as_py() or 0)


def header_bytes(headers: pa.ListArray[Any]) -> int:
    """Bytes of names and values."""
    parts: Any = headers.flatten()
    return sum(value_bytes(part) for part in parts.flatten())


def header_pairs(headers: Sequence[Mapping[str, Any]]) -> list[tuple[str, bytes | None]]:
    """Headers of a record, as the Python client takes them."""
    return [(one["key"].decode(), one["value"]) for one in headers]
