"""How memory of an executor's process is reused and given back."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the settings are those of glibc")

BLOCKS, BLOCK_BYTES, PAGE_BYTES = 200, 2 << 20, 4096
REUSED = f"""
import resource
from airflow_connect.runtime.executor.allocators import bound_allocators
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
bound_allocators()
before = faults()
for _ in range({BLOCKS}):
    b"x" * {BLOCK_BYTES}
print(faults() - before)
"""
GIVEN_BACK = """
from pathlib import Path
from airflow_connect.runtime.executor.allocators import bound_allocators, release_free_memory
bound_allocators()
pages = lambda: int(Path("/proc/self/statm").read_text().split()[1])
# Every second block is let go: the free memory is inside of the heap.
blocks = [b"x" * (1 << 20) for _ in range(100)]
del blocks[::2]
before = pages()
release_free_memory()
print(before - pages())
"""


def number_from(program: str) -> int:
    """What a program prints; the settings are those of its whole process."""
    return int(subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, timeout=60).stdout)


def test_blocks_of_some_megabytes_are_reused_and_not_mapped_anew() -> None:
    assert number_from(REUSED) < BLOCKS * BLOCK_BYTES // PAGE_BYTES // 10


def test_free_memory_inside_of_the_heap_is_given_back() -> None:
    assert number_from(GIVEN_BACK) > 40 * (1 << 20) // PAGE_BYTES
