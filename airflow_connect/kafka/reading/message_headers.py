"""Headers of many records as an Arrow column: a list of structs for each record, in order, with duplicates.

The encoding is that of Kafka's record format 2 (DefaultRecord.java): the number of headers, and for each the length of
its name, the name, the length of its value or -1 for null, and the value. Numbers are zigzag varints. All records are
decoded together, header by header.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from airflow_connect.kafka.reading.foreign_memory import copied_values

_LONGEST_VARINT = 5

HEADERS: Any = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
"""The type of the column: keys as they are in the log; a null value is one that the header does not have."""

RecordHeaders = Sequence[tuple[bytes, bytes | None]]


class BrokenHeadersError(Exception):
    """Bytes that are not headers."""


def headers_array(records: Sequence[RecordHeaders]) -> pa.ListArray[Any] | None:
    """Headers of records; None: no record has any."""
    if not any(records):
        return None
    ends = [0, *accumulate(map(len, records))]
    names = [name for name, _ in chain.from_iterable(records)]
    values = [value for _, value in chain.from_iterable(records)]
    return _list_array(np.array(ends, np.int32), pa.array(names, pa.binary()), pa.array(values, pa.binary()))


def no_headers(count: int) -> pa.ListArray[Any]:
    """The headers of `count` records that have none."""
    empty = pa.array([], HEADERS.value_type.field(0).type)
    return _list_array(np.zeros(count + 1, np.int32), empty, empty)


def headers_of(headers: pa.ListArray[Any], number: int) -> tuple[tuple[bytes, bytes | None], ...]:
    """Headers of one record."""
    return tuple((one["key"], one["value"]) for one in headers[number].as_py())


def name_text(name: bytes) -> str:
    """The name of a header as Kafka Connect sees it: Java replaces what is not UTF-8 by U+FFFD."""
    return name.decode("utf-8", "replace")


def as_client_tells(headers: RecordHeaders) -> RecordHeaders:
    """The same headers as librdkafka's public functions tell them: for them, a name ends at its first zero byte."""
    return tuple((name.partition(b"\0")[0], value) for name, value in headers)


def parse_headers(addresses: NDArray[np.int64], sizes: NDArray[np.int64]) -> pa.ListArray[Any] | None:
    """Decode the headers of records; None: no record has any.

    Args:
        addresses: of the encoded headers.
        sizes: in bytes; a record without headers has at most one.

    Raises:
        BrokenHeadersError: the bytes are not in this encoding.
    """
    (present,) = np.nonzero(sizes > 1)
    if not len(present):
        return None
    encoded: Any = copied_values(addresses[present], sizes[present])
    bounds = np.frombuffer(encoded.buffers()[1], np.int32, len(encoded) + 1).astype(np.int64)
    data = np.frombuffer(encoded.buffers()[2], np.uint8, int(bounds[-1]))
    found, at = _varints(data, bounds[:-1])
    if (found < 0).any() or int(found.sum()) > len(data):
        raise BrokenHeadersError
    counts = np.zeros(len(sizes), np.int64)
    counts[present] = found
    ends = np.concatenate([[0], np.cumsum(counts)])
    places = np.zeros((4, int(ends[-1])), np.int64)
    for number in range(int(found.max())):
        (some,) = np.nonzero(found > number)
        into = ends[present[some]] + number
        at[some] = _read_header(data, at[some], places, into)
    if (at != bounds[1:]).any():
        raise BrokenHeadersError
    base = data.ctypes.data
    name, name_size, value, value_size = places
    names = copied_values(name + base, name_size)
    values = copied_values(np.where(value_size < 0, 0, value + base), np.maximum(value_size, 0))
    return _list_array(ends.astype(np.int32), names, values)


def _read_header(
    data: NDArray[np.uint8], at: NDArray[np.int64], places: NDArray[np.int64], into: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Read one header of each record into `places`; returns where the next ones begin."""
    name_size, name = _varints(data, at)
    value_size, value = _varints(data, name + name_size)
    after = value + np.maximum(value_size, 0)
    if (name_size < 0).any() or (value_size < -1).any() or (after > len(data)).any():
        raise BrokenHeadersError
    for column, found in zip(places, (name, name_size, value, value_size), strict=True):
        column[into] = found
    return after


def _varints(data: NDArray[np.uint8], at: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The numbers at `at`, and where each one ends."""
    if (at < 0).any() or (at >= len(data)).any():
        raise BrokenHeadersError
    byte = data[at].astype(np.int64)
    coded, after = byte & 0x7F, at + 1
    (more,) = np.nonzero(byte & 0x80)
    for number in range(1, _LONGEST_VARINT):
        if not len(more):
            break
        if (after[more] >= len(data)).any():
            raise BrokenHeadersError
        byte = data[after[more]].astype(np.int64)
        coded[more] |= (byte & 0x7F) << 7 * number
        after[more] += 1
        more = more[(byte & 0x80) != 0]
    if len(more):
        raise BrokenHeadersError
    return (coded >> 1) ^ -(coded & 1), after


def _list_array(ends: NDArray[np.int32], names: Any, values: Any) -> pa.ListArray[Any]:
    structs: Any = pa.StructArray.from_arrays([names, values], fields=list(HEADERS.value_type))
    made: pa.ListArray[Any] = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), structs, type=HEADERS)
    return made
