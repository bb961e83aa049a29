"""`make bench ARGS=--parse`: how long it takes to parse a folder of 300 connectors, in processes that are new.

Airflow parses DAG files again and again. What it takes to import Airflow is measured apart: it is not ours.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

CONNECTORS, REPEAT = 300, 5
PROJECT = Path(__file__).parents[2]
SINK = {
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "s3.bucket.name": "landing",
    "s3.region": "eu-central-1",
    "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
    "flush.size": "10000",
}
PARSE = """
import json, sys, time
def now(): return time.perf_counter(), time.process_time()
started = now()
from airflow.sdk import DAG, Asset, BaseOperator, Param
imported = now()
from airflow_connect.operators.dag_factory import DagSettings, connector_dags
dags = connector_dags(sys.argv[1], settings=DagSettings(schedule="@hourly"))
ended = now()
print(json.dumps([*(b - a for pair in ((started, imported), (imported, ended)) for a, b in zip(*pair)), len(dags)]))
"""


def measure_parse() -> int:
    """Print the median of some processes; returns an exit code."""
    with tempfile.TemporaryDirectory(prefix="airflow-connect-bench-") as name:
        folder = Path(name)
        connectors = folder / "connectors"
        connectors.mkdir()
        for number in range(CONNECTORS):
            config = {"name": f"orders-{number}", "topics": f"orders-{number}", **SINK}
            (connectors / f"orders-{number}.json").write_text(json.dumps(config))
        measured = [_parse(connectors, folder / "airflow") for _ in range(REPEAT)]
    importing, importing_cpu, parsing, parsing_cpu = (statistics.median(of) for of in zip(*measured, strict=True))
    print(f"Import of Airflow: {importing:.2f} s, {importing_cpu:.2f} s of CPU. Medians of {REPEAT} processes.")
    print(f"{CONNECTORS} connectors: {parsing:.2f} s more, {parsing_cpu:.2f} s of CPU.")
    return 0


def _parse(connectors: Path, home: Path) -> list[float]:
    env = {**os.environ, "AIRFLOW_HOME": str(home), "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(
        [sys.executable, "-c", PARSE, str(connectors)], env=env, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    *seconds, found = json.loads(done.stdout.splitlines()[-1])
    if found != CONNECTORS:
        raise SystemExit(f"{found} of {CONNECTORS} connectors became DAGs.")
    return seconds
