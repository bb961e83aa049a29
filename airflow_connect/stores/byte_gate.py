"""A limit for the bytes that wait to be sent."""

from __future__ import annotations

import threading


class ByteGate:
    """Limits the bytes that wait for the threads of a pool: the producer has to wait, the threads never do."""

    def __init__(self, limit_bytes: int) -> None:
        """`limit_bytes`: how many may wait."""
        self._limit = limit_bytes
        self._used = 0
        self._changed = threading.Condition()

    def enter(self, size: int) -> None:
        """Wait until there is room. A piece larger than the limit enters alone."""
        with self._changed:
            self._changed.wait_for(lambda: self._used == 0 or self._used + size <= self._limit)
            self._used += size

    def leave(self, size: int) -> None:
        """Make room."""
        with self._changed:
            self._used -= size
            self._changed.notify_all()
