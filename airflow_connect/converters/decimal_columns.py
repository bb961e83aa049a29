"""Decimals in Arrow columns: unscaled numbers as Connect writes them, the fewest bytes of two's complement, big-endian.

Source: java.math.BigInteger.toByteArray.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

LONGEST_DECIMAL_BYTES = 64
"""Longer numbers are written value by value, where there is a limit for them."""
_BYTE = np.uint8(0xFF)


def unscaled_column(values: Any) -> Any:
    """The unscaled numbers of a decimal128 array, as a binary array; nulls stay null."""
    count = len(values)
    words = np.frombuffer(values.buffers()[1], "<i8").reshape(-1, 2)[values.offset : values.offset + count]
    valid = _valid(values)
    low = np.where(valid, words[:, 0], 0)
    high = np.where(valid, words[:, 1], 0)
    if (high == low >> 63).all():
        width = _bytes_of(low)
        data = low.astype(">i8").view(np.uint8).reshape(count, 8)[:, 8 - width :]
    else:
        pairs = np.stack([high, low], axis=1).astype(">i8")
        data = pairs.view(np.uint8).reshape(count, 16)
    used = np.ones(data.shape, np.bool_)
    if data.shape[1] > 1:
        negative = data[:, :1] >> 7
        superfluous = (data[:, :-1] == negative * _BYTE) & (data[:, 1:] >> 7 == negative)
        used[:, :-1] = ~np.logical_and.accumulate(superfluous, axis=1)
    used[~valid] = False
    return binary_of(data, used, valid)


def is_shortest(values: Any) -> bool:
    """Whether each value of a binary array is a number in the fewest bytes; nulls do not count."""
    bounds, data = binary_parts(values)
    lengths = np.diff(bounds)
    if (lengths[_valid(values)] == 0).any():
        return False
    starts = bounds[:-1][lengths > 1]
    first, second = data[starts], data[starts + 1]
    return not (((first == 0) & (second < 0x80)) | ((first == _BYTE) & (second >= 0x80))).any()


def binary_parts(values: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Where the values of a binary array begin and end, and their bytes; a null has no bytes."""
    if values.null_count:
        values = values.fill_null(b"")
    _, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    return bounds, np.frombuffer(data if data is not None else b"", np.uint8)


def binary_of(data: NDArray[np.uint8], used: NDArray[np.bool_], valid: NDArray[np.bool_] | None = None) -> Any:
    """A binary array from a matrix with one row per value, and which bytes of it are used."""
    count = len(data)
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(np.count_nonzero(used, axis=1), out=offsets[1:])
    bits = None
    if valid is not None and not valid.all():
        packed: Any = np.packbits(valid, bitorder="little")
        bits = pa.py_buffer(packed)
    bounds: Any = offsets
    taken: Any = data[used]
    return pa.Array.from_buffers(pa.binary(), count, [bits, pa.py_buffer(bounds), pa.py_buffer(taken)])


def _valid(values: Any) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = values.is_valid().to_numpy(zero_copy_only=False)
    return found


def _bytes_of(numbers: NDArray[np.int64]) -> int:
    """Bytes of the longest number."""
    if not len(numbers):
        return 1
    least, most = int(numbers.min()), int(numbers.max())
    return max((n if n >= 0 else ~n).bit_length() for n in (least, most)) // 8 + 1
