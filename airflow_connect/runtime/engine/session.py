"""Opening a Spark session that starts fast and dies with its driver."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_connect.api.errors import TaskFailedError, missing_package
from airflow_connect.runtime.engine.gateway import Gateway, start_gateway
from airflow_connect.runtime.engine.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRIVER_MEMORY = "512m"

_DEFAULTS = {
    "spark.app.name": "airflow-connect",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.python.worker.reuse": "true",
    # One row is one task: a batch must never hold two.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
}
_LOCAL_DEFAULTS = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


@dataclass
class OpenSession:
    """A session and, where this process started one, its JVM."""

    session: SparkSession
    gateway: Gateway | None = None

    def stop(self) -> None:
        """End the session, then the JVM."""
        try:
            self.session.stop()
        finally:
            if self.gateway is not None:
                _forget_gateway()
                self.gateway.stop()


def open_session(settings: Mapping[str, str]) -> OpenSession:
    """A session for the master (or Spark Connect server) that `settings` name; `local[*]` without one.

    Args:
        settings: `spark.*`; they win over the defaults here.

    Raises:
        MissingPackageError: pyspark is not installed.
        TaskFailedError: Spark did not start.
    """
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise missing_package("pyspark", "spark", purpose="Copying with Spark") from error

    remote = settings.get("spark.remote", "")
    if remote:
        builder = SparkSession.builder.remote(remote)
        for key, value in settings.items():
            if key.startswith("spark.sql."):
                builder = builder.config(key, value)
        return OpenSession(builder.getOrCreate())
    master = settings.get("spark.master", "local[*]")
    merged = {**_DEFAULTS, **(_LOCAL_DEFAULTS if master.startswith("local") else {}), **settings}
    os.environ["JAVA_HOME"] = java_home()
    gateway = None
    if master.startswith(("local", "spark://")):
        options = shlex.split(merged.pop("spark.driver.extraJavaOptions", ""))
        gateway = start_gateway(merged.pop("spark.driver.memory", DRIVER_MEMORY), options)
    builder = SparkSession.builder.master(_with_retries(master))
    for key, value in merged.items():
        if key.startswith("spark.") and key != "spark.master":
            builder = builder.config(key, value)
    try:
        return OpenSession(builder.getOrCreate(), gateway)
    except Exception as error:
        reason = " ".join(str(error).split("\n\tat ")[0].split())  # Asks the JVM, so before that is ended.
        if gateway is not None:
            _forget_gateway()
            gateway.stop()
        raise TaskFailedError(
            f"Spark did not start: {reason[:1000].rstrip('.')}.",
            suggestion="Check spark.master of the worker and its settings.",
        ) from error


def _forget_gateway() -> None:
    """Pyspark keeps its connection in class attributes; the next session of this process needs a new JVM."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None


def _with_retries(master: str) -> str:
    """`local[N]` gives a task one attempt; `local[N,4]` gives it four, as a cluster does (spark.task.maxFailures)."""
    if master.startswith("local[") and master.endswith("]") and "," not in master:
        return f"{master[:-1]},4]"
    return "local[1,4]" if master == "local" else master
