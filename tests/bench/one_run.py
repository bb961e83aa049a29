"""A run without Spark in this process: reads a RunSpec as one JSON line, prints the report as one JSON line.

Unlike `airflow_connect.testing.run_once`, it imports no test suites, which would count.
"""

import json
import sys

from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.engine.in_process import InProcessEngine
from airflow_connect.runtime.spec import RunSpec

if __name__ == "__main__":
    given = RunSpec.from_json(json.loads(sys.stdin.readline()))
    print(json.dumps(run_connector(given, engine=InProcessEngine()).to_json()), flush=True)
