"""librdkafka's messages as columns, read in place, without copying.

`rd_kafka_message_t` is part of librdkafka's public interface (rdkafka.h): eight-byte words err, rkt, partition,
payload, len, key, key_len, offset. The timestamp and its type follow in a private part, the same in all 2.x releases;
they are compared with the result of the public function for the first and the last record of every fetch. If the
results differ, the function is called for each record. Events (the end of a partition, errors) have no timestamp and
prove nothing.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.record import KafkaRecord
from airflow_connect.kafka.reading.column_batch import ColumnBatch

if TYPE_CHECKING:
    from airflow_connect.kafka.clients.librdkafka import Librdkafka

LARGEST_BYTES = 256 << 20
"""Bytes of a batch: an Arrow column of bytes ends at 2 GB."""
_ERR, _TOPIC, _PARTITION, _PAYLOAD, _LEN, _KEY, _KEY_LEN, _OFFSET = range(8)
_TYPE, _TIMESTAMP = 11, 12
_WORDS = 13
_VIEW_INLINE = 12
"""Arrow keeps values of up to 12 bytes inside the view."""
_BUFFER_BITS = 30
"""Arrow's views reach 2 GB: one foreign buffer for each GB of addresses."""

_READ_ONLY = 0x100  # PyBUF_READ
_memory_view = ctypes.pythonapi.PyMemoryView_FromMemory
_memory_view.restype = ctypes.py_object
_memory_view.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int]


class Event(NamedTuple):
    """The end of a partition, or an error."""

    topic_partition: TopicPartition
    code: int
    offset: int


