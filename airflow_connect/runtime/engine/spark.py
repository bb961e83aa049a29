"""Spark as the engine: one job per run, one Spark task per Connect task, results as rows.

DataFrame API only, so that classic Spark (local, standalone, YARN, Kubernetes) and Spark Connect run the same code. A
row of the job is a task's number; `mapInArrow` hands it to one Python process that does the whole copy and returns one
row with the report. Bytes of records never pass through the JVM. Spark keeps the rows of the first successful attempt
of each task, and there is no commit coordinator: the output of losing attempts is invisible by design (exactly_once/).
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from airflow_connect.documents.run import TaskPlan, TaskReport
from airflow_connect.errors import ConfigError, ConnectError, TaskFailedError
from airflow_connect.runtime.engine import jobs
from airflow_connect.runtime.engine.cancelling import Canceller
from airflow_connect.runtime.engine.job_failures import executor_problem
from airflow_connect.runtime.engine.session import OpenSession, open_session
from airflow_connect.runtime.engine.task_rows import ROW_SCHEMA, error_of, reports_of, task_function
from airflow_connect.runtime.machines import DriverMachine, driver_machine, has_other_machines, sent_names
from airflow_connect.runtime.reporting.redaction import Redactor, secret_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_connect.runtime.settings import TaskSettings

log = logging.getLogger(__name__)

MAX_REASON_CHARS = 1000
ATTEMPTS_END_WITHIN_S = 15.0
"""Spark requests a task to end, and kills its Python process if it has not ended after two seconds."""
_ATTEMPTS_POLL_S = 0.1
SUSPECT_ENDS_WITHIN_S = 60.0
"""How long a job waits for the end of others, if a failure suggests that their session is broken."""
_LOOPBACK = "127.0.0.1"
_PYTHON = "PYSPARK_PYTHON"
_ANY_PORT = 9  # Connecting a datagram socket sends nothing; it only chooses an interface.


class SparkEngine:
    """Runs tasks on Spark; starts its session at the first job and keeps it for the next ones. Threads may share it."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        """`settings`: `spark.*` of the worker (`spark.master` or `spark.remote`, and whatever Spark accepts)."""
        self._settings = dict(settings)
        self._open: OpenSession | None = None
        self._changed = threading.Condition()
        self._users = 0
        self._is_suspect = False
        self._at_work: dict[str, bool] = {}  # Runs that have a job, and whether it was cancelled.
        self._canceller = Canceller(self._cancel_job, self._kill)
        self._is_remote = bool(self._settings.get("spark.remote"))
        self._speculates = False
        self._redact = Redactor(secret_values(self._settings))

    def __enter__(self) -> SparkEngine:
        """Starts nothing yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the session."""
        self.stop()

    @property
    def may_leave_duplicates(self) -> bool:
        """Whether Spark may run second copies of slow tasks (`spark.speculation`), according to the session."""
        return self._speculates

    def progress_host(self) -> str:
        """Address under which executors reach this process.

        Spark's address for the driver if it is configured, loopback for `local`, else that of the interface through
        which the master (or the Spark Connect server) is reached.
        """
        configured = self._settings.get("spark.driver.host") or os.environ.get("SPARK_LOCAL_IP")
        return configured or _own_address_towards(self._settings)

    def run(self, settings: TaskSettings, tasks: Sequence[TaskPlan]) -> list[TaskReport]:
        """Run every task.

        Raises:
            TaskFailedError: Spark failed, or gave up on a task for a reason that is not ours.
            ConnectError: the error of the last attempt of a task.
        """
        run_id = settings.run_id
        self._at_work[run_id] = False
        try:
            return self._run(settings, tasks)
        finally:
            self._at_work.pop(run_id, None)

    def _run(self, settings: TaskSettings, tasks: Sequence[TaskPlan]) -> list[TaskReport]:
        connector, run_id = settings.connector.get("name", ""), settings.run_id
        with self._using() as session, jobs.named(session, run_id, connector, is_remote=self._is_remote):
            if self._speculates and settings.source is not None and settings.source.guarantee.may_lose:
                raise _two_writers(connector)
            function = task_function(settings, tasks, self._machine(settings))
            try:
                frame = session.range(0, len(tasks), 1, numPartitions=len(tasks)).mapInArrow(function, ROW_SCHEMA)
                rows = frame.collect()
            except Exception as error:  # noqa: BLE001 (py4j, gRPC and pyspark have no common base)
                text = _text(error)  # asks the JVM, so before that is ended
                ours = error_of(text) or executor_problem(text)
                is_expected = ours is not None or self._at_work.get(run_id, False)
                if not (is_expected and self._wait_for_attempts(session, run_id)):
                    # The JVM or the server may be what failed: the next run of this process gets a new session.
                    self._is_suspect = True
                raise ours or self._job_failed(text) from None
        return sorted(reports_of(row[0] for row in rows), key=lambda report: report.task)

    def _machine(self, settings: TaskSettings) -> DriverMachine | None:
        """What executors on other machines need to know about this one."""
        if not has_other_machines(self._settings):
            return None
        if names := sent_names():
            log.info("Executors without a login of their own get %s of this process's environment.", ", ".join(names))
        return driver_machine(settings.connector, settings.worker, *settings.task_configs)

    def cancel(self, run_id: str) -> None:
        """Let the job of a run fail, from another thread; does not wait for that."""
        if run_id in self._at_work:
            self._at_work[run_id] = True
            self._canceller.cancel(run_id)

    def _cancel_job(self, run_id: str) -> None:
        opened = self._open
        if opened is None:
            return
        try:
            jobs.cancel(opened.session, run_id, is_remote=self._is_remote)
        except Exception as error:  # noqa: BLE001 (as in `run`; without its session, the job fails anyway)
            log.warning("The Spark job of run %s was not cancelled: %s", run_id, self._redact(_reason(_text(error))))

    def _kill(self) -> None:
        """End the JVM, if this process has started one, without asking it: calls that wait for it fail."""
        opened = self._open
        if opened is not None and opened.gateway is not None:
            opened.gateway.process.kill()

    def _job_failed(self, text: str) -> TaskFailedError:
        ended = None if self._open is None or self._open.gateway is None else self._open.gateway.how_it_ended()
        if ended:
            return TaskFailedError(
                f"The JVM of Spark {ended} while a job used it.",
                suggestion="The next run starts another JVM, and resumes after what was committed. If it was not"
                " ended on purpose, the memory of the machine may not be enough: see the log of the system.",
            )
        return TaskFailedError(
            f"The Spark job failed: {self._redact(_reason(text))}.",
            suggestion="See the Spark log for details. Running again is safe: it resumes after what was committed.",
        )

    @contextmanager
    def _using(self) -> Iterator[SparkSession]:
        """The session, for one job. One that may be broken ends when its last job has left it."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._is_suspect, SUSPECT_ENDS_WITHIN_S):
                self._end_suspect()  # The jobs that are left do not end.
            session = self._get_session()
            self._users += 1
        try:
            yield session
        finally:
            with self._changed:
                self._users -= 1
                if self._is_suspect and not self._users:
                    self._end_suspect()

    def _end_suspect(self) -> None:
        self.stop()
        self._is_suspect = False
        self._changed.notify_all()

    def stop(self) -> None:
        """End the session and its JVM; idempotent."""
        opened, self._open = self._open, None
        if opened is None:
            return
        if self._is_remote:
            opened.session.client.set_retry_policies([])  # A server that is gone has ended the session, too.
        try:
            opened.stop()
        except Exception as error:  # noqa: BLE001 (as above; what is gone needs no stop)
            log.warning("The Spark session did not end cleanly: %s", self._redact(_reason(_text(error))))
            _forget(opened)

    def _wait_for_attempts(self, session: SparkSession, run_id: str) -> bool:
        """Wait for the other tasks of a failed job, which Spark ends within some seconds: they may still stage.

        A Spark Connect server does not report this; files that they stage late are left to the sweep of the next run.

        Returns:
            Whether the session answers.
        """
        if self._is_remote:
            return True
        deadline = time.monotonic() + ATTEMPTS_END_WITHIN_S
        try:
            while time.monotonic() < deadline:
                if not jobs.running_tasks(session, run_id):
                    return True
                time.sleep(_ATTEMPTS_POLL_S)
        except Exception as error:  # noqa: BLE001 (as in `run`, whose error is the one that counts)
            log.warning("Spark does not tell which tasks it runs: %s", self._redact(_reason(_text(error))))
            return False
        log.warning("Spark has not ended all tasks of the failed job within %g s.", ATTEMPTS_END_WITHIN_S)
        return True

    def _get_session(self) -> SparkSession:
        if self._open is None:
            try:
                with _python_of_executors(self._settings):
                    self._open = open_session(self._settings)
                if self._is_remote:
                    _limit_connect_retries(self._open.session)
                # Read now, because the session may be gone when the value is needed. Defaults files set it too.
                self._speculates = self._open.session.conf.get("spark.speculation", "false") == "true"
            except ConnectError:
                raise
            except Exception as error:
                raise TaskFailedError(
                    f"Spark did not start: {self._redact(_reason(_text(error)))}.",
                    suggestion="Check spark.master or spark.remote of the worker, and Java.",
                ) from error
        return self._open.session


