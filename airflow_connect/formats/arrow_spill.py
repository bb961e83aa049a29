"""Arrow batches that wait in memory or, as Arrow IPC streams, on the executor's disk."""

from __future__ import annotations

import pyarrow as pa

from airflow_connect.formats.spill import SpillBuffer

_ON_DISK = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)


class ArrowSpill:
    """Batches of one schema, in order. Reading back needs memory for all of them.

    Attributes:
        rows: rows held.
        buffered_bytes: Arrow bytes held in memory.
        total_bytes: Arrow bytes held, in memory and on disk (there as they were in memory).
    """

    def __init__(self, columns: pa.Schema) -> None:
        """`columns`: the schema of all batches."""
        self._columns = columns
        self._batches: list[pa.RecordBatch] = []
        self._disk: list[SpillBuffer] = []
        self.rows = 0
        self.buffered_bytes = 0
        self.total_bytes = 0

    def append(self, batch: pa.RecordBatch) -> None:
        """Take a batch."""
        self._batches.append(batch)
        self.rows += batch.num_rows
        self.buffered_bytes += batch.nbytes
        self.total_bytes += batch.nbytes

    def spill(self) -> None:
        """Move the batches in memory to disk as one stream; they stay in memory if that fails.

        Raises:
            UnavailableError: the disk is full.
        """
        if not self._batches:
            return
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, self._columns, options=_ON_DISK) as writer:
            writer.write_table(pa.Table.from_batches(self._batches, self._columns).combine_chunks())
        spilled = SpillBuffer()
        spilled.append(memoryview(stream.getvalue()))
        spilled.spill()
        self._disk.append(spilled)
        self._batches = []
        self.buffered_bytes = 0

    def take(self) -> pa.Table:
        """All rows, in order; nothing is held afterwards.

        Raises:
            UnavailableError: the disk is broken.
        """
        batches = [batch for spilled in self._disk for batch in pa.ipc.open_stream(spilled.read_all())]
        table = pa.Table.from_batches(batches + self._batches, self._columns)
        for spilled in self._disk:
            spilled.close()
        self._batches, self._disk = [], []
        self.rows = self.buffered_bytes = self.total_bytes = 0
        return table
