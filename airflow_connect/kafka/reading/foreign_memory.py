"""Memory of librdkafka, read in place: words and values at addresses that NumPy holds."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_VIEW_INLINE = 12
"""Arrow keeps values of up to 12 bytes inside the view."""
_BUFFER_BITS = 30
"""Arrow's views reach 2 GB: one foreign buffer for each GB of addresses."""

_READ_ONLY = 0x100  # PyBUF_READ
_memory_view = ctypes.pythonapi.PyMemoryView_FromMemory
_memory_view.restype = ctypes.py_object
_memory_view.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int]


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


def copied_values(addresses: NDArray[np.int64], lengths: NDArray[np.int64]) -> Any:
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
