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
    """How another thread asks one run to stop.

    The run ends before its next step. It commits nothing after this, unless it has begun to publish or to commit
    before: see `finishing`.

    Attributes:
        is_finishing: the run does not go back, whatever it is asked; what it fails with then is its own error.
    """

    def __init__(self) -> None:
        """Not asked yet."""
        self._error: ConnectError | None = None
        self._lock = threading.Lock()
        self.is_finishing = False

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
_outlasts_process: ContextVar[bool] = ContextVar("outlasts_process", default=False)


def request_stop() -> None:
    """Request that every run of this process ends before its next step.

    A run commits nothing after this, unless the process would otherwise end between two steps that no later run can
    join: see `finishing`.
    """
    _stop.set()


@contextmanager
def may_be_stopped(request: StopRequest | None) -> Iterator[None]:
    """The run of the block, in this thread, can be stopped by `request`."""
    token = _of_this_run.set(request)
    try:
        yield
    finally:
        _of_this_run.reset(token)


@contextmanager
def finishing(*, is_resumable: bool) -> Iterator[None]:
    """The block publishes and commits what a run has copied: it has to do both, or the output and the offsets differ.

    A request to stop this run waits until the block has ended. The end of the process does not wait for long, so it is
    refused as before if the next run can finish the block.

    Args:
        is_resumable: whether a manifest lets the next run finish what the block leaves undone.
    """
    request, token = _of_this_run.get(), _outlasts_process.set(not is_resumable)
    if request is not None:
        request.is_finishing = True
    try:
        yield
    finally:
        _outlasts_process.reset(token)
    if request is not None:  # Not after an error: it ends the run, and is the reason why.
        request.is_finishing = False


def refuse_when_stopping() -> None:
    """Raise if a stop was requested, and the run is not in a block of `finishing`.

    Raises:
        StoppedError, RunTimeoutError: the run ends here.
    """
    if _stop.is_set() and not _outlasts_process.get():
        raise StoppedError("The run was stopped before it committed.", suggestion="The next run continues from here.")
    request = _of_this_run.get()
    if request is not None and request.error is not None and not request.is_finishing:
        raise request.error
