"""What reading lines costs: `python -m tests.bench.file_lines [--megabytes 1000]`.

First the task alone, then whole runs of one task in this process against a real broker, columns of lines with
StringConverter. Every line is counted back.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
import uuid
from pathlib import Path
from typing import NamedTuple

from airflow_connect.connectors.file_stream.source.connector import FileStreamSourceConnector
from airflow_connect.connectors.file_stream.source.task import FileStreamSourceTask
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.runs import run_here
from tests.support.kafka_data import create_topic
from tests.unit.connectors.file_stream.source.source_runs import Committed, Context

LINE = '10.0.{}.{} - - [10/Oct/2026:13:55:36 +0000] "GET /page/{} HTTP/1.1" 200 {} "-" "curl/8.5"\n'
REGEX = r'^(?P<ip>\S+) \S+ \S+ \[(?P<at>[^\]]+)\] "(?P<verb>\w+) (?P<path>\S+) [^"]*" (?P<status>\d+) (?P<size>\d+) '
JSON = "org.apache.kafka.connect.json.JsonConverter"
STRINGS = "org.apache.kafka.connect.storage.StringConverter"


class Row(NamedTuple):
    """What is read, and with which keys."""

    name: str
    file: Path
    config: dict[str, str]


def write_lines(folder: Path, megabytes: int) -> tuple[Path, Path, int]:
    """A log, the same compressed, and how many lines they have."""
    folder.mkdir(exist_ok=True)
    plain, packed = folder / "access.log", folder / "access.log.gz"
    block = "".join(LINE.format(n % 256, n // 256, n, n % 9999) for n in range(10_000)).encode()
    blocks = max(1, megabytes * 1_000_000 // len(block))
    with plain.open("wb") as out, gzip.open(packed, "wb", compresslevel=1) as small:
        for _ in range(blocks):
            out.write(block)
            small.write(block)
    return plain, packed, blocks * 10_000


def task_seconds(row: Row) -> tuple[int, float]:
    """Lines that the task alone gives in columns, and its processor time."""
    config = {"name": "bench", "topic": "bench", "file": str(row.file), **row.config}
    connector = FileStreamSourceConnector()
    connector.initialize(Context(Committed()))
    connector.start(config)
    (assigned,) = connector.task_configs(1)
    connector.stop()
    task = FileStreamSourceTask()
    task.initialize(Context(Committed(), assigned))
    started, lines = time.process_time(), 0
    task.start(assigned)
    while not task.has_ended():
        columns = task.poll_columns()
        lines += len(columns.values) if columns is not None else len(task.poll() or ())
    task.stop()
    return lines, time.process_time() - started


def run_seconds(row: Row, kafka: KafkaBroker) -> tuple[int, float]:
    """Records of a whole run, and its time."""
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    create_topic(kafka.bootstrap, topic, 1, {"retention.bytes": "100000000"})
    worker = {"bootstrap.servers": kafka.bootstrap, "group.id": "bench", "key.converter": STRINGS}
    worker |= {f"{name}.storage.replication.factor": "1" for name in ("runs", "offset", "config")}
    worker["value.converter"] = JSON if "pattern.regex" in row.config else STRINGS
    worker["value.converter.schemas.enable"] = "false"
    connector = {"name": topic, "connector.class": "FileStreamSource", "topic": topic, "file": str(row.file)}
    connector |= {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "1000", **row.config}
    started = time.monotonic()
    report, _ = run_here(RunSpec(connector, worker))
    if report.status != "done":
        raise RuntimeError(f"The run of {row.name} failed: {report.error}")
    return report.records, time.monotonic() - started


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1000)
    megabytes = parser.parse_args().megabytes
    with tempfile.TemporaryDirectory() as folder, KafkaBroker.start(Path(folder, "kafka"), heap_mb=1024) as kafka:
        plain, packed, lines = write_lines(Path(folder), megabytes)
        batch = {"batch.size": "20000"}
        rows = [
            Row("plain", plain, batch),
            Row("plain, batch.size=2000", plain, {}),
            Row("gzip", packed, batch),
            Row(
                "regex, six fields", plain, {**batch, "pattern.regex": REGEX, "pattern.types": "status:int32,size:long"}
            ),
        ]
        print("| row | lines/s of the task alone | lines/s of a run |\n|---|---:|---:|")
        small, _, _ = write_lines(Path(folder, "warm"), 1)
        task_seconds(Row("warm", small, {}))
        for row in rows:
            read, cpu = task_seconds(row)
            copied, seconds = run_seconds(row, kafka)
            if (read, copied) != (lines, lines):
                raise RuntimeError(f"{row.name}: {lines} lines were written, {read} read, {copied} copied.")
            print(f"| {row.name} | {read / cpu:,.0f} | {copied / seconds:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
