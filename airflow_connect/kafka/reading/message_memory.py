"""librdkafka's messages as columns, read in place, without copying.

`rd_kafka_message_t` is part of librdkafka's public interface (rdkafka.h): eight-byte words err, rkt, partition,
payload, len, key, key_len, offset. The timestamp and its type follow in a private part, the same in all 2.x releases;
they are compared with the result of the public function for the first and the last record of every fetch. If the
results differ, the function is called for each record. The same holds for the encoded headers, which stand a little
later; the versions for which that is so are listed. Events (the end of a partition, errors) have no timestamp and
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
from airflow_connect.kafka.reading.foreign_memory import copied_values, words_at
from airflow_connect.kafka.reading.message_headers import (
    BrokenHeadersError,
    as_client_tells,
    headers_array,
    headers_of,
    name_text,
    parse_headers,
)

if TYPE_CHECKING:
    from airflow_connect.kafka.clients.librdkafka import Librdkafka

LARGEST_BYTES = 256 << 20
"""Bytes of a batch: an Arrow column of bytes ends at 2 GB."""
_ERR, _TOPIC, _PARTITION, _PAYLOAD, _LEN, _KEY, _KEY_LEN, _OFFSET = range(8)
_TYPE, _TIMESTAMP = 11, 12
_HEADERS_SIZE, _HEADERS = 15, 16
_WORDS = 17
_EMPTY_HEADERS = 1
"""Largest size, in bytes, of the encoded headers of a record that has none."""


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
        self._raw_headers = words[_HEADERS], words[_HEADERS_SIZE].astype(np.int32).astype(np.int64)
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
        tp, kind = self._place(start), int(self._kinds[start])
        offsets, stamps = self._fields[_OFFSET][start:stop], self._stamps[start:stop]
        keys = copied_values(self._fields[_KEY][start:stop], self._fields[_KEY_LEN][start:stop])
        values = copied_values(self._fields[_PAYLOAD][start:stop], self._fields[_LEN][start:stop])
        if self._have_no_headers(start, stop):
            # Nothing refers to the messages any more: they take three times the memory of their values.
            columns = (offsets, stamps, keys, values)

            def read(first: int, end: int) -> list[KafkaRecord]:
                return _records(tp, kind, columns, first, end)

            yield ColumnBatch(tp.topic, tp.partition, kind, *columns, read, lambda first, end: None, _no_header_bytes)
            return
        yield ColumnBatch(
            tp.topic,
            tp.partition,
            kind,
            offsets,
            stamps,
            keys,
            values,
            lambda first, end: [self._record(tp, n) for n in range(start + first, start + end)],
            lambda first, end: self._headers(start + first, start + end),
            lambda first, end: self._header_bytes(start + first, start + end),
        )

    def _have_no_headers(self, start: int, stop: int) -> bool:
        """Whether it is known of all these records; False: they have some, or each would have to be asked."""
        if not self._library.has_known_headers or (self._raw_headers[1][start:stop] > _EMPTY_HEADERS).any():
            return False
        return self._headers(start, stop) is None

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

    def _headers(self, start: int, stop: int) -> pa.ListArray[Any] | None:
        """Headers of records; None: there are none."""
        if not self._library.has_known_headers:
            return self._asked_headers(start, stop)
        data, sizes = (column[start:stop] for column in self._raw_headers)
        try:
            headers = parse_headers(data, sizes)
        except BrokenHeadersError:
            return self._asked_headers(start, stop)
        for number in {0, stop - start - 1}:
            found = () if headers is None else headers_of(headers, number)
            if as_client_tells(found) != self._library.headers(int(self._pointers[start + number])):
                return self._asked_headers(start, stop)
        return headers

    def _header_bytes(self, start: int, stop: int) -> Any:
        """See `ColumnBatch.header_bytes`: the headers as they are in the log, if they are where they should be."""
        if self._library.has_known_headers:
            found = copied_values(*(column[start:stop] for column in self._raw_headers))
            if all(self._holds_told(found[number].as_py(), start + number) for number in {0, stop - start - 1}):
                return found
        told = map(self._library.headers, self._pointers[start:stop].tolist())
        return pa.array([b"".join(value or b"" for _, value in headers) for headers in told], pa.binary())

    def _holds_told(self, encoded: bytes | None, index: int) -> bool:
        """Whether these bytes of a record have the values of the headers that the library tells."""
        return all((value or b"") in (encoded or b"") for _, value in self._library.headers(int(self._pointers[index])))

    def _asked_headers(self, start: int, stop: int) -> pa.ListArray[Any] | None:
        """The same by the public functions, for each record."""
        return headers_array([self._library.headers(one) for one in self._pointers[start:stop].tolist()])

    def _record(self, tp: TopicPartition, index: int) -> KafkaRecord:
        kind = int(self._kinds[index])
        headers = self._library.headers(int(self._pointers[index]))
        return KafkaRecord(
            topic=tp.topic,
            partition=tp.partition,
            offset=int(self._fields[_OFFSET][index]),
            key=self._bytes(_KEY, _KEY_LEN, index),
            value=self._bytes(_PAYLOAD, _LEN, index),
            timestamp=int(self._stamps[index]) if kind else None,
            timestamp_type=kind,
            headers=tuple((name_text(name), value) for name, value in headers),
        )

    def _bytes(self, address: int, length: int, index: int) -> bytes | None:
        found = int(self._fields[address][index])
        return ctypes.string_at(found, int(self._fields[length][index])) if found else None


def _no_header_bytes(start: int, stop: int) -> Any:
    """See `ColumnBatch.header_bytes`: of records without headers."""
    return pa.nulls(stop - start, pa.binary())


def _records(
    tp: TopicPartition,
    kind: int,
    columns: tuple[NDArray[np.int64], NDArray[np.int64], Any, Any],
    first: int,
    end: int,
) -> list[KafkaRecord]:
    """The records `[first, end)` as objects; none has headers. `columns`: offsets, timestamps, keys, values."""
    offsets, stamps, keys, values = columns
    rows = zip(
        offsets[first:end].tolist(),
        stamps[first:end].tolist(),
        keys.slice(first, end - first).to_pylist(),
        values.slice(first, end - first).to_pylist(),
        strict=True,
    )
    return [
        KafkaRecord(
            topic=tp.topic,
            partition=tp.partition,
            offset=offset,
            key=key,
            value=value,
            timestamp=stamp if kind else None,
            timestamp_type=kind,
            headers=(),
        )
        for offset, stamp, key, value in rows
    ]
