"""The function that runs inside a Spark task, and how a task's error comes back through Spark's own."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from airflow_connect.api.errors import ConnectError

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.api.run import TaskPlan
    from airflow_connect.runtime.settings import TaskSettings

_MARK = "airflow-connect-error:"


def task_function(
    settings: TaskSettings, tasks: Sequence[TaskPlan]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow`: ids of tasks in, one JSON report per task out.

    The settings travel inside the pickled function, over Spark's own connections, and are written nowhere.
    """
    by_number = {task.task: task for task in tasks}
    order = [task.task for task in tasks]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as arrow
        from pyspark import TaskContext

        from airflow_connect.runtime.executor.task import run_task

        context = TaskContext.get()
        attempt = context.attemptNumber() if context is not None else 0
        for batch in batches:
            for row in batch.column(0).to_pylist():
                try:
                    report = run_task(settings, by_number[order[int(row or 0)]], attempt)
                except ConnectError as error:
                    raise RuntimeError(_marked(error)) from error
                text = arrow.array([json.dumps(report.to_json())], arrow.string())
                yield arrow.RecordBatch.from_arrays([text], ["report"])

    return run


def _marked(error: ConnectError) -> str:
    """The error as text that survives being quoted in a Java exception."""
    packed = base64.b64encode(json.dumps(error.to_json()).encode()).decode()
    return f"{error}\n{_MARK}{packed}:end"


def error_of(text: str) -> ConnectError | None:
    """The task's error inside the text of a Spark exception, or None when Spark itself failed."""
    found = re.search(re.escape(_MARK) + r"([A-Za-z0-9+/=]+):end", text)
    if found is None:
        return None
    data = json.loads(base64.b64decode(found[1]))
    kind = _error_types().get(data["type"], ConnectError)
    error = kind(
        data["message"], code=data["code"], suggestion=data["suggestion"], config_path=data["configPath"]
    )
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


