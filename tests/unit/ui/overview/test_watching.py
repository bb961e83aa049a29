"""Answers are remembered: whoever asks waits for the first one only, and a failure keeps the last one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from airflow_connect.errors import UnavailableError
from airflow_connect.runtime.reporting.redaction import Redactor
from airflow_connect.ui.overview.watching import MOST_QUESTIONS, Memory, Remembered, Seen
from tests.support.waiting import wait_until

HIDES = Redactor(["opensesame"])


def settled(remembered: Remembered[int]) -> Seen[int]:
    wait_until(lambda: not remembered.look(60, 1).is_waiting, "the answer")
    return remembered.look(60, 1)


def test_an_answer_is_asked_for_once_while_it_is_fresh() -> None:
    asked: list[int] = []
    remembered = Remembered(lambda: asked.append(1) or len(asked), HIDES)
    assert [remembered.look(60, 5).value for _ in range(3)] == [1, 1, 1]
    assert remembered.look(0, 5).value == 2


def test_nobody_waits_longer_than_asked_and_the_question_is_asked_by_one_thread() -> None:
    go, asked = threading.Event(), []

    def slow() -> int:
        asked.append(1)
        assert go.wait(10)
        return 7

    remembered = Remembered(slow, HIDES)
    started = time.monotonic()
    seen = [remembered.look(0, 0.02) for _ in range(3)]
    assert time.monotonic() - started < 5
    assert [(s.value, s.is_waiting) for s in seen] == [(None, True)] * 3
    go.set()
    assert settled(remembered).value == 7
    assert len(asked) == 1


def test_a_failure_keeps_the_last_answer_and_hides_secrets() -> None:
    answers: list[Callable[[], int]] = [lambda: 1]

    def ask() -> int:
        return answers[-1]()

    def down() -> int:
        raise UnavailableError("Kafka at opensesame does not answer.")

    remembered = Remembered(ask, HIDES)
    assert remembered.look(0, 5).value == 1
    answers.append(down)
    seen = remembered.look(0, 5)
    assert (seen.value, seen.problem) == (1, "Kafka at [hidden] does not answer.")
    assert seen.age_s >= 0
    answers.append(lambda: int("no number"))
    assert remembered.look(0, 5).problem.startswith("Internal error, please report it: ")
    answers.append(lambda: 2)
    seen = remembered.look(0, 5)
    assert (seen.value, seen.problem) == (2, "")


def test_the_memory_is_bounded() -> None:
    memory = Memory(HIDES)
    first = memory.of(0, lambda: 0)
    assert memory.of(0, lambda: 1) is first
    for key in range(1, MOST_QUESTIONS + 1):
        memory.of(key, lambda: 0)
    assert memory.of(0, lambda: 1) is not first
