"""Runs that happen at the same time, each in a thread of a worker, and what becomes of those that do not end."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from airflow_connect.control.worker.due import Due, Ended
from airflow_connect.errors import ConnectError
from airflow_connect.runtime.driver.stopping import StopRequest

ABANDONED_AFTER_S = 30.0
"""How long a run may take to end after it was asked to, before its slot is given to another one."""


@dataclass(slots=True, eq=False)
class Running:
    """A run in a slot.

    Attributes:
        due: the connector.
        run_id: of the run.
        seen: end of the config topic when it began.
        stop: ends it.
        began_s, asked_s: when it began, and when it was asked to stop, by `time.monotonic`; None: it was not.
        is_abandoned: it did not end when it was asked to. It begins no step any more, and the next run fences it.
    """

    due: Due
    run_id: str
    seen: int = 0
    stop: StopRequest = field(default_factory=StopRequest)
    began_s: float = field(default_factory=time.monotonic)
    asked_s: float | None = None
    is_abandoned: bool = False

    def ask(self, error: ConnectError) -> None:
        """Ask it to end, with this error; what it was asked first stays."""
        if self.stop.ask(error):
            self.asked_s = time.monotonic()

    @property
    def is_overdue(self) -> bool:
        """Whether it should have ended by now."""
        return self.asked_s is not None and time.monotonic() - self.asked_s >= ABANDONED_AFTER_S


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run that has ended; `defect`: what it raised, which is never an error of its connector."""

    running: Running
    ended: Ended = Ended()  # noqa: RUF009 (a tuple, which nothing can change)
    defect: BaseException | None = None


class Slots:
    """A limited number of runs at the same time. Used by one thread, whose calls never wait for a run.

    The threads stay: Spark keeps a thread of its JVM for each of ours.
    """

    def __init__(self, count: int, work: Callable[[Running], Ended]) -> None:
        """`count`: of slots; `work`: does a run, in a thread of its slot."""
        self._count = count
        self._work = work
        self._running: list[Running] = []
        self._waiting: queue.SimpleQueue[Running | None] = queue.SimpleQueue()
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._abandoned = 0

    @property
    def running(self) -> list[Running]:
        """Runs that have begun and neither ended nor been abandoned."""
        return list(self._running)

    @property
    def has_free(self) -> bool:
        """Whether another run can begin."""
        return len(self._running) < self._count

    def start(self, running: Running) -> None:
        """Begin a run; there must be a free slot."""
        self._running.append(running)
        if len(self._threads) - self._abandoned < len(self._running):
            thread = threading.Thread(target=self._serve, name=f"run-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._waiting.put(running)

    def ended(self, wait_s: float) -> list[Outcome]:
        """Runs that have ended since the last call; waits at most `wait_s` for the first one."""
        found: list[Outcome] = []
        try:
            found.append(self._outcomes.get(timeout=wait_s))
            while True:
                found.append(self._outcomes.get_nowait())
        except queue.Empty:
            pass
        found = [outcome for outcome in found if not outcome.running.is_abandoned]
        for outcome in found:
            self._running.remove(outcome.running)
        return found

    def abandon(self, running: Running) -> None:
        """Give the slot of a run to others. Its thread ends when the run does, if ever."""
        running.is_abandoned = True
        self._running.remove(running)
        self._abandoned += 1

    def close(self) -> None:
        """End the threads, after the runs that they are doing; does not wait."""
        for _ in self._threads:
            self._waiting.put(None)

    def _serve(self) -> None:
        while (running := self._waiting.get()) is not None:
            try:
                outcome = Outcome(running, self._work(running))
            except BaseException as defect:  # noqa: BLE001 (raised by the thread that uses the slots)
                outcome = Outcome(running, defect=defect)
            self._outcomes.put(outcome)
            if running.is_abandoned:
                return
