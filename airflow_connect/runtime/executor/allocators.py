"""Configures the allocators of an executor's process for many short-lived, large blocks, so freed memory is returned.

By default, glibc keeps an arena for each thread of librdkafka and of the uploads, and Arrow's own pool keeps freed
memory. With the same work, the process then grows from run to run (measured: 440 to 930 MB in six runs; with these
settings a constant 415 MB, for the same CPU time).
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

# malloc.h
_M_TRIM_THRESHOLD, _M_ARENA_MAX = -1, -8
_TRIM_BYTES = 1 << 20


@cache
def bound_allocators() -> None:
    """Configure the allocators of this process, once; does nothing if the C library is not glibc."""
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform.startswith("linux") else None
    if set_option is not None:
        set_option(_M_ARENA_MAX, 1)
        set_option(_M_TRIM_THRESHOLD, _TRIM_BYTES)
