"""Positions in Avro or Protobuf data, one for each value, and the primitives that are read at all of them at once.

A variable-length number is read as one unaligned word of eight bytes. It ends with the lowest byte without a
continuation bit. Three shifts join its groups of seven bits. Every length up to eight bytes takes the same few
nanoseconds; longer numbers are rare, and are completed group by group.
Source: Avro specification 1.12, "Primitive Types" (zigzag, little-endian); Protocol Buffers, "Encoding".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_MORE = np.uint64(0x8080808080808080)
_GROUPS = np.uint64(0x7F7F7F7F7F7F7F7F)
# Pushing neighbours together: low halves that stay, high halves that move down, by how many bits.
_STEPS = tuple(
    (np.uint64(stay), np.uint64(move), np.uint64(bits))
    for stay, move, bits in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)
_ONE = np.uint64(1)
_CONTINUED = 0x80
_PADDING = 16
_LONGEST, _LONGEST_INT = 10, 5
_INT32 = np.iinfo(np.int32)


class NotPlainError(ValueError):
    """A value that is not read here; never raised outside the columnar path of this package."""


class Scan:
    """Values that are being read: the position of each one, and where it must end.

    Attributes:
        buffer: Arrow buffer with the data of all values.
    """

    def __init__(
        self, buffer: Any, memory: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> None:
        """`memory` is a copy of `buffer` with padding at the end (`padded`); use it for all scans of a batch."""
        self.buffer = buffer
        self._memory = memory
        self._words: NDArray[np.uint64] = np.ndarray((len(memory) - 7,), "<u8", memory, 0, (1,))
        self._at = starts
        self._ends = ends

    def part(self, rows: NDArray[np.intp]) -> Scan:
        """A scan of some of the values."""
        return Scan(self.buffer, self._memory, self._at[rows], self._ends[rows])

    def of(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Scan:
        """A scan of other values in the same data."""
        return Scan(self.buffer, self._memory, starts, ends)

    def __len__(self) -> int:
        """Number of values."""
        return len(self._at)

    @property
    def at(self) -> NDArray[np.int64]:
        """The position of each value."""
        return self._at

    def rows_at(self, data: bytes) -> NDArray[np.intp]:
        """Which of the values continue with these bytes (1 to 8)."""
        size = len(data)
        word, mask = (np.uint64(int.from_bytes(part, "little")) for part in (data, b"\xff" * size))
        return np.flatnonzero(((self._words[self._at] & mask) == word) & (self._at + size <= self._ends))

    def skip(self, size: int) -> None:
        """Pass over as many bytes of each value."""
        self._move_to(self._at + size)

    def numbers(self, ends: NDArray[np.int64]) -> tuple[Scan, NDArray[np.int64]]:
        """Variable-length numbers that fill the bytes up to `ends`: a scan of all of them, and how many each value has.

        The positions of this scan stay.
        """
        places, bounds = _flat(self._at, ends)
        is_last = self._memory[places] < _CONTINUED
        if not is_last[bounds[1:][ends > self._at] - 1].all():
            raise NotPlainError
        (last,) = np.nonzero(is_last)
        first = np.concatenate(([0], last[:-1] + 1)) if len(last) else last
        before = np.concatenate(([0], np.cumsum(is_last)))
        return self.of(places[first], places[last] + 1), np.diff(before[bounds])

    def words_up_to(self, ends: NDArray[np.int64], size: int) -> tuple[Scan, NDArray[np.int64]]:
        """As `numbers`, for numbers of `size` bytes each."""
        places, bounds = _flat(self._at, ends)
        lengths = np.diff(bounds)
        if (lengths % size).any():
            raise NotPlainError
        return self.of(places[::size], places[::size] + size), lengths // size

    def take_back(self, rows: NDArray[np.intp], part: Scan) -> None:
        """Continue where a scan of some of the values has ended."""
        at = self._at.copy()  # the caller may hold the old positions
        at[rows] = part._at
        self._at = at

    def is_at_end(self) -> bool:
        """Whether every value ends where it must."""
        return bool((self._at == self._ends).all())

    def bytes(self) -> NDArray[np.uint8]:
        """One byte each."""
        found = self._memory[self._at]
        self._move_to(self._at + 1)
        return found

    def words(self, size: int) -> NDArray[np.uint64]:
        """Eight bytes each, little-endian, of which `size` belong to the value."""
        found = self._words[self._at]
        self._move_to(self._at + size)
        return found

    def fixed(self, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Starts and ends of values of `size` bytes."""
        starts = self._at
        self._move_to(starts + size)
        return starts, self._at

    def lengths(self, *, is_zigzag: bool = True) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Starts and ends of values with a length before them."""
        sizes = self.longs() if is_zigzag else self.unsigned().view(np.int64)
        if len(sizes) and (np.min(sizes) < 0 or (sizes > self._ends - self._at).any()):
            raise NotPlainError
        starts = self._at
        self._move_to(starts + sizes)
        return starts, self._at

    def ints(self) -> NDArray[np.int64]:
        """Variable-length, zigzag-coded numbers of at most 32 bits, in at most five bytes."""
        starts = self._at
        values = self.longs()
        if len(values) and (
            np.min(values) < _INT32.min or np.max(values) > _INT32.max or (self._at - starts > _LONGEST_INT).any()
        ):
            raise NotPlainError
        return values

    def longs(self) -> NDArray[np.int64]:
        """Variable-length, zigzag-coded numbers."""
        values = self.unsigned()
        return ((values >> _ONE) ^ (np.uint64(0) - (values & _ONE))).view(np.int64)

    def unsigned(self) -> NDArray[np.uint64]:
        """Variable-length numbers."""
        first = self._memory[self._at]
        if not len(first) or np.max(first) < _CONTINUED:
            self._move_to(self._at + 1)
            return first.astype(np.uint64)
        values, sizes = self._varints()
        self._move_to(self._at + sizes)
        return values

    def _varints(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Numbers before zigzag, and how many bytes each takes."""
        words = self._words[self._at]
        stops = ~words & _MORE
        lowest = stops & (np.uint64(0) - stops)
        # Bits below the stop: all eight bytes if there is none, because 0 - 1 wraps around.
        below = lowest - _ONE
        values = words & below & _GROUPS
        for stay, move, bits in _STEPS:
            values = (values & stay) | ((values & move) >> bits)
        # The stop is bit 7 of byte n: as a double its exponent says which; it is 0 for no stop.
        exponents = lowest.astype(np.float64).view(np.int64) >> 52
        sizes = (exponents - 1023 + 1) >> 3
        (long,) = np.nonzero(lowest == 0)
        if len(long):
            values[long], sizes[long] = self._finished(values[long], self._at[long])
        return values, sizes

    def _finished(
        self, values: NDArray[np.uint64], at: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Numbers of nine and ten bytes, of which eight are read."""
        ninth, tenth = (self._memory[at + n].astype(np.uint64) for n in (8, 9))
        is_nine = ninth < _CONTINUED
        # Ten groups of seven bits are 70 bits: only one bit of the last one is used.
        if (~is_nine & (tenth > 1)).any():
            raise NotPlainError
        values = values | ((ninth & np.uint64(0x7F)) << np.uint64(56))
        values = np.where(is_nine, values, values | (tenth << np.uint64(63)))
        return values, np.where(is_nine, 9, _LONGEST)

    def _move_to(self, at: NDArray[np.int64]) -> None:
        """Check that every position is within its value, so the next read stays within the memory."""
        if (at > self._ends).any():
            raise NotPlainError
        self._at = at


def _flat(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places from each start to its end, one after the other, and where in this list each one begins and ends."""
    lengths = ends - starts
    bounds = np.concatenate(([0], np.cumsum(lengths)))
    return np.repeat(starts - bounds[:-1], lengths) + np.arange(bounds[-1]), bounds


def slices(scan: Scan, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Any:
    """The bytes `[start, end)` of each value as a binary array; both ascend."""
    count = len(starts)
    if not count:
        return pa.array([], pa.binary())
    offsets = np.empty(2 * count, np.int32)
    offsets[0::2] = starts
    offsets[1::2] = ends
    memory: Any = offsets
    between = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(memory), scan.buffer])
    evens: Any = np.arange(0, 2 * count, 2, dtype=np.int32)
    return between.take(pa.array(evens))


def texts(scan: Scan, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Any:
    """As `slices`, of text in UTF-8."""
    try:
        return slices(scan, starts, ends).cast(pa.string())
    except pa.ArrowInvalid:
        raise NotPlainError from None  # not UTF-8


def padded(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A copy with padding at the end, because words are read beyond the last byte."""
    memory = np.zeros(len(data) + _PADDING, np.uint8)
    memory[: len(data)] = data
    return memory
