"""Arrow batches that wait in memory or, as Arrow IPC streams, on the executor's disk."""

from __future__ import annotations

import pyarrow as pa

from airflow_connect.formats.spill import SpillBuffer

_ON_DISK = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)


class ArrowSpill:
    """Batches of one schema, in order. Reading back needs memory for all of them.

    Attributes:
        rows: rows held.
        total_bytes: Arrow bytes held, in memory and on disk; those on disk count with their size in memory.
    """

    def __init__(self, columns: pa.Schema) -> None:
        """`columns`: the schema of all batches."""
        self._columns = columns
        self._batches: list[pa.RecordBatch] = []
        self._disk = SpillBuffer()
        self._streams = 0
        self.rows = 0
        self._arrow_bytes = 0
        self.total_bytes = 0

    @property
    def buffered_bytes(self) -> int:
        """Bytes held in memory."""
        return self._arrow_bytes + self._disk.buffered_bytes

    def append(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        self._batches.append(batch)
        self.rows += batch.num_rows
        self._arrow_bytes += batch.nbytes
        self.total_bytes += batch.nbytes

    def spill(self) -> None:
        """Move the batches in memory to disk as one stream; they stay in memory (packed) if that fails.

        Raises:
            UnavailableError: the disk is full.
        """
        if not self._batches:
            return
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, self._columns, options=_ON_DISK) as writer:
            writer.write_table(pa.Table.from_batches(self._batches, self._columns).combine_chunks())
        self._disk.append(memoryview(stream.getvalue()))
        self._streams += 1
        self._batches = []
        self._arrow_bytes = 0
        self._disk.spill()

    def take(self) -> pa.Table:
        """All rows, in order; the buffer is empty afterwards.

        Raises:
            UnavailableError: the disk is broken.
        """
        disk = pa.BufferReader(self._disk.read_all())
        batches = [batch for _ in range(self._streams) for batch in pa.ipc.open_stream(disk)]
        table = pa.Table.from_batches(batches + self._batches, self._columns)
        self._disk.close()
        self._batches = []
        self._streams = self.rows = self._arrow_bytes = self.total_bytes = 0
        return table
