"""Waiting for a condition, with a deadline and a reason; tests never sleep for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable

TIMEOUT_S = 30.0


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = TIMEOUT_S, every_s: float = 0.02) -> None:
    """Return as soon as `condition()` holds; fail with `what` after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(every_s)
