"""The process under measurement: runs connectors one after the other in one Spark session.

A line of standard input is a run: `{"connector": ..., "worker": ...}`. A line of standard output is its report. What is
measured is what a user runs: `run_connector` with the Spark engine, as `airflow-connect standalone` with several
connectors does.
"""

from __future__ import annotations

import json
import sys

from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.engine.spark import SparkEngine
from airflow_connect.runtime.spec import RunSpec


def main() -> None:
    """Run until the input ends."""
    engine: SparkEngine | None = None
    try:
        for line in sys.stdin:
            asked = json.loads(line)
            if engine is None:
                engine = SparkEngine({k: v for k, v in asked["worker"].items() if k.startswith("spark.")})
            report = run_connector(RunSpec(asked["connector"], asked["worker"]), engine=engine)
            print(json.dumps(report.to_json()), flush=True)
    finally:
        if engine is not None:
            engine.stop()


if __name__ == "__main__":
    main()
