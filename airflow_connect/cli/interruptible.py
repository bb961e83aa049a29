"""Ctrl-C and SIGTERM while a run works: it is asked to stop, then ended with all its children.

The run works in a thread of its own, because librdkafka and Spark's gateway can keep a thread inside C code
for seconds; the main thread stays free for signals.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn, TypeVar

from airflow_connect.cli.terminal import Terminal
from airflow_connect.runtime.driver.process_tree import end_processes, own_token, told_unended

STOP_GRACE_S = 3.0
T = TypeVar("T")


class Interrupted(BaseException):
    """A signal asks the program to end. Raised in the main thread only."""

    def __init__(self, number: int) -> None:
        """`number`: the signal."""
        super().__init__(number)
        self.number = number


def run_interruptible(work: Callable[[threading.Event], T], terminal: Terminal) -> T:
    """Do `work(stopping)` in a thread, return its value or raise its exception; end the process on a signal.

    Args:
        work: gets an event that is set when it should come to an end.
        terminal: gets a last word before the process ends with 130 (SIGINT) or 143 (SIGTERM).
    """
    stopping = threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            results.append(work(stopping))
        except BaseException as error:  # noqa: BLE001 (raised again below, in the main thread)
            errors.append(error)

    thread = threading.Thread(target=target, name="run", daemon=True)
    with own_token() as token, _signals_raise():
        try:
            thread.start()
            thread.join()
        except Interrupted as interrupted:
            _end(interrupted.number, token, stopping, thread, terminal)
    if errors:
        raise errors[0]
    return results[0]


def _end(number: int, token: str, stopping: threading.Event, thread: threading.Thread, terminal: Terminal) -> NoReturn:
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, signal.SIG_IGN)
    stopping.set()
    # Only a loaded driver can be in the middle of something; loading it now would be a waste.
    driver = sys.modules.get("airflow_connect.runtime.driver.run")
    if driver is not None:
        driver.request_stop()
    thread.join(STOP_GRACE_S)
    left = end_processes(token, grace_s=0, spare=[os.getpid()])
    if left:
        print(told_unended(left), file=sys.stderr, flush=True)
    terminal.note("\nInterrupted. What was committed stays; the next run goes on behind it.")
    terminal.out.flush()
    # The thread may still be inside C code: nothing may follow, not even a commit.
    os._exit(128 + number)


@contextmanager
def _signals_raise() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handler(number: int, frame: FrameType | None) -> None:
        raise Interrupted(number)

    previous = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in previous.items():
            signal.signal(number, old)
