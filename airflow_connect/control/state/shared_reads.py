"""Threads that want the same read at the same time share one, so that they do not wait one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable


class SharedReads:
    """Calls a function for many threads. If it fails, it fails for all that have waited for that call."""

    def __init__(self, read: Callable[[], None]) -> None:
        """`read`: called by one thread at a time."""
        self._read = read
        self._changed = threading.Condition()
        self._is_reading = False
        self._begun = self._ended = 0
        self._failure: Exception | None = None

    def read(self) -> None:
        """Return when a call that began after this one has ended; a call that is going on may have missed something.

        Raises:
            Exception: what that call has raised.
        """
        with self._changed:
            wanted = self._begun + 1
            while self._is_reading and self._ended < wanted:
                self._changed.wait()
            if self._ended >= wanted:
                if self._failure is not None:
                    raise self._failure
                return
            self._is_reading, self._begun = True, self._begun + 1
            mine = self._begun
        failure: Exception | None = None
        is_done = False
        try:
            self._read()
            is_done = True
        except Exception as error:
            failure, is_done = error, True
            raise
        finally:
            with self._changed:
                self._is_reading = False
                if is_done:  # What ends this thread alone, such as Ctrl-C, is no result for the others.
                    self._ended, self._failure = mine, failure
                self._changed.notify_all()
