"""Configures the allocators of an executor's process for blocks of a few megabytes that live for milliseconds.

By default, glibc keeps an arena for each thread of librdkafka and of the uploads, and Arrow's own pool keeps freed
memory. With the same work, the process then grows from run to run (measured: 440 to 930 MB in six runs; with one arena
and the system's pool a constant 415 MB, for the same CPU time).

glibc maps blocks of 128 KiB or more anew, and the kernel clears their pages, until it has seen that they are freed
soon. A trim threshold ends this learning, so a process that had copied nothing before mapped every column anew: 170,000
to 540,000 page faults per million records, a fifth to a third of the CPU time. Blocks of up to 16 MiB therefore come
from the heap from the start (50,000 to 140,000 faults), whose free end is given back beyond the same size. Larger ones
stay mapped: a buffer of a part of 25 MB then grows without being copied.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

# malloc.h
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_HEAP_BLOCK_BYTES = 16 << 20


@cache
def bound_allocators() -> None:
    """Configure the allocators of this process, once; does nothing if the C library is not glibc."""
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())
    set_option = _glibc("mallopt")
    if set_option is not None:
        set_option(_M_ARENA_MAX, 1)
        set_option(_M_TRIM_THRESHOLD, _HEAP_BLOCK_BYTES)
        set_option(_M_MMAP_THRESHOLD, _HEAP_BLOCK_BYTES)


def release_free_memory() -> None:
    """Give the free pages inside of the heap back to the system, which only its end is otherwise.

    For the end of a task: a process of Spark lives on, and the next task may be that of another connector.
    """
    trim = _glibc("malloc_trim")
    if trim is not None:
        trim(0)


def _glibc(name: str) -> Any | None:
    """A function of the C library; None if that is not glibc."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform.startswith("linux") else None
