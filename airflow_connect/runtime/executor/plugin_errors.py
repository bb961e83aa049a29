"""What `errors.*` means for a sink task of somebody else: reported records, and `put` that fails for a moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_connect.api.errors import FatalDataError
from airflow_connect.runtime.executor.error_policy import SINK_TASK, TASK_PUT, Failure
from airflow_connect.runtime.executor.retrying import ENDLESS, Retries

if TYPE_CHECKING:
    from airflow_connect.api.connector_config import ErrorConfig
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.runtime.executor.error_policy import ErrorPolicy

PUT_RETRY_MS = 60_000
"""How long `put` is repeated at least. Kafka Connect repeats it without end, whatever `errors.retry.timeout` says
(WorkerSinkTask.deliverMessages); a run has to end, and the next one goes on."""


class PluginErrors:
    """`api.sink_roles.ErrorHandling` over the error policy of the task."""

    def __init__(self, policy: ErrorPolicy, errors: ErrorConfig) -> None:
        """`errors`: the connector's `errors.*` keys."""
        self._policy = policy
        given = errors.retry_timeout_ms
        timeout_ms = given if given == ENDLESS else max(given, PUT_RETRY_MS)
        self._retries = Retries(replace(errors, retry_timeout_ms=timeout_ms))

    def report_errant(self, record: SinkRecord, error: BaseException) -> bool:
        """Apply `errors.*` to a record that the sink cannot write; whether the dead letter queue gets it.

        Raises:
            ConnectError: errors are not tolerated, or too many records failed.
            BaseException: `error` itself, when it ends the process and is about no record.
        """
        if not isinstance(error, Exception):
            raise error
        if record.consumed is None:
            raise FatalDataError(
                f"The record at {record.where} was reported as errant, but it is not one that the task was given.",
                suggestion="Report the record that `put` got, or a copy made with record.changed().",
            )
        return self._policy.handle(record.consumed, Failure(TASK_PUT, SINK_TASK, error))

    def refuse_to_go_on(self) -> None:
        """Raise again what `report_errant` raised, for a sink that swallowed it."""
        self._policy.refuse_to_go_on()

    def repeat_put(self, put: Callable[[], None]) -> None:
        """Call `put`, and again with pauses, for as long as it raises an error that may pass."""
        try:
            put()
        except Exception as error:  # noqa: BLE001 (raised again unless it may pass)
            self._retries.repeat(put, error)