@contextmanager
def _python_of_executors(settings: Mapping[str, str]) -> Iterator[None]:
    """Let a session that opens in the block know which interpreter executors start.

    Without it they would start whatever `python3` is first in PATH, without this package. pyspark itself uses only the
    environment, and only now; spark-submit would have translated the setting. Other sessions of this process may have
    executors elsewhere, so the variable is as it was afterwards.
    """
    before = os.environ.get(_PYTHON)
    os.environ[_PYTHON] = settings.get("spark.pyspark.python") or before or sys.executable
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_PYTHON, None)
        else:
            os.environ[_PYTHON] = before


def _two_writers(connector: str) -> ConfigError:
    """The error for a source that no transaction protects from a second attempt at the same time."""
    return ConfigError(
        f"The Spark session has spark.speculation=true, and {connector} delivers at most once: two attempts of a task"
        " would write the same records.",
        code="spark.speculation",
        config_path="spark.speculation",
        suggestion="Set spark.speculation=false for this worker, or delivery.guarantee=exactly_once for the connector.",
    )


def _limit_connect_retries(session: SparkSession) -> None:
    """Make the client of Spark Connect give up after a minute; by default it would try for more than ten."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(max_retries=8, max_backoff=15_000)])


def _forget(opened: OpenSession) -> None:
    """Clear pyspark's class attributes of a session whose JVM died, which would otherwise be reused."""
    if opened.gateway is None:
        return  # Spark Connect, whose client forgets by itself.
    from pyspark import SparkContext
    from pyspark.sql import SparkSession, SQLContext

    context = SparkContext._active_spark_context
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.shutdown()
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
    SQLContext._instantiatedContext = None
    opened.gateway.stop()


