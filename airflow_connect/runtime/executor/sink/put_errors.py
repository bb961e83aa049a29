"""Applies `errors.*` to sink tasks: reported records, and temporary failures of `put`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_connect.errors import FatalDataError
from airflow_connect.runtime.executor.error_policy import SINK_TASK, TASK_PUT, Failure
from airflow_connect.runtime.executor.retrying import ENDLESS, Retries

if TYPE_CHECKING:
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.config.resolved.sink import ErrorConfig
    from airflow_connect.runtime.executor.error_policy import ErrorPolicy

PUT_RETRY_MS = 60_000
"""Minimum time for which `put` is repeated. Kafka Connect repeats it forever, whatever `errors.retry.timeout` is
(WorkerSinkTask.deliverMessages). A run must end; the next one continues."""


class PutErrors:
    """`api.sink_roles.ErrorHandling` over the error policy of the task."""

    def __init__(self, policy: ErrorPolicy, errors: ErrorConfig) -> None:
        """`errors`: the connector's `errors.*` keys."""
        self._policy = policy
        given = errors.retry_timeout_ms
        timeout_ms = given if given == ENDLESS else max(given, PUT_RETRY_MS)
        self._retries = Retries(replace(errors, retry_timeout_ms=timeout_ms))

    def report_errant(self, record: SinkRecord, error: BaseException) -> bool:
        """Apply `errors.*` to a record that the sink cannot write; returns whether the dead letter queue gets it.

        Raises:
            ConnectError: errors are not tolerated, or too many records failed.
            BaseException: `error` itself, if it ends the process and is not about a record.
        """
        if not isinstance(error, Exception):
            raise error
        if record.consumed is None:
            raise FatalDataError(
                f"The record at {record.where} was reported as errant, but it is not one that the task was given.",
                suggestion="Report the record that `put` got, or a copy made with record.changed().",
            )
        return self._policy.handle(record.consumed, Failure.of(error, TASK_PUT, SINK_TASK))

    def leave_out(self, record: SinkRecord, reason: Exception) -> bool:
        """Send a record that the sink drops deliberately to the dead letter queue; returns False if there is none."""
        failure = Failure(TASK_PUT, SINK_TASK, reason)
        return record.consumed is not None and self._policy.leave_out(record.consumed, failure)

    def raise_pending_error(self) -> None:
        """Raise the error of `report_errant` again if the sink has swallowed it."""
        self._policy.raise_pending_error()

    def repeat_put(self, put: Callable[[], None]) -> None:
        """Call `put`, and repeat it with pauses while its error may be temporary."""
        try:
            put()
        except Exception as error:  # noqa: BLE001 (raised again unless it may pass)
            self._retries.repeat(put, error)
