"""What many connectors cost one worker: a first copy of each, new records for all at once, and a minute without any.

usage: python -m tests.bench.growth_connectors [CONNECTORS ...]

Each connector writes a topic of its own into a file of its own. Prints the table of docs/benchmarks.md.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer

from airflow_connect.devstack.kafka import KafkaBroker
from tests.bench import last_release
from tests.bench.growth import memory_folder
from tests.bench.processes import TreeSampler, cpu_seconds
from tests.support.kafka_data import create_topic
from tests.support.servers.rest import worker_of
from tests.support.servers.worker_process import WorkerProcess
from tests.support.waiting import wait_until

COUNTS = (10, 300)
RECORDS, NEW_RECORDS = 100, 1
IDLE_S, LONGEST_S = 60.0, 1800.0
"""The idle minute is what is measured, and no wait for anything."""
STRINGS = "org.apache.kafka.connect.storage.StringConverter"


@dataclass(frozen=True, slots=True)
class Step:
    """Wall time, and CPU time of the worker's processes."""

    seconds: float
    cpu_s: float


def main() -> int:
    """Measure and print."""
    counts = [int(word) for word in sys.argv[1:]] or list(COUNTS)
    with memory_folder() as folder, KafkaBroker.start(folder / "kafka") as kafka:
        print(
            "| connectors | first copies, s | CPU s | new records for all, s | CPU s | idle minute, CPU s | peak MB |"
        )
        print("|---|---|---|---|---|---|---|", flush=True)
        for count in counts:
            with tempfile.TemporaryDirectory(dir=folder) as own:
                print(_measured(kafka.bootstrap, Path(own), count), flush=True)
    place = last_release.place()
    print(f"\nCommit {place['commit']}, {place['date']}, {place['machine']}: load average {os.getloadavg()[0]:.1f}.")
    return 0


def _measured(bootstrap: str, folder: Path, count: int) -> str:
    names = [f"many-{count}-{number}" for number in range(count)]
    for name in names:
        create_topic(bootstrap, name, 1)
    produce(bootstrap, names, RECORDS)
    with WorkerProcess(folder, _worker(bootstrap, count)) as worker, TreeSampler(worker.pid) as sampler:

        def step(wanted: int, begin: Callable[[], None]) -> Step:
            started, cpu = time.monotonic(), cpu_seconds(worker.pid)
            begin()
            done = lambda: all(_lines(folder / name) >= wanted for name in names)  # noqa: E731
            wait_until(done, f"{count} connectors to copy everything", LONGEST_S, every_s=0.1)
            return Step(time.monotonic() - started, cpu_seconds(worker.pid) - cpu)

        def configure() -> None:
            for name in names:
                answer = worker.send("PUT", f"/connectors/{name}/config", _config(name, folder))
                if answer.status != 201:
                    raise RuntimeError(f"{name}: {answer.status} {answer.body}")

        first = step(RECORDS, configure)
        again = step(RECORDS + NEW_RECORDS, lambda: produce(bootstrap, names, NEW_RECORDS))
        cpu = cpu_seconds(worker.pid)
        time.sleep(IDLE_S)
        idle = cpu_seconds(worker.pid) - cpu
    copies = " | ".join(f"{each.seconds:.1f} | {each.cpu_s:.1f}" for each in (first, again))
    return f"| {count} | {copies} | {idle:.1f} | {sampler.peak_bytes / 1e6:,.0f} |"


def _worker(bootstrap: str, count: int) -> dict[str, str]:
    own = {"runs.storage.replication.factor": "1", "listeners": "http://127.0.0.1:0", "spark.master": "local[2]"}
    texts = {"key.converter": STRINGS, "value.converter": STRINGS}
    return {**worker_of(bootstrap, f"many-{count}"), **texts, **own}


def _config(name: str, folder: Path) -> dict[str, str]:
    return {"connector.class": "FileStreamSink", "topics": name, "file": str(folder / name), "tasks.max": "1"}


def produce(bootstrap: str, names: list[str], count: int) -> None:
    failed: list[object] = []
    settings = {"bootstrap.servers": bootstrap, "on_delivery": lambda error, _: failed.append(error) if error else None}
    producer = Producer(settings)
    for name in names:
        for number in range(count):
            producer.produce(name, f"record {number}")
        producer.poll(0)
    if producer.flush(120) or failed:
        raise RuntimeError(f"Not every record was written: {failed[:1]}")


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


if __name__ == "__main__":
    sys.exit(main())