def _own_address_towards(settings: Mapping[str, str]) -> str:
    where = settings.get("spark.remote") or settings.get("spark.master", "local[*]")
    if where.startswith("local"):
        return _LOOPBACK
    found = re.match(r"(?:sc|spark|k8s)://(?:https?://)?([^:/;,]+)", where)
    if found is None:
        return socket.gethostname()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((found[1], _ANY_PORT))
        except OSError:
            return _LOOPBACK  # The host is unreachable: there will be no progress bar, and Spark reports the problem.
        return str(probe.getsockname()[0])


def _text(error: Exception) -> str:
    """The text of an error. That of a Java exception is in the JVM, which may be gone."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 (the answer is to another question)
        return f"{type(error).__name__}; see the log above"


def _reason(text: str) -> str:
    """The relevant part of a Spark error: the end of a Python traceback, or else the lines before Java's."""
    raised = re.findall(r"^[\w.]+(?:Error|Exception|Interrupt|Exit)\b.*$", text, re.MULTILINE)
    if "Traceback (most recent call last):" in text and raised:
        return str(raised[-1])[:MAX_REASON_CHARS].strip(" .")
    lines = []
    for line in map(str.strip, text.splitlines()):
        if line.startswith(("at ", "Driver stacktrace")):
            break
        if line and not line.startswith("An error occurred while calling "):
            lines.append(line)
    return " ".join(lines[:3])[:MAX_REASON_CHARS].strip(" :.")
