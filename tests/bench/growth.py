"""What a run costs the driver with many topics, many partitions or many files: time, CPU time, memory.

usage: python -m tests.bench.growth [CASE ...]

Each run is a process of its own, without Spark, so the figures are those of driver and tasks together. The second run
finds nothing to copy: it is one of the driver's program. Prints the table of docs/benchmarks.md.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.runtime.crash_points import MANIFEST_WRITTEN, VARIABLE
from airflow_connect.runtime.spec import RunSpec
from tests.bench import last_release
from tests.support.waiting import wait_until

TOPICS_AT_ONCE, PARTITIONS_AT_ONCE = 500, 5_000
"""A broker refuses requests for much more."""
HEAP_MB = 2048
PARTITION_RECORDS = 10


@dataclass(frozen=True, slots=True)
class Case:
    """What is copied.

    Attributes:
        topics, partitions: of the load; each partition has `records` records.
        flush_size: records in a file.
        crash: a run is killed between its manifest and its commit first, and the run that is measured recovers it.
    """

    topics: int
    partitions: int
    records: int = PARTITION_RECORDS
    flush_size: int = 1000
    crash: bool = False

    @property
    def prefix(self) -> str:
        """Of the names of its topics."""
        return f"g{self.topics}x{self.partitions}x{self.records}{'c' if self.crash else ''}-"


CASES = {
    "10 topics": Case(10, 1),
    "1,000 topics": Case(1_000, 1),
    "10,000 topics": Case(10_000, 1),
    "1,000 partitions of a topic": Case(1, 1_000),
    "10,000 partitions of a topic": Case(1, 10_000),
    "a manifest of 100,000 files": Case(1, 10, records=10_000, flush_size=1),
    "a manifest of 100,000 files, recovered": Case(1, 10, records=10_000, flush_size=1, crash=True),
    "1 million small records": Case(1, 10, records=100_000, flush_size=5_000_000),
    "10 million small records": Case(1, 10, records=1_000_000, flush_size=5_000_000),
    "100 million small records": Case(1, 10, records=10_000_000, flush_size=5_000_000),
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one process, from its start to its end, the interpreter's included."""

    seconds: float
    cpu_s: float
    peak_mb: int
    report: Mapping[str, Any]


def main() -> int:
    """Measure and print; 1 if a run did something else than it should."""
    chosen = sys.argv[1:] or list(CASES)
    with memory_folder() as folder, KafkaBroker.start(folder / "kafka", heap_mb=HEAP_MB) as kafka:
        print("| what | files | s | CPU s | peak MB | then a run that finds nothing, s | CPU s | peak MB |")
        print("|---|---|---|---|---|---|---|---|", flush=True)
        for name in chosen:
            case = CASES[name]
            # In a process of its own: what a process has taken counts for those that it starts.
            filling = multiprocessing.get_context("spawn").Process(target=_fill, args=(kafka.bootstrap, case))
            filling.start()
            filling.join()
            if filling.exitcode:
                return 1
            target = folder / "out" / case.prefix
            if case.crash:
                _run(kafka.bootstrap, case, target, {VARIABLE: MANIFEST_WRITTEN})
            copied, idle = _run(kafka.bootstrap, case, target), idle_run(_spec(kafka.bootstrap, case, target))
            files = sum(path.is_file() for path in target.rglob("*"))
            wanted = case.topics * case.partitions * case.records
            lines = sum(map(_lines, (path for path in target.rglob("*") if path.is_file())))
            if lines != wanted:
                print(f"{name}: {lines} records instead of {wanted}, {copied.report}", file=sys.stderr)
                return 1
            cells = (f"{cost.seconds:.1f} | {cost.cpu_s:.1f} | {cost.peak_mb:,}" for cost in (copied, idle))
            print(f"| {name} | {files:,} | {' | '.join(cells)} |", flush=True)
    place = last_release.place()
    print(f"\nCommit {place['commit']}, {place['date']}, {place['machine']}: load average {os.getloadavg()[0]:.1f}.")
    return 0


