"""Cancels jobs without waiting for Spark, whose JVM may be what hangs."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)

ANSWERS_WITHIN_S = 20.0
"""How long Spark may take to cancel a job. It answers in milliseconds; a JVM that collects garbage takes seconds."""


class Canceller:
    """One thread that cancels the jobs of runs, one after the other. Threads may share it.

    One, and not one for each request: Spark keeps a thread of its JVM for each of ours.
    """

    def __init__(self, cancel: Callable[[str], None], end_session: Callable[[], None]) -> None:
        """Starts nothing.

        Args:
            cancel: cancels the jobs of a run; may wait.
            end_session: called if `cancel` does not return; lets it fail.
        """
        self._cancel = cancel
        self._end_session = end_session
        self._waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._known: set[str] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def cancel(self, run_id: str) -> None:
        """Have the jobs of a run cancelled; returns at once. A request that still waits is not repeated."""
        with self._lock:
            if run_id in self._known:
                return
            self._known.add(run_id)
            self._waiting.put(run_id)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="cancel-jobs", daemon=True)
                self._thread.start()

    def _serve(self) -> None:
        while True:
            run_id = self._waiting.get()
            watch = threading.Timer(ANSWERS_WITHIN_S, self._end, [run_id])
            watch.daemon = True
            watch.start()
            self._cancel(run_id)
            watch.cancel()
            with self._lock:
                self._known.discard(run_id)

    def _end(self, run_id: str) -> None:
        log.warning(
            "Spark has not cancelled the job of run %s within %g s. Its JVM is ended: the runs that use it fail, and"
            " the next one starts another.",
            run_id,
            ANSWERS_WITHIN_S,
        )
        self._end_session()
