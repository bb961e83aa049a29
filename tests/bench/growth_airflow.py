"""What many connectors cost an Airflow that starts them all at the same minute.

usage: python -m tests.bench.growth_airflow [CONNECTORS]

Three rounds: first copies, nothing new, and, for comparison, as many DAGs whose task does nothing.

Each connector is a file in one folder (`connector_dags`), and copies a topic of its own into a file of its own. Prints
the table of docs/benchmarks.md.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow_connect.devstack.kafka import KafkaBroker
from tests.bench import last_release
from tests.bench.growth import memory_folder
from tests.bench.growth_connectors import STRINGS, produce
from tests.bench.processes import TreeSampler, cpu_seconds
from tests.support.kafka_data import create_topic
from tests.support.servers.airflow import AirflowServer
from tests.support.waiting import wait_until

CONNECTORS = 300
RECORDS = 100
LONGEST_S, EVERY_S = 3600.0, 1.0
PAGE = 100
"""REST gives no more DAGs at once."""
FOLDER_OF_CONNECTORS = """
from airflow_connect.operators.dag_factory import DagSettings, connector_dags

settings = DagSettings(schedule={schedule!r}, start_date={start!r}, retries=0, is_paused_upon_creation=False)
connector_dags({folder!r}, settings=settings, kafka_conn_id="our_kafka", worker={worker!r})
"""
DAGS_WITHOUT_WORK = """
from datetime import datetime

from airflow.sdk import DAG, task

for number in range({count}):
    with DAG(
        f"nothing-{{number}}", schedule={schedule!r}, start_date=datetime.fromisoformat({start!r}), catchup=False,
        is_paused_upon_creation=False,
    ):

        @task
        def nothing():
            pass

        nothing()
"""


@dataclass(frozen=True, slots=True)
class Round:
    """From the scheduled minute to the end of the last DAG run; CPU time of every process of Airflow."""

    seconds: float
    cpu_s: float
    peak_mb: float


def main() -> int:
    """Measure and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else CONNECTORS
    names = [f"many-{number}" for number in range(count)]
    with (
        memory_folder() as folder,
        tempfile.TemporaryDirectory(prefix="airflow-connect-bench-") as connectors,
        KafkaBroker.start(folder / "kafka") as kafka,
    ):
        for name in names:
            create_topic(kafka.bootstrap, name, 1)
            Path(connectors, f"{name}.json").write_text(json.dumps(_config(name, folder)))
        produce(kafka.bootstrap, names, RECORDS)
        airflow = AirflowServer()
        try:
            extra = {"bootstrap.servers": kafka.bootstrap, "runs.storage.replication.factor": "1"}
            airflow.connect("our_kafka", "kafka", extra)
            worker = {"key.converter": STRINGS, "value.converter": STRINGS, "spark.master": "local[1]"}
            arguments = {"folder": connectors, "worker": worker}
            copies = _round(airflow, names, "copies", FOLDER_OF_CONNECTORS, arguments)
            lines = sum((folder / "out" / name).read_bytes().count(b"\n") for name in names)
            if lines != count * RECORDS:
                raise RuntimeError(f"{lines} records instead of {count * RECORDS}")
            idle = _round(airflow, names, "copies", FOLDER_OF_CONNECTORS, arguments)
            nothing = [f"nothing-{number}" for number in range(count)]
            bare = _round(airflow, nothing, "nothing", DAGS_WITHOUT_WORK, {"count": count})
        finally:
            airflow.stop()
    print("| round | s | CPU s | CPU s for each run | peak MB |")
    print("|---|---|---|---|---|")
    rows = (
        (f"first copies of {count} connectors", copies),
        ("nothing new", idle),
        (f"{count} DAGs whose task does nothing", bare),
    )
    for what, cost in rows:
        print(f"| {what} | {cost.seconds:.0f} | {cost.cpu_s:.0f} | {cost.cpu_s / count:.2f} | {cost.peak_mb:,.0f} |")
    place = last_release.place()
    print(f"\nCommit {place['commit']}, {place['date']}, {place['machine']}: load average {os.getloadavg()[0]:.1f}.")
    return 0


def _round(
    airflow: AirflowServer, dag_ids: Sequence[str], file: str, source: str, arguments: Mapping[str, object]
) -> Round:
    """Schedule every DAG for one minute that comes, and wait for the ends of their runs."""
    minute = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(minutes=2)
    schedule = f"{minute.minute} {minute.hour} {minute.day} {minute.month} *"
    start = (minute - timedelta(minutes=1)).isoformat()
    airflow.deploy(file, source.format(schedule=schedule, start=start, **arguments), *dag_ids)
    wait_until(lambda: datetime.now(UTC) >= minute, f"{minute:%H:%M}", 180, EVERY_S)
    before, started = cpu_seconds(airflow.pid), time.monotonic()
    with TreeSampler(airflow.pid) as sampler:
        wait_until(lambda: _ended(airflow, minute) == len(dag_ids), f"{len(dag_ids)} runs", LONGEST_S, EVERY_S)
        seconds = time.monotonic() - started
    return Round(seconds, cpu_seconds(airflow.pid) - before, sampler.peak_bytes / 1e6)


def _ended(airflow: AirflowServer, since: datetime) -> int:
    """How many runs that started at `since` or later have ended.

    Raises:
        RuntimeError: one of them failed.
    """
    found = airflow.get("dags/~/dagRuns", run_after_gte=since.isoformat(), state="failed", limit=1)
    if found["total_entries"]:
        raise RuntimeError(f"A run failed: {found['dag_runs'][0]}")
    total: int = airflow.get("dags/~/dagRuns", run_after_gte=since.isoformat(), state="success", limit=1)[
        "total_entries"
    ]
    return total


def _config(name: str, folder: Path) -> dict[str, str]:
    path = folder / "out" / name
    path.parent.mkdir(exist_ok=True)
    return {
        "name": name,
        "connector.class": "FileStreamSink",
        "topics": name,
        "file": str(path),
        "tasks.max": "1",
    }


if __name__ == "__main__":
    sys.exit(main())
