"""One Connect task inside one Spark task: read the ranges, convert, hand over to the sink, report.

Everything happens in this Python process; bytes never pass through the JVM. What a failed or duplicate attempt leaves
are staged files that nobody can see (invariant 1 of exactly_once/).
"""

from __future__ import annotations

import logging
import socket
import time
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_connect.api.errors import UnencodableError
from airflow_connect.api.resolved_config import load_connector_config
from airflow_connect.api.run import TaskPlan, TaskReport, with_sizes
from airflow_connect.kafka.batch_reader import RangeReader
from airflow_connect.kafka.client_config import consumer_config
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.executor.converting import RecordConverter
from airflow_connect.runtime.executor.error_policy import ErrorPolicy
from airflow_connect.runtime.executor.memory import peak_memory_bytes
from airflow_connect.runtime.executor.plugin_errors import PluginErrors
from airflow_connect.runtime.executor.progress import ProgressSender
from airflow_connect.runtime.executor.sink_loop import SinkLoop
from airflow_connect.runtime.roles import load_role

if TYPE_CHECKING:
    from airflow_connect.api.sink_roles import SinkWriter
    from airflow_connect.runtime.settings import TaskSettings

log = logging.getLogger(__name__)


def run_task(settings: TaskSettings, plan: TaskPlan, attempt: int) -> TaskReport:
    """Copy the ranges of one task into staged files; a source's task: copy until it ends.

    Args:
        settings: configuration of the run.
        plan: the ranges.
        attempt: Spark's attempt number, for the report. Starting over inside an attempt counts too: what the first
            try has staged is left for the sweep in the same way.

    Raises:
        DataError: a record cannot be converted or written and errors are not tolerated.
        OffsetError: the log lost records of a range between planning and reading.
        UnavailableError, AccessError: Kafka or the store, after retries.
    """
    if settings.source is not None:
        from airflow_connect.runtime.executor.source_task import run_source_task

        return run_source_task(settings, plan, attempt)
    columnar = settings.columnar
    ways = (_Way(columnar=columnar), _Way(columnar=columnar, check_each=True), _Way(columnar=False, check_each=True))
    for times, way in enumerate(ways[:-1]):
        try:
            return _copy(settings, plan, attempt + times, way)
        except UnencodableError as error:
            log.info("Task %d starts over and looks at each record alone: %s", plan.task, error.message)
    return _copy(settings, plan, attempt + len(ways) - 1, ways[-1])


@dataclass(frozen=True, slots=True)
class _Way:
    """How a task goes about its ranges: quickly, or so that an error can be pinned down to a record."""

    columnar: bool
    check_each: bool = False


def _copy(settings: TaskSettings, plan: TaskPlan, attempt: int, way: _Way) -> TaskReport:
    started = time.monotonic()
    config = load_connector_config(settings.connector, settings.worker)
    policy = ErrorPolicy(config.connector.name, plan.task, config.connector.errors, plan.max_dead_letter_bytes)
    context = settings.task_context(plan.task, PluginErrors(policy, config.connector.errors))
    open_task = load_role(config.connector.connector, "task_role")
    sink: SinkWriter | None = None
    progress = ProgressSender(settings.progress, plan.task, attempt)
    consumer = consumer_config(settings.worker, config.connector.raw)
    reader = RangeReader(consumer.settings, list(plan.ranges))
    try:
        sink = open_task(replace(context, check_each=way.check_each), plan.ranges)
        with closing(RecordConverter(config)) as converter:
            loop = SinkLoop(sink, converter, policy, progress)
            opened = time.monotonic()
            partitions = loop.run(reader, plan, columnar=way.columnar)
        policy.refuse_to_go_on()
        copied = time.monotonic()
        files = sink.staged_files()
        crash_points.reached(crash_points.TASK_STAGED)
    except BaseException:
        if sink is not None:
            _discard(sink)
        raise
    finally:
        reader.close()
        progress.close()
    timings = {
        "open": round((opened - started) * 1000),
        "copy": round((copied - opened) * 1000),
        "upload": round((time.monotonic() - copied) * 1000),
    }
    sink.close()
    return TaskReport(
        task=plan.task,
        attempt=attempt,
        partitions=tuple(with_sizes(partitions, files)),
        files=tuple(files),
        dead_letters=tuple(policy.committed_letters(partitions)),
        timings_ms=timings,
        host=socket.gethostname(),
        peak_memory_bytes=peak_memory_bytes(),
        failed=policy.failed,
        failed_places=tuple(policy.places),
        notes=reader.notes,
    )


def _discard(sink: SinkWriter) -> None:
    """Take away what the failing attempt has staged; what stays is left to the driver and to the sweep."""
    try:
        sink.abort()
    except Exception as error:  # noqa: BLE001 (it must not hide why the task fails)
        log.warning("What the task has staged could not be discarded: %s", error)
