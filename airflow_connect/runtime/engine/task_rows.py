"""The function that runs inside a Spark task, and how its report or its error comes back.

A report is a row. So is an error that another attempt would only meet again (a record that cannot be converted, a wrong
configuration), and an internal error: raising it would make Spark repeat the copy up to the bad record three times
more. Other errors are
raised, so that Spark gives the task its next attempt; the last one comes back inside the text of Spark's own error.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import socket
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_connect import __version__
from airflow_connect.documents.run import TaskPlan, TaskReport
from airflow_connect.errors import ConnectError, TaskFailedError
from airflow_connect.runtime.engine.job_failures import other_version, package_missing
from airflow_connect.runtime.machines import name_machines, taking_along
from airflow_connect.runtime.other_tasks import OtherTasksError
from airflow_connect.runtime.reporting.internal_errors import (
    internal_error,
    is_own_defect,
    name_connector,
    traceback_of,
)
from airflow_connect.runtime.reporting.redaction import Redactor, secret_values

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.runtime.machines import DriverMachine
    from airflow_connect.runtime.settings import TaskSettings

log = logging.getLogger(__name__)

ROW_SCHEMA = "result binary"
_MARK = "airflow-connect-error:"


def task_function(
    settings: TaskSettings, tasks: Sequence[TaskPlan], machine: DriverMachine | None = None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow`: positions in `tasks` in, one packed result per task out.

    The settings travel inside the pickled function, over Spark's own connections, and are written nowhere. What only
    the driver uses, such as the token of `spark.remote`, does not travel. They are pickled for themselves, so that an
    executor with another version of this package can say so before it reads them.

    Args:
        settings: of the run.
        tasks: its plan.
        machine: the driver's, if executors may run on others.
    """
    from pyspark import cloudpickle

    # Every Spark task gets all plans. Packed, those of 10,000 partitions take 100 KB.
    plans = _pack([task.to_json() for task in tasks])
    version, work = __version__, cloudpickle.dumps((settings.for_tasks(), plans, machine))  # type: ignore[no-untyped-call]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # A name of this module outside of `try` would be looked up while Spark unpickles the function.
        try:
            from airflow_connect.runtime.engine.task_rows import rows_of
        except ImportError as error:
            import socket

            error.msg += f" (executor on {socket.gethostname()})"  # for `executor_problem`, which reads Spark's text
            raise
        return rows_of(version, work, batches)

    return run


def rows_of(version: str, work: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run tasks on an executor.

    Args:
        version: of this package, on the driver's machine.
        work: what `task_function` has pickled.
        batches: positions of tasks.
    """
    import pickle

    from pyspark import TaskContext

    if version != __version__:
        yield _row({"error": other_version(version, __version__, socket.gethostname()).to_json()})
        return
    settings, plans, machine = pickle.loads(work)  # It comes from our own driver, like the function itself.
    context = TaskContext.get()
    attempt = context.attemptNumber() if context is not None else 0
    for batch in batches:
        for number in batch.column(0):
            plan = TaskPlan.from_json(_unpack(plans)[number.as_py()])
            yield _row(_result_of(settings, plan, attempt, machine))


def reports_of(rows: Iterable[bytes]) -> list[TaskReport]:
    """The reports in the rows of a job.

    Raises:
        ConnectError: the first error with which a task failed; its cause is `OtherTasksError`.
    """
    results = [_unpack(row) for row in rows]
    for result in results:
        if "traceback" in result:
            log.error("A task failed with an internal error:\n%s", result["traceback"])
    reports = [TaskReport.from_json(result["report"]) for result in results if "error" not in result]
    for result in results:
        if "error" in result:
            raise _rebuilt(result["error"]) from OtherTasksError(reports)
    return reports


def error_of(text: str) -> ConnectError | None:
    """The task's error inside the text of a Spark exception, or None when Spark itself failed."""
    found = re.search(re.escape(_MARK) + r"([A-Za-z0-9+/=]+):end", text)
    return _rebuilt(json.loads(base64.b64decode(found[1]))) if found is not None else None


def _result_of(
    settings: TaskSettings, plan: TaskPlan, attempt: int, machine: DriverMachine | None = None
) -> dict[str, Any]:
    from airflow_connect.runtime.executor.task import run_task

    sent = machine.sent if machine is not None else {}
    redact = Redactor(secret_values(settings.connector, settings.worker, settings.aws, sent))
    try:
        with _like_the_driver(machine):
            return {"report": run_task(settings, plan, attempt).to_json()}
    except ConnectError as error:
        if error.retriable:
            # Without the chain of causes: Spark Connect cuts long texts, and the mark stands at the end.
            raise RuntimeError(_marked(error)) from None
        return {"error": error.to_json()}
    except ModuleNotFoundError as error:
        if machine is None or not error.name:
            raise
        return {"error": package_missing(error.name, socket.gethostname()).to_json()}
    except Exception as error:
        name_connector(error, settings.connector.get("name", ""))
        if not is_own_defect(error):
            raise
        return {"error": internal_error(error, redact).to_json(), "traceback": traceback_of(error, redact)}


@contextmanager
def _like_the_driver(machine: DriverMachine | None) -> Iterator[None]:
    """Run a task with the driver's logins; its errors name both machines."""
    if machine is None:
        yield
        return
    with taking_along(machine) as taken:
        try:
            yield
        except ConnectError as error:
            name_machines(error, machine, taken)
            raise


def _row(result: dict[str, Any]) -> pa.RecordBatch:
    """One row of one binary column, from buffers: `pyarrow.array` would import pandas, 60 MB in each worker."""
    import pyarrow as arrow

    data = _pack(result)
    buffers = [None, arrow.py_buffer(struct.pack("=ii", 0, len(data))), arrow.py_buffer(data)]
    return arrow.RecordBatch.from_arrays([arrow.Array.from_buffers(arrow.binary(), 1, buffers)], ["result"])


def _pack(data: Any) -> bytes:
    return zlib.compress(json.dumps(data).encode(), 1)


def _unpack(data: bytes) -> Any:
    return json.loads(zlib.decompress(data))


def _marked(error: ConnectError) -> str:
    """The error as text that survives being quoted in a Java exception."""
    packed = base64.b64encode(json.dumps(error.to_json()).encode()).decode()
    return f"{error}\n{_MARK}{packed}:end"


def _rebuilt(data: dict[str, Any]) -> ConnectError:
    kind = _error_types().get(data["type"], TaskFailedError)
    error = kind(data["message"], code=data["code"], suggestion=data["suggestion"], config_path=data["configPath"])
    error.retriable = data["retriable"]
    return error


def _error_types() -> dict[str, type[ConnectError]]:
    known: dict[str, type[ConnectError]] = {}
    waiting: list[type[ConnectError]] = [ConnectError]
    while waiting:
        kind = waiting.pop()
        known[kind.__name__] = kind
        waiting += kind.__subclasses__()
    return known
