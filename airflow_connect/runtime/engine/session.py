"""Opens a Spark session that starts fast and ends with its driver."""

from __future__ import annotations

import os
import shlex
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.errors import ConfigError, TaskFailedError, missing_package
from airflow_connect.jvm.java import java_home
from airflow_connect.runtime.engine import worker_daemon
from airflow_connect.runtime.engine.gateway import Gateway, spark_home, start_gateway, start_submitted
from airflow_connect.runtime.engine.pyspark_versions import ensure_one_version
from airflow_connect.runtime.engine.spark_settings import (
    DEFAULT_MASTER,
    MASTER,
    REMOTE,
    needs_spark_submit,
    refuse_unusable,
)
from airflow_connect.runtime.reporting.redaction import Redactor, secret_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRIVER_MEMORY = "512m"

_DEFAULTS = {
    "spark.app.name": "airflow-connect",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.python.worker.reuse": "true",
    # A worker runs several connectors at once: tasks of one that is large leave room for those of the others.
    "spark.scheduler.mode": "FAIR",
    # Settings that Spark hides in its log, UI and event log; its own expression misses some of these names.
    "spark.redaction.regex": "(?i)secret|passw|passphrase|token|access.?key|api.?key|credential|jaas|private.?key",
    # A larger function would be broadcast: pyspark writes it to a file, and so does each executor. It holds secrets.
    "spark.broadcast.UDFCompressionThreshold": "1g",
    # One row is one task: a batch must never hold two.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    # A job has one row for each task: compiling Java code for it, and planning it again while it runs, save nothing and
    # take a quarter of a second of CPU time.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
_LOCAL_DEFAULTS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # Elsewhere, this package may reach an executor only after its daemon has started.
    "spark.python.daemon.module": worker_daemon.MODULE,
}


@dataclass
class OpenSession:
    """A session and, where this process started one, its JVM."""

    session: SparkSession
    gateway: Gateway | None = None

    def stop(self) -> None:
        """End the session, then the JVM."""
        try:
            if self.gateway is not None:
                _stop_accumulators(self.session)
            self.session.stop()
        finally:
            if self.gateway is not None:
                _forget_gateway()
                self.gateway.stop()


def open_session(settings: Mapping[str, str]) -> OpenSession:
    """A session for the master (or Spark Connect server) that `settings` name; `local[*]` without one.

    No setting appears on a command line or in an environment, whatever the master is.

    Args:
        settings: `spark.*`; they take precedence over the defaults here.

    Raises:
        MissingPackageError: pyspark is not installed.
        ConfigError: a setting cannot be applied, pyspark and pyspark-client have different versions, or this process
            has a session already.
        AccessError: no Java 17 or newer.
        TaskFailedError: Spark did not start.
    """
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise missing_package("pyspark", "spark", purpose="Copying with Spark") from error

    ensure_one_version()
    refuse_unusable(settings)
    _refuse_session_of_others(is_remote=bool(settings.get(REMOTE)))
    if settings.get(REMOTE):
        builder = SparkSession.builder.remote(settings[REMOTE])
        for key, value in settings.items():
            if key.startswith("spark.sql."):
                builder = builder.config(key, value)
        return OpenSession(builder.create())  # Not `getOrCreate`: the program around this may have one of its own.
    master = settings.get(MASTER, DEFAULT_MASTER)
    merged = {**_DEFAULTS, **(_LOCAL_DEFAULTS if master.startswith("local") else {}), **settings}
    merged[MASTER] = _with_retries(master)
    os.environ["JAVA_HOME"] = java_home()
    os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)  # pyspark sets it for Spark Connect, and leaves it there.
    if needs_spark_submit(settings, spark_home()):
        # spark-submit has prepared the settings of the JVM; setting them again would undo that.
        gateway, own = start_submitted(merged), {}
    else:
        options = shlex.split(merged.pop("spark.driver.extraJavaOptions", ""))
        gateway, own = start_gateway(merged.pop("spark.driver.memory", DRIVER_MEMORY), options), merged
    builder = SparkSession.builder.config("spark.api.mode", "classic")  # The environment may have another value.
    for key, value in own.items():
        builder = builder.config(key, value)
    try:
        return OpenSession(builder.getOrCreate(), gateway)
    except Exception as error:
        reason = " ".join(str(error).split("\n\tat ")[0].split())  # Asks the JVM, so before that is ended.
        _forget_gateway()
        gateway.stop()
        raise TaskFailedError(
            f"Spark did not start: {Redactor(secret_values(settings))(reason)[:1000].rstrip('.')}.",
            suggestion="Check spark.master of the worker and its settings.",
        ) from error


def _refuse_session_of_others(*, is_remote: bool) -> None:
    """Leave a session of the program around this alone: pyspark would hand it out, with its settings, as a new one.

    Stopping it would also end what the program does with it. Sessions of Spark Connect exist side by side.

    Raises:
        ConfigError: this process has such a session.
    """
    core = sys.modules.get("pyspark.core.context") or sys.modules.get("pyspark.context")
    context = getattr(core, "SparkContext", None)
    has_classic = getattr(context, "_active_spark_context", None) is not None
    connect = getattr(sys.modules.get("pyspark.sql.connect.session"), "SparkSession", None)
    has_connect = connect is not None and (connect.getActiveSession() or connect._get_default_session()) is not None
    if has_classic or (has_connect and not is_remote):
        raise ConfigError(
            "This process has a Spark session already, and a run must not take it over.",
            code="spark.session_in_use",
            config_path=REMOTE if is_remote else MASTER,
            suggestion="Stop that session before the run, let both use Spark Connect (spark.remote), or run the"
            " connector in a process of its own. An embedded Connect can also do without Spark: in_process=True.",
        )


def _forget_gateway() -> None:
    """Pyspark keeps its connection in class attributes; the next session of this process needs a new JVM."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None


def _stop_accumulators(session: SparkSession) -> None:
    """Stop pyspark's server for accumulators, which a copy does not use, while Spark stops and not after it.

    It looks once a second whether it should stop, and `SparkSession.stop` would wait for that (pyspark/accumulators.py
    in Spark 4.2). The end of the JVM closes its connection before that: for this server, an error with a traceback.
    """
    context: Any = session.sparkContext
    server, context._accumulatorServer = getattr(context, "_accumulatorServer", None), None
    if server is not None:
        server.handle_error = lambda *connection: None
        threading.Thread(target=server.shutdown, name="accumulators-stop", daemon=True).start()


def _with_retries(master: str) -> str:
    """`local[N]` gives a task one attempt; `local[N,4]` gives it four, as a cluster does (spark.task.maxFailures)."""
    if master.startswith("local[") and master.endswith("]") and "," not in master:
        return f"{master[:-1]},4]"
    return "local[1,4]" if master == "local" else master
