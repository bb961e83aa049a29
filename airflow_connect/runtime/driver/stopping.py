"""Whether runs must stop: all of this process, or one of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from airflow_connect.errors import ConnectError


class StoppedError(ConnectError):
    """The run was stopped on request; nothing was committed after that."""

    code = "run.stopped"
    retriable = True


class RunTimeoutError(ConnectError):
    """The run took longer than it may, and was ended before its next step."""

    code = "run.timeout"
    retriable = True


class StopRequest:
    """How another thread asks one run to stop. The run ends before its next step, and never commits after this."""

    def __init__(self) -> None:
        """Not asked yet."""
        self._error: ConnectError | None = None
        self._lock = threading.Lock()

    @property
    def error(self) -> ConnectError | None:
        """What the run ends with; None: it was not asked to stop."""
        return self._error

    def ask(self, error: ConnectError) -> bool:
        """Ask the run to end with this error; False: it was asked before, and keeps its first reason."""
        with self._lock:
            if self._error is not None:
                return False
            self._error = error
            return True


_stop = threading.Event()
_of_this_run: ContextVar[StopRequest | None] = ContextVar("stop_request", default=None)


def request_stop() -> None:
    """Request that every run of this process ends before its next step; a run never commits after this."""
    _stop.set()


@contextmanager
def may_be_stopped(request: StopRequest | None) -> Iterator[None]:
    """The run of the block, in this thread, can be stopped by `request`."""
    token = _of_this_run.set(request)
    try:
        yield
    finally:
        _of_this_run.reset(token)


def refuse_when_stopping() -> None:
    """Raise if a stop was requested.

    Raises:
        StoppedError, RunTimeoutError: the run ends here.
    """
    if _stop.is_set():
        raise StoppedError("The run was stopped before it committed.", suggestion="The next run continues from here.")
    request = _of_this_run.get()
    if request is not None and request.error is not None:
        raise request.error
