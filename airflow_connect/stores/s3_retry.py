"""When to try again: exponential pauses with full jitter, as Confluent's S3 sink does it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

LONGEST_PAUSE_MS = 20_000
"""Confluent's connector caps at a day; a bounded run had better fail and be started again."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long.

    Attributes:
        retries: tries after the first one (`s3.part.retries`).
        backoff_ms: upper bound of the first pause (`s3.retry.backoff.ms`); doubles with every retry.
    """

    retries: int
    backoff_ms: int

    def at_least(self, retries: int) -> RetryPolicy:
        """The same with a floor: publishing must be stubborn, because the manifest is already written."""
        return RetryPolicy(max(retries, self.retries), self.backoff_ms)

    def pauses_s(self, draw: Callable[[], float] = random.random) -> Iterator[float]:
        """Seconds to wait before each retry, ends when no retry is left.

        Args:
            draw: uniform random numbers in [0, 1); full jitter keeps a thousand clients from coming back at
                once.
        """
        for retry in range(self.retries):
            # Shifting by more than the cap needs would build huge integers for nothing.
            bound = min(LONGEST_PAUSE_MS, self.backoff_ms << min(retry, 24))
            yield draw() * bound / 1000
