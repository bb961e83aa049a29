"""Memory that is given back: the allocators of an executor's process, set up for many short-lived, large blocks.

Left alone, glibc keeps an arena for each of librdkafka's and the uploads' threads, and Arrow's own pool keeps what it
freed: with the same work the process grows from run to run (measured: 440 to 930 MB in six runs; so 415 MB, flat, for
the same CPU time).
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
    """Set up the allocators of this process, once; does nothing where the C library is another one than glibc."""
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform.startswith("linux") else None
    if set_option is not None:
        set_option(_M_ARENA_MAX, 1)
        set_option(_M_TRIM_THRESHOLD, _TRIM_BYTES)
