"""Byte buffers that can move to the executor's disk, so that thousands of open files fit into bounded memory.

All buffers of a process share one temporary file without a name (it is unlinked right after its creation): 5,000
spilled buffers need one file descriptor, and a killed process leaves no files. The file is divided into blocks, which
are reused after their buffer is gone. The unused part of a block is a hole on disk.
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Iterator

from airflow_connect.errors import UnavailableError

BLOCK_BYTES = 128 * 1024


def local_directory() -> str:
    """A directory on the executor's disk: one of Spark's `SPARK_LOCAL_DIRS`, by process id, else TMPDIR."""
    given = [d for d in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if d and os.access(d, os.W_OK)]
    return given[os.getpid() % len(given)] if given else tempfile.gettempdir()


class SpillArea:
    """The unlinked temporary file and the map of its blocks. Thread-safe."""

    def __init__(self, directory: str = "") -> None:
        """Creates nothing before the first spill. `directory`: default is `local_directory()`."""
        self._directory = directory
        self._fd = -1
        self._close_file: weakref.finalize[..., SpillArea] | None = None
        self._free: list[int] = []
        self._dropped: deque[list[int]] = deque()
        self._blocks = 0
        self._lock = threading.Lock()

    def allocate(self) -> int:
        """Number of an unused block."""
        with self._lock:
            while self._dropped:
                self._free.extend(self._dropped.popleft())
            if self._free:
                return self._free.pop()
            self._blocks += 1
            return self._blocks - 1

    def release(self, blocks: list[int]) -> None:
        """Free blocks; when the last block is free, the file's disk space is released too."""
        with self._lock:
            self._free.extend(blocks)
            if self._fd >= 0 and len(self._free) == self._blocks:
                self._free.clear()
                self._blocks = 0
                os.ftruncate(self._fd, 0)

    def drop(self, blocks: list[int]) -> None:
        """Free blocks without taking the lock, because the garbage collector may call this at any point."""
        self._dropped.append(blocks)

    def write(self, block: int, start: int, data: memoryview) -> None:
        """Write inside a block, from byte `start` of it.

        Raises:
            UnavailableError: the disk is full or broken.
        """
        try:
            while data:
                written = os.pwrite(self._descriptor(), data, block * BLOCK_BYTES + start)
                start += written
                data = data[written:]
        except OSError as error:
            raise self._unusable("write to", error) from error

    def read(self, block: int, start: int, size: int) -> bytes:
        """Read `size` bytes that were written before.

        Raises:
            UnavailableError: the disk is broken.
        """
        try:
            data = os.pread(self._descriptor(), size, block * BLOCK_BYTES + start)
        except OSError as error:
            raise self._unusable("read from", error) from error
        if len(data) != size:
            raise self._unusable("read from", OSError(0, "the file is shorter than what was written to it"))
        return data

    def close(self) -> None:
        """Delete the file; idempotent. Buffers of this area are then lost."""
        with self._lock:
            if self._close_file is not None:
                self._close_file()
                self._fd, self._close_file = -1, None

    def _descriptor(self) -> int:
        with self._lock:
            if self._fd < 0:
                self._directory = self._directory or local_directory()
                self._fd, path = tempfile.mkstemp(prefix="airflow-connect-spill-", dir=self._directory)
                os.unlink(path)
                self._close_file = weakref.finalize(self, os.close, self._fd)
            return self._fd

    def _unusable(self, verb: str, error: OSError) -> UnavailableError:
        return UnavailableError(
            f"The executor cannot {verb} its local disk at {self._directory}: {error.strerror or error}.",
            code="disk.unusable",
            suggestion="Free space there, or point spark.local.dir (or TMPDIR) to a larger disk.",
        )


_shared: dict[int, SpillArea] = {}


def shared_area() -> SpillArea:
    """This process's area, by process id: Spark forks its workers, and they must not share an area."""
    area = _shared.get(os.getpid())
    if area is None:
        area = _shared.setdefault(os.getpid(), SpillArea())
    return area


class SpillBuffer:
    """Appended bytes, in order: the older ones on disk, the rest in memory. Not thread-safe."""

    def __init__(self, area: SpillArea | None = None) -> None:
        """`area`: default is that of the process."""
        self._area = area
        self._memory = bytearray()
        self._blocks: list[int] = []
        self._spilled = 0

    def __len__(self) -> int:
        """All bytes held, on disk and in memory."""
        return self._spilled + len(self._memory)

    @property
    def buffered_bytes(self) -> int:
        """Bytes held in memory."""
        return len(self._memory)

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Append a copy of `data`."""
        self._memory += data

    def spill(self) -> None:
        """Move the memory part to disk. On an error nothing is lost: the bytes stay in memory.

        Raises:
            UnavailableError: the disk is full or broken; the message names the directory.
        """
        if not self._memory:
            return
        area = self._area = self._area or shared_area()
        position = self._spilled
        with memoryview(self._memory) as rest:
            done = 0
            while done < len(rest):
                index, start = divmod(position + done, BLOCK_BYTES)
                if index == len(self._blocks):
                    self._blocks.append(area.allocate())
                part = rest[done : done + BLOCK_BYTES - start]
                area.write(self._blocks[index], start, part)
                done += len(part)
        self._spilled += done
        self._memory = bytearray()

    def iter_chunks(self, size: int) -> Iterator[bytes]:
        """All bytes in chunks of `size`, the last one smaller; needs memory for one chunk. Does not consume.

        Raises:
            UnavailableError: the disk is broken.
        """
        for start in range(0, len(self), size):
            yield self._read(start, min(start + size, len(self)))

    def read_all(self) -> bytes | bytearray:
        """All bytes; if none were spilled, in the buffer's own memory, so do not append while it is used.

        Raises:
            UnavailableError: the disk is broken.
        """
        return self._read(0, len(self)) if self._blocks else self._memory

    def _read(self, start: int, end: int) -> bytes:
        """Bytes [start, end)."""
        parts = []
        while start < min(end, self._spilled):
            index, offset = divmod(start, BLOCK_BYTES)
            size = min(BLOCK_BYTES - offset, min(end, self._spilled) - start)
            assert self._area is not None
            parts.append(self._area.read(self._blocks[index], offset, size))
            start += size
        if start < end:
            with memoryview(self._memory) as memory:
                parts.append(bytes(memory[start - self._spilled : end - self._spilled]))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def clear(self) -> None:
        """Discard all bytes and free the disk space; the buffer can be filled again."""
        self._memory = bytearray()
        self._spilled = 0
        if self._blocks and self._area is not None:
            self._area.release(self._blocks)
        self._blocks = []

    def close(self) -> None:
        """Discard all bytes and free the disk space; idempotent."""
        self.clear()

    def __del__(self) -> None:
        """The buffer of an aborted file is simply dropped; this frees its disk space."""
        if self._blocks and self._area is not None:
            self._area.drop(self._blocks)
