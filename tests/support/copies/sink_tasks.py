"""Tasks of sinks without a run around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.api.record import SinkRecord
from airflow_connect.api.sink import SinkTask
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.connectors.files.shared.settings.config import StorageConfig
from airflow_connect.connectors.files.shared.writing.sink_task import StorageSinkTask
from airflow_connect.connectors.files.shared.writing.task_plan import StorageTaskPlan
from airflow_connect.runtime.executor.sink.task_runner import SinkTaskRunner
from airflow_connect.stores.store import Stager, Store


class Tolerant:
    """`errors.tolerance=all` with a dead letter queue."""

    def report_errant(self, record: SinkRecord, error: BaseException) -> bool:
        return True

    def leave_out(self, record: SinkRecord, reason: Exception) -> bool:
        return True

    def raise_pending_error(self) -> None:
        """Nothing is refused."""

    def repeat_put(self, put: Callable[[], None]) -> None:
        put()


class StagedInMemory(StorageSinkTask):
    """A storage sink's task with a given plan and stager."""

    def __init__(self, plan: StorageTaskPlan, stager: Stager) -> None:
        super().__init__()
        self.begin(plan, stager)

    def storage(self, run: RoleContext) -> tuple[StorageConfig, Store]:
        raise NotImplementedError

    def start(self, config: Mapping[str, str]) -> None:
        """It has its plan."""


def open_runner_of(task: SinkTask, context: RoleContext, ranges: Sequence[OffsetRange]) -> SinkTaskRunner:
    """The task, opened for these ranges; errors are tolerated."""
    runner = SinkTaskRunner(task, replace(context, errors=context.errors or Tolerant()), ranges)
    runner.open()
    return runner
