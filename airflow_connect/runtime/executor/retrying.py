"""Repeating an operation on a record that failed for a passing reason (`errors.retry.timeout`).

Source: org.apache.kafka.connect.runtime.errors.RetryWithToleranceOperator (KIP-298): the pauses are 300 ms, 600 ms,
1200 ms and so on, random below `errors.retry.delay.max.ms` once they would exceed it, and never reach beyond the
timeout, which runs from the first failure.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from airflow_connect.api.connector_config import ErrorConfig

FIRST_DELAY_MS = 300
ENDLESS = -1

log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class Retries:
    """The retries of one task. Nothing here is called as long as nothing fails."""

    def __init__(
        self,
        errors: ErrorConfig,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
        choose: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """Take the two `errors.retry.*` keys.

        Args:
            errors: the connector's `errors.*` keys.
            clock: seconds.
            pause: waits seconds.
            choose: a random number between two.
        """
        self._timeout_ms = errors.retry_timeout_ms
        self._delay_max_ms = errors.retry_delay_max_ms
        self._clock = clock
        self._pause = pause
        self._choose = choose

    def repeat(self, operation: Callable[[], _Result], error: Exception) -> _Result:
        """Call `operation`, which has just failed with `error`, until it succeeds or trying again is not worth it.

        Worth it are errors with a true attribute `retriable`, for `errors.retry.timeout` milliseconds.

        Raises:
            Exception: the last error of the operation; `error` itself when there was no other try.
        """
        started = self._clock()
        failures = 1
        while getattr(error, "retriable", False):
            left_ms = self._left_ms(started)
            if left_ms <= 0:
                break
            delay_ms = min(self._delay_ms(failures), left_ms)
            log.debug("Trying again in %.0f ms after: %s", delay_ms, error)
            self._pause(delay_ms / 1000)
            try:
                return operation()
            except Exception as again:  # noqa: BLE001 (the loop decides, and raises what it does not repeat)
                error = again
                failures += 1
        raise error

    def _left_ms(self, started: float) -> float:
        if self._timeout_ms == ENDLESS:
            return float("inf")
        return self._timeout_ms - (self._clock() - started) * 1000

    def _delay_ms(self, failures: int) -> float:
        doublings = min(failures - 1, 40)  # Far beyond every limit; without end the number would grow for ever.
        delay: float = FIRST_DELAY_MS << doublings
        return delay if delay <= self._delay_max_ms else self._choose(0, self._delay_max_ms)
