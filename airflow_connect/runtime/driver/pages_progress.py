"""Tells pages how far a run is, every few seconds; nothing waits for it, and no run reads it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from airflow_connect.documents.run_progress import RunProgress, TaskProgress
from airflow_connect.runtime.driver.reporting import now_ms
from airflow_connect.runtime.spec import Observer, RunSpec

TELL_AFTER_S = 3.0
"""Shorter copies tell nothing: their end is as good."""
TELL_EVERY_S, TELL_AT_LEAST_EVERY_S = 4.0, 30.0
TELL_SHARE = 60
"""Pages are told every 4 seconds at first, then after every 60th of the time so far: 300 records in an hour, 3,000 in a
day. Compaction removes all but the last one."""


class PagesProgress:
    """An observer that passes every event on, and tells pages at times how far the run is.

    Events of the listener come in its thread, while the run waits in another one for the end of the copy.
    """

    def __init__(
        self, observer: Observer, tell: Callable[[Mapping[str, Any]], str], spec: RunSpec, started_ms: int
    ) -> None:
        """`tell`: see `ClusterSession.tell_progress`; it is not called again once it has returned a problem."""
        self.observer = observer
        self._tell: Callable[[Mapping[str, Any]], str] | None = tell
        self._spec = spec
        self._started_ms = started_ms
        self._phase, self._phase_began_s, self._phases_ms = "", time.monotonic(), dict[str, int]()
        self._next_s, self._copying_since_s = float("inf"), 0.0
        self._done = self._total = self._parts = 0
        self.expected = (0, "")
        """How many parts a source has to copy, and what they are."""
        self.tasks: Callable[[], Sequence[TaskProgress]] = list

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Receive one event."""
        self.observer(event)
        if event["event"] == "phase":
            self._begin(str(event["phase"]), int(event.get("total", 0)))
        elif event["event"] == "progress":
            self._done, self._total, self._parts = int(event["done"]), int(event["total"]), int(event.get("parts", 0))
            self._tell_if_due()

    def _begin(self, phase: str, total: int) -> None:
        now_s = time.monotonic()
        if self._phase:
            took_ms = round((now_s - self._phase_began_s) * 1000)
            self._phases_ms[self._phase] = self._phases_ms.get(self._phase, 0) + took_ms
        self._phase, self._phase_began_s, self._done, self._total = phase, now_s, 0, total
        if phase == "copy":
            self._copying_since_s, self._next_s = now_s, now_s + TELL_AFTER_S
        else:
            self._tell_if_due()

    def _tell_if_due(self) -> None:
        now_s = time.monotonic()
        if self._tell is None or now_s < self._next_s:
            return
        pause_s = (now_s - self._copying_since_s) / TELL_SHARE
        self._next_s = now_s + min(max(TELL_EVERY_S, pause_s), TELL_AT_LEAST_EVERY_S)
        told = RunProgress(
            self._spec.run_id, self._started_ms, now_ms(), self._phase, self._done, self._total, dict(self._phases_ms),
            tuple(self.tasks()), dict(self._spec.origin), self._parts, *self.expected,
        )  # fmt: skip
        problem = self._tell(told.to_json())
        if problem:
            self._tell = None
            self.observer({"event": "warning", "message": f"Pages do not see how far this run is: {problem}"})
