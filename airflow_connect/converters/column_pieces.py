"""Encoded values in columns: short parts and texts, joined value by value.

A value is a row of short parts (numbers, branches of unions, tags, lengths) with texts between them. The short parts
between two texts are a matrix of bytes with one row per value, and a mask of the used bytes. The bytes that the mask
selects, row by row, are the concatenation of the parts. Arrow joins these pieces and the texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from airflow_connect.converters.scan import NotPlainError

Present = NDArray[np.bool_] | None
"""The rows to write; None: all of them."""
_SEVEN_BITS, _CONTINUED = np.uint64(0x7F), np.uint8(0x80)


class Pieces:
    """The parts of the values so far: binary columns, and the short parts after the last of them."""

    def __init__(self, count: int) -> None:
        """`count`: of the values."""
        self.count = count
        self._columns: list[Any] = []
        self._bytes: list[NDArray[np.uint8]] = []
        self._used: list[NDArray[np.bool_]] = []

    def constant(self, data: bytes, present: Present = None) -> None:
        """The same bytes in every row."""
        row = np.frombuffer(data, np.uint8)
        self.add(np.broadcast_to(row, (self.count, len(row))), rows(present))

    def add(self, data: NDArray[np.uint8], used: NDArray[np.bool_] | None) -> None:
        """A part: a row of bytes for each value, and which bytes (or, as one column, which rows) are used."""
        self._bytes.append(data)
        self._used.append(np.broadcast_to(np.True_ if used is None else used, data.shape))

    def varints(self, numbers: NDArray[np.uint64], present: Present = None) -> None:
        """Numbers of variable length: seven bits per byte, lowest first."""
        data, used = varint_bytes(numbers)
        self.add(data, used if present is None else used & present[:, np.newaxis])

    def column(self, values: Any) -> None:
        """Bytes of any length, binary[count]; nothing for null."""
        self._close()
        self._columns.append(values)

    def joined(self) -> Any:
        """binary[count].

        Raises:
            NotPlainError: more than 2 GiB.
        """
        self._close()
        if not self._columns:
            return pa.array([b""] * self.count, pa.binary())
        if len(self._columns) == 1:
            return self._columns[0]
        options = pc.JoinOptions(null_handling="replace", null_replacement="")
        joined: Any = pc.binary_join_element_wise(*self._columns, pa.scalar(b""), options=options)
        return joined if isinstance(joined, pa.Array) else joined.combine_chunks()

    def _close(self) -> None:
        """Turn the short parts into a column."""
        if not self._bytes:
            return
        data, used = np.concatenate(self._bytes, axis=1), np.concatenate(self._used, axis=1)
        self._bytes, self._used = [], []
        offsets = np.zeros(self.count + 1, np.int64)
        np.cumsum(np.count_nonzero(used, axis=1), out=offsets[1:])
        if offsets[-1] > np.iinfo(np.int32).max:
            raise NotPlainError
        bounds: Any = offsets.astype(np.int32)
        taken: Any = data[used]
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(taken)]
        self._columns.append(pa.Array.from_buffers(pa.binary(), self.count, buffers))


def writer_of_values(write: Callable[[Any, Pieces, Present], None], prefix: bytes) -> Callable[[Any], Any]:
    """A function that makes a column of values to binary[n]; None if it has a null, or one is not vectorizable.

    Args:
        write: writes a column without nulls, or raises NotPlainError.
        prefix: before each value.
    """

    def write_all(values: Any) -> Any:
        if not len(values) or values.null_count:
            return None
        pieces = Pieces(len(values))
        pieces.constant(prefix)
        try:
            write(values, pieces, None)
            return pieces.joined()
        except (NotPlainError, pa.ArrowCapacityError):
            return None

    return write_all


def with_texts_merged(parts: Sequence[Any]) -> list[Any]:
    """Parts of which each is a column, or a text that is the same in all rows: neighbouring texts become one."""
    merged: list[Any] = []
    for part in parts:
        if merged and isinstance(part, str) and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return merged


def varint_bytes(numbers: NDArray[np.uint64]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """A row of bytes for each number, and which of them are used."""
    width = max(1, (int(np.max(numbers, initial=0)).bit_length() + 6) // 7)
    data = np.empty((len(numbers), width), np.uint8)
    used = np.empty((len(numbers), width), np.bool_)
    used[:, 0] = True
    for at in range(width):
        rest = numbers >> np.uint64(7 * at)
        data[:, at] = rest & _SEVEN_BITS
        if at + 1 < width:
            used[:, at + 1] = rest > _SEVEN_BITS
            data[:, at] |= used[:, at + 1] * _CONTINUED
    return data, used


def rows(present: Present) -> NDArray[np.bool_] | None:
    """The rows to write as one column of a mask."""
    return None if present is None else present[:, np.newaxis]
