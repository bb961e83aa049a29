"""A driver process without Spark: reads a run's specification from stdin, runs it, prints its report.

It leads a process group of its own, so that a crash point, or a test, kills it and nothing else.
"""

import functools
import json
import sys

from airflow_connect.connectors.files.hdfs import config as hdfs_config
from airflow_connect.connectors.jdbc.sink import task as jdbc_task
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.spec import RunSpec
from tests.support.copies.s3 import InProcessEngine

HDFS_PIECE_BYTES = 1 << 20
"""Files of the rounds with large records are written while they grow."""

FEWEST_IN_COLUMNS = 2
"""Rounds have few records, which would all be written as rows."""

if __name__ == "__main__":
    jdbc_task.FEWEST_IN_COLUMNS = FEWEST_IN_COLUMNS
    smaller = functools.partial(hdfs_config.HdfsSettings, piece_bytes=HDFS_PIECE_BYTES)
    hdfs_config.HdfsSettings = smaller  # type: ignore[assignment,misc]
    spec = RunSpec.from_json(json.loads(sys.stdin.readline()))
    report = run_connector(spec, engine=InProcessEngine())
    print(json.dumps(report.to_json()), flush=True)
