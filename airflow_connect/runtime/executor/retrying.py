"""Retries an operation on a record that failed for a temporary reason (`errors.retry.timeout`).

Source: org.apache.kafka.connect.runtime.errors.RetryWithToleranceOperator (KIP-298): the pauses are 300 ms, 600 ms,
1200 ms and so on, random below `errors.retry.delay.max.ms` once they would exceed it, and never reach beyond the
timeout, which runs from the first failure.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from airflow_connect.retrying import REAL_TIME, AtDeadline, Backoff, Jitter, Retry, Timing

if TYPE_CHECKING:
    from airflow_connect.config.resolved.sink import ErrorConfig

FIRST_DELAY_S = 0.3
ENDLESS = -1

log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class Retries:
    """The retries of one task. Not used unless something fails."""

    def __init__(self, errors: ErrorConfig, timing: Timing = REAL_TIME) -> None:
        """`errors`: the connector's `errors.*` keys; the two `errors.retry.*` keys are used."""
        timeout_ms = errors.retry_timeout_ms
        self._within_s = math.inf if timeout_ms == ENDLESS else timeout_ms / 1000
        self._backoff = Backoff(FIRST_DELAY_S, errors.retry_delay_max_ms / 1000, Jitter.BEYOND_LONGEST)
        self._timing = timing

    def repeat(self, operation: Callable[[], _Result], error: Exception) -> _Result:
        """Call `operation`, which has just failed with `error`, until it succeeds or another try is pointless.

        Errors with a true attribute `retriable` are retried for `errors.retry.timeout` milliseconds.

        Raises:
            Exception: the last error of the operation; `error` itself if there was no other try.
        """
        tries = Retry(self._backoff, within_s=self._within_s, at_deadline=AtDeadline.CUT, timing=self._timing)
        while getattr(error, "retriable", False):
            log.debug("Try %d failed: %s", tries.failures + 1, error)
            if not tries.pause():
                break
            try:
                return operation()
            except Exception as again:  # noqa: BLE001 (the loop decides, and raises what it does not repeat)
                error = again
        raise error
