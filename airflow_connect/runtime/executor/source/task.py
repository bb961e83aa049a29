"""One source task inside one Spark task: open the producer, read the offsets, poll until it ends, report.

The order makes it exactly once (exactly_once/task_transaction.py, S2): first the producer's `init_transactions` fences
every earlier attempt, then the claim of the run is checked, then offsets are read.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_connect.api.config import plugins
from airflow_connect.config.keys import source as source_keys
from airflow_connect.config.resolved.source import ResolvedSourceConfig
from airflow_connect.documents.run import TaskPlan, TaskReport
from airflow_connect.documents.run_detail import reason_rows
from airflow_connect.errors import ConnectError, FencedError, TaskFailedError
from airflow_connect.exactly_once.task_transaction import delivery_of
from airflow_connect.kafka.admin.topic_creation import TopicCreation
from airflow_connect.kafka.clients import settings as client_config
from airflow_connect.kafka.clients.short_lived import Admin, admin_client
from airflow_connect.kafka.state.offsets.offsets_view import OffsetsView
from airflow_connect.kafka.writing.task_producer import TaskProducer
from airflow_connect.kafka.writing.transaction_steps import transaction_timeout_ms
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.executor.error_policy import ErrorPolicy
from airflow_connect.runtime.executor.memory import peak_memory_bytes
from airflow_connect.runtime.executor.progress import ProgressSender
from airflow_connect.runtime.executor.source.context import SourceContext, TransactionMarks
from airflow_connect.runtime.executor.source.converting import SourceRecordConverter
from airflow_connect.runtime.executor.source.loop import (
    POLL_RETRY_S,
    LoopParts,
    LoopRules,
    SourceLoop,
    call_task,
    idle_polls_of,
)
from airflow_connect.runtime.executor.source.offsets import HandedOffsets, TaskOffsets
from airflow_connect.runtime.executor.source.run_claim import Claim, claimed_by, refuse_other_run
from airflow_connect.runtime.reporting.notes import Notes

if TYPE_CHECKING:
    from airflow_connect.api.source import SourceTask
    from airflow_connect.documents.source_run import SourceTaskReport
    from airflow_connect.runtime.settings import SourceTaskSettings, TaskSettings

log = logging.getLogger(__name__)


def run_source_task(settings: TaskSettings, plan: TaskPlan, attempt: int) -> TaskReport:
    """Run one task of a source until it ends.

    Raises:
        FencedError: a newer run has taken over.
        TaskFailedError: another attempt of this task has taken over, or the task itself failed.
        ConnectError: the task, a converter or Kafka failed. What was committed stays.
    """
    work = _Work.of(settings, plan.task, attempt)
    try:
        return work.run()
    except FencedError as error:
        raise work.fencing_error() from error


def _explained(task: SourceTask, error: ConnectError, context: SourceContext) -> ConnectError:
    """The error that a task makes of one of its own; see `ExplainingSourceTask`.

    If the task cannot explain it, the error stays what it is, and gets a note about that.
    """
    from airflow_connect.api.source import ExplainingSourceTask

    if isinstance(error, FencedError) or not isinstance(task, ExplainingSourceTask):
        return error
    explain = task.explained
    context.error = None  # It is `error`, or came later, and would be raised again after the call.
    try:
        explained: object = call_task(task, "explained", lambda: explain(error), context)
        if isinstance(explained, ConnectError):
            return explained
        problem = f"{type(task).__name__}.explained returned {type(explained).__name__} instead of a ConnectError."
    except Exception as second:  # noqa: BLE001 (it must not hide why the task fails)
        problem = str(second)
    log.warning("The task could not say more about its error: %s", problem)
    error.add_note(f"The task could not say more about this error: {problem}")
    return error


@dataclass(slots=True)
class _Work:
    """One attempt of a task."""

    settings: TaskSettings
    source: SourceTaskSettings
    task: int
    attempt: int
    config: ResolvedSourceConfig
    worker: Mapping[str, Any] = field(repr=False)
    started: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, settings: TaskSettings, task: int, attempt: int) -> _Work:
        if settings.source is None:
            raise TypeError("A task of a source needs the settings of a source.")
        config = settings.resolved
        assert isinstance(config, ResolvedSourceConfig)
        return cls(settings, settings.source, task, attempt, config, settings.worker)

    def run(self) -> TaskReport:
        connector = self.config.connector
        policy = ErrorPolicy(connector.name, self.task, connector.errors)
        with ExitStack() as stack:
            admin = self._admin()
            task = plugins.load(connector.connector).task_class()
            producer = self._producer(task)
            stack.callback(producer.close)
            producer.fence()
            self._refuse_other_run(admin)
            crash_points.reached(crash_points.SOURCE_TASK_OPENED)
            context = self._context(TaskOffsets(self._known_offsets(admin)))
            converter = SourceRecordConverter(self.config, f", task {self.task}")
            stack.callback(converter.close)
            progress = ProgressSender(self.settings.progress, self.task, self.attempt)
            stack.callback(progress.close)
            delivery = delivery_of(self.source.guarantee, producer, self.config.offsets_topics)
            groups = connector.topic_groups if self.config.worker.sources.creates_topics else ()
            topics = TopicCreation(admin, groups, self.config.state_topics)
            parts = LoopParts(context, context.offset_reader, converter, delivery, topics, policy, progress)
            done, opened = self._copied(task, parts)
            notes = Notes()
            converter.unwritten.tell(notes)
        return TaskReport(
            task=self.task,
            attempt=self.attempt,
            partitions=(),
            files=(),
            timings_ms={
                "open": round((opened - self.started) * 1000),
                "copy": round((time.monotonic() - opened) * 1000),
            },
            host=socket.gethostname(),
            peak_memory_bytes=peak_memory_bytes(),
            failed=policy.failed,
            failed_places=tuple(policy.places),
            source=done,
            notes=(*producer.notes, *notes.sentences),
            ended_ms=time.time_ns() // 1_000_000,
            skipped=reason_rows(policy.skipped),
        )

    def _copied(self, task: SourceTask, parts: LoopParts) -> tuple[SourceTaskReport, float]:
        """The task's life cycle; `stop` is always called, and its exception does not hide an earlier one."""
        context = parts.context
        is_done = False
        try:
            call_task(task, "initialize", lambda: task.initialize(context), context)
            call_task(task, "start", lambda: task.start(context.config), context)
            opened = time.monotonic()
            done = SourceLoop(task, parts, self._rules(task)).run()
            is_done = True
        except ConnectError as error:
            explained = _explained(task, error, context)
            if explained is error:
                raise
            raise explained from error
        finally:
            try:
                call_task(task, "stop", task.stop, SourceContext({}, "", 0, parts.offsets, None))
            except Exception as error:
                log.warning("%s", error)
                if is_done:
                    raise
        return done, opened

    # --- parts ----------------------------------------------------------------------------------------------------

    def _admin(self) -> Admin:
        return admin_client(client_config.admin_config(self.worker, self.config.connector.raw).settings)

    @property
    def _skips_refused(self) -> bool:
        return not self.source.guarantee.uses_transactions and self.config.connector.errors.tolerate

    @property
    def _interval_ms(self) -> int:
        """Time between two stores of offsets; 0: after every batch."""
        if self.source.guarantee.stores_by_time:
            return self.config.worker.sources.offset_flush_interval_ms
        by_time = self.source.guarantee.uses_transactions and self.config.connector.boundary == source_keys.INTERVAL
        return self.config.boundary_interval_ms if by_time else 0

    def _producer(self, task: SourceTask) -> TaskProducer:
        from airflow_connect.api.source import CheckingSourceTask
        from airflow_connect.api.source import SourceTask as Base

        settings = client_config.producer_config(self.worker, self.config.connector.raw).settings
        has_transactions = self.source.guarantee.uses_transactions
        return TaskProducer(
            settings,
            self.config.task_transactional_id(self.task) if has_transactions else "",
            transaction_timeout_ms(settings, self._interval_ms),
            tells_deliveries=type(task).commit_record is not Base.commit_record,
            keeps_first=has_transactions and isinstance(task, CheckingSourceTask),
        )

    def _reader_settings(self) -> dict[str, Any]:
        return client_config.consumer_config(self.worker, self.config.connector.raw).settings

    def _known_offsets(self, admin: Admin) -> HandedOffsets:
        name, topics = self.config.connector.name, self.config.offsets_topics
        view = OffsetsView.of_packed(name, topics, self.source.known.offsets_of(self.task))
        return HandedOffsets(view, admin, self._reader_settings())

    def _claim(self, admin: Admin) -> Claim:
        name, topic = self.config.connector.name, self.config.worker.runs_topic
        return claimed_by(admin, self._reader_settings(), topic, name, self.source.known.claim_from)

    def _refuse_other_run(self, admin: Admin) -> None:
        refuse_other_run(self._claim(admin), self.settings.run_id)

    def fencing_error(self) -> ConnectError:
        """The error if a newer run, or another attempt of the same task, has fenced this attempt."""
        try:
            refuse_other_run(self._claim(self._admin()), self.settings.run_id)
        except FencedError as newer:
            return newer
        except ConnectError as unknown:
            # Retriable, so there is another attempt, which will find out.
            log.warning("It is unknown which run or attempt has fenced task %s: %s", self.task, unknown)
        return TaskFailedError(
            f"Task {self.task} lost its transactional.id {self.config.task_transactional_id(self.task)}: another "
            "attempt of it has taken over, or a transaction was open for longer than transaction.timeout.ms.",
            code="task.taken_over",
            suggestion="Nothing is lost. If it happens again, set producer.override.transaction.timeout.ms higher than "
            "the longest time between two transactions.",
        )

    def _context(self, offsets: TaskOffsets) -> SourceContext:
        settings = self.settings
        own = settings.task_configs[self.task] if settings.task_configs else settings.connector
        marks = self.source.guarantee.uses_transactions and self.config.connector.boundary == source_keys.CONNECTOR
        transaction = TransactionMarks() if marks else None
        context = SourceContext(own, settings.run_id, settings.now_ms, offsets, transaction, settings.aws)
        context.uses_transactions = self.source.guarantee.uses_transactions
        context.reader_settings = self._reader_settings()
        context.worker_converters = self.config.worker_converters
        return context

    def _rules(self, task: SourceTask) -> LoopRules:
        interval_ms, limits = self._interval_ms, self.source
        boundary = source_keys.INTERVAL if interval_ms else source_keys.POLL
        retry_ms = self.config.connector.errors.retry_timeout_ms
        return LoopRules(
            boundary=boundary,
            interval_s=interval_ms / 1000,
            idle_polls=idle_polls_of(type(task), self.config.connector.run_idle_polls),
            max_records=limits.max_records,
            max_bytes=limits.max_bytes,
            max_seconds=limits.max_seconds,
            poll_retry_s=float("inf") if retry_ms < 0 else max(POLL_RETRY_S, retry_ms / 1000),
            columnar=self.settings.columnar,
            skips_refused=self._skips_refused,
        )
