"""Handles Ctrl-C and SIGTERM during a run: requests it to stop, then ends it with all its child processes.

The run has its own thread, because librdkafka and Spark's gateway can keep a thread inside C code for seconds; the
main thread stays free for signals.
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
from airflow_connect.runtime.driver.process_tree import end_processes, own_token, still_running

STOP_GRACE_S = 3.0
WAKE_UP_EVERY_S = 0.5
T = TypeVar("T")


class Interrupted(BaseException):
    """A signal requests the program to end. Raised in the main thread only."""

    def __init__(self, number: int) -> None:
        """`number`: the signal."""
        super().__init__(number)
        self.number = number


def run_interruptible(work: Callable[[threading.Event], T], terminal: Terminal) -> T:
    """Call `work(stopping)` in a thread, and return its value or raise its exception; end the process on a signal.

    Args:
        work: gets an event that is set when it should end.
        terminal: gets a final message before the process ends with 130 (SIGINT) or 143 (SIGTERM).
    """
    stopping, ended = threading.Event(), threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            results.append(work(stopping))
        except BaseException as error:  # noqa: BLE001 (raised again below, in the main thread)
            errors.append(error)
        finally:
            ended.set()

    thread = threading.Thread(target=target, name="run", daemon=True)
    with own_token() as token, _signals_raise():
        try:
            thread.start()
            # Not `thread.join`: if a signal interrupts it, Python before 3.13 takes the thread for ended.
            # The kernel may give a signal to another thread; Python handles it when the main thread wakes up.
            while not ended.wait(WAKE_UP_EVERY_S):
                pass
        except Interrupted as interrupted:
            _end(interrupted.number, token, stopping, ended, terminal)
    if errors:
        raise errors[0]
    return results[0]


def _end(number: int, token: str, stopping: threading.Event, ended: threading.Event, terminal: Terminal) -> NoReturn:
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, signal.SIG_IGN)
    stopping.set()
    # Without a loaded driver there is nothing to stop; loading it now would be a waste.
    driver = sys.modules.get("airflow_connect.runtime.driver.entry")
    if driver is not None:
        driver.request_stop()
    ended.wait(STOP_GRACE_S)
    left = end_processes(token, grace_s=0, spare=[os.getpid()])
    if left:
        print(still_running(left), file=sys.stderr, flush=True)
    terminal.drawn.close()
    terminal.note("\nInterrupted. What was committed stays; the next run resumes after it.")
    terminal.out.flush()
    # The thread may still be inside C code; it must not do anything more, such as a commit.
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
