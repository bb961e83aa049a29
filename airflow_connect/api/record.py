"""Records: one by one (the reference path) and in columns (the fast path)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema

TIMESTAMP_NOT_AVAILABLE, TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME = 0, 1, 2


class Header(NamedTuple):
    """A record header after conversion."""

    key: str
    schema: Schema | None
    value: Any


@dataclass(slots=True)
class KafkaRecord:
    """A consumed message before conversion: raw bytes and coordinates.

    Attributes:
        timestamp: milliseconds since the epoch, or None when the message carries none.
        timestamp_type: one of the TIMESTAMP_* constants (librdkafka's numbers).
        headers: raw header pairs in order.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int | None = None
    timestamp_type: int = TIMESTAMP_CREATE_TIME
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def where(self) -> str:
        """`topic-partition@offset`, for messages."""
        return f"{self.topic}-{self.partition}@{self.offset}"


@dataclass(slots=True)
class SinkRecord:
    """A converted record on its way to a sink.

    `original_topic`, `original_partition` and `offset` are Kafka's coordinates and the key of all book-keeping, even
    when a transformation renames the topic (KIP-793).
    """

    topic: str
    partition: int
    key_schema: Schema | None
    key: Any
    value_schema: Schema | None
    value: Any
    offset: int
    timestamp: int | None = None
    timestamp_type: int = TIMESTAMP_CREATE_TIME
    headers: tuple[Header, ...] = ()
    original_topic: str = ""
    original_partition: int = -1

    def __post_init__(self) -> None:
        """Untransformed records are their own originals."""
        if not self.original_topic:
            self.original_topic = self.topic
        if self.original_partition < 0:
            self.original_partition = self.partition

    @property
    def where(self) -> str:
        """`topic-partition@offset` in Kafka's own coordinates, for messages."""
        return f"{self.original_topic}-{self.original_partition}@{self.offset}"
