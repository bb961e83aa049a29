"""Retries: how long to pause, how often to retry, and until when.

A `Retry` covers the tries of one operation. It does not inspect errors: the caller knows which of them are temporary.

    retry = Retry(Backoff(0.1, longest_s=3.0), within_s=60.0)
    while True:
        try:
            return ask()
        except OSError as error:
            if not retry.pause():
                raise UnavailableError(...) from error
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

_MOST_DOUBLINGS = 64
"""Far above every limit; without it the number would exceed the range of a float."""


class Jitter(Enum):
    """Which part of a pause is random, so that clients that failed together do not retry together."""

    NONE = "none"
    HALF = "half"
    WHOLE = "whole"
    BEYOND_LONGEST = "beyond longest"
    """Fixed below the longest pause, fully random from there: the rule of KIP-298."""


class AtDeadline(Enum):
    """What happens to a pause that would end after the deadline."""

    OVERRUN = "overrun"
    """It is kept, and one more try follows it."""
    CUT = "cut"
    """It is cut at the deadline, and one more try follows it."""
    STOP = "stop"
    """It is skipped, and there are no more tries."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that double.

    Attributes:
        first_s: the pause after the first failure, in seconds; 0 for none at all.
        longest_s: the longest pause, at which doubling ends.
        jitter: how much of each pause is random.
    """

    first_s: float
    longest_s: float = math.inf
    jitter: Jitter = Jitter.NONE

    def pause_s(self, failures: int, uniform: Callable[[float, float], float] = random.uniform) -> float:
        """Seconds to wait after this many failures in a row, counted from 1; `uniform` draws between two numbers."""
        grown = self.first_s * 2.0 ** min(failures - 1, _MOST_DOUBLINGS)
        longest = min(grown, self.longest_s)
        if self.jitter is Jitter.WHOLE or (self.jitter is Jitter.BEYOND_LONGEST and grown > self.longest_s):
            return uniform(0, longest)
        return uniform(longest / 2, longest) if self.jitter is Jitter.HALF else longest


@dataclass(frozen=True, slots=True)
class Timing:
    """The sources of time and randomness; tests pass their own, and never wait.

    Attributes:
        clock: seconds since an arbitrary point.
        sleep: waits the given number of seconds.
        uniform: a random number between two.
    """

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    uniform: Callable[[float, float], float] = random.uniform


REAL_TIME = Timing()


class Retry:
    """The tries of one operation; its time starts when the object is created.

    Attributes:
        failures: number of calls of `pause`, which is the number of failed tries.
    """

    def __init__(
        self,
        backoff: Backoff,
        *,
        retries: int | None = None,
        within_s: float = math.inf,
        at_deadline: AtDeadline = AtDeadline.OVERRUN,
        timing: Timing = REAL_TIME,
    ) -> None:
        """Begin.

        Args:
            backoff: the pauses.
            retries: maximum number of tries after the first one; None: as many as time allows.
            within_s: no pause begins later than this, in seconds.
            at_deadline: what happens to a pause that would end after `within_s`.
            timing: clock, sleep and randomness.
        """
        self.failures = 0
        self._backoff = backoff
        self._retries = math.inf if retries is None else retries
        self._within_s = within_s
        self._at_deadline = at_deadline
        self._timing = timing
        self._began = timing.clock()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the beginning."""
        return self._timing.clock() - self._began

    @property
    def left_s(self) -> float:
        """Seconds until the deadline; negative after it, infinite without one."""
        return self._within_s - self.elapsed_s

    def pause(self) -> bool:
        """Wait before the next try, after a failed one; False, without waiting, if there are no more tries."""
        self.failures += 1
        left_s = self.left_s
        if self.failures > self._retries or left_s <= 0:
            return False
        pause_s = self._backoff.pause_s(self.failures, self._timing.uniform)
        if self._at_deadline is AtDeadline.STOP and pause_s >= left_s:
            return False
        if self._at_deadline is AtDeadline.CUT:
            pause_s = min(pause_s, left_s)
        if pause_s:
            self._timing.sleep(pause_s)
        return True