@contextmanager
def memory_folder() -> Iterator[Path]:
    """A folder in memory, so that disks do not count."""
    memory = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="airflow-connect-bench-", dir=memory) as folder:
        yield Path(folder)


def _fill(bootstrap: str, case: Case) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    names = [f"{case.prefix}{number}" for number in range(case.topics)]
    for start in range(0, len(names), TOPICS_AT_ONCE):
        at_first = min(case.partitions, PARTITIONS_AT_ONCE)
        topics = [NewTopic(name, at_first, 1) for name in names[start : start + TOPICS_AT_ONCE]]
        for made in admin.create_topics(topics, request_timeout=120).values():
            made.result(180)
    for count in range(2 * PARTITIONS_AT_ONCE, case.partitions + 1, PARTITIONS_AT_ONCE):
        for grown in admin.create_partitions([NewPartitions(name, count) for name in names]).values():
            grown.result(180)
    failed: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "delivery.report.only.error": True,
            "on_delivery": lambda error, _: failed.append(error),
            "queue.buffering.max.messages": 1_000_000,
            "compression.type": "lz4",
            "linger.ms": 50,
        }
    )
    wait_until(lambda: _seen(producer, names) == case.topics * case.partitions, "the broker shows every partition")
    for name in names:
        for partition in range(case.partitions):
            for number in range(case.records):
                while True:
                    try:
                        producer.produce(name, f"record {number}", partition=partition)
                        break
                    except BufferError:
                        producer.poll(0.1)
        producer.poll(0)
    if producer.flush(300) or failed:
        raise RuntimeError(f"Not every record was written: {failed[:1]}")


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def _seen(producer: Producer, names: list[str]) -> int:
    shown = producer.list_topics(timeout=60).topics
    return sum(len(shown[name].partitions) for name in names if name in shown)


def _run(bootstrap: str, case: Case, target: Path, environment: Mapping[str, str] | None = None) -> Cost:
    return run_in_process(_spec(bootstrap, case, target), environment)


def _spec(bootstrap: str, case: Case, target: Path) -> RunSpec:
    strings = "org.apache.kafka.connect.storage.StringConverter"
    connector = {
        "name": f"growth-{case.prefix}",
        "connector.class": "LocalSink",
        "topics.regex": f"{case.prefix}.*",
        "store.url": f"file://{target}",
        "format.class": "io.confluent.connect.hdfs.string.StringFormat",
        "flush.size": str(case.flush_size),
        "tasks.max": "2",
    }
    worker = {"bootstrap.servers": bootstrap, "key.converter": strings, "value.converter": strings}
    return RunSpec(connector, {**worker, "runs.storage.replication.factor": "1"})


def run_in_process(spec: RunSpec, environment: Mapping[str, str] | None = None) -> Cost:
    """One run in a process of its own, without Spark.

    Raises:
        RuntimeError: the run failed.
    """
    return _measured("tests.bench.one_run", spec, environment)


def idle_run(spec: RunSpec) -> Cost:
    """One run that finds nothing, in the driver's program as Airflow starts it: it starts no Spark.

    Raises:
        RuntimeError: the run failed, or found something.
    """
    cost = _measured("airflow_connect.runtime.driver", spec)
    if cost.report["status"] != "empty":
        raise RuntimeError(f"There was something to copy: {cost.report}")
    return cost


def _measured(module: str, spec: RunSpec, environment: Mapping[str, str] | None = None) -> Cost:
    """One run by a module that reads a RunSpec from its input and ends its output with the report."""
    started = os.times().elapsed
    process = subprocess.Popen(
        [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, **(environment or {})}, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps(spec.to_json()) + "\n")
    process.stdin.flush()  # The driver kills itself when its input ends.
    lines = process.stdout.read().splitlines()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdin.close()
    last = json.loads(lines[-1]) if lines else {}
    report = last.get("report", last)
    if report.get("error"):
        raise RuntimeError(f"A run failed: {report['error']}")
    cpu_s = usage.ru_utime + usage.ru_stime
    return Cost(os.times().elapsed - started, cpu_s, usage.ru_maxrss // 1024, report)


if __name__ == "__main__":
    sys.exit(main())
