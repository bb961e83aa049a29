"""Base64 of a binary column, and back, without a Python object per value. Source: RFC 4648, section 4."""

from __future__ import annotations

import binascii
from typing import Any

import numpy as np
import pyarrow as pa

from airflow_connect.converters.decimal_columns import binary_of, binary_parts

_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_PAD, _INVALID = np.uint8(ord("=")), 0xFF
_DIGITS = np.full(256, _INVALID, np.uint8)
"""The six bits of each letter. A pad counts as zeros; where one may stand is checked elsewhere."""
_DIGITS[_ALPHABET] = np.arange(64, dtype=np.uint8)
_DIGITS[_PAD] = 0
_LONGEST_BYTES = 48
"""Up to this length, all values are encoded at once, each padded to the longest."""


def base64_column(values: Any) -> Any:
    """The Base64 text of each value, with padding; null stays null."""
    bounds, data = binary_parts(values)
    lengths = np.diff(bounds)
    longest = int(lengths.max()) if len(lengths) else 0
    if longest > _LONGEST_BYTES:
        texts = [None if v is None else binascii.b2a_base64(v, newline=False) for v in values.to_pylist()]
        return pa.array(texts, pa.binary()).cast(pa.string())
    count, groups = len(lengths), -(-longest // 3)
    padded = np.zeros((count, groups * 3), np.uint8)
    padded[np.arange(groups * 3) < lengths[:, np.newaxis]] = data[bounds[0] : bounds[-1]]
    triples = padded.reshape(count, groups, 3)
    first, second, third = triples[:, :, 0], triples[:, :, 1], triples[:, :, 2]
    digits = np.empty((count, groups, 4), np.uint8)
    digits[:, :, 0] = first >> 2
    digits[:, :, 1] = (first & 3) << 4 | second >> 4
    digits[:, :, 2] = (second & 15) << 2 | third >> 6
    digits[:, :, 3] = third & 63
    places = np.arange(groups * 4)
    text = _ALPHABET[digits.reshape(count, groups * 4)]
    text[places >= ((lengths * 4 + 2) // 3)[:, np.newaxis]] = ord("=")
    used = places < ((lengths + 2) // 3 * 4)[:, np.newaxis]
    valid = values.is_valid().to_numpy(zero_copy_only=False) if values.null_count else None
    return binary_of(text, used, valid).cast(pa.string())


def bytes_column(texts: Any) -> Any | None:
    """The bytes of each text, a binary array; null stays null. None: a text is not Base64 with all of its padding."""
    bounds, data = binary_parts(texts)
    lengths = np.diff(bounds)
    text = data[bounds[0] : bounds[-1]]
    digits = _DIGITS[text]
    if (lengths % 4).any() or (digits == _INVALID).any():
        return None
    filled = lengths > 0
    ends = bounds[1:][filled] - bounds[0]
    last, last_but_one = text[ends - 1] == _PAD, text[ends - 2] == _PAD
    pads = last.astype(np.int64) + (last & last_but_one)
    # Any other pad stands within a text.
    if np.count_nonzero(text == _PAD) != pads.sum():
        return None
    first, second, third, fourth = digits.reshape(-1, 4).T
    found = np.empty((len(digits) // 4, 3), np.uint8)
    found[:, 0] = first << 2 | second >> 4
    found[:, 1] = second << 4 | third >> 2
    found[:, 2] = third << 6 | fourth
    used = np.ones(found.shape, np.bool_)
    used[ends // 4 - 1, 2] = pads == 0
    used[ends // 4 - 1, 1] = pads < 2
    sizes = lengths // 4 * 3
    sizes[filled] -= pads
    offsets: Any = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    taken: Any = found[used]
    buffers: Any = [_validity(texts), pa.py_buffer(offsets), pa.py_buffer(taken)]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers)


def _validity(values: Any) -> pa.Buffer | None:
    if not values.null_count:
        return None
    packed: Any = np.packbits(values.is_valid().to_numpy(zero_copy_only=False), bitorder="little")
    return pa.py_buffer(packed)
