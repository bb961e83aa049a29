"""Base64 of a binary column, without a Python object per value. Source: RFC 4648, section 4."""

from __future__ import annotations

import binascii
from typing import Any

import numpy as np
import pyarrow as pa

from airflow_connect.converters.decimal_columns import binary_of, binary_parts

_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
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
