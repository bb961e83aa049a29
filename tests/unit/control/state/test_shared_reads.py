"""Threads that read at the same time share a read that began after they came."""

from __future__ import annotations

import threading

import pytest

from airflow_connect.control.state.shared_reads import SharedReads
from tests.support.waiting import wait_until

MANY = 8


class Held:
    """A read that waits until the test lets it end; counts its calls."""

    def __init__(self) -> None:
        self.calls = 0
        self.may_end = threading.Semaphore(0)
        self.failures: list[Exception] = []

    def __call__(self) -> None:
        self.calls += 1
        assert self.may_end.acquire(timeout=20)
        if self.failures:
            raise self.failures.pop()


def in_threads(reads: SharedReads, count: int) -> tuple[list[threading.Thread], list[Exception | None]]:
    ended: list[Exception | None] = []

    def target() -> None:
        try:
            reads.read()
        except Exception as error:  # noqa: BLE001 (the test compares it)
            ended.append(error)
        else:
            ended.append(None)

    threads = [threading.Thread(target=target) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads, ended


def waiting(reads: SharedReads) -> int:
    return len(reads._changed._waiters)  # type: ignore[attr-defined]


def test_all_that_come_during_a_read_share_the_next_one():
    held = Held()
    reads = SharedReads(held)
    first, ended_first = in_threads(reads, 1)
    wait_until(lambda: held.calls == 1, "the first read to begin")
    others, ended = in_threads(reads, MANY)
    wait_until(lambda: waiting(reads) == MANY, "the others to wait")
    held.may_end.release()
    wait_until(lambda: held.calls == 2 and ended_first == [None], "the second read to begin")
    assert ended == [], "a read that had begun before they came is not enough"
    held.may_end.release()
    for thread in (*first, *others):
        thread.join()
    assert (held.calls, ended) == (2, [None] * MANY)


def test_a_read_that_fails_fails_for_all_that_waited_for_it_and_the_next_one_begins_anew():
    held = Held()
    reads = SharedReads(held)
    first, ended_first = in_threads(reads, 1)
    wait_until(lambda: held.calls == 1, "the first read to begin")
    others, ended = in_threads(reads, MANY)
    wait_until(lambda: waiting(reads) == MANY, "the others to wait")
    failure = ValueError("no Kafka")
    held.may_end.release()
    wait_until(lambda: held.calls == 2, "the second read to begin")
    held.failures.append(failure)
    held.may_end.release()
    for thread in (*first, *others):
        thread.join()
    assert (ended_first, ended) == ([None], [failure] * MANY)
    held.may_end.release()
    reads.read()
    assert held.calls == 3


def test_what_ends_one_thread_alone_is_no_result_for_others():
    def interrupted() -> None:
        raise KeyboardInterrupt

    reads = SharedReads(interrupted)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            reads.read()
