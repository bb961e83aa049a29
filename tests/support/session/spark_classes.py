"""The archive of the classes of Spark's JVM, made before the first test that starts Spark.

A start without it takes 20 s of CPU time instead of 5, and a session starts Spark fifty times, at first in all
processes at once. The archive is one of the installation (`airflow_connect.jvm.class_data`): only the first
session after `make env` makes it.

usage: python -m tests.support.session.spark_classes
"""

from __future__ import annotations

import os
import subprocess
import sys

from airflow_connect.jvm.cache import locked
from airflow_connect.runtime.engine.gateway import class_data
from airflow_connect.runtime.engine.session import DRIVER_MEMORY
from tests.support.processes.drivers import PROJECT


def make_once() -> None:
    """Return when there is an archive; of the processes that ask, the first one makes it."""
    with locked("spark-classes-of-tests"):
        if not class_data(DRIVER_MEMORY).exists:
            environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
            subprocess.run([sys.executable, "-m", __name__], cwd=PROJECT, env=environment, check=True)


def _write() -> None:
    """Run a job such as a copy is, in a JVM that writes the archive."""
    from airflow_connect.runtime.engine.session import open_session

    class_data(DRIVER_MEMORY).flags()  # the first start writes none
    opened = open_session({"spark.master": "local[2]"})
    try:
        frame = opened.session.range(0, 2, 1, numPartitions=2).mapInArrow(lambda batches: batches, "id long")
        assert len(frame.collect()) == 2
    finally:
        opened.stop()


if __name__ == "__main__":
    _write()
