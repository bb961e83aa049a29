"""What the libraries need alone: reading, parsing, compressing, each once on the same records, in one process.

`python -m tests.bench.bare_costs` prints CPU seconds per million records: the least that a row of docs/benchmarks.md
can cost with these libraries, because nothing is checked, counted, sorted or sent.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq
from isal import isal_zlib
from zlib_ng import zlib_ng

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.kafka.clients.librdkafka import open_consumer, required_library
from airflow_connect.kafka.reading.batch_fetch import MAX_MESSAGES, open_fetch
from airflow_connect.kafka.reading.batch_reader import THROUGHPUT
from airflow_connect.kafka.reading.column_batch import ColumnBatch
from airflow_connect.runtime.executor.allocators import bound_allocators
from tests.bench import last_release
from tests.bench.topics import Load, fill

RECORDS, BATCH, REPEAT = 500_000, 16_384, 3
PIECE_BYTES = 256 * 1024
LOAD = Load(10, 24, RECORDS)
_RAW_DEFLATE = -15
_KINDS = [("id", pa.int64()), ("user", pa.string()), ("event", pa.string()), ("amount", pa.float64())]
SCHEMA = pa.schema([*_KINDS, ("at", pa.int64()), ("session", pa.string()), ("note", pa.string())])
PARTS = {
    "librdkafka: fetch, unpack lz4, destroy each message": "read",
    "the same, and values as Arrow columns": "columns",
    "ISA-L: gzip of level 1": "gzip",
    "zlib-ng: gzip of level 6": "dense",
    "orjson: parse and write again": "orjson",
    "Arrow: parse JSON into typed columns": "typed",
    "Arrow: write Parquet with zstd": "parquet",
}
ROWS = {
    "raw-gzip": ("columns", "gzip"),
    "json-hourly": ("columns", "orjson", "gzip"),
    "parquet": ("columns", "typed", "parquet"),
    "raw-dense": ("columns", "dense"),
    "json-dense": ("columns", "orjson", "dense"),
}


def main() -> int:
    """Measure and print."""
    bound_allocators()
    batches = list(_batches([value for _, value, _ in LOAD.rows() if value is not None]))
    costs = {name: _cheapest(lambda work=work: [work(batch) for batch in batches]) for name, work in _WORK.items()}
    tables = [_typed(batch) for batch in batches]
    costs["parquet"] = _cheapest(lambda: _parquet(tables))
    with _broker() as bootstrap:
        costs["read"] = _cheapest(lambda: _read(bootstrap, reads_values=False))
        costs["columns"] = _cheapest(lambda: _read(bootstrap, reads_values=True))
    print("| library | CPU s per million |\n|---|---|")
    print("\n".join(f"| {about} | {costs[name]:.2f} |" for about, name in PARTS.items()))
    print("\n| row | the libraries alone |\n|---|---|")
    print("\n".join(f"| `{row}` | {sum(costs[part] for part in parts):.2f} |" for row, parts in ROWS.items()))
    place = last_release.place()
    print(f"\nCommit {place['commit']}, {place['date']}, {place['machine']}: load average {os.getloadavg()[0]:.1f}.")
    return 0


def _cheapest(work: Callable[[], object]) -> float:
    """CPU seconds per million records of the cheapest of some runs: the others were disturbed."""
    found = []
    for _ in range(REPEAT):
        before = time.process_time()
        work()
        found.append(time.process_time() - before)
    return min(found) / RECORDS * 1e6


def _batches(values: list[bytes]) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(values), BATCH):
        yield values[start : start + BATCH]


def _packed(compressor: Callable[[], Any], batch: Sequence[bytes]) -> int:
    text = b"\n".join(batch)
    size = 0
    for start in range(0, len(text), PIECE_BYTES):
        deflate = compressor()
        size += len(deflate.compress(text[start : start + PIECE_BYTES]) + deflate.flush())
    return size


def _written_again(batch: Sequence[bytes]) -> int:
    return len(orjson.dumps(orjson.loads(b"[" + b",".join(batch) + b"]")))


def _typed(batch: Sequence[bytes]) -> pa.Table:
    text = b"\n".join(batch)
    reading = pj.ReadOptions(use_threads=False, block_size=len(text) + 1)
    return pj.read_json(io.BytesIO(text), reading, pj.ParseOptions(explicit_schema=SCHEMA))


def _parquet(tables: Sequence[pa.Table]) -> int:
    """Row groups of six batches, about 100,000 records; returns the size of the file."""
    written = io.BytesIO()
    with pq.ParquetWriter(written, SCHEMA, compression="zstd", compression_level=1, use_dictionary=["event"]) as writer:
        for start in range(0, len(tables), 6):
            writer.write_table(pa.concat_tables(tables[start : start + 6]))
    return written.tell()


_WORK: dict[str, Callable[[Sequence[bytes]], object]] = {
    "gzip": lambda batch: _packed(lambda: isal_zlib.compressobj(1, isal_zlib.DEFLATED, _RAW_DEFLATE), batch),
    "dense": lambda batch: _packed(lambda: zlib_ng.compressobj(6, zlib_ng.DEFLATED, _RAW_DEFLATE), batch),
    "orjson": _written_again,
    "typed": _typed,
}


def _read(bootstrap: str, *, reads_values: bool) -> None:
    settings = {**THROUGHPUT, "bootstrap.servers": bootstrap, "group.id": "bare", "enable.auto.commit": False}
    starts = {TopicPartition(LOAD.topic, number): 0 for number in range(LOAD.partitions)}
    left = RECORDS
    if reads_values:
        fetch = open_fetch(settings, starts)
        while left:
            left -= sum(len(part) for part in fetch.fetch(left, 1.0) if isinstance(part, ColumnBatch))
        fetch.close()
        return
    consumer = open_consumer(required_library(), settings)
    consumer.assign(starts)
    pointers = np.zeros(MAX_MESSAGES, dtype=np.int64)
    while left:
        count = consumer.consume(pointers.ctypes.data, min(left, MAX_MESSAGES), 1000)
        deque(map(consumer.library.destroy_message, pointers[:count].tolist()), maxlen=0)
        left -= count
    consumer.close()


@contextmanager
def _broker() -> Iterator[str]:
    memory = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
    with (
        tempfile.TemporaryDirectory(prefix="airflow-connect-bench-", dir=memory) as folder,
        KafkaBroker.start(Path(folder) / "kafka", heap_mb=1024) as kafka,
    ):
        fill(kafka.bootstrap, LOAD, 0, lambda _: None)
        yield kafka.bootstrap


if __name__ == "__main__":
    sys.exit(main())