class Messages:
    """Messages of one fetch; they are returned when they are no longer referenced."""

    def __init__(
        self,
        library: Librdkafka,
        pointers: NDArray[np.int64],
        give_back: Callable[[NDArray[np.int64]], None],
    ) -> None:
        """`give_back` takes the pointers; it may be called by any thread, at any moment, and must not wait."""
        # Set first: `__del__` needs it, whatever fails below.
        self._pointers, self._give_back = pointers, give_back
        self._library = library
        words = words_at(pointers, _WORDS)
        self._fields = dict(enumerate(words[:8]))
        self._fields[_ERR] = words[_ERR].astype(np.int32).astype(np.int64)
        self._fields[_PARTITION] = words[_PARTITION].astype(np.int32).astype(np.int64)
        self._stamps, self._kinds = self._timestamps(words[_TIMESTAMP], words[_TYPE] >> 32)

    def __del__(self) -> None:
        """Return the messages to the fetch, which destroys them: nothing here may wait or take a lock."""
        self._give_back(self._pointers)

    def parts(self) -> Iterator[ColumnBatch | Event]:
        """The fetched messages, in order: runs of records of one partition, and events between them."""
        keys = [self._fields[_ERR], self._fields[_TOPIC], self._fields[_PARTITION], self._kinds]
        changes = np.zeros(len(self._pointers), dtype=bool)
        for key in keys:
            changes[1:] |= key[1:] != key[:-1]
        bounds = [0, *np.flatnonzero(changes).tolist(), len(self._pointers)]
        for start, stop in pairwise(bounds):
            code = int(self._fields[_ERR][start])
            if code:
                yield from (Event(self._place(n), code, int(self._fields[_OFFSET][n])) for n in range(start, stop))
            else:
                yield from self._batches(start, stop)

    def _batches(self, start: int, stop: int) -> Iterator[ColumnBatch]:
        size = int(self._fields[_LEN][start:stop].sum() + self._fields[_KEY_LEN][start:stop].sum())
        if size > LARGEST_BYTES and stop - start > 1:
            middle = (start + stop) // 2
            yield from self._batches(start, middle)
            yield from self._batches(middle, stop)
            return
        tp = self._place(start)
        yield ColumnBatch(
            tp.topic,
            tp.partition,
            int(self._kinds[start]),
            self._fields[_OFFSET][start:stop],
            self._stamps[start:stop],
            _copied(self._fields[_KEY][start:stop], self._fields[_KEY_LEN][start:stop]),
            _copied(self._fields[_PAYLOAD][start:stop], self._fields[_LEN][start:stop]),
            lambda first, end: [self._record(tp, n) for n in range(start + first, start + end)],
            lambda first, end: self._library.have_headers(self._pointers[start + first : start + end].tolist()),
        )

    def _place(self, index: int) -> TopicPartition:
        topic = int(self._fields[_TOPIC][index])
        name = self._library.topic_name(topic) if topic else ""
        return TopicPartition(name, int(self._fields[_PARTITION][index]))

    def _timestamps(
        self, stamps: NDArray[np.int64], kinds: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        (records,) = np.nonzero(self._fields[_ERR] == 0)
        if not len(records):
            return np.zeros_like(stamps), np.zeros_like(kinds)
        ends = {int(records[0]), int(records[-1])}
        if all((int(stamps[n]), int(kinds[n])) == self._library.timestamp(int(self._pointers[n])) for n in ends):
            return stamps, kinds
        asked = np.zeros((len(self._pointers), 2), dtype=np.int64)
        asked[records] = [self._library.timestamp(pointer) for pointer in self._pointers[records].tolist()]
        return asked[:, 0], asked[:, 1]

    def _record(self, tp: TopicPartition, index: int) -> KafkaRecord:
        kind = int(self._kinds[index])
        return KafkaRecord(
            topic=tp.topic,
            partition=tp.partition,
            offset=int(self._fields[_OFFSET][index]),
            key=self._bytes(_KEY, _KEY_LEN, index),
            value=self._bytes(_PAYLOAD, _LEN, index),
            timestamp=int(self._stamps[index]) if kind else None,
            timestamp_type=kind,
            headers=self._library.headers(int(self._pointers[index])),
        )

    def _bytes(self, address: int, length: int, index: int) -> bytes | None:
        found = int(self._fields[address][index])
        return ctypes.string_at(found, int(self._fields[length][index])) if found else None


def words_at(pointers: NDArray[np.int64], count: int) -> list[NDArray[np.int64]]:
    """The first `count` eight-byte words at each pointer: one array for each word."""
    base = int(np.min(pointers))
    words = (int(np.max(pointers)) - base) // 8 + count
    memory = np.frombuffer(_memory(base, words * 8), np.int64)
    places = (pointers - base) >> 3
    return [memory[places + word] for word in range(count)]


def _memory(address: int, size: int) -> memoryview:
    """A view of memory; addresses between those that are read may not even be mapped."""
    view: memoryview = _memory_view(address, size, _READ_ONLY)
    return view


def _copied(addresses: NDArray[np.int64], lengths: NDArray[np.int64]) -> Any:
    """The bytes at `addresses` as a binary column; null where the address is 0."""
    count = len(addresses)
    present = addresses != 0
    if not present.any():
        return pa.nulls(count, pa.binary())
    views = np.zeros((count, 4), dtype=np.int32)
    views[:, 0] = np.where(present, lengths, 0)
    buffers = _long_views(views, addresses)
    _short_views(views, addresses)
    words: Any = views
    validity: Any = None if present.all() else np.packbits(present, bitorder="little")
    first = [None if validity is None else pa.py_buffer(validity), pa.py_buffer(words)]
    return pa.Array.from_buffers(pa.binary_view(), count, [*first, *buffers]).cast(pa.binary())


def _long_views(views: NDArray[np.int32], addresses: NDArray[np.int64]) -> list[pa.Buffer]:
    """Fill the views of values that are not copied; returns the memory that they point into."""
    (long,) = np.nonzero(views[:, 0] > _VIEW_INLINE)
    buffers: list[pa.Buffer] = []
    regions = addresses[long] >> _BUFFER_BITS
    for number, region in enumerate(np.unique(regions).tolist()):
        chosen = long[regions == region]
        low = int(addresses[chosen].min())
        high = int((addresses[chosen] + views[chosen, 0]).max())
        views[chosen, 2] = number
        views[chosen, 3] = addresses[chosen] - low
        buffers.append(pa.foreign_buffer(low, high - low))
    return buffers


def _short_views(views: NDArray[np.int32], addresses: NDArray[np.int64]) -> None:
    """Copy values of up to 12 bytes into their views."""
    (short,) = np.nonzero((views[:, 0] > 0) & (views[:, 0] <= _VIEW_INLINE))
    if not len(short):
        return
    base = int(np.min(addresses[short]))
    size = int(np.max(addresses[short])) - base + _VIEW_INLINE
    memory = np.frombuffer(_memory(base, size), np.uint8)
    lengths = views[short, 0][:, np.newaxis]
    columns = np.arange(_VIEW_INLINE)[np.newaxis, :]
    # Bytes after the end of a value may be outside of mapped memory: its last byte is read instead.
    found = memory[(addresses[short] - base)[:, np.newaxis] + np.minimum(columns, lengths - 1)]
    found[columns >= lengths] = 0
    views.view(np.uint8).reshape(len(views), 16)[short, 4:] = found
