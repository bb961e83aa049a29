"""Records of Connect, with schemas and values, as frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from airflow_connect.api.converter import SchemaAndValue
from airflow_connect.api.record import ConnectRecord, Header, SinkRecord, SourceRecord
from airflow_connect.errors import DataError

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema
    from airflow_connect.jvm.data.tables import DataReader, DataWriter
    from airflow_connect.jvm.frames import EncodedFrame, Frame

MOST_BYTES = 8 << 20
"""Of one frame; a single record may be larger."""
_NONE = -1
_LIBRDKAFKA = 1
"""librdkafka's codes of timestamp types begin at 0, Kafka's at -1."""
X = TypeVar("X")


class Packed(NamedTuple):
    """The bytes of a record. `headers`: names and values."""

    key: bytes | None
    value: bytes | None
    headers: list[dict[str, bytes | None]]

    @property
    def size(self) -> int:
        """Bytes."""
        size = len(self.key or b"") + len(self.value or b"")
        return size + sum(len(pair["key"] or b"") + len(pair["value"] or b"") for pair in self.headers)


class Data(NamedTuple):
    """A value on its way to a converter's bytes, or a header's. `name`: of the header."""

    topic: str
    schema: Schema | None
    value: Any
    name: str | None = None


class Text(NamedTuple):
    """Bytes for a converter. `name`: of the header whose value they are."""

    topic: str
    data: bytes | None
    name: str | None = None


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


def pack_first(
    items: Sequence[X], most: int, pack: Callable[[X], tuple[Any, int]]
) -> tuple[list[Any], DataError | None]:
    """The first items, as many as fit into a frame.

    Args:
        items: at least one.
        most: of them.
        pack: what goes into the frame for an item, and its size in bytes. It raises DataError if it cannot cross.

    Returns:
        What `pack` returned, and the error of the item after these, if that is why they are not more.
    """
    packed: list[Any] = []
    room = MOST_BYTES
    for item in items[:most]:
        try:
            one, size = pack(item)
        except DataError as error:
            return packed, error
        except UnicodeEncodeError as error:
            return packed, _no_text(error)
        if packed and size > room:
            break
        room -= size
        packed.append(one)
    return packed, None


def pack_record(record: ConnectRecord, writer: DataWriter) -> tuple[Packed, int]:
    """The bytes of a record, and how many they are.

    Raises:
        DataError: a value that has no form in Java, or does not fit its schema.
    """
    write = writer.write
    packed = Packed(
        write(record.key_schema, record.key),
        write(record.value_schema, record.value),
        [{"key": _name_bytes(h.key), "value": write(h.schema, h.value)} for h in record.headers],
    )
    return packed, packed.size


def require_utf_8(name: str) -> None:
    """Refuse the name of a header whose bytes are no UTF-8: Java reads other characters in their place.

    Raises:
        DataError: they are not.
    """
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"The name of a header, {name!r}, is no valid UTF-8, and would have another name behind a Java class.",
            suggestion="Drop or rename the header in a Python transformation before the Java class.",
        ) from error


def name_size(name: str | None) -> int:
    """Bytes of the name of a header.

    Raises:
        UnicodeEncodeError: it has half of a surrogate pair.
    """
    return 0 if name is None else len(_name_bytes(name))


def same_times(records: Sequence[Any]) -> Sequence[Any]:
    """The first records, which have one kind of timestamp: a frame has no more kinds."""
    if isinstance(records[0], SinkRecord):
        kind = records[0].timestamp_type
        for row, record in enumerate(records):
            if record.timestamp_type != kind:
                return records[:row]
    return records


def sink_frame(records: Sequence[SinkRecord], packed: Sequence[Packed], writer: DataWriter) -> EncodedFrame:
    """The frame of records of a sink that have one kind of timestamp, with the schemas that the host does not know."""
    import pyarrow as pa

    topics = list(dict.fromkeys(name for record in records for name in (record.original_topic, record.topic)))
    numbers = {topic: number for number, topic in enumerate(topics)}
    moved = any(
        record.topic != record.original_topic or record.partition != record.original_partition for record in records
    )
    frame = _frame(
        records,
        packed,
        topics=topics,
        topic=pa.array([numbers[record.original_topic] for record in records], pa.int32()),
        partition=pa.array([record.original_partition for record in records], pa.int32()),
        offset=pa.array([record.offset for record in records], pa.int64()),
        timestamp_type=records[0].timestamp_type - _LIBRDKAFKA,
        current_topic=pa.array([numbers[record.topic] for record in records], pa.int32()) if moved else None,
        current_partition=pa.array([record.partition for record in records], pa.int32()) if moved else None,
    )
    return _encoded(frame, writer)


def source_frame(records: Sequence[SourceRecord], packed: Sequence[Packed], writer: DataWriter) -> EncodedFrame:
    """The frame of records of a source."""
    import pyarrow as pa

    topics = list(dict.fromkeys(record.topic for record in records))
    numbers = {topic: number for number, topic in enumerate(topics)}
    frame = _frame(
        records,
        packed,
        topics=topics,
        topic=pa.array([numbers[record.topic] for record in records], pa.int32()),
        partition=pa.array([_NONE if r.partition is None else r.partition for r in records], pa.int32()),
        offset=None,
    )
    encoded = _encoded(frame, writer)
    encoded.members["positions"] = [[dict(r.source_partition), dict(r.source_offset)] for r in records]
    return encoded


def messages_frame(messages: Sequence[Text], writer: DataWriter) -> EncodedFrame:
    """The frame of messages for a converter; the name of a header is the key of its message."""
    import pyarrow as pa

    from airflow_connect.jvm.frames import Frame

    rows = len(messages)
    topics = list(dict.fromkeys(message.topic for message in messages))
    numbers = {topic: number for number, topic in enumerate(topics)}
    names = [None if message.name is None else _name_bytes(message.name) for message in messages]
    frame = Frame(
        topics=topics,
        topic=pa.array([numbers[message.topic] for message in messages], pa.int32()),
        partition=pa.array([_NONE] * rows, pa.int32()),
        offset=None,
        timestamp=pa.array([_NONE] * rows, pa.int64()),
        keys=pa.array(names, pa.binary()),
        values=pa.array([message.data for message in messages], pa.binary()),
    )
    return _encoded(frame, writer)


def contents(frame: Frame, reader: DataReader) -> Iterator[Content | DataError]:
    """What the host's records hold, one after the other; an error in the place of one that Python cannot hold."""
    headers = [()] * len(frame) if frame.headers is None else frame.headers.to_pylist()
    columns = (frame.topic, frame.partition, frame.timestamp, frame.keys, frame.values)
    for topic, partition, stamp, key, value, pairs in zip(
        *(column.to_pylist() for column in columns), headers, strict=True
    ):
        try:
            content = Content(
                frame.topics[topic],
                None if partition == _NONE else partition,
                None if stamp == _NONE else stamp,
                reader.read(key),
                reader.read(value),
                tuple(Header(_name(pair["key"]), *reader.read(pair["value"])) for pair in pairs or ()),
            )
        except DataError as error:
            yield error
        else:
            yield content


def _frame(records: Sequence[ConnectRecord], packed: Sequence[Packed], **members: Any) -> Frame:
    import pyarrow as pa

    from airflow_connect.jvm.frames import Frame

    pairs = [one.headers for one in packed]
    header: Any = pa.struct([("key", pa.binary()), ("value", pa.binary())])
    return Frame(
        timestamp=pa.array([_NONE if r.timestamp is None else r.timestamp for r in records], pa.int64()),
        keys=pa.array([one.key for one in packed], pa.binary()),
        values=pa.array([one.value for one in packed], pa.binary()),
        headers=pa.array(pairs, pa.list_(header)) if any(pairs) else None,
        **members,
    )


def _encoded(frame: Frame, writer: DataWriter) -> EncodedFrame:
    from airflow_connect.jvm.frames import encode

    encoded = encode(frame)
    encoded.members["schemas"] = writer.take_fresh()
    return encoded


def _no_text(error: UnicodeEncodeError) -> DataError:
    return DataError(
        f"A text has a half of a surrogate pair, which has no form in Java: {error}.",
        suggestion="Change it in a transformation before it gets there.",
    )


def _name_bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _name(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
