"""Keeps the last answer of something slow, so that whoever asks never waits longer than a moment.

A question is asked in a thread of its own, at most once at a time. While Kafka is down, the last answer stays, with its
age and with the reason why there is no newer one.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from airflow_connect.errors import ConnectError
from airflow_connect.runtime.reporting.internal_errors import internal_error
from airflow_connect.runtime.reporting.redaction import Redactor

_Value = TypeVar("_Value")
MOST_QUESTIONS = 500
"""Answers that are kept; the one that nobody has asked for the longest goes first."""


@dataclass(frozen=True, slots=True)
class Seen(Generic[_Value]):
    """The last answer.

    Attributes:
        value: None: there has not been an answer yet.
        age_s: how old it is.
        problem: why there is no newer one, or "".
        is_waiting: whether the question is being asked right now.
    """

    value: _Value | None
    age_s: float
    problem: str
    is_waiting: bool


class Remembered(Generic[_Value]):
    """The last answer to one question."""

    def __init__(self, ask: Callable[[], _Value], redact: Redactor) -> None:
        """`ask`: may take long, and may raise a ConnectError; called by one thread at a time."""
        self._ask = ask
        self._redact = redact
        self._changed = threading.Condition()
        self._value: _Value | None = None
        self._problem = ""
        self._asked_s = self._answered_s = float("-inf")
        self._is_asking = False

    def look(self, fresh_s: float, wait_s: float) -> Seen[_Value]:
        """The answer, asked again if it is older than `fresh_s`.

        An older one is returned at once, and the next look gets the new one. Only without any answer, or with
        `fresh_s=0`, this waits for the new one, for at most `wait_s`.
        """
        until_s = time.monotonic() + wait_s
        with self._changed:
            if fresh_s <= 0 and self._is_asking:  # It was asked before the change that the caller wants to see.
                self._wait(until_s)
            now = time.monotonic()
            if not self._is_asking and now - self._asked_s >= fresh_s:
                self._is_asking, self._asked_s = True, now
                threading.Thread(target=self._work, name="airflow-connect-look", daemon=True).start()
            if self._is_asking and fresh_s <= 0:
                self._wait(until_s)
            elif self._is_asking and self._value is None:
                self._wait(self._asked_s + wait_s)  # Somebody has waited as long for the same answer.
            age_s = max(0.0, time.monotonic() - self._answered_s) if self._value is not None else 0.0
            return Seen(self._value, age_s, self._problem, self._is_asking)

    def _wait(self, until_s: float) -> None:
        self._changed.wait_for(lambda: not self._is_asking, max(0.0, until_s - time.monotonic()))

    def _work(self) -> None:
        value, problem = None, ""
        try:
            value = self._ask()
        except ConnectError as error:
            problem = self._redact(str(error))
        except Exception as error:  # noqa: BLE001 (a defect is shown on the page; it must not end in a dead thread)
            problem = str(internal_error(error, self._redact))
        with self._changed:
            self._is_asking, self._problem = False, problem
            if value is not None:
                self._value, self._answered_s = value, time.monotonic()
            self._changed.notify_all()


class Memory:
    """Answers to many questions."""

    def __init__(self, redact: Redactor) -> None:
        """`redact`: hides secrets in the text of errors."""
        self._redact = redact
        self._lock = threading.Lock()
        self._known: OrderedDict[Hashable, Remembered[object]] = OrderedDict()

    def of(self, key: Hashable, ask: Callable[[], _Value]) -> Remembered[_Value]:
        """What is remembered of a question; `ask` is used if it is new."""
        with self._lock:
            if key not in self._known:
                self._known[key] = Remembered(ask, self._redact)
            self._known.move_to_end(key)
            while len(self._known) > MOST_QUESTIONS:
                self._known.popitem(last=False)
            return self._known[key]  # type: ignore[return-value]

    def known(self, key: Hashable) -> Remembered[object] | None:
        """What is remembered of a question, or is being asked; None: nobody has asked it."""
        with self._lock:
            return self._known.get(key)

    def forget(self, key: Hashable) -> None:
        """Ask again the next time."""
        with self._lock:
            self._known.pop(key, None)
