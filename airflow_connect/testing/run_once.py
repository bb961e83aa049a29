"""A run in a process of its own: reads a RunSpec as one JSON line, prints the report as one JSON line."""

import json
import sys

from airflow_connect.runtime.driver.run import run_connector
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.runs import InProcessEngine

if __name__ == "__main__":
    spec = RunSpec.from_json(json.loads(sys.stdin.readline()))
    print(json.dumps(run_connector(spec, engine=InProcessEngine()).to_json()), flush=True)
