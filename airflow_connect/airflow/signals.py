"""What a task does on SIGTERM beside what Airflow does."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def on_sigterm(act: Callable[[], None]) -> Iterator[None]:
    """Call `act` on SIGTERM before the handler that was there: Airflow's calls `on_kill` of the operator only.

    The code in the block continues after the handler. Outside the main thread, which alone may set handlers, nothing is
    changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)

    def handle(number: int, frame: FrameType | None) -> None:
        act()
        if callable(before):
            before(number, frame)
        elif before is not signal.SIG_IGN:  # The default: the process ends.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
