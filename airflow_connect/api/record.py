"""Single records: as read from Kafka, and converted on their way through a connector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

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
        timestamp: milliseconds since the epoch, or None if the message has none.
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


@dataclass(slots=True, kw_only=True)
class ConnectRecord:
    """The common base of converted source and sink records. Stages never modify a record: they create a changed copy.

    Attributes:
        topic: Kafka topic; a transformation may change it.
        partition: Kafka partition; None lets the producer choose (sources).
        key_schema, value_schema: None is schemaless.
        timestamp: milliseconds since the epoch, or None.
        headers: converted headers in order; a name may occur more than once.
    """

    topic: str
    partition: int | None = None
    key_schema: Schema | None = None
    key: Any = None
    value_schema: Schema | None = None
    value: Any = None
    timestamp: int | None = None
    headers: tuple[Header, ...] = ()

    def changed(self, **attributes: Any) -> Self:
        """A copy with other attributes."""
        return replace(self, **attributes)

    @property
    def where(self) -> str:
        """Where the record is from, for messages."""
        return f"{self.topic}-{self.partition}"


@dataclass(slots=True, kw_only=True)
class SinkRecord(ConnectRecord):
    """A converted record on its way to a sink.

    `original_topic`, `original_partition` and `offset` are Kafka's coordinates and identify the record in all
    bookkeeping, even if a transformation renames the topic (KIP-793).

    Attributes:
        timestamp_type: one of the TIMESTAMP_* constants.
        consumed: the message that the record was created from, for the dead letter queue; None if it was created in
            another way.
    """

    partition: int
    offset: int
    timestamp_type: int = TIMESTAMP_CREATE_TIME
    original_topic: str = ""
    original_partition: int = -1
    consumed: KafkaRecord | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """For untransformed records, the original coordinates are their own."""
        if not self.original_topic:
            self.original_topic = self.topic
        if self.original_partition < 0:
            self.original_partition = self.partition

    @property
    def where(self) -> str:
        """`topic-partition@offset` in Kafka's own coordinates, for messages."""
        return f"{self.original_topic}-{self.original_partition}@{self.offset}"


@dataclass(slots=True, kw_only=True)
class SourceRecord(ConnectRecord):
    """A record that a source task has read.

    Attributes:
        source_partition: where it comes from, e.g. `{"filename": "/var/log/syslog"}`.
        source_offset: position after it in that source partition, e.g. `{"position": 30}`; the next run starts from it
            once the record is committed.
    """

    source_partition: Mapping[str, Any]
    source_offset: Mapping[str, Any]

    @property
    def where(self) -> str:
        """Source partition and offset, for messages."""
        return f"{dict(self.source_partition)}@{dict(self.source_offset)}"
