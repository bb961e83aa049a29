"""A run in a separate process: reads a RunSpec as one JSON line, prints the report as one JSON line.

With the argument `--records` it uses no columns.
"""

import json
import sys

from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.engine.in_process import InProcessEngine
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.runs import RECORDS

if __name__ == "__main__":
    spec = RunSpec.from_json(json.loads(sys.stdin.readline()))
    engine = InProcessEngine(columnar=RECORDS not in sys.argv)
    print(json.dumps(run_connector(spec, engine=engine).to_json()), flush=True)
