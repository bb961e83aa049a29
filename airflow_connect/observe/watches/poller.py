"""One poller per cluster and process: everything that waits in a triggerer shares its requests.

Whoever waits asks for the next answer and gets a future. The poller's thread collects what is due and answers it in one
round. Waits of equal length end at the same moments, multiples of that length, so a thousand of them make one round,
even if they began one after another. Nothing here blocks an event loop.
"""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass

from airflow_connect.errors import ConnectError
from airflow_connect.observe.watches.observation import Observation
from airflow_connect.observe.watches.reader import Answer, ClusterReader, Watch
from airflow_connect.observe.watches.target import Cluster

GATHER_S = 0.2
"""How long the first question of somebody waits for others."""
IDLE_S = 60.0
"""A poller that nobody has asked for so long ends its thread and closes its clients."""


@dataclass(slots=True)
class _Question:
    watch: Watch
    due_s: float
    future: Future[Observation]


class Poller:
    """Asks one cluster for all who wait in this process."""

    def __init__(self, reader: ClusterReader, idle_s: float = IDLE_S) -> None:
        """Starts its thread with the first question. `reader` is used by that thread only."""
        self._reader = reader
        self._idle_s = idle_s
        self._changed = threading.Condition()
        self._questions: list[_Question] = []
        self._thread: threading.Thread | None = None
        self._wakes_s = math.inf

    def ask(self, watch: Watch, every_s: float = 0.0) -> Future[Observation]:
        """The answer of a later round; a failure is the future's exception, a `ConnectError`.

        Args:
            watch: the question.
            every_s: the round at the next multiple of this many seconds; 0: as soon as possible.
        """
        now = time.monotonic()
        due_s = now + GATHER_S if every_s <= 0 else (math.floor(now / every_s) + 1) * every_s
        question = _Question(watch, due_s, Future())
        with self._changed:
            self._questions.append(question)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="airflow-connect-poller", daemon=True)
                self._thread.start()
            if due_s < self._wakes_s:
                self._changed.notify()
        return question.future

    def _work(self) -> None:
        while True:
            due = self._next_round()
            if not due:
                return
            try:
                answers: list[Answer] = self._reader.observe([question.watch for question in due])
            except ConnectError as error:
                answers = [error] * len(due)
            except Exception as error:  # noqa: BLE001 (a bug: whoever waits has to learn of it, and later rounds go on)
                for question in due:
                    question.future.set_exception(error)
                continue
            for question, answer in zip(due, answers, strict=True):
                if isinstance(answer, ConnectError):
                    question.future.set_exception(answer)
                else:
                    question.future.set_result(answer)

    def _next_round(self) -> list[_Question]:
        """Wait for questions that are due; [] if there were none for a long time: the thread ends."""
        with self._changed:
            while True:
                self._questions = [question for question in self._questions if not question.future.cancelled()]
                now = time.monotonic()
                self._wakes_s = min((question.due_s for question in self._questions), default=math.inf)
                if self._wakes_s <= now and (due := self._take(now + GATHER_S)):
                    return due
                is_idle = not self._questions
                was_asked = self._changed.wait(self._idle_s if is_idle else max(0.0, self._wakes_s - now))
                if is_idle and not was_asked and not self._questions:
                    self._thread = None
                    self._reader.close()
                    return []

    def _take(self, until_s: float) -> list[_Question]:
        """Questions that are due, or nearly; a future that was cancelled in the meantime must not be answered."""
        due = [question for question in self._questions if question.due_s <= until_s]
        self._questions = [question for question in self._questions if question.due_s > until_s]
        return [question for question in due if question.future.set_running_or_notify_cancel()]


_POLLERS: dict[Cluster, Poller] = {}
_LOCK = threading.Lock()


def shared_poller(cluster: Cluster) -> Poller:
    """The poller of this process for a cluster, as these client settings reach it."""
    with _LOCK:
        if cluster not in _POLLERS:
            _POLLERS[cluster] = Poller(ClusterReader(cluster))
        return _POLLERS[cluster]
