"""Frames: batches of records as they cross between this process and the plugin host, and as Arrow arrays.

A frame is the body of a message: 16 buffers, or 18 if the records of a sink have moved, each at a multiple of 8. They
are Arrow's own buffers, so nothing is copied or parsed here. `helper/src/org/airflowconnect/host/FrameWriter.java` and
`FrameReader.java` are the other side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.errors import InternalError
from airflow_connect.jvm.wire import Buffer, Reply

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

BUFFERS = 16
_ALIGNMENT = 8
_MAX_BYTES = (1 << 31) - 1


@dataclass(frozen=True)
class Frame:
    """Records in columns, all of the same length. The bytes are those of Kafka messages.

    Attributes:
        topics: names of topics.
        topic: int32: for each record the index into `topics`.
        partition: int32; -1: not chosen.
        offset: int64, or None: records of a source have none.
        timestamp: int64, milliseconds; -1: none.
        keys: binary.
        values: binary; null is a tombstone.
        headers: list<struct<key: binary, value: binary>>, or None if no record has one.
        timestamp_type: Kafka's code: 0 is the time of creation, 1 that of the broker's append, -1 none.
        current_topic, current_partition: where transformations have moved the records of a sink, as `topic` and
            `partition`; None: they have not.
    """

    topics: Sequence[str]
    topic: pa.Array[Any]
    partition: pa.Array[Any]
    offset: pa.Array[Any] | None
    timestamp: pa.Array[Any]
    keys: pa.Array[Any]
    values: pa.Array[Any]
    headers: pa.Array[Any] | None = None
    timestamp_type: int = 0
    current_topic: pa.Array[Any] | None = None
    current_partition: pa.Array[Any] | None = None

    def __len__(self) -> int:
        """How many records."""
        return len(self.topic)


@dataclass(frozen=True)
class EncodedFrame:
    """A frame for `PluginHost.call`: `call("put", frame.body, **frame.members)`."""

    members: dict[str, Any]
    body: list[Buffer]


def encode(frame: Frame) -> EncodedFrame:
    """Return the buffers of a frame. Only the offsets of sliced arrays are copied.

    Raises:
        InternalError: more than 2 GiB.
    """
    import numpy as np

    buffers: list[Buffer] = [
        _numbers(frame.topic, np.int32),
        _numbers(frame.partition, np.int32),
        b"" if frame.offset is None else _numbers(frame.offset, np.int64),
        _numbers(frame.timestamp, np.int64),
        *_binary(frame.keys),
        *_binary(frame.values),
        *_headers(frame.headers),
    ]
    if frame.current_topic is not None and frame.current_partition is not None:
        buffers += [_numbers(frame.current_topic, np.int32), _numbers(frame.current_partition, np.int32)]
    lengths = [memoryview(buffer).nbytes for buffer in buffers]
    if sum(lengths) > _MAX_BYTES:
        raise InternalError(f"A frame of {len(frame)} records has {sum(lengths)} bytes; the limit is 2 GiB.")
    body: list[Buffer] = []
    for buffer, length in zip(buffers, lengths, strict=True):
        if length:
            body += [buffer, bytes(-length % _ALIGNMENT)]
    members = {
        "rows": len(frame),
        "topics": list(frame.topics),
        "timestamp_type": frame.timestamp_type,
        "buffers": lengths,
    }
    return EncodedFrame(members, body)


def decode(reply: Reply) -> Frame:
    """Return the frame of a reply; its arrays share the memory of the reply's body."""
    import pyarrow as pa

    rows = reply.result["rows"]
    pieces = _pieces(reply)
    list_offsets = pieces[10]
    headers = None
    if list_offsets is not None:
        names = _binary_array([None, *pieces[11:13]], None)
        pairs = pa.StructArray.from_arrays([names, _binary_array(pieces[13:16], None)], ["key", "value"])
        headers = pa.Array.from_buffers(pa.list_(pairs.type), rows, [None, list_offsets], children=[pairs])
    return Frame(
        topics=reply.result["topics"],
        topic=pa.Array.from_buffers(pa.int32(), rows, [None, pieces[0] or _empty()]),
        partition=pa.Array.from_buffers(pa.int32(), rows, [None, pieces[1] or _empty()]),
        offset=pa.Array.from_buffers(pa.int64(), rows, [None, pieces[2]]) if pieces[2] else None,
        timestamp=pa.Array.from_buffers(pa.int64(), rows, [None, pieces[3] or _empty()]),
        keys=_binary_array(pieces[4:7], rows),
        values=_binary_array(pieces[7:10], rows),
        headers=headers,
        timestamp_type=reply.result.get("timestamp_type", 0),
    )


