"""What a task of a source sends to Kafka: records, or many of them in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa


class ProducedRecord(NamedTuple):
    """A record for a topic, in bytes.

    Attributes:
        headers: names as `name_of` makes them.
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


def name_of(name: bytes) -> str:
    """The name of a header as text; what is not UTF-8 becomes lone surrogates, of which `name_bytes` makes it again."""
    return name.decode("utf-8", "surrogateescape")


def name_bytes(name: str) -> bytes:
    """The opposite of `name_of`."""
    return name.encode("utf-8", "surrogateescape")


def odd_name(headers: Sequence[tuple[str, bytes | None]]) -> str | None:
    """The first name that is not UTF-8, which Kafka's Python client cannot write; None: it can write all of them."""
    return next((name for name, _ in headers if not name.isascii() and any(map(_is_surrogate, name))), None)


def first_odd_name(headers: pa.ListArray[Any]) -> str | None:
    """As `odd_name`, for a column of headers."""
    import pyarrow as pa

    parts: Any = headers.flatten()
    names = parts.flatten()[0]
    try:
        names.cast(pa.string())
    except pa.ArrowInvalid:
        return odd_name([(name_of(name), None) for name in names.to_pylist()])
    return None


def _is_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


def columns_of(record: ProducedRecord) -> ProducedColumns:
    """One record in columns."""
    import pyarrow as pa

    keys: Any = None if record.key is None else pa.array([record.key], pa.binary())
    stamps: Any = None if record.timestamp is None else pa.array([record.timestamp], pa.int64())
    values: Any = pa.array([record.value], pa.binary())
    kind = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
    pairs = [{"key": name_bytes(name), "value": value} for name, value in record.headers]
    headers: Any = pa.array([pairs], kind)
    return ProducedColumns(record.topic, keys, values, record.partition, stamps, headers)


def header_pairs(headers: Sequence[Mapping[str, Any]]) -> list[tuple[str, bytes | None]]:
    """Headers of a record, as the Python client takes them."""
    return [(name_of(one["key"]), one["value"]) for one in headers]
