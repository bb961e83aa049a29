"""Records of Connect, with schemas and values, as frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.api.converter import SchemaAndValue
from airflow_connect.api.record import ConnectRecord, Header, SinkRecord, SourceRecord
from airflow_connect.errors import DataError
from airflow_connect.jvm.data.values import to_tree

if TYPE_CHECKING:
    from airflow_connect.jvm.data.tables import DataReader, DataWriter
    from airflow_connect.jvm.frames import EncodedFrame, Frame

_NONE = -1
_LIBRDKAFKA = 1
"""librdkafka's codes of timestamp types begin at 0, Kafka's at -1."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a stage may change of a record.

    Attributes:
        partition: None: not chosen.
        timestamp: milliseconds, or None.
    """

    topic: str
    partition: int | None
    timestamp: int | None
    key: SchemaAndValue
    value: SchemaAndValue
    headers: tuple[Header, ...]


def sink_frame(records: Sequence[SinkRecord], writer: DataWriter) -> EncodedFrame:
    """The frame of records of a sink that have one kind of timestamp, with the schemas that the host does not know.

    Raises:
        DataError: a value that has no form in Java, or does not fit its schema.
    """
    import pyarrow as pa

    topics = list(dict.fromkeys(name for record in records for name in (record.original_topic, record.topic)))
    numbers = {topic: number for number, topic in enumerate(topics)}
    moved = any(
        record.topic != record.original_topic or record.partition != record.original_partition for record in records
    )
    frame = _frame(
        records,
        writer,
        topics=topics,
        topic=pa.array([numbers[record.original_topic] for record in records], pa.int32()),
        partition=pa.array([record.original_partition for record in records], pa.int32()),
        offset=pa.array([record.offset for record in records], pa.int64()),
        timestamp_type=records[0].timestamp_type - _LIBRDKAFKA,
        current_topic=pa.array([numbers[record.topic] for record in records], pa.int32()) if moved else None,
        current_partition=pa.array([record.partition for record in records], pa.int32()) if moved else None,
    )
    return _encoded(frame, writer)


def source_frame(records: Sequence[SourceRecord], writer: DataWriter) -> EncodedFrame:
    """The frame of records of a source; `sink_frame` tells the rest.

    Raises:
        DataError: see `sink_frame`.
    """
    import pyarrow as pa

    topics = list(dict.fromkeys(record.topic for record in records))
    numbers = {topic: number for number, topic in enumerate(topics)}
    frame = _frame(
        records,
        writer,
        topics=topics,
        topic=pa.array([numbers[record.topic] for record in records], pa.int32()),
        partition=pa.array([_NONE if r.partition is None else r.partition for r in records], pa.int32()),
        offset=None,
    )
    encoded = _encoded(frame, writer)
    encoded.members["positions"] = [[dict(r.source_partition), dict(r.source_offset)] for r in records]
    return encoded


def messages_frame(topic: str, messages: Sequence[bytes | None], name: str | None = None) -> EncodedFrame:
    """The frame of messages for a converter. `name`: of the header whose value each of them is; it is the key then."""
    import pyarrow as pa

    from airflow_connect.jvm.frames import Frame, encode

    rows = len(messages)
    frame = Frame(
        topics=[topic],
        topic=pa.array([0] * rows, pa.int32()),
        partition=pa.array([_NONE] * rows, pa.int32()),
        offset=None,
        timestamp=pa.array([_NONE] * rows, pa.int64()),
        keys=pa.array([None if name is None else _name_bytes(name)] * rows, pa.binary()),
        values=pa.array(messages, pa.binary()),
    )
    return encode(frame)


class FrameContents:
    """What the host's records hold; the reader knows their schemas."""

    def __init__(self, frame: Frame, reader: DataReader) -> None:
        """Nothing is read yet."""
        self._topics = frame.topics
        self._columns: list[list[Any]] = [
            column.to_pylist() for column in (frame.topic, frame.partition, frame.timestamp, frame.keys, frame.values)
        ]
        self._headers: list[Any] | None = None if frame.headers is None else frame.headers.to_pylist()
        self._reader = reader

    def __len__(self) -> int:
        """How many records."""
        return len(self._columns[0])

    def __getitem__(self, row: int) -> Content:
        """One record.

        Raises:
            DataError: Python cannot hold one of its values.
        """
        if row >= len(self):
            raise IndexError(row)
        topic, partition, stamp, key, value = (column[row] for column in self._columns)
        read = self._reader.read
        pairs = () if self._headers is None else self._headers[row]
        return Content(
            self._topics[topic],
            None if partition == _NONE else partition,
            None if stamp == _NONE else stamp,
            read(key),
            read(value),
            tuple(Header(_name(pair["key"]), *read(pair["value"])) for pair in pairs),
        )


def contents(frame: Frame, reader: DataReader) -> Iterator[Content]:
    """All of them, one after the other; see `FrameContents`."""
    found = FrameContents(frame, reader)
    return (found[row] for row in range(len(found)))


def cannot_cross(record: ConnectRecord) -> DataError | None:
    """Why a record has no form in Java, or None: it has one."""
    try:
        to_tree(record.key_schema, record.key)
        to_tree(record.value_schema, record.value)
        for header in record.headers:
            to_tree(header.schema, header.value)
    except DataError as error:
        return error
    return None


def _frame(records: Sequence[ConnectRecord], writer: DataWriter, **members: Any) -> Frame:
    import pyarrow as pa

    from airflow_connect.jvm.frames import Frame

    write = writer.write
    pairs = [
        [{"key": _name_bytes(h.key), "value": write(h.schema, h.value)} for h in record.headers] for record in records
    ]
    header: Any = pa.struct([("key", pa.binary()), ("value", pa.binary())])
    return Frame(
        timestamp=pa.array([_NONE if r.timestamp is None else r.timestamp for r in records], pa.int64()),
        keys=pa.array([write(r.key_schema, r.key) for r in records], pa.binary()),
        values=pa.array([write(r.value_schema, r.value) for r in records], pa.binary()),
        headers=pa.array(pairs, pa.list_(header)) if any(pairs) else None,
        **members,
    )


def _encoded(frame: Frame, writer: DataWriter) -> EncodedFrame:
    from airflow_connect.jvm.frames import encode

    encoded = encode(frame)
    encoded.members["schemas"] = writer.take_fresh()
    return encoded


def _name_bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _name(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
