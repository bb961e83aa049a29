"""Decimals in Arrow columns: unscaled numbers as Connect writes them, the fewest bytes of two's complement, big-endian.

Source: java.math.BigInteger.toByteArray.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

LONGEST_DECIMAL_BYTES = 64
"""Longer numbers are written value by value, where there is a limit for them."""
MOST_PLAIN_DIGITS = 6
"""Numbers with more digits after the point may have an exponent as text (java.math.BigDecimal.toString)."""
_BYTE, _SIGN = np.uint8(0xFF), 0x80
_LONG_BYTES = 8


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


def fits_text(values: Any) -> bool:
    """Whether `text_column` can write each value of a binary array: a number of 1 to 8 bytes, or null."""
    lengths = np.diff(binary_parts(values)[0])[_valid(values)]
    return bool(((lengths > 0) & (lengths <= _LONG_BYTES)).all())


def text_column(values: Any, scale: int) -> Any:
    """Unscaled numbers with a decimal point, such as `-0.50`; nulls stay null.

    Args:
        values: binary array for which `fits_text`.
        scale: digits after the point, 0 to `MOST_PLAIN_DIGITS`.
    """
    numbers = _numbers(values)
    valid = _valid(values)
    nulls = None if valid.all() else ~valid
    if not scale:
        return pa.array(numbers, pa.int64(), mask=nulls).cast(pa.string())
    sizes = numbers.view(np.uint64)
    sizes = np.where(numbers < 0, ~sizes + np.uint64(1), sizes)
    digits: Any = pc.utf8_lpad(pa.array(sizes, mask=nulls).cast(pa.string()), scale + 1, "0")
    sign: Any = pc.if_else(pa.array(numbers < 0), "-", "")
    whole, part = pc.utf8_slice_codeunits(digits, 0, -scale), pc.utf8_slice_codeunits(digits, -scale)
    return pc.binary_join_element_wise(pc.binary_join_element_wise(sign, whole, ""), part, ".")


def _numbers(values: Any) -> NDArray[np.int64]:
    """The numbers of a binary array, of at most 8 bytes each; 0 for null."""
    bounds, data = binary_parts(values)
    lengths = np.diff(bounds)[:, np.newaxis]
    taken = data[bounds[0] : bounds[-1]]
    own = np.arange(_LONG_BYTES) >= _LONG_BYTES - lengths
    padded = np.zeros((len(values), _LONG_BYTES), np.uint8)
    padded[own] = taken
    filled = np.flatnonzero(lengths)
    negative = filled[data[bounds[:-1][filled]] >= _SIGN]
    padded[negative] |= np.where(own[negative], np.uint8(0), _BYTE)
    found: NDArray[np.int64] = padded.view(">i8").reshape(len(values)).astype(np.int64)
    return found


def has_longer(values: Any, digits: int) -> bool:
    """Whether a value of a binary array is a number of more than `digits` decimal digits; nulls do not count."""
    limit: int = 10**digits
    lengths: Any = pc.binary_length(values)
    # The fewest bytes that can hold such a number.
    least: Any = pa.scalar(limit.bit_length() // 8 + 1, pa.int32())
    is_long: Any = pc.greater_equal(lengths, least)
    return any(abs(int.from_bytes(data, "big", signed=True)) >= limit for data in values.filter(is_long).to_pylist())


def is_shortest(values: Any) -> bool:
    """Whether each value of a binary array is a number in the fewest bytes; nulls do not count."""
    bounds, data = binary_parts(values)
    lengths = np.diff(bounds)
    if (lengths[_valid(values)] == 0).any():
        return False
    starts = bounds[:-1][lengths > 1]
    first, second = data[starts], data[starts + 1]
    return not (((first == 0) & (second < _SIGN)) | ((first == _BYTE) & (second >= _SIGN))).any()


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