def _empty() -> pa.Buffer:
    import pyarrow as pa

    return pa.py_buffer(b"")


def _pieces(reply: Reply) -> list[pa.Buffer | None]:
    """The buffers of a body, None for an empty one."""
    import pyarrow as pa

    lengths: list[int] = reply.result["buffers"]
    body = reply.body if reply.body is not None else memoryview(b"")
    pieces: list[pa.Buffer | None] = []
    position = 0
    for length in lengths:
        pieces.append(pa.py_buffer(body[position : position + length]) if length else None)
        position += length + -length % _ALIGNMENT
    if len(lengths) != BUFFERS or position != len(body):
        raise InternalError(f"The plugin host sent a frame of {len(body)} bytes for {len(lengths)} buffers: {lengths}.")
    return pieces


def _binary_array(pieces: Sequence[pa.Buffer | None], rows: int | None) -> pa.Array[Any]:
    """An array of validity, offsets and data; `rows` None: as many as there are offsets. No offsets: all null."""
    import pyarrow as pa

    validity, offsets, data = pieces
    if offsets is None:
        return pa.nulls(rows or 0, pa.binary())
    length = offsets.size // 4 - 1 if rows is None else rows
    return pa.Array.from_buffers(pa.binary(), length, [validity, offsets, data or _empty()])


def _numbers(array: pa.Array[Any], kind: type[np.generic]) -> Buffer:
    import numpy as np

    return _view(np.ascontiguousarray(array.to_numpy(zero_copy_only=False), dtype=kind))


def _view(array: Any) -> Buffer:
    """The bytes of a numpy array."""
    return memoryview(array).cast("B")


def _binary(array: pa.Array[Any]) -> list[Buffer]:
    """Validity, offsets and data of an array of bytes or text, without what a slice leaves out."""
    import numpy as np
    import pyarrow as pa

    if array.null_count == len(array):
        return [b"", b"", b""]
    if array.type not in (pa.binary(), pa.string()):
        array = array.cast(pa.binary())
    buffers: list[Any] = array.buffers()
    validity, offsets, data = buffers
    first, rows = array.offset, len(array)
    ends = np.frombuffer(offsets, np.int32, rows + 1, first * 4)
    used = memoryview(data)[ends[0] : ends[-1]] if data is not None else memoryview(b"")
    if ends[0]:
        ends = ends - ends[0]
    return [_bits(validity, first, rows) if array.null_count else b"", _view(ends), used]


def _bits(validity: Any, first: int, rows: int) -> Buffer:
    """The validity bits of a slice, from its first bit on."""
    import numpy as np

    packed = np.frombuffer(validity, np.uint8)[first // 8 : (first + rows + 7) // 8]
    if first % 8:
        bits = np.unpackbits(packed, bitorder="little")[first % 8 : first % 8 + rows]
        packed = np.packbits(bits, bitorder="little")
    return _view(np.ascontiguousarray(packed))


def _headers(headers: Any) -> list[Buffer]:
    """List offsets; offsets and data of names; validity, offsets and data of values."""
    import numpy as np

    if headers is None:
        return [b""] * 6
    ends = headers.offsets.to_numpy()
    pairs = headers.values.slice(int(ends[0]), int(ends[-1] - ends[0]))
    if not len(pairs):
        return [b""] * 6
    names, values = pairs.field(0), pairs.field(1)
    _validity, name_offsets, name_data = _binary(names)
    validity, value_offsets, value_data = _binary(values)
    if values.null_count == len(values):  # m is read from the offsets, so they are there
        validity, value_offsets = bytes((len(values) + 7) // 8), bytes(4 * (len(values) + 1))
    lists = _view(np.ascontiguousarray(ends - ends[0], dtype=np.int32))
    return [lists, name_offsets, name_data, validity, value_offsets, value_data]
