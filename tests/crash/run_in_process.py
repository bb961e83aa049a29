"""A driver process without Spark: reads a run's specification from stdin, runs it, prints its report.

It leads a process group of its own, so that a crash point, or a test, kills it and nothing else.
"""

import json
import sys

from airflow_connect.runtime.driver.run import run_connector
from airflow_connect.runtime.spec import RunSpec
from tests.support.runs import InProcessEngine

if __name__ == "__main__":
    spec = RunSpec.from_json(json.loads(sys.stdin.readline()))
    report = run_connector(spec, engine=InProcessEngine())
    print(json.dumps(report.to_json()), flush=True)
