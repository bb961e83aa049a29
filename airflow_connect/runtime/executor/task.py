"""One Connect task inside one Spark task: read the ranges, convert, pass records to the sink, report.

Everything happens in this Python process; bytes never pass through the JVM. A failed or duplicate attempt leaves only
staged files, which are invisible (invariant 1 of exactly_once/).
"""

from __future__ import annotations

import logging
import socket
import time
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_connect.api.config import plugins
from airflow_connect.config.resolved.loading import ResolvedConfig
from airflow_connect.documents.run import TaskPlan, TaskReport, with_sizes
from airflow_connect.documents.run_detail import reason_rows
from airflow_connect.errors import UnencodableError
from airflow_connect.jvm.discovery.registry import use_plugin_path
from airflow_connect.jvm.discovery.same_plugins import check_same
from airflow_connect.kafka.clients.settings import consumer_config
from airflow_connect.kafka.reading.batch_reader import RangeReader, read_ahead_settings
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.executor.allocators import release_free_memory
from airflow_connect.runtime.executor.converting import RecordConverter
from airflow_connect.runtime.executor.error_policy import ErrorPolicy
from airflow_connect.runtime.executor.memory import peak_memory_bytes
from airflow_connect.runtime.executor.progress import ProgressSender
from airflow_connect.runtime.executor.sink.loop import SinkLoop
from airflow_connect.runtime.executor.sink.put_errors import PutErrors
from airflow_connect.runtime.executor.sink.task_runner import SinkTaskRunner, open_runner
from airflow_connect.runtime.executor.sink.whole_records import WholeRecordConverter

if TYPE_CHECKING:
    from airflow_connect.runtime.settings import TaskSettings

log = logging.getLogger(__name__)


def run_task(settings: TaskSettings, plan: TaskPlan, attempt: int) -> TaskReport:
    """Copy the ranges of one task into staged files; a source's task: copy until it ends.

    Args:
        settings: configuration of the run.
        plan: the ranges.
        attempt: Spark's attempt number, for the report. Starting over inside an attempt counts too, because the sweep
            must discard what the first try has staged.

    Raises:
        DataError: a record cannot be converted or written and errors are not tolerated.
        OffsetError: the log lost records of a range between planning and reading.
        UnavailableError, AccessError: Kafka or the store, after retries.
        MissingPluginError: this machine has other Java plugins than the driver.
    """
    use_plugin_path(settings.worker)
    if settings.java_plugins:
        check_same(settings.java_plugins)
    if settings.source is not None:
        from airflow_connect.runtime.executor.source.task import run_source_task

        return run_source_task(settings, plan, attempt)
    fast = _CopyMode(columnar=settings.columnar)
    modes = (fast, replace(fast, check_each=True), _CopyMode(columnar=False, check_each=True))
    for times, mode in enumerate(modes[:-1]):
        try:
            return _copy(settings, plan, attempt + times, mode)
        except UnencodableError as error:
            log.info("Task %d starts over and checks each record separately: %s", plan.task, error.message)
    return _copy(settings, plan, attempt + len(modes) - 1, modes[-1])


@dataclass(frozen=True, slots=True)
class _CopyMode:
    """How a task processes its ranges: fast, or so that an error can be attributed to a record."""

    columnar: bool
    check_each: bool = False


def _copy(settings: TaskSettings, plan: TaskPlan, attempt: int, mode: _CopyMode) -> TaskReport:
    started = time.monotonic()
    config = settings.resolved
    assert isinstance(config, ResolvedConfig)
    policy = ErrorPolicy(config.connector.name, plan.task, config.connector.errors, plan.max_dead_letter_bytes)
    context = settings.task_context(plan.task, PutErrors(policy, config.connector.errors))
    connector = plugins.load(config.connector.connector)
    sink: SinkTaskRunner | None = None
    reader: RangeReader | None = None
    progress = ProgressSender(settings.progress, plan.task, attempt)
    consumer = consumer_config(settings.worker, config.connector.raw)
    try:
        sink = open_runner(
            connector, replace(context, check_each=mode.check_each), plan.ranges, consumer.max_poll_records
        )
        ahead = read_ahead_settings(sink.read_ahead.partition_records, sink.read_ahead.fetched_bytes)
        reader = RangeReader({**ahead, **consumer.settings}, sink.read_ranges())
        with closing(_converter(config, plan.task, is_whole=sink.takes_whole_records)) as converter:
            loop = SinkLoop(sink, converter, policy, progress)
            opened = time.monotonic()
            loop.read(reader, plan, columnar=mode.columnar)
            policy.raise_pending_error()
            copied = time.monotonic()
            partitions = loop.finish(reader, plan)
            converter.unread.tell(sink.notes)
            loop.slow_path.tell(sink.notes)
        policy.raise_pending_error()
        files = sink.staged_files()
        crash_points.reached(crash_points.TASK_STAGED)
    except BaseException:
        if sink is not None:
            sink.abort()
        raise
    finally:
        if reader is not None:
            reader.close()
        progress.close()
        release_free_memory()
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
        notes=(*reader.notes, *sink.notes.sentences),
        ended_ms=time.time_ns() // 1_000_000,
        oldest_ms=loop.oldest_ms,
        skipped=reason_rows(policy.skipped),
    )


def _converter(config: ResolvedConfig, task: int, *, is_whole: bool) -> RecordConverter | WholeRecordConverter:
    return WholeRecordConverter() if is_whole else RecordConverter(config, f", task {task}")
